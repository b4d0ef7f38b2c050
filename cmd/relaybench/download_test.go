package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
	"relaybench/harness/download"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/relays/wire"
	"relaybench/report"
)

// holding serves a relay that holds synthetic events, and returns how many.
func holding(t *testing.T, n int, faults ...string) (url string, held int) {
	t.Helper()
	url = listening(t, faults...)
	conn, err := wire.Dial(t.Context(), url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	conn.WatchUseful(time.Minute)
	err = synthetic.Spec{Events: n, Seed: 3, BaseTime: 1_780_272_000}.Generate(t.Context(), nil, func(e *corpus.Event) error {
		if corpus.IsReplaceable(e.Kind) || corpus.IsAddressable(e.Kind) {
			return nil
		}
		held++
		return conn.SendEvent(e.AppendJSON(nil))
	})
	if err != nil {
		t.Fatal(err)
	}
	for range held {
		frame, _, err := conn.Read()
		var m wire.Message
		if wire.Parse(frame, &m); err != nil || !m.Accepted {
			t.Fatalf("%s, %v", frame, err)
		}
	}
	return url, held
}

func TestDownloadGivesACorpusAndIsUsedAgain(t *testing.T) {
	t.Parallel()
	url, held := holding(t, 400)
	env := []string{"RELAYBENCH_CACHE=" + t.TempDir()}
	args := []string{"corpus", "build", "--download", url + ",ws://127.0.0.1:1", "--download-interval=0s"}
	code, first, stderr := relaybenchWith(t, env, append(args, "--limit", "100")...)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	for _, text := range []string{"source       download from " + url + ", ws://127.0.0.1:1 (in part): the newest 100 events until ", "events       100,"} {
		if !strings.Contains(first, text) {
			t.Errorf("%q is not in:\n%s", text, first)
		}
	}
	for _, text := range []string{"ws://127.0.0.1:1 is given up after 0 events: ", "nothing listens there", url + ": ", "which is enough", "1 of 2 relays"} {
		if !strings.Contains(stderr, text) {
			t.Errorf("%q is not in:\n%s", text, stderr)
		}
	}
	code, again, stderr := relaybenchWith(t, env, append(args, "--limit", "100")...)
	if code != exitDone || again != first || !strings.Contains(stderr, "downloaded just now") || !strings.Contains(stderr, "--download-fresh asks") {
		t.Errorf("exit code %d\n%s%s", code, again, stderr)
	}
	args[3] = url
	code, all, stderr := relaybenchWith(t, env, append(args, "--limit=0", "--download-fresh")...)
	if code != exitDone || !strings.Contains(all, fmt.Sprintf("events       %d,", held)) || !strings.Contains(stderr, "it has no more") {
		t.Errorf("exit code %d\n%s%s", code, all, stderr)
	}
}

func TestAnInterruptedDownloadExitsWith130AndGoesOn(t *testing.T) {
	t.Parallel()
	url, held := holding(t, 1500)
	cache := t.TempDir()
	env := []string{"RELAYBENCH_CACHE=" + cache}
	args := []string{"corpus", "build", "--download=" + url, "--limit=0"}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	go func() { // the first page has come, and the second is asked for in an hour
		defer cancel()
		for ctx.Err() == nil {
			files, _ := filepath.Glob(filepath.Join(cache, "downloads", "*", "events.ndjson"))
			if len(files) == 1 {
				if info, err := os.Stat(files[0]); err == nil && info.Size() > 0 {
					return
				}
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	code, _, stderr := relaybenchContext(t, ctx, env, append(args, "--download-interval=1h")...)
	if code != exitInterrupted || !strings.Contains(stderr, "interrupted; 500 events of the download are kept, and the same command goes on from there") {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	code, stdout, stderr := relaybenchWith(t, env, append(args, "--download-interval=0s")...)
	if code != exitDone || !strings.Contains(stdout, fmt.Sprintf("events       %d,", held)) || !strings.Contains(stderr, "going on with the download") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestARunMeasuresADownload(t *testing.T) {
	t.Parallel()
	url, _ := holding(t, 300)
	out := t.TempDir()
	env := append([]string{"RELAYBENCH_CACHE=" + t.TempDir()}, withoutSQLite...)
	code, _, stderr := relaybenchWith(t, env, "--quick", "--download", url, "--download-interval", "0s", "--limit", "120", "--only=ingest.throughput", "--skip=preflight,calibration", "--out", out)
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	if r.Corpus.Events != 120 || !strings.HasPrefix(r.Corpus.Source, "download from "+url+": the newest 120 events until ") || r.Options["download"] != url || r.Options["download-interval"] != nil {
		t.Errorf("%+v, %v", r.Corpus, r.Options)
	}
	if args := fmt.Sprint(r.Options["args"]); !strings.Contains(args, "--download "+url+" ") || strings.Contains(args, "interval") {
		t.Errorf("args %s", args)
	}
}

func TestADownloadOfNothingSaysSo(t *testing.T) {
	t.Parallel()
	url := referencetest.Holding(t, nil, reference.Options{})
	code, _, stderr := relaybenchWith(t, []string{"RELAYBENCH_CACHE=" + t.TempDir()}, "corpus", "build", "--download", url, "--download-interval=0s", "--limit=10")
	if code != exitFailed || !strings.Contains(stderr, "no relay sent one that is wanted") || strings.Contains(stderr, "events.ndjson") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
}

func TestWrongUsageOfDownload(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--download=relay.example.com"}, "is no URL of a relay"},
		{[]string{"--download="}, "--download is empty"},
		{[]string{"--download=wss://me:secret@a.example"}, "holds a user name or a password"},
		{[]string{"--download=wss://a.example/?token=secret"}, "has a query"},
		{[]string{"--download", "--corpus=x"}, "--download, --corpus and --real"},
		{[]string{"--download", "--real"}, "--download, --corpus and --real"},
		{[]string{"--download", "--events=5"}, "--limit says how many"},
		{[]string{"--download", "--download-since=yesterday"}, "is no time"},
		{[]string{"--download", "--download-since=2026-05-02", "--download-until=2026-05-01"}, "lies after"},
		{[]string{"--download", "--download-interval=-1s"}, "--download-interval -1s"},
		{[]string{"--download", "--download-max-bytes=5"}, "--download-max-bytes 5"},
		{[]string{"--download-fresh"}, "--download, which is not given"},
		{[]string{"--download-until=5"}, "--download, which is not given"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), &stdout, &stderr, append([]string{"corpus", "build"}, c.args...))
		if code != exitUsage || !strings.Contains(stderr.String(), c.says) || strings.Count(stderr.String(), "\n") != 1 || strings.Contains(stderr.String(), "secret") {
			t.Errorf("%q: exit code %d, %q, want %q", c.args, code, stderr.String(), c.says)
		}
	}
}

func TestURLsMayFollowDownloadAsAWord(t *testing.T) {
	for _, c := range []struct{ in, out string }{
		{"run --download ws://a --quick", "run --download=ws://a --quick"},
		{"--download wss://a,wss://b", "--download=wss://a,wss://b"},
		{"run --download --quick", "run --download --quick"},
		{"run --download", "run --download"},
		{"run --download=ws://a ws://b", "run --download=ws://a ws://b"},
		{"fetch --download ws://a", "fetch --download ws://a"},
		{"", ""},
	} {
		if got := joinDownload(strings.Fields(c.in)); !slices.Equal(got, strings.Fields(c.out)) {
			t.Errorf("%s: %q", c.in, got)
		}
	}
}

func TestMomentsAreReadInThreeForms(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1780272000": 1780272000, "2026-06-01": 1780272000, "2026-06-01T02:00:00+02:00": 1780272000} {
		if at, err := moment("x", text); err != nil || *at != want {
			t.Errorf("%s: %v, %v", text, at, err)
		}
	}
}

func TestTheLineOfARelayFitsATerminal(t *testing.T) {
	r := download.RelayStatus{RelayState: download.RelayState{URL: "wss://a-very-long-name.of-a-relay.example.com/inbox\u202e", Next: 1_780_272_000}, Rate: 12345.6, Left: 3*time.Hour + 25*time.Minute}
	for outcome, says := range map[download.Outcome]string{download.Pending: "to 2026-06-01 00:00 12,345/s  3h25m0s left", download.All: "has no more", download.Enough: "no more that is wanted", download.Failed: "given up"} {
		r.Outcome, r.Received = outcome, 1_234_567
		line := downloadLine(report.CutNames([]string{hostOf(r.URL)}, 24)[hostOf(r.URL)], r)
		if !strings.HasSuffix(line, says) || !strings.Contains(line, " 1,234,567  ") || utf8.RuneCountInString(line) > 80 || strings.Contains(line, "\u202e") {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(line), line)
		}
	}
	if line := downloadTotal(download.Status{Events: 6, Bytes: 4 << 10}); !strings.HasSuffix(line, "6 different events, 4.00 KiB") {
		t.Errorf("%q", line)
	}
	if line := downloadLine("nos.lol", download.RelayStatus{}); !strings.HasSuffix(line, "no answer yet") {
		t.Errorf("%s", line)
	}
}

func TestRelayURLs(t *testing.T) {
	for text, want := range map[string]string{
		"wss://relay.example.com":                  "wss://relay.example.com",
		" wss://A.example/ , ws://127.0.0.1:7777,": "wss://a.example ws://127.0.0.1:7777",
		"wss://a.example,wss://A.EXAMPLE/":         "wss://a.example",
		"wss://a.example/inbox/":                   "wss://a.example/inbox",
		"ws://[::1]:7777":                          "ws://[::1]:7777",
		"":                                         "error: 0 relays are given",
		",":                                        "error: 0 relays are given",
		"relay.example.com":                        "error: is no URL of a relay",
		"https://relay.example.com":                "error: begins with ws://",
		"wss://":                                   "error: names no host",
		"wss://:7777":                              "error: names no host",
		"wss://a\x1b[31m.example":                  "error: is no URL of a relay",
		"wss://me:secret@a.example":                "error: holds a user name or a password",
		"wss://a.example/?key=secret":              "error: has a query",
		"wss://a.example/#x":                       "error: has a part after #",
		strings.Repeat("wss://a.example/x,wss://b.example/y,", 4) + manyURLs(): "error: 28 relays are given",
	} {
		urls, err := relayURLs(text)
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
