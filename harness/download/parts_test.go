package download

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"relaybench/relays/client"
)

func TestNewestTellsTheOldestThatIsWanted(t *testing.T) {
	var all []int64
	n := newest{want: 20}
	for range 500 {
		at := rand.Int64N(300)
		all = append(all, at)
		n.add(at)
		oldest, full := n.oldest()
		if full != (len(all) >= 20) {
			t.Fatal(len(all), full)
		}
		if sorted := slices.Sorted(slices.Values(all)); full && oldest != sorted[len(sorted)-20] {
			t.Fatalf("%d, not %d", oldest, sorted[len(sorted)-20])
		}
	}
}

func TestRelayURLs(t *testing.T) {
	for text, want := range map[string]string{
		"wss://relay.example.com":                  "wss://relay.example.com",
		" wss://A.example/ , ws://127.0.0.1:7777,": "wss://a.example ws://127.0.0.1:7777",
		"wss://a.example,wss://A.EXAMPLE/":         "wss://a.example",
		"wss://a.example/inbox/":                   "wss://a.example/inbox",
		"ws://[::1]:7777":                          "ws://[::1]:7777",
		"":                                         "error: no relay",
		",":                                        "error: no relay",
		"relay.example.com":                        "error: is no relay's URL",
		"https://relay.example.com":                "error: is no relay's URL",
		"wss://":                                   "error: is no relay's URL",
		"wss://:7777":                              "error: is no relay's URL",
		"wss://a\x1b[31m.example":                  "error: is no relay's URL",
		"wss://me:secret@a.example":                "error: leave out user name",
		"wss://a.example/?key=secret":              "error: leave out user name",
		"wss://a.example/#x":                       "error: leave out user name",
		strings.Repeat("wss://a.example/x,wss://b.example/y,", 4) + manyURLs(): "error: are too many",
	} {
		urls, err := ParseURLs(text)
		if wrong, failing := strings.CutPrefix(want, "error: "); failing {
			if err == nil || !strings.Contains(err.Error(), wrong) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v, %v", text, urls, err)
			}
			continue
		}
		if got := strings.Join(urls, " "); err != nil || got != want {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

func manyURLs() string {
	var urls []string
	for c := 'a'; c <= 'z'; c++ {
		urls = append(urls, "wss://"+string(c)+".example")
	}
	return strings.Join(urls, ",")
}

func TestPagesAreOfASizeThatMakesSense(t *testing.T) {
	for _, test := range []struct{ most, wanted, page int }{
		{300, 0, 300}, {1, 0, smallestPage}, {1_000_000_000, 0, largestPage}, {0, 0, usualPage},
		{0, 1, 51}, {0, 100, 160}, {0, 1000, 500}, {300, 100, 160}, {100, 1000, 100},
	} {
		if got := pageSize(test.most, test.wanted); got != test.page {
			t.Errorf("%d at most, %d wanted: pages of %d, not %d", test.most, test.wanted, got, test.page)
		}
	}
}

func TestWhatARelayWantsIsSaid(t *testing.T) {
	for said, want := range map[*client.Information]string{
		{}: "", {Auth: true}: "wants authentication,", {Auth: true, Payment: true}: "wants authentication and payment,",
	} {
		got := ""
		r := relay{download: &download{o: &Options{Note: func(line string) { got += line }}}, state: &RelayState{}}
		r.warn(said)
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%+v: %q", said, got)
		}
	}
}
