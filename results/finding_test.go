package results

import (
	"slices"
	"testing"
)

func TestPatternsOfScenarios(t *testing.T) {
	for _, c := range []struct {
		pattern, scenario string
		want              bool
	}{
		{"*", "anything.at.all", true}, {"ingest.*", "ingest.paced", true}, {"ingest.*", "ingest", true}, {"ingest.*", "ingestion", false},
		{"ingest.*", "import", false}, {"storage", "storage", true}, {"storage", "storage.more", false}, {".*", "x", false}, {".*", "", false}, {"ingest.*", "ingest.", false}, {"ingest.*", "ingest.x", true}, {"", "x", false},
		{"query.thread.hot.*", "query.thread.hot", true}, {"query.thread.hot.*", "query.thread.varied", false},
	} {
		if got := MatchScenario(c.pattern, c.scenario); got != c.want {
			t.Errorf("%q for %q: %v", c.pattern, c.scenario, got)
		}
	}
}

// Which figures a relay still competes in when it fails one check: the table of verdicts in
// proportion.
func TestAFailedCheckBarsWhatItBearsOn(t *testing.T) {
	uses := map[string][]string{"query.thread.hot": {UsesKinds, "#e", UsesLimit, UsesOrder}, "query.hashtag.hot": {UsesKinds, "#t", UsesLimit, UsesOrder},
		"query.by-ids.hot": {UsesIDs, UsesLimit, UsesOrder}, "query.follow-feed.hot": {UsesAuthors, UsesKinds, UsesLimit, UsesOrder}, "sync.req": {UsesUntil, UsesLimit, UsesOrder}}
	alone := []string{"ingest.visibility", "ingest.paced", "ingest.throughput", "query.thread.hot", "query.hashtag.hot", "query.by-ids.hot", "query.follow-feed.hot",
		"storage", "crash", "import", "live.fanout"}
	const sink, source, server = "sync.req as sink", "sync.req as source", "negentropy.initial"
	everywhere := append([]string{sink, source, server}, alone...)
	for _, c := range []struct {
		code, scenario string
		bars           []string
	}{
		{CodeStores, "preflight", everywhere},
		{CodeText, "preflight", everywhere},
		{CodeAcknowledgedKept, "ingest.throughput", everywhere},
		{CodeBadSignature, "preflight", []string{"ingest.visibility", "ingest.paced", "ingest.throughput", "storage", "crash", "import", sink}},
		{CodeBadID, "preflight", []string{"ingest.visibility", "ingest.paced", "ingest.throughput", "storage", "crash", "import", sink}},
		{CodeAccepts, "ingest.throughput", []string{"ingest.throughput", "import", "storage"}},
		{CodeReplaceable, "preflight", []string{"ingest.throughput", "import", "storage"}},
		{CodeAddressable, "preflight", []string{"ingest.throughput", "import", "storage"}},
		{CodeFilterTagT, "preflight", []string{"query.hashtag.hot"}},
		{CodeFilterTagE, "preflight", []string{"query.thread.hot"}},
		{CodeFilterIDs, "preflight", []string{"query.by-ids.hot"}},
		{CodeFilterAuthors, "preflight", []string{"query.follow-feed.hot"}},
		{CodeFilterKinds, "preflight", []string{"query.thread.hot", "query.hashtag.hot", "query.follow-feed.hot"}},
		{CodeLimit, "preflight", []string{"query.thread.hot", "query.hashtag.hot", "query.by-ids.hot", "query.follow-feed.hot", source}},
		{CodeLive, "preflight", []string{"live.fanout"}},
		{CodeModel, "query.thread.hot", []string{"query.thread.hot"}},
		{CodeNIP77, "preflight", []string{server}},
	} {
		f := Finding{Relay: "a", Scenario: c.scenario, Code: c.code, Verdict: Failed, Blames: "a", BearsOn: BearsOn(c.code, c.scenario, nil)}
		barred := map[string]bool{}
		for _, s := range c.bars {
			barred[s] = true
		}
		for _, s := range everywhere {
			m := Measurement{Relay: "a", Scenario: s}
			switch s {
			case sink:
				m = Measurement{Relay: "a", Peer: "b", Scenario: "sync.req"}
			case source:
				m = Measurement{Relay: "b", Peer: "a", Scenario: "sync.req"}
			case server:
				m.Peer = "b"
			}
			if got := f.Bars(&m, uses[m.Scenario]); got != barred[s] {
				t.Errorf("%s: %s barred %v", c.code, s, got)
			}
			other := Measurement{Relay: "c", Scenario: s}
			if f.Bars(&other, uses[m.Scenario]) {
				t.Errorf("%s bars another relay in %s", c.code, s)
			}
		}
		for _, v := range []Verdict{Passed, Undecided, Stated} {
			f.Verdict = v
			for _, s := range everywhere {
				if f.Bars(&Measurement{Relay: "a", Scenario: s}, uses[s]) {
					t.Errorf("%s, %s, bars %s", c.code, v, s)
				}
			}
		}
	}
}

func TestWhatWasSeenInAPairBearsOnThatPair(t *testing.T) {
	f := Finding{Relay: "a", Peer: "b", Scenario: "negentropy.identical", Code: CodeHoldsUnion, Verdict: Failed, Blames: "b",
		BearsOn: BearsOn(CodeHoldsUnion, "negentropy.identical", nil)}
	for _, c := range []struct {
		relay, peer, scenario string
		want                  bool
	}{
		{"b", "a", "negentropy.heartbeat", true}, {"a", "b", "negentropy.heartbeat", true}, {"b", "c", "negentropy.heartbeat", false},
		{"a", "c", "negentropy.heartbeat", false}, {"b", "a", "negentropy.initial", false},
	} {
		if got := f.Bars(&Measurement{Relay: c.relay, Peer: c.peer, Scenario: c.scenario}, nil); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	f.Blames, f.BearsOn = "b", everything
	if !f.Bars(&Measurement{Relay: "b", Scenario: "storage"}, nil) || f.Bars(&Measurement{Relay: "a", Scenario: "storage"}, nil) {
		t.Error("a loss seen in a pair bears on everything of the relay that lost, and on nothing of the other")
	}
	f.Blames, f.BearsOn = "", []Scope{{Scenario: "negentropy.*"}}
	if !f.Bars(&Measurement{Relay: "b", Peer: "a", Scenario: "negentropy.initial"}, nil) || f.Bars(&Measurement{Relay: "b", Peer: "c", Scenario: "negentropy.initial"}, nil) {
		t.Error("what nobody is to blame for bears on the pair and no other")
	}
}

func TestARoleSaysWhereTheRelayAtFaultStands(t *testing.T) {
	for _, c := range []struct {
		role            Role
		asRelay, asPeer bool
	}{{AsRelay, true, false}, {AsPeer, false, true}, {"", true, true}} {
		f := Finding{Relay: "a", Scenario: "preflight", Verdict: Failed, Blames: "a", BearsOn: []Scope{{Scenario: "sync.*", Role: c.role}}}
		for m, want := range map[*Measurement]bool{
			{Relay: "a", Peer: "b", Scenario: "sync.req"}: c.asRelay, {Relay: "b", Peer: "a", Scenario: "sync.req"}: c.asPeer, {Relay: "b", Peer: "c", Scenario: "sync.req"}: false,
		} {
			if got := f.Bars(m, nil); got != want {
				t.Errorf("role %q: %s from %s barred %v", c.role, m.Relay, m.Peer, got)
			}
		}
	}
}

func TestBarringGoesByWhatTheScenarioUses(t *testing.T) {
	bears := func(uses string) Finding {
		return Finding{Relay: "a", Scenario: "preflight", Code: uses, Verdict: Failed, Blames: "a", BearsOn: []Scope{{Scenario: "query.*", Uses: uses}}}
	}
	r := &Record{Scenarios: []Scenario{{Key: "query.thread.hot", Uses: []string{UsesKinds, "#e"}}}, Findings: []Finding{bears("#e"), bears("#t"), bears(""), bears(UsesKinds)}}
	for scenario, want := range map[string][]string{"query.thread.hot": {"#e", "", UsesKinds}, "query.described.nowhere": {""}, "storage": nil} {
		var got []string
		for _, f := range r.Barring(&Measurement{Relay: "a", Scenario: scenario}) {
			got = append(got, f.Code)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: barred by %q, want %q", scenario, got, want)
		}
	}
}
