package scenarios

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/receive"
	"relaybench/relays"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/results"
)

// probePeople are the authors of these tests' events.
var probePeople = sync.OnceValue(func() (keys []corpus.SecretKey) {
	for i := range 5 {
		k, err := corpus.NewSecretKey([32]byte{30: 1, 31: byte(i)})
		if err != nil {
			panic(err)
		}
		keys = append(keys, k)
	}
	return keys
})

// probeWorld is what all relays together could hold: notes, answers that mention somebody, and
// profiles.
var probeWorld = sync.OnceValue(func() (events []corpus.Event) {
	keys := probePeople()
	add := func(k corpus.SecretKey, e corpus.Event) {
		e.CreatedAt = 1_700_000_000 + int64(len(events))
		if err := k.Sign(&e, [32]byte{}); err != nil {
			panic(err)
		}
		events = append(events, e)
	}
	for i := range 60 {
		add(keys[i%5], corpus.Event{Kind: 1, Tags: []corpus.Tag{}, Content: fmt.Sprintf("note %d %s", i, strings.Repeat("text ", i))})
	}
	for i := range 30 {
		add(keys[i%5], corpus.Event{Kind: 7, Tags: []corpus.Tag{{"p", keys[(i+1)%5].PubKey.String()}}, Content: "+"})
	}
	for _, k := range keys {
		add(k, corpus.Event{Kind: 0, Tags: []corpus.Tag{}, Content: `{"name":"somebody"}`})
	}
	return events
})

// serveProbed starts a reference relay that holds the events, and misbehaves as the faults say.
func serveProbed(t *testing.T, events []corpus.Event, faults ...string) string {
	t.Helper()
	return referencetest.Holding(t, events, reference.Options{}, faults...)
}

// probing is what a test probes.
type probing struct {
	urls  []string
	stall time.Duration
	ProbeOptions
}

// asking are options that do not wait.
func asking(urls ...string) probing {
	return probing{urls, 20 * time.Second, ProbeOptions{Shapes: ProbeShapes(), Checks: []receive.Checks{receive.Inline, receive.Parallel}, Limit: DefaultProbeLimit,
		Pause: time.Millisecond}}
}

// probedPass, probedRelay and probedAnswer are a pass as the record tells of it. What is nil is not
// in it.
type probedPass struct {
	verified string
	relays   []probedRelay
	queue    map[string]map[string]*results.Measurement // by shape and metric
}

type probedRelay struct {
	results.Relay
	connect, reqSent             *float64
	notices, unknown, reconnects int
	auth                         bool
	notice, extensions           string
	answers                      []probedAnswer
}

type probedAnswer struct {
	shape, outcome, reason                                                                    string
	first, eose, p50, p99, most                                                               *float64
	received, fresh, duplicates, alone, unasked, malformed, badID, badSignature, late, forged int
	answered                                                                                  results.Verdict
}

// probe runs a probe, and reads its record.
func probe(t *testing.T, o probing) (passes []probedPass) {
	t.Helper()
	return passesOf(o, meet(t, nil, harness.Options{Stall: o.stall}, func(ctx context.Context, r *harness.Runner) error {
		r.Scenarios, r.Targets, r.ReadOnly = []harness.Scenario{&Probe{o.ProbeOptions}}, probedRelays(o.urls), true
		return r.Run(ctx)
	}))
}

func probedRelays(urls []string) (all []harness.Target) {
	for _, url := range urls {
		all = append(all, harness.Target{Definition: &relays.Definition{Name: url, URL: url}})
	}
	return all
}

func passesOf(o probing, m *meeting) (passes []probedPass) {
	for _, checks := range o.Checks {
		p := probedPass{verified: checks.String(), queue: map[string]map[string]*results.Measurement{}}
		value := func(relay, scenario, metric string) *float64 {
			for i := range m.Measurements {
				if f := &m.Measurements[i]; f.Relay == relay && f.Scenario == scenario && f.Metric == metric && f.Labels[results.LabelVerifier] == p.verified {
					return &f.Trials[0]
				}
			}
			return nil
		}
		found := func(relay, scenario, code string) results.Finding {
			for _, f := range m.Findings {
				if f.Relay == relay && f.Scenario == scenario && f.Code == code && f.Labels[results.LabelVerifier] == p.verified {
					return f
				}
			}
			return results.Finding{}
		}
		for i := range m.Measurements {
			if f := &m.Measurements[i]; f.Scenario == "probe.queue" && f.Labels[results.LabelVerifier] == p.verified {
				shape := f.Labels[results.LabelShape]
				if p.queue[shape] == nil {
					p.queue[shape] = map[string]*results.Measurement{}
				}
				p.queue[shape][f.Metric] = f
			}
		}
		for i := range m.Relays {
			r := probedRelay{Relay: m.Relays[i]}
			in := func(code string) results.Finding { return found(r.Name, "probe.connection", code) }
			r.connect, r.reqSent = value(r.Name, "probe.connection", "connect"), value(r.Name, "probe.connection", "REQ sent")
			r.notices, r.notice = int(in(results.CodeNotices).Counts["notices"]), in(results.CodeNotices).Texts["notice"]
			r.unknown, r.reconnects = int(in(results.CodeOnlyMessage).Counts["frames"]), int(in(results.CodeConnections).Counts["lost"])
			r.auth, r.extensions = in(results.CodeAsksWho).Verdict == results.Stated, in(results.CodeCompression).Texts["extensions"]
			for _, shape := range o.Shapes {
				key := "probe." + shape
				count := func(metric string) int {
					if v := value(r.Name, key, metric); v != nil {
						return int(*v)
					}
					return 0
				}
				answered := found(r.Name, key, results.CodeAnswered)
				a := probedAnswer{shape: shape, outcome: answered.Cause, reason: answered.Texts["reason"], answered: answered.Verdict,
					first: value(r.Name, key, "first event"), eose: value(r.Name, key, "EOSE"), p50: value(r.Name, key, "frame p50"), p99: value(r.Name, key, "frame p99"),
					most: value(r.Name, key, "frame max"), received: count("events"), fresh: count("new"), duplicates: count("duplicates"), alone: count("only here"),
					unasked: count("unasked"), malformed: count("malformed"), badID: count("bad id"), badSignature: count("bad signature"), late: count("after the end")}
				a.forged = a.malformed + a.badID + a.badSignature
				r.answers = append(r.answers, a)
			}
			p.relays = append(p.relays, r)
		}
		passes = append(passes, p)
	}
	return passes
}

func TestRelaysThatOverlapAreSeenTogether(t *testing.T) {
	t.Parallel()
	all := probeWorld()
	notes := all[:60]
	urls := []string{serveProbed(t, all), serveProbed(t, notes[:40]), serveProbed(t, append(append([]corpus.Event{}, notes[20:]...), all[60:]...))}
	r := probe(t, asking(urls...))
	for _, p := range r {
		for _, c := range []struct {
			shape     int
			received  []int
			delivered int
			alone     []int
		}{{0, []int{60, 40, 40}, 60, []int{0, 0, 0}}, {1, []int{30, 0, 30}, 30, []int{0, 0, 0}}, {2, []int{5, 0, 5}, 5, []int{0, 0, 0}}} {
			unique := 0
			for i, relay := range p.relays {
				a := relay.answers[c.shape]
				if a.outcome != "" || a.received != c.received[i] || a.alone != c.alone[i] || a.forged != 0 || a.unasked != 0 || a.late != 0 {
					t.Errorf("%s, %s, relay %d: %+v, want %d events", p.verified, a.shape, i, a, c.received[i])
				}
				if a.fresh+a.duplicates != a.received {
					t.Errorf("%s, relay %d: %d are new and %d duplicates of %d", a.shape, i, a.fresh, a.duplicates, a.received)
				}
				if a.eose == nil || (a.first == nil) != (a.received == 0) || a.first != nil && *a.first > *a.eose {
					t.Errorf("%s, relay %d: first event %v, EOSE %v", a.shape, i, a.first, a.eose)
				}
				if a.received > 0 && (a.p50 == nil || a.p99 == nil || a.most == nil || *a.p50 <= 0 || *a.p50 > *a.p99 || *a.p99 > *a.most) {
					t.Errorf("%s, relay %d: frames %v, %v, %v", a.shape, i, a.p50, a.p99, a.most)
				}
				unique += a.fresh
			}
			q := p.queue[ProbeShapes()[c.shape]]
			if unique != c.delivered || q["verified"] == nil || q["verified"].Trials[0] != float64(c.delivered) {
				t.Errorf("%s, shape %d: %d unique, %+v", p.verified, c.shape, unique, q)
				continue
			}
			h, err := results.DecodeHistogram(q["delay"].Histogram)
			if err != nil || h.Count() != int64(c.delivered) || q["delay"].Trials[0] <= 0 || q["busy"].Trials[0] <= 0 || q["checking"].Trials[0] <= 0 {
				t.Errorf("%s, shape %d: %+v, %v", p.verified, c.shape, q, err)
			}
		}
		for i, relay := range p.relays {
			if relay.connect == nil || relay.reqSent == nil || *relay.reqSent < *relay.connect || relay.Outcome != results.OutcomeOK || relay.extensions != "" {
				t.Errorf("relay %d: %+v", i, relay)
			}
		}
	}
}

func TestWhatOneRelayAloneHasIsCounted(t *testing.T) {
	t.Parallel()
	notes := probeWorld()[:60]
	o := asking(serveProbed(t, notes[:50]), serveProbed(t, notes[40:]))
	o.Shapes = o.Shapes[:1]
	r := probe(t, o)
	for i, want := range []int{40, 10} {
		if a := r[0].relays[i].answers[0]; a.alone != want {
			t.Errorf("relay %d: %d alone, want %d", i, a.alone, want)
		}
	}
}

// TestEveryFaultIsAnOutcomeOfItsOwn probes one relay with a fault beside an honest one, which must
// not suffer.
func TestEveryFaultIsAnOutcomeOfItsOwn(t *testing.T) {
	all := probeWorld()
	forged := append([]corpus.Event{}, all...)
	for i := range 10 {
		forged[2*i].Content = "forged"
		forged[2*i+1].Sig[9] ^= 1
	}
	for _, c := range []struct {
		name    string
		events  []corpus.Event
		fault   string
		outcome string // of the global feed
		check   func(r *probedRelay, a *probedAnswer) bool
	}{
		{"half-open", all, "half-open", "", func(r *probedRelay, a *probedAnswer) bool {
			return r.connect == nil && r.Outcome == results.OutcomeNoStart && r.Reason != "" && a.received == 0 && a.answered == ""
		}},
		{"garbage-frames", all, "garbage-frames", "", func(r *probedRelay, a *probedAnswer) bool {
			return a.received == 60 && r.unknown+r.notices > 0 && a.forged == 0
		}},
		{"closed-midway", all, "closed-midway", results.CauseClosed, func(r *probedRelay, a *probedAnswer) bool {
			return a.received == 30 && a.reason != "" && r.reconnects == 0
		}},
		{"eose-early", all, "eose-early", "", func(_ *probedRelay, a *probedAnswer) bool { return a.received == 0 && a.late == 60 }},
		{"extra-results", all, "extra-results", "", func(_ *probedRelay, a *probedAnswer) bool { return a.received == 61 && a.unasked+a.forged == 1 }},
		{"ignore-limit", all, "ignore-limit", "", func(_ *probedRelay, a *probedAnswer) bool { return a.received == 60 }},
		{"id-mismatch", all, "id-mismatch", "", func(_ *probedRelay, a *probedAnswer) bool { return a.badID+a.duplicates == 60 && a.fresh == 0 }},
		{"no-verify with forged events", forged, "no-verify", "", func(_ *probedRelay, a *probedAnswer) bool {
			return a.received == 60 && a.badID+a.badSignature+a.duplicates+a.fresh == 60
		}},
		{"drop-results", all, "drop-results:1", "", func(_ *probedRelay, a *probedAnswer) bool { return a.received == 0 && a.first == nil && a.eose != nil }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := asking(serveProbed(t, c.events, c.fault), serveProbed(t, all))
			if c.name == "half-open" {
				o.stall, o.Checks = 3*time.Second, o.Checks[:1]
			}
			r := probe(t, o)
			for _, p := range r {
				bad, honest := &p.relays[0], &p.relays[1]
				if a := &bad.answers[0]; a.outcome != c.outcome || !c.check(bad, a) {
					t.Errorf("%s: %+v\n%+v", p.verified, bad, a)
				}
				for i, want := range []int{60, 30, 5} {
					if a := honest.answers[i]; a.outcome != "" || a.received != want || a.forged != 0 {
						t.Errorf("%s: the honest relay: %+v", p.verified, a)
					}
				}
			}
		})
	}
}

func TestForgedEventsAloneAreToldByReason(t *testing.T) {
	t.Parallel()
	events := append([]corpus.Event{}, probeWorld()[:20]...)
	for i := range 5 {
		events[i].Content = "forged"
	}
	for i := 5; i < 8; i++ {
		events[i].Sig[9] ^= 1
	}
	o := asking(serveProbed(t, events, "no-verify"))
	o.Shapes = o.Shapes[:1]
	for _, p := range probe(t, o) {
		if a := p.relays[0].answers[0]; a.badID != 5 || a.badSignature != 3 || a.fresh != 12 || a.alone != 12 || a.duplicates != 0 {
			t.Errorf("%s: %+v", p.verified, a)
		}
	}
}

func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	r := probe(t, asking("ws://"+l.Addr().String()))
	relay := r[0].relays[0]
	if relay.Outcome != results.OutcomeNoStart || !strings.Contains(relay.Reason, "refused") {
		t.Errorf("%+v", relay)
	}
}

func TestAHostThatNobodyKnowsIsNotReached(t *testing.T) {
	t.Parallel()
	o := asking("ws://no-such-host.invalid:7777") // a name that never exists (RFC 2606)
	o.Shapes = o.Shapes[:1]
	relay := probe(t, o)[0].relays[0]
	if relay.Outcome != results.OutcomeNoStart || relay.Reason == "" || strings.Contains(relay.Reason, ":53") {
		t.Errorf("%+v", relay)
	}
}

func TestAuthorsGivenAreAskedFor(t *testing.T) {
	t.Parallel()
	o := asking(serveProbed(t, probeWorld()))
	o.Shapes = ProbeShapes()[1:]
	o.Authors = []corpus.PubKey{probePeople()[0].PubKey}
	r := probe(t, o)
	for i, want := range []int{6, 1} {
		if a := r[0].relays[0].answers[i]; a.received != want || a.fresh != want {
			t.Errorf("%+v, want %d events", a, want)
		}
	}
}

func TestAProbeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	o := asking(serveProbed(t, probeWorld()), serveProbed(t, nil, "half-open"))
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	m := meet(t, nil, harness.Options{Stall: o.stall}, func(_ context.Context, r *harness.Runner) error {
		r.Scenarios, r.Targets, r.ReadOnly = []harness.Scenario{&Probe{o.ProbeOptions}}, probedRelays(o.urls), true
		if err := r.Run(ctx); !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
		return nil
	})
	for _, r := range m.Relays {
		if r.Outcome != results.OutcomeSkipped {
			t.Errorf("%+v", r)
		}
	}
}

func TestWithoutAuthorsNobodyIsAskedFor(t *testing.T) {
	t.Parallel()
	relay := probe(t, asking(serveProbed(t, nil)))[0].relays[0]
	if a := relay.answers[0]; a.answered != results.Passed || a.received != 0 {
		t.Errorf("%+v", a)
	}
	for _, a := range relay.answers[1:] {
		if a.answered != results.Stated || a.outcome != results.CauseNotAsked || a.eose != nil {
			t.Errorf("%+v", a)
		}
	}
}
