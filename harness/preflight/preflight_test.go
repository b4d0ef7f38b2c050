package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/relays/scripted"
	"relaybench/results"
)

// TestMain lets more tests run at once than there are cores: most of them wait for answers that do
// not come.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// quick are options under which what does not come is not waited for long. What must come has time,
// so that a busy machine fails no test.
func quick(url string) Options {
	return Options{URL: url, Wait: 30 * time.Second, Settle: 300 * time.Millisecond, Quiet: time.Second, Check: 2 * time.Minute, Total: 8 * time.Minute, flood: 60}
}

// codes are those of all checks.
func codes() (all []string) {
	for _, c := range table {
		all = append(all, c.code)
	}
	return all
}

// probing is the probes beside checks.
func probing(checks ...string) []string {
	for _, p := range probes {
		checks = append(checks, p.name)
	}
	return append(checks, "NIP-42")
}

// settled asks until everything is decided, as a run does later on: on a busy machine a question
// may be left open.
func settled(t *testing.T, o Options) Result {
	t.Helper()
	r, err := Run(t.Context(), o)
	for range 3 {
		if err != nil {
			t.Fatal(err)
		}
		if len(r.AskAgain) == 0 {
			break
		}
		o.Only = r.AskAgain
		var later Result
		later, err = Run(t.Context(), o)
		r.Merge(&later)
	}
	return r
}

// told are the findings that did not pass, as "code: verdict cause".
func told(r *Result) (all []string) {
	for _, f := range r.Findings {
		if f.Verdict != results.Passed {
			all = append(all, fmt.Sprintf("%s: %s %s", f.Code, f.Verdict, f.Cause))
		}
	}
	return all
}

func finding(r *Result, code string) results.Finding {
	for _, f := range r.Findings {
		if f.Code == code {
			return f
		}
	}
	return results.Finding{}
}

func TestAnHonestRelayPassesEveryCheck(t *testing.T) {
	t.Parallel()
	o := quick(serveLiar(t))
	o.Relay, o.Fsync = "mine", time.Hour
	r := settled(t, o)
	if got := told(&r); !slices.Equal(got, []string{"nip77: stated unsupported"}) {
		t.Errorf("%q\n%+v", got, r.Findings)
	}
	var codes, want []string
	for _, f := range r.Findings {
		codes = append(codes, f.Code)
		if f.Relay != "mine" || f.Scenario != Scenario || f.Blames != "" || f.BearsOn != nil {
			t.Errorf("%+v", f)
		}
	}
	for _, c := range table {
		if c.code != results.CodeAdvertised { // it describes itself in nothing
			want = append(want, c.code)
		}
	}
	if !slices.Equal(codes, want) {
		t.Errorf("asked %q, want %q", codes, want)
	}
	if !r.Passed() || r.Negentropy.Cause != results.CauseUnsupported || r.Negentropy.Texts["how"] != "CLOSED" || r.Negentropy.Answered() {
		t.Errorf("passed %t, NIP-77 %+v; the relay passes and lacks NIP-77", r.Passed(), r.Negentropy)
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

// What a relay of this project and in wide use does is held against it nowhere.
func TestTheReferenceRelayPassesEveryCheck(t *testing.T) {
	r := settled(t, quick(referencetest.Holding(t, nil, reference.Options{})))
	if got := told(&r); len(got) > 0 || !r.Negentropy.Answered() {
		t.Errorf("%q, NIP-77 %+v\n%+v", got, r.Negentropy, r.Findings)
	}
}

func TestWhatComesUnderAnotherSubscriptionIsTold(t *testing.T) {
	t.Parallel()
	for lie, want := range map[string]float64{"answers under another subscription": 1, "stores nothing": 0} {
		r := settled(t, quick(serveLiar(t, lie)))
		if f := r.Findings[0]; f.Code != results.CodeStores || f.Cause != results.CauseNotReturned || f.Counts["elsewhere"] != want {
			t.Errorf("%s: %+v", lie, f)
		}
	}
}

func TestEachLieFailsItsCheckAlone(t *testing.T) {
	t.Parallel()
	const no77 = "nip77: stated unsupported"
	for _, test := range []struct {
		lies string        // joined by a plus sign
		told []string      // beside no77
		wait time.Duration // for the lies that are silence
	}{
		{lies: "stores nothing", told: []string{"stores: failed not-returned"}},
		{lies: "alters fields", told: []string{"stores: failed unreadable", "text: failed unreadable", "empty-tag: failed unreadable", "control: undecided plain"}},
		{lies: "returns tags as text", told: []string{"only-message: stated ", "stores: failed unreadable", "text: failed unreadable", "empty-tag: failed unreadable", "control: undecided plain"}},
		{lies: "refuses everything", told: []string{"stores: failed refused"}},
		{lies: "refuses notes", told: []string{"stores: failed refused"}},
		{lies: "names no event", told: []string{"stores: failed unnamed"}},
		{lies: "escapes as HTML does", told: []string{"text: failed altered"}},
		{lies: "strips white space", told: []string{"text: failed trimmed"}},
		{lies: "drops empty tags", told: []string{"empty-tag: failed tags-dropped"}},
		{lies: "refuses empty tags", told: []string{"empty-tag: stated refused"}},
		{lies: "refuses NUL", told: []string{"control: stated characters"}},
		{lies: "replaces control characters", told: []string{"control: stated characters"}},
		{lies: "takes bad signatures", told: []string{"bad-signature: failed accepted"}},
		{lies: "takes bad ids", told: []string{"bad-id: failed accepted"}},
		{lies: "stores what it refuses", told: []string{"bad-signature: failed served", "bad-id: failed served"}},
		{lies: "takes malformed events", told: []string{"malformed: stated accepted"}},
		{lies: "closes on malformed events"},
		{lies: "notices malformed events"},
		{lies: "refuses old events", told: []string{"corpus-time: failed refused", "year-2020: stated refused"}},
		{lies: "refuses events of 2020", told: []string{"year-2020: stated refused"}},
		{lies: "hides private kinds", told: []string{"private-kinds: failed not-returned"}},
		{lies: "ignores duplicates", told: []string{"duplicate: stated no-ok"}, wait: 5 * time.Second},
		{lies: "ignores ids", told: []string{"filter-ids: failed answer"}},
		{lies: "ignores authors", told: []string{"filter-authors: failed answer"}},
		{lies: "ignores kinds", told: []string{"filter-kinds: failed answer"}},
		{lies: "ignores #e", told: []string{"filter-tag-e: failed answer"}},
		{lies: "ignores #p", told: []string{"filter-tag-p: failed answer"}},
		{lies: "matches prefixes", told: []string{"filter-tag-t: failed answer"}},
		{lies: "ignores tags", told: []string{"filter-tag-e: failed answer", "filter-tag-p: failed answer", "filter-tag-t: failed answer", "live-filter: failed answer"}},
		{lies: "ignores limits", told: []string{"limit: failed answer", "several: stated answer"}},
		{lies: "returns the oldest", told: []string{"limit: failed answer", "several: stated answer"}},
		{lies: "answers oldest first", told: []string{"order: failed order"}},
		{lies: "excludes until", told: []string{"inclusive: failed answer"}},
		{lies: "excludes since", told: []string{"inclusive: failed answer"}},
		{lies: "takes one filter", told: []string{"several: stated answer"}},
		{lies: "remembers answers", told: []string{"stale: stated cached"}},
		{lies: "remembers answers for good", told: []string{"stale: stated never"}},
		{lies: "keeps replaced events", told: []string{"replaceable: failed answer", "late-version: stated answer"}},
		{lies: "keeps addressed events", told: []string{"addressable: failed answer"}},
		{lies: "stores late versions", told: []string{"late-version: stated answer"}},
		{lies: "stores ephemeral events", told: []string{"ephemeral: stated stored"}},
		{lies: "passes nothing on", told: []string{"ephemeral: stated not-delivered"}},
		{lies: "takes ephemeral events in silence", told: []string{"ephemeral: stated no-ok"}},
		{lies: "deletes"},
		{lies: "deletes+deletes anybody's", told: []string{"deletion: stated foreign"}},
		{lies: "sends nothing live", wait: 5 * time.Second,
			told: []string{"close: undecided silent", "ephemeral: stated not-delivered", "live: failed not-delivered", "live-filter: failed not-delivered"}},
		{lies: "ignores tags of live events", told: []string{"live-filter: failed answer"}},
		{lies: "ignores CLOSE", told: []string{"close: stated answer"}},
		{lies: "reconciles nothing", told: []string{"nip77: failed breaks"}},
		{lies: "reconciles in prose", told: []string{"nip77: failed breaks"}},
		{lies: "reconciles with random bytes", told: []string{"nip77: failed breaks"}},
		{lies: "refuses to reconcile", told: []string{"nip77: stated refused"}},
		{lies: "ignores NEG-OPEN", wait: 5 * time.Second},
		{lies: "notices rates", told: []string{"throttles: failed rates"}},
		{lies: "limits REQs", told: []string{"throttles: failed rates"}},
		{lies: "hangs up", told: []string{"throttles: stated hung-up"}},
		{lies: "stops answering", told: []string{"throttles: stated unanswered"}, wait: 5 * time.Second},
		{lies: "acknowledges first"},
		{lies: "challenges"},
		{lies: "greets"},
		{lies: "sends foreign events", told: []string{"filter-ids: failed answer", "filter-authors: failed answer", "filter-kinds: failed answer",
			"filter-tag-e: failed answer", "filter-tag-p: failed answer", "filter-tag-t: failed answer", "limit: failed answer", "several: stated answer"}},
		// What strfry does otherwise bars nothing.
		{lies: "hashes DEL as strfry does+refuses empty tags+stores ephemeral events+orders ties by arrival",
			told: []string{"empty-tag: stated refused", "control: stated characters", "ephemeral: stated stored"}},
	} {
		t.Run(test.lies, func(t *testing.T) {
			t.Parallel()
			o := quick(serveLiar(t, strings.Split(test.lies, "+")...))
			o.Only, o.flood, o.Relay = codes(), 20, "mine"
			if test.wait > 0 {
				o.Wait = test.wait
			}
			floods := len(test.told) > 0 && strings.HasPrefix(test.told[0], results.CodeThrottles)
			if floods {
				o.flood = 400 // well beyond where the limit lies
			}
			r := settled(t, o)
			want := slices.DeleteFunc(append(slices.Clone(test.told), no77), func(s string) bool { return s == "nip77: passed" })
			if slices.ContainsFunc(test.told, func(s string) bool { return strings.HasPrefix(s, "nip77") }) || len(want) == 2 && strings.HasPrefix(want[0], "stores") {
				want = slices.DeleteFunc(want, func(s string) bool { return s == no77 })
			}
			got := told(&r)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("got %q\nwant %q\n%+v", got, want, r.Findings)
			}
			for _, f := range r.Findings {
				if failed := f.Verdict == results.Failed; failed != (f.Blames == "mine") || failed != (len(f.BearsOn) > 0) {
					t.Errorf("%s %s blames %q and bears on %v", f.Code, f.Verdict, f.Blames, f.BearsOn)
				}
			}
			if failed := strings.Contains(strings.Join(want, " "), ": failed "); r.Passed() == failed {
				t.Error("Passed contradicts the verdicts")
			}
		})
	}
}

func TestWhatWasSeenIsInCountsAndTexts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		lie, code string
		check     func(*results.Finding) bool
	}{
		{"excludes until", results.CodeInclusive, func(f *results.Finding) bool {
			return f.Counts["until"] == 1 && len(f.BearsOn) == 1 && f.BearsOn[0].Uses == results.UsesUntil
		}},
		{"limits REQs", results.CodeThrottles, func(f *results.Finding) bool {
			return slices.EqualFunc(f.BearsOn, results.Throttled(false, true), func(a, b results.Scope) bool { return a.Scenario == b.Scenario }) &&
				strings.Contains(f.Texts["asking"], "ask less") && f.Texts["publishing"] == ""
		}},
		{"limits rates", results.CodeThrottles, func(f *results.Finding) bool {
			return len(f.BearsOn) == len(results.Throttled(true, false)) && strings.Contains(f.Texts["publishing"], "slow down")
		}},
		{"strips white space", results.CodeText, func(f *results.Finding) bool {
			return f.Texts["fields"] == "content" && strings.HasPrefix(f.Texts["sent"], `" \t\nquotes`) && strings.HasPrefix(f.Texts["returned"], `"quotes`)
		}},
		{"drops empty tags", results.CodeEmptyTag, func(f *results.Finding) bool {
			return f.Texts["fields"] == "tags" && len(f.BearsOn) == 1 && f.BearsOn[0].Scenario == "*"
		}},
		{"matches prefixes", results.CodeFilterTagT, func(f *results.Finding) bool {
			return f.Counts["got"] == 3 && f.Counts["want"] == 2 && f.Counts["extra"] == 1 && f.Counts["missing"] == 0 &&
				f.Evidence[0].Code == results.EvidenceQuestion && strings.HasPrefix(f.Evidence[0].Text, `{"#t":[`) && f.Evidence[1].Code == results.EvidenceExtra
		}},
		{"ignores limits", results.CodeLimit, func(f *results.Finding) bool {
			return f.Counts["limit"] == 1 && f.Counts["got"] == 5 && f.Counts["want"] == 1
		}},
		{"answers oldest first", results.CodeOrder, func(f *results.Finding) bool {
			return f.Evidence[1].Code == results.EvidenceOrder && f.Evidence[1].Text == "7 6 5 4 3 2 1"
		}},
		{"hashes DEL as strfry does", results.CodeControl, func(f *results.Finding) bool {
			return f.Counts["accepted"] == 27 && f.Counts["refused"] == 1 && f.Texts["refused"] == "U+007F" && f.Texts["reason"] == "invalid: bad event id" &&
				f.Texts["accepted"] == "U+0000–U+0007, U+000B, U+000E–U+001F"
		}},
		{"replaces control characters", results.CodeControl, func(f *results.Finding) bool {
			return f.Counts["altered"] == 3 && f.Texts["altered"] == "U+0001–U+0003"
		}},
		{"deletes anybody's", results.CodeDeletion, func(f *results.Finding) bool { return f.Counts["foreign"] == 1 && f.Counts["own"] == 1 }},
		{"remembers answers", results.CodeStale, func(f *results.Finding) bool { return f.Counts["ms"] > 0 }},
		{"remembers answers for good", results.CodeStale, func(f *results.Finding) bool { return f.Counts["ms"] >= 3000 }},
		{"takes bad signatures", results.CodeBadSignature, func(f *results.Finding) bool { return f.Texts["forgery"] == results.ForgedSignature }},
		{"refuses old events", results.CodeCorpusTime, func(f *results.Finding) bool {
			return f.Texts["reason"] == "invalid: too old" && f.Counts["createdAt"] == defaultNewest-defaultSpan
		}},
		{"greets", results.CodeBadSignature, func(f *results.Finding) bool { return f.Texts[results.ForgedSignature] == "invalid: forged" }},
		// The forged event's own id is what tells; a greeting before the question, and foreign
		// events in the answer, do not.
		{"greets+mute on forgeries", results.CodeBadSignature, func(f *results.Finding) bool {
			return f.Verdict == results.Passed && f.Evidence[0].Cause == results.CauseSilent && f.Texts[results.ForgedSignature] == ""
		}},
		{"sends foreign events", results.CodeBadSignature, func(f *results.Finding) bool { return f.Verdict == results.Passed }},
		{"reconciles in prose", results.CodeNIP77, func(f *results.Finding) bool {
			return len(f.BearsOn) > 0 && f.BearsOn[0].Scenario == "negentropy.*" && f.Texts["error"] != ""
		}},
	} {
		t.Run(test.lie, func(t *testing.T) {
			t.Parallel()
			o := quick(serveLiar(t, strings.Split(test.lie, "+")...))
			o.Only, o.flood, o.Relay = []string{test.code}, 400, "mine"
			r := settled(t, o)
			if f := finding(&r, test.code); !test.check(&f) {
				t.Errorf("%+v", f)
			}
			if len(r.Findings) != 1 {
				t.Errorf("%d findings of one check", len(r.Findings))
			}
		})
	}
}

// A machine that is busy, or a relay that is slow at everything, is held against nobody.
func TestARelayThatIsSlowAtEverythingFailsNothing(t *testing.T) {
	t.Parallel()
	for name, slow := range map[string]time.Duration{"answers in time": 100 * time.Millisecond, "answers late": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := quick(serveSlowLiar(t, slow))
			o.Wait, o.Settle, o.Quiet, o.Only, o.Fsync = 400*time.Millisecond, 100*time.Millisecond, 50*time.Millisecond, codes(), time.Millisecond
			o.Check, o.Total = 15*time.Second, time.Minute
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Verdict == results.Failed || f.Verdict == results.Stated && f.Code != results.CodeNIP77 {
					t.Errorf("%s: %s %s %v", f.Code, f.Verdict, f.Cause, f.Counts)
				}
				if (f.Verdict == results.Undecided) != slices.Contains(r.AskAgain, f.Code) {
					t.Errorf("%s is %s, and to be asked again: %q", f.Code, f.Verdict, r.AskAgain)
				}
			}
			if name == "answers late" {
				if f := finding(&r, results.CodeStores); f.Verdict != results.Undecided || f.Cause != results.CauseSilent || len(r.Findings) != 1 || len(r.AskAgain) != len(table) {
					t.Errorf("%+v, and %d to be asked again", r.Findings, len(r.AskAgain))
				}
			}
		})
	}
}

func TestOnlyWhatIsNamedIsAskedAndMerged(t *testing.T) {
	r := Result{Findings: []results.Finding{{Code: results.CodeStores, Verdict: results.Passed}, {Code: results.CodeLimit, Verdict: results.Undecided},
		{Code: results.CodeLive, Verdict: results.Undecided}, {Code: results.CodeSurvives, Verdict: results.Failed}},
		AskAgain: []string{results.CodeLimit, results.CodeLive}, Capabilities: map[string]string{}}
	later := Result{Findings: []results.Finding{{Code: results.CodeText, Verdict: results.Passed}, {Code: results.CodeLimit, Verdict: results.Failed},
		{Code: results.CodeLive, Verdict: results.Undecided, Cause: "later"}, {Code: results.CodeStores, Verdict: results.Undecided}},
		AskAgain: []string{results.CodeLive}, Capabilities: map[string]string{"x": "y"}, Negentropy: Negentropy{Cause: results.CauseAnswered}}
	r.Merge(&later)
	var got []string
	for _, f := range r.Findings {
		got = append(got, f.Code+" "+string(f.Verdict)+f.Cause)
	}
	want := []string{"stores passed", "text passed", "limit failed", "live undecidedlater", "survives failed"}
	if !slices.Equal(got, want) || !slices.Equal(r.AskAgain, []string{results.CodeLive}) || r.Capabilities["x"] != "y" || !r.Negentropy.Answered() {
		t.Errorf("%q, %+v", got, r)
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
	t.Parallel()
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
			o.Wait, o.Only = 15*time.Second, probing(results.CodeThrottles)
			r, err := Run(t.Context(), o)
			if err != nil || r.Capabilities[test.capability] != test.want {
				t.Errorf("%q, %v; want %q", r.Capabilities[test.capability], err, test.want)
			}
		})
	}
}

// A limiter may strike before the flood: then no check blames the relay for what the limiter
// refused, beyond saying that it could not be asked.
func TestALimiterIsNamedWhereverItStrikes(t *testing.T) {
	t.Parallel()
	o := quick(serveLiar(t, "limits rates"))
	o.flood = 200
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if f.Verdict == results.Failed && f.Code != results.CodeThrottles {
			t.Errorf("%s: %s %v", f.Code, f.Cause, f.Texts)
		}
	}
	if f := finding(&r, results.CodeThrottles); f.Verdict != results.Failed || !strings.Contains(f.Texts[publishing], "rate-limited: slow down") {
		t.Errorf("%+v", f)
	}
	if got := r.Capabilities["throttling"]; !strings.HasPrefix(got, "yes: ") {
		t.Errorf("throttling: %q", got)
	}
}

// TestALimitThatCouldNotBeSeenIsNotDenied where the connection ended at the questions.
func TestALimitThatCouldNotBeSeenIsNotDenied(t *testing.T) {
	t.Parallel()
	o := quick(serveLiar(t, "hangs up when asked much"))
	o.Only, o.flood = probing(results.CodeThrottles), 100
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	f := finding(&r, results.CodeThrottles)
	if f.Verdict != results.Undecided || f.Cause != results.CauseLost || f.Texts["doing"] != "asking" {
		t.Errorf("%+v", f)
	}
	if got := r.Capabilities["throttling"]; !strings.HasPrefix(got, "perhaps: ") {
		t.Errorf("throttling: %q", got)
	}
}

func TestARelayThatAnswersNothingIsToldSoOnce(t *testing.T) {
	t.Parallel()
	for _, lie := range []string{"mute", "babbles", "sends no OK"} {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			o := quick(serveLiar(t, lie))
			o.Wait, o.Check = 300*time.Millisecond, 2*time.Second
			r, err := Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Findings) != 1 || r.Findings[0].Code != results.CodeStores || r.Findings[0].Verdict != results.Undecided || len(r.AskAgain) != len(table) {
				t.Errorf("findings %+v, want the one that is open", r.Findings)
			}
			for _, text := range r.Findings[0].Texts {
				if len(text) > maxLine+len("…") {
					t.Errorf("a text of %d bytes", len(text))
				}
			}
		})
	}
}

func TestNothingListensIsNoVerdict(t *testing.T) {
	r, err := Run(t.Context(), quick("ws://127.0.0.1:1"))
	if err != nil || r.Findings[0].Verdict != results.Undecided || r.Findings[0].Cause != results.CauseLost || !strings.Contains(r.Findings[0].Texts["error"], "nothing listens there") {
		t.Errorf("%v, %+v", err, r.Findings)
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
	if len(r.Findings) > 0 || len(r.AskAgain) != len(table) {
		t.Errorf("found %+v", r.Findings)
	}
}

func TestWhatIsOutOfTimeIsUndecided(t *testing.T) {
	o := quick(serveLiar(t, "mute"))
	o.Total = 50 * time.Millisecond
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Findings) != 1 || r.Findings[0].Verdict != results.Undecided || r.Findings[0].Cause != results.CauseTime {
		t.Errorf("%v, %+v", err, r.Findings)
	}
}

func TestARelayIsComparedWithWhatItNames(t *testing.T) {
	o := quick(serveLiar(t, "describes itself"))
	o.Only = probing(results.CodeNIP77, results.CodeAdvertised)
	r := settled(t, o)
	f := finding(&r, results.CodeAdvertised)
	if f.Verdict != results.Stated || f.Cause != results.CauseNotSpoken || f.Texts["nips"] != "45, 77" || f.Texts["unnamed"] != "40" {
		t.Errorf("%+v", f)
	}
}

func TestAnswersThatAreHeldBack(t *testing.T) {
	ms := func(all ...float64) (times []time.Duration) {
		for _, t := range all {
			times = append(times, time.Duration(t*float64(time.Millisecond)))
		}
		return times
	}
	for _, test := range []struct {
		name    string
		answers [][]time.Duration
		held    int
		gap     time.Duration
	}{
		{"none", nil, 0, 0},
		{"all at once", [][]time.Duration{ms(5, 5, 5), ms(7)}, 0, 0},
		{"EOSE late", [][]time.Duration{ms(1, 1, 41), ms(2, 3, 46)}, 2, 43 * time.Millisecond},
		{"all but the first late", [][]time.Duration{ms(1, 41.2, 41.2, 41.2)}, 1, 40200 * time.Microsecond},
		{"at the bounds", [][]time.Duration{ms(0, 34), ms(0, 46), ms(0, 33.9), ms(0, 46.1)}, 2, 46 * time.Millisecond},
		{"in the middle alone", [][]time.Duration{ms(0, 40, 41)}, 0, 0},
		{"slow", [][]time.Duration{ms(0, 300)}, 0, 0},
	} {
		if held, gap := heldBack(test.answers); held != test.held || gap != test.gap {
			t.Errorf("%s: %d held by %v, want %d by %v", test.name, held, gap, test.held, test.gap)
		}
	}
}

func TestAnFsyncForEachEvent(t *testing.T) {
	const ms = time.Millisecond
	for _, test := range []struct {
		name               string
		alone, each, fsync time.Duration
		want               bool
	}{
		{"one each", 5 * ms, 4500 * time.Microsecond, 4 * ms, true},
		{"a window makes it faster", 5 * ms, ms, 4 * ms, false},
		{"faster than the disk", 2 * ms, 2 * ms, 4 * ms, false},
		{"slower than any disk", 50 * ms, 50 * ms, 4 * ms, false},
		{"a disk that cannot be told from work", 300 * time.Microsecond, 300 * time.Microsecond, 200 * time.Microsecond, false},
	} {
		if got := oneSyncEach(test.alone, test.each, test.fsync); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}

// Probe events are such as the network sees: relays refuse a list of relays without one, or a
// profile that is no JSON.
func TestProbeEventsLookLikeThoseOfTheNetwork(t *testing.T) {
	a := &checker{prober: &prober{now: 1_780_000_000}, key: newKey()}
	if e := a.version(0, 0, 1); !json.Valid([]byte(e.Content)) {
		t.Errorf("kind 0: %q", e.Content)
	}
	if e := a.version(3, 0, 1); len(e.Tags) == 0 || e.Tags[0].Name() != "p" || len(e.Tags[0].Value()) != 64 {
		t.Errorf("kind 3: %q", e.Tags)
	}
	if e := a.version(10002, 0, 1); len(e.Tags) == 0 || e.Tags[0].Name() != "r" || !strings.HasPrefix(e.Tags[0].Value(), "wss://") {
		t.Errorf("kind 10002: %q", e.Tags)
	}
	if e := a.article(0, "one", "Title"); e.D() != "one" || !slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return t.Name() == "title" }) {
		t.Errorf("kind 30023: %q", e.Tags)
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

// TestACountMayBeApproximate where the relay says so (NIP-45), and is exact otherwise: two events
// are there to be counted.
func TestACountMayBeApproximate(t *testing.T) {
	t.Parallel()
	for count, speaks := range map[string]bool{`{"count":2}`: true, `{"count":5,"approximate":true}`: true, `{"count":5}`: false, `{"count":5,"approximate":false}`: false,
		`{"count":-2,"approximate":true}`: false, `{"count":"2"}`: false} {
		o := quick(scripted.Serve(t, scripted.Script{CountReply: `["COUNT","SUB",` + count + `]`}).URL)
		o.Only = []string{NIP(45)}
		r := settled(t, o)
		if yes, asked := r.Speaks[45]; !asked || yes != speaks {
			t.Errorf("%s: asked %v, spoken %v, %v", count, asked, yes, r.Capabilities)
		}
	}
}
