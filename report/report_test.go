package report

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"relaybench/report/reporttest"
	"relaybench/results"
)

func renderTerminal(t testing.TB, r *results.Record, o TerminalOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Terminal(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func renderMarkdown(t testing.TB, r *results.Record) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var paths = []string{"results/20260830T120000Z/report.md", "results/20260830T120000Z/results.json"}

func TestReportsLookAsTheyShould(t *testing.T) {
	for name, r := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			reporttest.Golden(t, name+".txt", renderTerminal(t, r, TerminalOptions{Width: 100, Files: paths}))
			reporttest.Golden(t, name+".md", renderMarkdown(t, r))
		})
	}
	two := fixtures(t)["two-healthy"]
	reporttest.Golden(t, "fetch-two-relays-80.txt", renderTerminal(t, fixtures(t)["fetch-two-relays"], TerminalOptions{Width: 80, Files: paths}))
	reporttest.Golden(t, "two-healthy-60.txt", renderTerminal(t, two, TerminalOptions{Width: 60, Files: paths}))
	converging := fixtures(t)["pairs-converging"]
	reporttest.Golden(t, "pairs-converging-70.txt", renderTerminal(t, converging, TerminalOptions{Width: 70, Files: paths}))
	reporttest.Golden(t, "pairs-diverging-160-colour.txt", renderTerminal(t, fixtures(t)["pairs-diverging"], TerminalOptions{Width: 160, Color: true, Files: paths}))
	reporttest.Golden(t, "two-healthy-160-colour.txt", renderTerminal(t, two, TerminalOptions{Width: 160, Color: true, Files: paths}))
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	for name, r := range fixtures(t) {
		for _, w := range []int{20, 30, 45, 60, 80, 100, 130, 200} {
			for i, l := range strings.Split(string(renderTerminal(t, r, TerminalOptions{Width: w})), "\n") {
				if width(l) > w {
					t.Fatalf("%s at %d: line %d is %d wide: %q", name, w, i+1, width(l), l)
				}
			}
		}
	}
}

func TestWidthIsHeldToWhatCanBeLaidOut(t *testing.T) {
	r := fixtures(t)["two-healthy"]
	for asked, meant := range map[int]int{0: 80, -5: 20, 3: 20, 5000: 200} {
		if !bytes.Equal(renderTerminal(t, r, TerminalOptions{Width: asked}), renderTerminal(t, r, TerminalOptions{Width: meant})) {
			t.Errorf("width %d is not laid out as %d", asked, meant)
		}
	}
}

// On a narrow terminal nothing is left out that a wide one shows.
func TestANarrowTerminalLosesNothing(t *testing.T) {
	squeeze := func(text string) string { return strings.Join(strings.Fields(text), "") }
	for _, name := range []string{"two-healthy", "one-relay", "syncs", "fetch-two-relays", "pairs-of-four", "pairs-diverging", "throttled"} {
		r := fixtures(t)[name]
		wide := string(renderTerminal(t, r, TerminalOptions{Width: 200}))
		for w := 20; w < 60; w += 5 {
			text := string(renderTerminal(t, r, TerminalOptions{Width: w}))
			if n, most := strings.Count(text, "…"), strings.Count(wide, "…"); n > most {
				t.Errorf("%s at %d: %d texts are cut, and %d at 200", name, w, n, most)
			}
			for _, relay := range r.Relays {
				if !strings.Contains(squeeze(text), relay.Name) {
					t.Errorf("%s at %d: %s is not named", name, w, relay.Name)
				}
			}
			for _, c := range r.Calibration {
				if want := squeeze(calibrationName(c) + calibrationText(c)); !strings.Contains(squeeze(text), want) {
					t.Errorf("%s at %d: no %s", name, w, want)
				}
			}
		}
	}
}

// Relays whose names differ in the middle are told apart in every table.
func TestLongNamesAreCutWhereTheyDiffer(t *testing.T) {
	one, other := contender{"relay-branch-alpha-experimental-x", "batch", 1}, contender{"relay-branch-gamma-experimental-x", "batch", 0.6}
	r := newRun(t, 1, one, other).record()
	cut, tells := regexp.MustCompile(`re[a-z-]*…\S*`), regexp.MustCompile(`[-…][ag]`)
	seen := 0
	for w := 60; w <= 120; w += 5 {
		for _, found := range cut.FindAllString(string(renderTerminal(t, r, TerminalOptions{Width: w})), -1) {
			if seen++; !tells.MatchString(found) {
				t.Errorf("at %d: %s", w, found)
			}
		}
	}
	if seen == 0 {
		t.Error("no name was cut: nothing is tested")
	}
}

func TestRenderingLeavesTheRecordAlone(t *testing.T) {
	r, again := fixtures(t)["hostile-names"], buildFixtures(t)["hostile-names"]
	renderTerminal(t, r, TerminalOptions{})
	renderMarkdown(t, r)
	if !reflect.DeepEqual(r, again) {
		t.Error("it was changed")
	}
	if !bytes.Equal(renderMarkdown(t, r), renderMarkdown(t, again)) {
		t.Error("two renderings of one record differ")
	}
}

func TestAnEmptyRecordIsStillAReport(t *testing.T) {
	for _, r := range []*results.Record{{}, {Measurements: []results.Measurement{{}}, Findings: []results.Finding{{}}, Relays: []results.Relay{{}}, Calibration: []results.Calibration{{}}}} {
		if out := string(renderTerminal(t, r, TerminalOptions{})); !strings.Contains(out, "May I publish this? No") {
			t.Errorf("got %q", out)
		}
		renderMarkdown(t, r)
	}
}

type failingWriter struct{ after int }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.after -= len(p); w.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriteErrorsAreReturned(t *testing.T) {
	r := fixtures(t)["two-healthy"]
	for _, after := range []int{0, 5000} {
		if Terminal(&failingWriter{after}, r, TerminalOptions{}) == nil || Markdown(&failingWriter{after}, r) == nil {
			t.Errorf("no error from a writer that fails after %d bytes", after)
		}
	}
}

// What the harness reaches has its whole name, whatever the width.
func TestFiguresOfTheHarnessAreToldApart(t *testing.T) {
	r := newRun(t, 1, contender{"alpha", "batch", 1}).record()
	r.Calibration = nil
	for _, connections := range []string{"4", "16"} {
		for _, l := range []results.Labels{{}, {results.LabelWhen: "after"}} {
			r.Calibration = append(r.Calibration, results.Calibration{Name: results.CeilingReceive, Labels: l.With(results.Labels{results.LabelConnections: connections}), Value: 3e5, Unit: "events/s"})
		}
	}
	for w := 60; w <= 120; w += 10 {
		_, text, _ := strings.Cut(string(renderTerminal(t, r, TerminalOptions{Width: w})), "WHAT THE HARNESS ITSELF REACHES HERE")
		for _, c := range r.Calibration {
			if want := calibrationName(c) + " " + calibrationText(c); !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("at %d: no %s in\n%s", w, want, text)
			}
		}
	}
}
