package report

import (
	"go/ast"
	"strconv"
	"strings"
	"testing"

	"relaybench/results"
)

// TestEveryShortageHasWords reads the codes from where they are declared.
func TestEveryShortageHasWords(t *testing.T) {
	_, files := sourceFiles(t, "../results")
	codes := map[string]bool{}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Shortage") && len(spec.Values) == 1 {
				code, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				codes[code] = true
			}
			return true
		})
	}
	for code := range codes {
		if what, help := word("shortage", code), word("shortage-help", code); what == "" || !strings.HasSuffix(help, ".") {
			t.Errorf("%s: %q, %q", code, what, help)
		}
	}
	if len(codes) == 0 || len(codes) != len(words().Texts["shortage"]) {
		t.Errorf("%d codes, words for %d", len(codes), len(words().Texts["shortage"]))
	}
}

func TestWhatTheMachineWasShortOfStandsFirst(t *testing.T) {
	r := &results.Record{Relays: []results.Relay{
		{Name: "a", Outcome: results.OutcomeUnmeasured, Reason: "died in ingest.throughput: exited with status 1", Shortage: results.ShortageDisk},
		{Name: "b", Outcome: results.OutcomeOK}, {Name: "c", Outcome: results.OutcomeOK},
	}, Findings: []results.Finding{
		{Relay: "b", Scenario: "storage", Code: results.CodeAccepts, Verdict: results.Undecided, Cause: results.ShortageMemory},
	}, Measurements: []results.Measurement{
		{Relay: "c", Scenario: "storage", Metric: "x", Trials: []float64{1}, Status: []results.Status{
			{Code: results.StatusIncomplete, Cause: results.CauseShortage, Because: results.ShortageDisk}}},
	}}
	d := newView(r).verdict()
	if len(d.grave) < 2 || !strings.HasPrefix(d.grave[0], "While relaybench measured a and c, the disk of the work folder was full") || !strings.HasPrefix(d.grave[1], "While relaybench measured b, memory ran out") {
		t.Errorf("%q", d.grave)
	}
	if alone := Shortages(&results.Record{Relays: r.Relays[:1]}); len(alone) != 1 || !strings.HasPrefix(alone[0], "During the run, the disk of the work folder was full") {
		t.Errorf("%q", alone)
	}
	if text := OutcomeText(&r.Relays[0]); text != "could not be measured: the disk of the work folder was full; died in ingest.throughput: exited with status 1" {
		t.Errorf("%q", text)
	}
	if text := findingText(&r.Findings[0]); !strings.HasPrefix(text, "not judged: memory ran out") {
		t.Errorf("%q", text)
	}
	if text := statusText(&r.Measurements[0].Status[0]); text != "incomplete: the disk of the work folder was full" {
		t.Errorf("%q", text)
	}
}
