package preflight

import (
	"context"
	"errors"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
)

// TestMain lets more tests run at once than there are cores: most of them wait for answers that do not come.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// quick are options under which what does not come is not waited for long. What must come has time, so that a busy machine fails no test.
func quick(url string) Options {
	return Options{URL: url, Wait: 5 * time.Second, Settle: 300 * time.Millisecond, Quiet: 2 * time.Second, flood: 60}
}

func failed(r *Result) (required, informative []string) {
	for _, v := range r.Verdicts {
		switch {
		case v.Status != Failed:
		case v.Required:
			required = append(required, v.Check)
		default:
			informative = append(informative, v.Check)
		}
	}
	return required, informative
}

func detail(r *Result, check string) string {
	for _, v := range r.Verdicts {
		if v.Check == check {
			return v.Detail
		}
	}
	return ""
}

func TestAnHonestRelayPassesEveryCheck(t *testing.T) {
	r, err := Run(t.Context(), quick(serveLiar(t)))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Verdicts {
		if v.Status != Passed || v.Detail == "" || strings.HasSuffix(v.Detail, ".") {
			t.Errorf("%s: %s: %q %q", v.Check, v.Status, v.Detail, v.Evidence)
		}
	}
	if !r.Passed() || r.Negentropy {
		t.Errorf("passed %t, NIP-77 %t (%s); the relay passes and lacks NIP-77", r.Passed(), r.Negentropy, r.NegentropyDetail)
	}
	for name, want := range map[string]string{
		"NIP-77": "no: ", "NIP-45": `no: CLOSED "error: unknown message"`, "NIP-09": "no: the event is still returned", "NIP-62": "no: the event is still returned",
		"NIP-40": "yes", "NIP-70": "no", "NIP-42": "no challenge", "compression": "none", "subscription cap": "at least 300", "order of ties": "lowest id first",
		"message size": "at least 65536 bytes", "limit clamp": "none up to 60 events", "default limit": "none up to 60 events", "throttling": "none seen",
	} {
		if got := r.Capabilities[name]; !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestEachLieFailsItsCheckAlone(t *testing.T) {
	const first = "stores and returns a valid event"
	for _, test := range []struct {
		lie         string
		required    []string
		informative []string
		says        string        // part of the first failed check's detail
		wait        time.Duration // for the lies that are silence
	}{
		{lie: "stores nothing", required: []string{first}, says: "did not come back"},
		{lie: "alters fields", required: []string{first, "returns text unchanged", "accepts events of the corpus' time", "returns kinds 4 and 1059"},
			informative: []string{"accepts events of 2020"}, says: "another"},
		{lie: "returns tags as text", required: []string{first, "returns text unchanged", "accepts events of the corpus' time", "returns kinds 4 and 1059"},
			informative: []string{"accepts events of 2020"}, says: "another form"},
		{lie: "refuses everything", required: []string{first}, says: "nobody writes here"},
		{lie: "sends no OK", required: []string{first}, says: "not acknowledged", wait: 3 * time.Second},
		{lie: "escapes as HTML does", required: []string{"returns text unchanged"}, says: "tags, content"},
		{lie: "takes bad signatures", required: []string{"refuses a bad signature"}, says: "with a bad signature is"},
		{lie: "takes bad ids", required: []string{"refuses a bad id"}, says: "is accepted: OK true"},
		{lie: "stores what it refuses", required: []string{"refuses a bad signature", "refuses a bad id"}, says: "returned to readers"},
		{lie: "takes malformed events", required: []string{"refuses malformed events"}, says: "is accepted: OK true"},
		{lie: "closes on malformed events"},
		{lie: "notices malformed events"},
		{lie: "refuses old events", required: []string{"accepts events of the corpus' time"}, informative: []string{"accepts events of 2020"}, says: "too old"},
		{lie: "refuses events of 2020", informative: []string{"accepts events of 2020"}},
		{lie: "hides private kinds", required: []string{"returns kinds 4 and 1059"}, says: "did not come back"},
		{lie: "ignores duplicates", informative: []string{"answers a duplicate"}, wait: 3 * time.Second},
		{lie: "ignores tags", required: []string{"filters by id, author, kind and tag"}, informative: []string{"filters live events"}, says: "by #t"},
		{lie: "ignores limits", required: []string{"keeps to the limit"}, informative: []string{"takes several filters in one REQ"}, says: "limit 1 of 5 events: 5 events"},
		{lie: "returns the oldest", required: []string{"keeps to the limit"}, informative: []string{"takes several filters in one REQ"}, says: "limit 1"},
		{lie: "answers oldest first", required: []string{"answers newest first"}, says: "[7 6 5 4 3 2 1]"},
		{lie: "excludes until", informative: []string{"since and until are inclusive"}},
		{lie: "takes one filter", informative: []string{"takes several filters in one REQ"}},
		{lie: "keeps replaced events", required: []string{"replaces replaceable events"}, informative: []string{"keeps out superseded versions"}, says: "kind 0"},
		{lie: "keeps addressed events", required: []string{"replaces addressable events"}, says: "kind 30023"},
		{lie: "stores late versions", informative: []string{"keeps out superseded versions"}},
		{lie: "stores ephemeral events", informative: []string{"passes ephemeral events on and stores none"}},
		{lie: "sends nothing live", required: []string{"sends live events after EOSE"}, says: "did not reach",
			informative: []string{"passes ephemeral events on and stores none", "filters live events"}, wait: 3 * time.Second},
		{lie: "ignores tags of live events", informative: []string{"filters live events"}},
		{lie: "ignores CLOSE", informative: []string{"ends a subscription on CLOSE"}},
		{lie: "notices rates", required: []string{throttles}, says: "too fast"},
		{lie: "hangs up", required: []string{throttles}, says: "enough"},
		{lie: "stops answering", required: []string{throttles}, says: "got no OK", wait: 3 * time.Second},
		{lie: "acknowledges first"},
		{lie: "challenges"},
	} {
		t.Run(test.lie, func(t *testing.T) {
			t.Parallel()
			o := quick(serveLiar(t, test.lie))
			o.narrow, o.flood = true, 20
			if test.wait > 0 {
				o.Wait = test.wait
			}
			if len(test.required) > 0 && test.required[0] == throttles {
				o.flood = 100 // well beyond where the limit lies
			}
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			required, informative := failed(&r)
			if !slices.Equal(required, test.required) || !slices.Equal(informative, test.informative) {
				t.Errorf("failed %q and %q, want %q and %q\n%+v", required, informative, test.required, test.informative, r.Verdicts)
			}
			if len(required) > 0 && !strings.Contains(detail(&r, required[0]), test.says) {
				t.Errorf("%s: %q does not say %q", required[0], detail(&r, required[0]), test.says)
			}
			if r.Passed() != (len(test.required) == 0) {
				t.Error("Passed contradicts the verdicts")
			}
		})
	}
}

func TestALimitIsARunWithoutGaps(t *testing.T) {
	all := make([]corpus.ID, 6)
	for i := range all {
		all[i][0] = byte(i)
	}
	for _, test := range []struct {
		name               string
		got                []corpus.ID
		newest, contiguous bool
	}{
		{"all", all, true, true},
		{"the newest", all[:3], true, true},
		{"the oldest", all[3:], false, true},
		{"the newest, oldest first", []corpus.ID{all[1], all[0]}, false, true},
		{"a gap", []corpus.ID{all[0], all[2]}, false, false},
		{"one twice", []corpus.ID{all[0], all[0]}, false, true},
		{"a stranger", []corpus.ID{all[0], {9}}, false, false},
		{"more than there are", append(slices.Clone(all), all...), false, true},
	} {
		if n, c := newest(test.got, all), contiguous(test.got, all); n != test.newest || c != test.contiguous {
			t.Errorf("%s: newest %t, contiguous %t", test.name, n, c)
		}
	}
}

func TestLimitsAreFoundByAsking(t *testing.T) {
	for _, test := range []struct{ lie, capability, want string }{
		{"returns thirty at most", "limit clamp", "30"},
		{"returns thirty at most", "default limit", "30"},
		{"takes ten subscriptions", "subscription cap", `10, then CLOSED "error: no more than ten"`},
		{"takes small events alone", "message size", `16384 bytes; an event of 32768 bytes: publishing: no answer but NOTICE "message too large"`},
		{"challenges", "NIP-42", "yes: clients are challenged when they connect"},
		{"compresses", "compression", "permessage-deflate"},
		{"describes itself", "NIP-11", "yes"},
		{"describes itself without end", "NIP-11", "no: the document is larger than 256 KiB"},
		{"describes itself in prose", "NIP-11", "no: the answer is no JSON object"},
		{"sends to another address", "NIP-11", "no: the answer is HTTP 302"},
		{"describes nothing", "NIP-11", "no: the answer is HTTP 406"},
		{"searches", "NIP-50", "yes"},
		{"ignores searches", "NIP-50", "no: a search is answered as if it were none"},
		{"finds nothing", "NIP-50", "no: a search finds nothing"},
		{"does not know searches", "NIP-50", `no: CLOSED "error: filter"`},
	} {
		t.Run(test.lie+" "+test.capability, func(t *testing.T) {
			t.Parallel()
			o := quick(serveLiar(t, test.lie))
			o.Wait = 2 * time.Second
			r, err := Run(t.Context(), o)
			if err != nil || r.Capabilities[test.capability] != test.want {
				t.Errorf("%q, %v; want %q", r.Capabilities[test.capability], err, test.want)
			}
		})
	}
}

// A limiter may strike before the flood: then no check blames the relay for what the limiter refused, beyond saying that it could not be asked.
func TestALimiterIsNamedWhereverItStrikes(t *testing.T) {
	o := quick(serveLiar(t, "limits rates"))
	o.flood = 200
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Verdicts {
		if v.Check == throttles && (v.Status != Failed || !strings.Contains(v.Detail, "rate-limited: slow down")) {
			t.Errorf("%s: %q", v.Status, v.Detail)
		}
	}
	if got := r.Capabilities["throttling"]; !strings.HasPrefix(got, "yes: ") {
		t.Errorf("throttling: %q", got)
	}
}

func TestARelayThatAnswersNothingIsToldSoOnce(t *testing.T) {
	for _, lie := range []string{"mute", "babbles"} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			o := quick(serveLiar(t, lie))
			o.Wait, o.Check = 300*time.Millisecond, 2*time.Second
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			required, informative := failed(&r)
			if !slices.Equal(required, []string{"stores and returns a valid event"}) || len(informative) > 0 {
				t.Errorf("failed %q and %q", required, informative)
			}
			if got := r.Findings("mine"); len(got) != 1 || got[0].Relay != "mine" || got[0].Scenario != Scenario || got[0].OK || !got[0].Required {
				t.Errorf("findings %+v, want the one failure", got)
			}
			for _, v := range r.Verdicts {
				if len(v.Detail) > maxDetail+len("…") {
					t.Errorf("%s: a detail of %d bytes", v.Check, len(v.Detail))
				}
			}
		})
	}
}

func TestNothingListensIsASentence(t *testing.T) {
	r, err := Run(t.Context(), quick("ws://127.0.0.1:1"))
	if err != nil || r.Passed() || !strings.Contains(r.Verdicts[0].Detail, "nothing listens there") {
		t.Errorf("%v, %+v", err, r.Verdicts[0])
	}
}

func TestAnInterruptionIsNotTheRelaysFault(t *testing.T) {
	why := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := quick(serveLiar(t, "mute"))
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	r, err := Run(ctx, o)
	if !errors.Is(err, why) {
		t.Errorf("error %v, want the cause", err)
	}
	if required, _ := failed(&r); len(required) > 0 {
		t.Errorf("failed %q", required)
	}
}

func TestWhatIsOutOfTimeIsNotVouchedFor(t *testing.T) {
	o := quick(serveLiar(t, "mute"))
	o.Total = 50 * time.Millisecond
	r, err := Run(t.Context(), o)
	if err != nil || r.Passed() {
		t.Errorf("%v, %+v", err, r.Verdicts[0])
	}
}

func TestTextsThatSpeakOfRates(t *testing.T) {
	for text, want := range map[string]bool{
		"rate-limited: slow down": true, "you are Too Fast": true, "Rate limit exceeded": true, "throttled": true,
		"blocked: nobody": false, "too many subscriptions": false, "": false,
	} {
		if speaksOfRate(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
