package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// pairRun begins a run in which relays do nothing but reconcile.
func pairRun(t testing.TB, trials int, relays ...contender) *run {
	t.Helper()
	r := newRun(t, trials)
	for i, c := range relays {
		r.join(i, c)
	}
	return r
}

// says records a check of a pair.
func (r *run) says(relay, peer contender, scenario, code string, ok bool, detail string, evidence ...results.Evidence) {
	f := reporttest.Finding(relay.name, peer.name, scenario, code, ok, detail, evidence...)
	if code == results.CodeCompletes {
		f.Blames = ""
	}
	r.rec.AddFinding(f)
}

// blames records that one of a pair is at fault for what was seen at the other.
func (r *run) blames(fault, relay, peer contender, scenario, code, detail string, evidence ...results.Evidence) {
	f := reporttest.Finding(relay.name, peer.name, scenario, code, false, detail, evidence...)
	f.Blames = fault.name
	r.rec.AddFinding(f)
}

// loses records that a relay lost what it had acknowledged, as its pairs show.
func (r *run) loses(relay, peer contender, scenario, code string, detail string, evidence ...results.Evidence) {
	f := reporttest.Finding(relay.name, peer.name, scenario, code, false, detail, evidence...)
	f.BearsOn = []results.Scope{{Scenario: "*"}}
	r.rec.AddFinding(f)
}

func (r *run) probe(relay string, ok bool, detail string) {
	f := reporttest.Finding(relay, "", "negentropy.probe", results.CodeNIP77, true, detail)
	f.Verdict = results.States(ok)
	r.rec.AddFinding(f)
}

// peered sets the other relay of a figure.
func peered(c contender) func(*results.Measurement) {
	return func(m *results.Measurement) { m.Peer = c.name }
}

// direction records all phases of a pair with the server as the first or the second of it.
func (r *run) direction(server, peer contender, first bool) {
	have, need, bytes := 1911.0, 2020.0, 61.0
	if !first {
		have, need, bytes = need, have, 67.1
	}
	with := peered(peer)
	r.probe(server.name, true, "NEG-OPEN is answered")
	r.says(server, peer, "negentropy", results.CodeHoldsSeeded, true, "holds the 7765 events that it must")
	wire := func(scenario string, ms, rounds, have, need, up, down float64) {
		r.add(server, scenario, "time", "ms", results.Lower, ms, with)
		r.add(server, scenario, "first answer", "ms", results.None, ms*0.6, with)
		r.add(server, scenario, "harness share", "%", results.None, math.Min(20/ms, 60), with)
		r.add(server, scenario, "rounds", "rounds", results.None, rounds, with, exact)
		r.add(server, scenario, "bytes up", "bytes", results.None, up, with, exact)
		r.add(server, scenario, "bytes down", "bytes", results.None, down, with, exact)
		r.add(server, scenario, "have", "events", results.None, have, with, exact)
		r.add(server, scenario, "need", "events", results.None, need, with, exact)
	}
	wire("negentropy.initial", 3.1, 3, have, need, 31240, 208551)
	r.add(server, "negentropy.initial", "bytes per difference", "bytes/event", results.Lower, bytes*server.speed, with, exact)
	r.says(server, peer, "negentropy.initial", results.CodeDifference, true, "1911 of 1911 ids to have and 2020 of 2020 to need named")
	r.add(server, "negentropy.transfer", "events", "events", results.None, have, with)
	r.add(server, "negentropy.transfer", "duration", "s", results.Lower, have/4200, with)
	r.add(server, "negentropy.transfer", "events/s", "events/s", results.Higher, 4200, with)
	wire("negentropy.identical", 0.42, 1, 0, 0, 708, 26)
	r.says(server, peer, "negentropy.identical", results.CodeHoldsUnion, true, "holds the 9575 events that it must")
	r.add(server, "negentropy.heartbeat", "rounds", "rounds", results.None, 1, with, exact)
	r.add(server, "negentropy.heartbeat", "bytes up", "bytes", results.None, 708, with, exact)
	r.add(server, "negentropy.heartbeat", "bytes down", "bytes", results.None, 26, with, exact)
	r.add(server, "negentropy.heartbeat", "time", "ms", results.Lower, 0.105, with, r.spread(10))
	wire("negentropy.after-write", 0.31, 1, 0, 0, 708, 26)
}

func (r *run) pairOf(a, b contender) {
	r.direction(a, b, true)
	if a.name != b.name {
		r.direction(b, a, false)
	}
}

// all pairs every relay with every other one.
func (r *run) all(relays ...contender) {
	for i, a := range relays {
		for _, b := range relays[i+1:] {
			r.pairOf(a, b)
		}
	}
}

const noticed = `the relay does not speak NIP-77: it answered NEG-OPEN with NOTICE "could not parse command"`

func addPairFixtures(t testing.TB, out map[string]*results.Record) {
	rebuilds, deaf := contender{"rebuilds", "unknown", 0.03}, contender{"deaf", "unknown", 1}
	converging := pairRun(t, 1, bolt, sqlite, rebuilds, deaf)
	converging.probe(deaf.name, false, noticed)
	converging.all(bolt, sqlite, rebuilds)
	out["pairs-converging"] = converging.record()

	many := pairRun(t, 3, bolt, sqlite, rebuilds, contender{"a-relay-with-quite-a-long-name-indeed", "commit", 0.1})
	many.all(bolt, sqlite, rebuilds, contender{"a-relay-with-quite-a-long-name-indeed", "commit", 0.1})
	out["pairs-of-four"] = many.record()

	lossy, mute := contender{"lossy", "none", 1.9}, contender{"mute", "batch", 1}
	diverging := pairRun(t, 1, bolt, lossy, mute)
	diverging.pairOf(bolt, lossy)
	var lost, never []results.Evidence
	one, seven := 1, 7
	missing := func(kind *int, cause string) results.Evidence {
		return results.Evidence{Code: results.EvidenceMissing, Kind: kind, Cause: cause}
	}
	for i := range 5 {
		l, n := missing(&one, "acknowledged-but-lost"), missing(&seven, "never-delivered")
		l.ID, n.ID = strings.Repeat(fmt.Sprintf("%02x", 0xa0+i), 32), strings.Repeat(fmt.Sprintf("%02x", 0xb0+i), 32)
		lost, never = append(lost, l), append(never, n)
	}
	more, fifteen := missing(&one, "acknowledged-but-lost"), missing(&seven, "never-delivered")
	more.Count, fifteen.Count = 72, 15
	lost = append(lost, more, results.Evidence{Code: results.EvidenceExtra, Kind: &one, Cause: "expired", ID: strings.Repeat("c4", 32)})
	diverging.loses(lossy, bolt, "negentropy", results.CodeHoldsSeeded, "holds 7689 where it must hold 7765: 77 missing: acknowledged but lost, 1 kept though expired", lost...)
	diverging.loses(lossy, bolt, "negentropy.identical", results.CodeHoldsUnion, "holds 9499 where it must hold 9575: 77 missing: acknowledged but lost, 1 kept though expired", lost...)
	diverging.blames(lossy, bolt, lossy, "negentropy.identical", results.CodeHoldsUnion, "holds 9555 where it must hold 9575: 20 missing: never delivered", append(never, fifteen)...)
	diverging.says(bolt, mute, "negentropy", results.CodeHoldsSeeded, true, "holds the 7765 events that it must")
	diverging.says(bolt, mute, "negentropy", results.CodeCompletes, false, "the first reconciliation with mute: no answer to NEG-MSG within 10s")
	out["pairs-diverging"] = diverging.record()

	alone := pairRun(t, 1, bolt, deaf)
	alone.probe(deaf.name, false, noticed)
	alone.pairOf(bolt, bolt)
	with := peered(bolt)
	alone.add(bolt, "negentropy.transfer", "refused: rate-limited", "events", results.None, 12, with)
	alone.add(bolt, "negentropy.scattered", "time", "ms", results.Lower, 9.4, with)
	alone.add(bolt, "negentropy.scattered", "have", "events", results.None, 0, with)
	alone.add(bolt, "negentropy.scattered", "need", "events", results.None, 96, with)
	alone.add(bolt, "negentropy.scattered", "bytes per difference", "bytes/event", results.Lower, 1840, with)
	alone.add(bolt, "negentropy.scattered", "frames split", "frames", results.None, 2, with)
	out["pairs-alone"] = alone.record()

	none := pairRun(t, 1, deaf)
	none.probe(deaf.name, false, noticed)
	out["pairs-none"] = none.record()
}

func TestAPairSaysHowItEnded(t *testing.T) {
	for _, c := range []struct {
		name, title, status string
		change              func(*run)
	}{
		{"both converged", "ref-bolt ⇄ ref-sqlite", "converged ✓", func(r *run) { r.pairOf(bolt, sqlite) }},
		{"two instances", "ref-bolt (two instances)", "converged ✓", func(r *run) { r.pairOf(bolt, bolt) }},
		{"recorded the other way round", "ref-bolt ⇄ ref-sqlite", "converged ✓", func(r *run) { r.pairOf(sqlite, bolt) }},
		{"one was never compared", "ref-bolt ⇄ ref-sqlite", "not finished", func(r *run) { r.direction(bolt, sqlite, true) }},
		{"one did not converge", "ref-bolt ⇄ ref-sqlite", "did not converge ✗", func(r *run) {
			r.pairOf(bolt, sqlite)
			r.says(sqlite, bolt, "negentropy.identical", results.CodeHoldsUnion, false, "it does not")
		}},
		{"it broke off", "ref-bolt ⇄ ref-sqlite", "did not complete ✗", func(r *run) {
			r.says(bolt, sqlite, "negentropy", results.CodeCompletes, false, "ref-sqlite died")
		}},
		{"it broke off in one trial of several", "ref-bolt ⇄ ref-sqlite", "did not complete ✗", func(r *run) {
			r.pairOf(bolt, sqlite)
			r.says(bolt, sqlite, "negentropy", results.CodeCompletes, false, "ref-sqlite died")
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := pairRun(t, 1, bolt, sqlite)
			c.change(r)
			g := pairsOf(t, r.record())
			if len(g.pairs) != 1 {
				t.Fatalf("%d pairs", len(g.pairs))
			}
			if status := g.pairs[0].status().text; status != c.status || g.pairs[0].title() != c.title {
				t.Errorf("%s: %s", g.pairs[0].title(), status)
			}
		})
	}
}

// pairsOf is the section of a record that has pairs.
func pairsOf(t *testing.T, r *results.Record) *section {
	t.Helper()
	for _, s := range newView(r).sections {
		if len(s.pairs) > 0 {
			return s
		}
	}
	t.Fatal("there are no pairs")
	return nil
}

// marksOf lists the marks in a column of the summary.
func marksOf(g *section, title string) string {
	var out []string
	for _, b := range g.summary {
		if b.title == title {
			for _, r := range b.rows {
				m := mark(b, r)
				if m == "" {
					m = "-"
				}
				out = append(out, m)
			}
		}
	}
	return strings.Join(out, " ")
}

func TestServersAreRankedWhereTheirWorkCompares(t *testing.T) {
	slow := contender{"slow", "batch", 0.3}
	for _, c := range []struct {
		name   string
		change func(*run)
		want   map[string]string
	}{
		{"the fastest in all its pairs", func(*run) {}, map[string]string{"initial": "★ - -", "identical": "★ - -", "heartbeat": "★ - -", "after-write": "★ - -"}},
		{"what rests on others too is never ranked", func(*run) {}, map[string]string{"events/s into it": "- - -", "B/differing": "- - -"}},
		{"a difference of another size", func(r *run) {
			r.rec.Update(func(rec *results.Record) {
				for i := range rec.Measurements {
					if m := &rec.Measurements[i]; m.Relay == "slow" && m.Metric == "need" && m.Scenario == "negentropy.initial" {
						m.Trials = []float64{500, 500, 500, 500}
					}
				}
			})
		}, map[string]string{"initial": "- - -", "identical": "★ - -"}},
		{"one that did not converge is left out of what comes after", func(r *run) {
			for _, peer := range []contender{sqlite, slow} {
				r.says(bolt, peer, "negentropy.identical", results.CodeHoldsUnion, false, "1 kept though expired")
			}
		}, map[string]string{"initial": "★ - -", "identical": "- ★ -", "heartbeat": "- ★ -", "after-write": "- ★ -"}},
		{"a failure in one pair leaves the others", func(r *run) {
			r.says(bolt, slow, "negentropy.identical", results.CodeHoldsUnion, false, "1 kept though expired")
		}, map[string]string{"identical": "★ - -"}},
		{"one that lost events competes nowhere", func(r *run) {
			r.loses(bolt, slow, "negentropy.identical", results.CodeHoldsUnion, "5 missing: acknowledged but lost")
		}, map[string]string{"initial": "- ★ -", "identical": "- ★ -"}},
		{"the other's failure is not one's own", func(r *run) {
			r.says(slow, bolt, "negentropy.identical", results.CodeHoldsUnion, false, "1 kept though expired")
		}, map[string]string{"identical": "★ - -"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := pairRun(t, 4, bolt, sqlite, slow)
			r.all(bolt, sqlite, slow)
			c.change(r)
			g := pairsOf(t, r.record())
			for title, want := range c.want {
				if got := marksOf(g, title); got != want {
					t.Errorf("%s: marked %q, want %q", title, got, want)
				}
			}
		})
	}
}

func TestTwoInstancesAreNotRanked(t *testing.T) {
	g := pairsOf(t, fixtures(t)["pairs-alone"])
	for _, title := range []string{"initial", "heartbeat"} {
		if got := marksOf(g, title); got != "-" {
			t.Errorf("%s: marked %q", title, got)
		}
	}
}

func TestTheHeartbeatStandsAgainstTheFirstReconciliation(t *testing.T) {
	g := pairsOf(t, fixtures(t)["pairs-converging"])
	i := slices.IndexFunc(g.summary, func(b *block) bool { return b.title == ofInitial })
	if i < 0 || g.summary[i].scale.Format(g.summary[i].rows[0].value) != "0.034×" {
		t.Fatalf("the summary says %+v", g.summary)
	}
	_, out, _ := strings.Cut(string(renderMarkdown(t, fixtures(t)["pairs-converging"])), "### ")
	for _, row := range tableIn(out) {
		if got, want := row["÷ initial"], map[bool]string{true: "0.034×", false: nothing}[row[""] == "heartbeat"]; got != want {
			t.Errorf("%s on %s: %s of initial", row[""], row["as server"], got)
		}
	}
}

func TestARelayWithoutNIP77IsStatedAndNotBlamed(t *testing.T) {
	r := fixtures(t)["pairs-converging"]
	out := string(renderTerminal(t, r, TerminalOptions{Width: 100}))
	if !strings.Contains(out, "deaf  the relay does not speak NIP-77: it answered NEG-OPEN with NOTICE") {
		t.Error("what it answered is missing")
	}
	_, checks, _ := strings.Cut(out, "\nCHECKS ")
	if checks, _, _ = strings.Cut(checks, "\nRELAYS "); !strings.Contains(checks, "✓ deaf") || strings.Contains(checks, "failed") {
		t.Errorf("blamed: %s", checks)
	}
	if d := newView(r).verdict(); len(d.grave) > 0 || strings.Contains(strings.Join(d.caveats, ""), "NIP-77") {
		t.Errorf("%v %v", d.grave, d.caveats)
	}
}

// TestWhatPairsWereMeasuredAnewForIsSaidOnce under the table of a pair, in both renderings.
func TestWhatPairsWereMeasuredAnewForIsSaidOnce(t *testing.T) {
	r := pairRun(t, 1, bolt, sqlite)
	r.pairOf(bolt, sqlite)
	rec := r.record()
	for i := range rec.Measurements {
		if m := &rec.Measurements[i]; m.Better != results.None {
			m.AddStatus(results.Status{Code: results.StatusRepeated, Counts: map[string]float64{"times": 1, "s": 4.8}})
		}
	}
	_, out, _ := strings.Cut(string(renderMarkdown(t, rec)), "### ")
	rows := tableIn(out)
	for _, row := range rows {
		if !strings.HasSuffix(row["time"], "¹") && !strings.HasSuffix(row["events/s"], "¹") {
			t.Errorf("%v", row)
		}
	}
	notes, _, _ := strings.Cut(out, "\n## ")
	if len(rows) < 8 || strings.Count(notes, "4.80 s") != 1 {
		t.Errorf("%d rows, notes %q", len(rows), notes)
	}
}
