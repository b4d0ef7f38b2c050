package report

import (
	"testing"

	"relaybench/results"
)

// TestWhyATransferFellShort is told with its counts, on the check and on its figures.
func TestWhyATransferFellShort(t *testing.T) {
	all := map[string]float64{"delivered": 1915, "expected": 2000, "missing": 85}
	with := func(name string, n float64, more ...float64) map[string]float64 {
		counts := map[string]float64{name: n}
		if len(more) > 0 {
			counts["asked"] = more[0]
		}
		for name, n := range all {
			counts[name] = n
		}
		return counts
	}
	for _, c := range []struct {
		cause  string
		counts map[string]float64
		want   string
		status string
	}{
		{results.WhyFlood, with("sent", 2001, 1000), "85 of 2,000 records never came: answers had not come to their end after 2,001 events where 1,000 events had been asked for",
			"incomplete: it ended early; answers had not come to their end after 2,001 events where 1,000 events had been asked for"},
		{results.WhyTime, with("s", 120), "85 of 2,000 records never came: it was ended after 120 s, far longer than whatever was measured before",
			"incomplete: it ended early; it was ended after 120 s, far longer than whatever was measured before"},
		{results.WhyTime, map[string]float64{"s": 120, "delivered": 7}, "7 records came: it was ended after 120 s, far longer than whatever was measured before", ""},
		{results.WhyUnnamed, with("unnamed", 85), "85 of 2,000 records never came: the reconciliation did not name 85 events", ""},
		{results.WhyMore, with("events", 1), "85 of 2,000 records never came: in all the relay sent 1 event", ""},
	} {
		f := results.Finding{Code: results.CodeComplete, Verdict: results.Failed, Cause: c.cause, Counts: c.counts}
		if got := findingText(&f); got != c.want {
			t.Errorf("%s: %q", c.cause, got)
		}
		for by, more := range map[string]string{results.EndedBySource: "; it waited for the source", results.EndedByUnknown: "; nobody saw whether it waited for the source or for the sink"} {
			f.Texts = map[string]string{"by": by}
			if got := findingText(&f); c.cause == results.WhyTime && got != c.want+more {
				t.Errorf("%s: %q", by, got)
			}
		}
		s := results.Status{Code: results.StatusIncomplete, Cause: results.CauseEnded, Because: c.cause, Counts: c.counts}
		if got := statusText(&s); c.status != "" && got != c.status {
			t.Errorf("%s: %q", c.cause, got)
		}
	}
}

// TestWhatIsNamedIsNotSaidToBeLost on the check and in its evidence.
func TestWhatIsNamedIsNotSaidToBeLost(t *testing.T) {
	const named = "acknowledged, and not returned though it is named"
	f := results.Finding{Code: results.CodeHoldsUnion, Verdict: results.Failed, Counts: map[string]float64{"held": 7, "must": 10, "missing." + results.MissingNamed: 3}}
	if got, want := findingText(&f), "holds 7 where it must hold 10: 3 missing: "+named; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := evidenceLines([]results.Evidence{{Code: results.EvidenceMissing, Cause: results.MissingNamed, ID: "ab"}}, false)[0], "missing, "+named+": ab"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestADifferenceIsSaidInBothItsParts of records that count what must not be named, and of others.
func TestADifferenceIsSaidInBothItsParts(t *testing.T) {
	for extra, want := range map[float64]string{
		10: "603 of 623 ids to have and 565 of 566 ids to need with 10 others were named",
		0:  "603 of 623 ids to have and 566 of 566 ids to need with 9 others were named",
	} {
		f := results.Finding{Code: results.CodeDifference, Verdict: results.Failed,
			Counts: map[string]float64{"have": 603, "must have": 623, "need": 575, "must need": 566, "extra need": extra}}
		if got := findingText(&f); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestWhatIsMissingIsTold as what became of it.
func TestWhatIsMissingIsTold(t *testing.T) {
	for _, c := range []struct {
		code    string
		verdict results.Verdict
		counts  map[string]float64
		want    string
	}{
		{results.CodeModel, results.Failed, map[string]float64{"wrong": 2, "of": 4, "missing": 46500, "missing." + results.MissingNotImported: 46500},
			"2 of 4 answers are wrong: 46,500 events missing; of the missing: 46,500 not imported"},
		{results.CodeModel, results.Failed, map[string]float64{"wrong": 1, "of": 4, "missing": 6, "missing.acknowledged": 1, "missing.refused": 2, "missing.unanswered": 3},
			"1 of 4 answers are wrong: 6 events missing; of the missing: 1 acknowledged, 2 refused, 3 never answered"},
		{results.CodeAcknowledgedKept, results.Failed, map[string]float64{"lost": 484, "of": 488, "excused": 4},
			"all 488 acknowledged events are missing; 4 of them were superseded, deleted or expired since"},
		{results.CodeAcknowledgedKept, results.Failed, map[string]float64{"lost": 5, "of": 488, "excused": 4},
			"5 of 488 acknowledged events are missing; 4 more were superseded, deleted or expired since"},
	} {
		f := results.Finding{Code: c.code, Verdict: c.verdict, Counts: c.counts}
		if got := findingText(&f); got != c.want {
			t.Errorf("%s: %q, want %q", c.code, got, c.want)
		}
	}
}

// TestAFigureThatIsNotThereHasAReason, also where it is a check that failed.
func TestAFigureThatIsNotThereHasAReason(t *testing.T) {
	r := &results.Record{Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}}, Findings: []results.Finding{
		{Relay: "a", Scenario: "storage", Code: results.CodeCompletes, Verdict: results.Failed, Blames: "a", BearsOn: results.BearsOn(results.CodeCompletes, "storage", nil)}}}
	v := newView(r)
	if got, want := v.absence("storage", rowKey{"a", ""}, nil), "a failed: "+CheckTitle(results.CodeCompletes); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := v.absence("crash", rowKey{"a", ""}, nil); got != "not measured" {
		t.Errorf("%q", got)
	}
}

// TestADownloadWithoutAFormIsNamedByItsStrategy in a headline.
func TestADownloadWithoutAFormIsNamedByItsStrategy(t *testing.T) {
	d := &results.Scenario{Title: "paged"}
	for form, want := range map[string]string{"": "paged", "raw": "paged, raw"} {
		if got := wayName(d, results.Labels{results.LabelForm: form}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
