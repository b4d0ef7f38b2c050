package main

import (
	"os"
	"testing"

	"relaybench/results"
)

// value returns the one value of a measurement of a pair.
func value(t *testing.T, r *results.Record, relay, peer, scenario, metric string) float64 {
	t.Helper()
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if m.Relay == relay && m.Peer == peer && m.Scenario == scenario && m.Metric == metric && len(m.Trials) == 1 {
			return m.Trials[0]
		}
	}
	t.Errorf("no value of %s %s for %s with %s", scenario, metric, relay, peer)
	return 0
}

func pairFinding(t *testing.T, r *results.Record, relay, scenario, check string) results.Finding {
	t.Helper()
	f := finding(r, relay, scenario, check)
	if f == nil {
		t.Errorf("%s: no finding %q in %s", relay, check, scenario)
		return results.Finding{}
	}
	return *f
}

// TestPairsConverge reconciles the two forms of the reference relay, beside a relay that does not
// know NIP-77.
func TestPairsConverge(t *testing.T) {
	t.Parallel()
	for name, corpusFlags := range map[string][]string{
		"synthetic": {"--events=800"},
		"real":      {"--real", "--keep-deletions"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "real" && os.Getenv("RELAYBENCH_REAL") == "" {
				t.Skip("RELAYBENCH_REAL is not set: no real events to run on")
			}
			out := t.TempDir()
			args := append(corpusFlags, "--quick", "--only=negentropy", "--neg-scattered", "--skip=preflight,calibration", "--out", out, hostile(t, "mine", "refuses"))
			if code, _, stderr := relaybench(t, args...); code != exitDone {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			r := recorded(t, out)
			for _, f := range r.Findings {
				if f.Blames != "" && f.Blames != "mine" {
					t.Errorf("%s: %s: %s: %s %+v", f.Relay, f.Scenario, f.Code, textOf(f), f.Evidence)
				}
			}
			for _, side := range [][2]string{{"ref-bolt", "ref-sqlite"}, {"ref-sqlite", "ref-bolt"}} {
				a, b := side[0], side[1]
				if have, need := value(t, r, a, b, "negentropy.initial", "have"), value(t, r, b, a, "negentropy.initial", "need"); have != need || have == 0 {
					t.Errorf("%s lacks %v of %s, which has %v that it lacks", a, have, b, need)
				}
				for scenario, want := range map[string]float64{"negentropy.identical": 0, "negentropy.after-write": 1} {
					if left := value(t, r, a, b, scenario, "have") + value(t, r, a, b, scenario, "need"); left != want {
						t.Errorf("%s: %v ids differ in %s", a, left, scenario)
					}
				}
				if rounds := value(t, r, a, b, "negentropy.heartbeat", "rounds"); rounds != 1 {
					t.Errorf("%s: a heartbeat of %v rounds", a, rounds)
				}
				pairFinding(t, r, a, "negentropy.identical", results.CodeHoldsUnion)
			}
			if f := pairFinding(t, r, "mine", "negentropy.probe", results.CodeNIP77); f.Verdict != results.Stated {
				t.Errorf("a relay that never answers NEG-OPEN: %+v", f)
			}
		})
	}
}

// TestARelayThatIsAloneWithNIP77IsPairedWithItself leaves one form of the reference relay out.
func TestARelayThatIsAloneWithNIP77IsPairedWithItself(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if code, _, stderr := relaybenchWith(t, withoutSQLite, "--quick", "--events=300", "--only=negentropy", "--skip=calibration", "--out", out); code != exitDone {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	if need := value(t, r, "ref-bolt", "ref-bolt", "negentropy.initial", "need"); need == 0 {
		t.Error("two instances with different shares do not differ")
	}
}
