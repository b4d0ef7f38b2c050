package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"relaybench/results"
)

func (m *markdown) findings() {
	if len(m.v.checks) == 0 {
		return
	}
	m.heading(2, "Checks")
	var rows [][]string
	names := m.v.findingRelays()
	for _, name := range names {
		o := m.v.outcomes(name)
		row := []string{mdText(speaker(name)), fmt.Sprint(o.passed)}
		for _, verdict := range []results.Verdict{results.Failed, results.Undecided, results.Stated} {
			row = append(row, fmt.Sprint(o.count(verdict)))
		}
		rows = append(rows, row)
	}
	m.table([]string{"relay", "passed", "failed", "undecided", "stated"}, rows, firstLeft)
	for _, x := range []struct {
		verdict    results.Verdict
		sign, word string
	}{{results.Failed, "❌", ""}, {results.Undecided, "❔", "undecided, and held against nobody: "}, {results.Stated, "·", "stated: "}} {
		for _, name := range names {
			for _, o := range m.v.outcomes(name).of(x.verdict) {
				m.outcome(name, x.sign, x.word, o)
			}
		}
	}
}

// Of a check that ended so in many scenarios, this many are shown with their evidence.
const mdExamples = 3

// outcome writes one check: with its evidence, or, where it ended so in many scenarios, with a few
// examples and the rest folded away.
func (m *markdown) outcome(name, sign, word string, o *outcome) {
	where := mdText(m.v.places(o))
	if where != "" {
		where = ", " + where
	}
	m.p("\n%s **%s**%s: %s%s", sign, mdText(speaker(name)), where, word, mdText(checkTitle(o.code)))
	first := o.list[0]
	if len(o.list) == 1 {
		m.p(". %s\n", mdText(sentence(findingText(first))))
	} else {
		m.p(".\n")
	}
	if o.follows != "" {
		m.p("\nThis %s\n", mdText(sentence(o.follows)))
	}
	if len(o.list) == 1 {
		m.evidence(first)
		return
	}
	var rows [][]string
	for i, x := range o.list {
		if i < mdExamples && !m.v.elsewhere(x) && len(x.Evidence) > 0 {
			m.p("\n%s: %s\n", mdText(m.v.where(x)), mdText(sentence(findingText(x))))
			m.evidence(x)
			continue
		}
		rows = append(rows, []string{mdText(m.v.where(x)), mdText(findingText(x))})
	}
	if len(rows) == 0 {
		return
	}
	m.p("\n<details><summary>%s, whose evidence is in results.json</summary>\n\n", several(len(rows), "scenario", "scenarios"))
	m.table([]string{"scenario", "found"}, rows, allLeft)
	m.p("\n</details>\n")
}

func (m *markdown) evidence(f *results.Finding) {
	if len(f.Evidence) > 0 && !m.v.elsewhere(f) { // else it stands with the pair
		m.p("\n%s", mdFence("text", evidenceLines(f.Evidence, false)))
	}
}

func (m *markdown) relays() {
	if len(m.v.relays) == 0 {
		return
	}
	m.heading(2, "Relays")
	var rows [][]string
	for _, r := range m.v.relays {
		outcome := string(r.Outcome)
		if r.Outcome != results.OutcomeOK {
			outcome = "**" + mdText(outcomeText(r)) + "**"
		}
		rows = append(rows, []string{mdText(r.Name), outcome, mdText(r.Durability), mdText(cmp.Or(r.Version, "unknown")), mdCode(cmp.Or(shorten(r.SHA256, 12), "unknown"))})
	}
	m.table([]string{"relay", "outcome", "durability", "version", "sha256"}, rows, allLeft)
	for _, r := range m.v.relays {
		m.relay(r)
	}
}

// relay folds away how one relay was run.
func (m *markdown) relay(r *results.Relay) {
	m.p("\n<details><summary>%s: command, configuration and what it can do</summary>\n\n", mdHTML(r.Name))
	if r.Command != "" {
		m.p("%s\n", mdFence("sh", []string{r.Command}))
	}
	if r.URL != "" {
		m.p("It ran already, at %s: no figures of disk, CPU or restart.\n\n", mdCode(r.URL))
	}
	if r.SHA256 != "" {
		m.p("sha256 of the program: %s\n\n", mdCode(r.SHA256))
	}
	for _, n := range r.Notes {
		m.p("- %s\n", mdText(n))
	}
	if len(r.Notes) > 0 {
		m.p("\n")
	}
	if len(r.Capabilities) > 0 {
		var rows [][]string
		for _, k := range slices.Sorted(maps.Keys(r.Capabilities)) {
			rows = append(rows, []string{mdText(k), mdText(r.Capabilities[k])})
		}
		m.table([]string{"probed", "found"}, rows, allLeft)
		m.p("\n")
	}
	for _, file := range slices.Sorted(maps.Keys(r.Config)) {
		m.p("%s:\n\n%s\n", mdCode(file), mdFence("", strings.Split(r.Config[file], "\n")))
	}
	if len(r.LogTail) > 0 {
		m.p("The end of its log:\n\n%s\n", mdFence("text", r.LogTail))
	}
	m.p("</details>\n")
}

func (m *markdown) calibration() {
	if len(m.v.rec.Calibration) == 0 {
		return
	}
	m.heading(2, "What the harness itself reaches here")
	var rows [][]string
	for _, c := range m.v.rec.Calibration {
		rows = append(rows, []string{mdText(CalibrationName(c)), mdText(CalibrationText(c))})
	}
	m.table([]string{"", ""}, rows, firstLeft)
}

// repeat writes the command line that measures this again.
func (m *markdown) repeat() {
	m.heading(2, "How to repeat this")
	m.p("With relaybench %s", mdText(m.v.rec.Tool.Version))
	if m.v.rec.Tool.Revision != "" {
		m.p(" at revision %s", mdCode(m.v.rec.Tool.Revision))
	}
	m.p(":\n\n%s\n", mdFence("sh", []string{strings.TrimSpace("./run.sh " + commandLine(m.v.rec.Options))}))
	m.p("Results compare only where the corpus fingerprint and the settings are the same.\n")
}

// commandLine is the words the run was started with, quoted for a shell.
func commandLine(options map[string]any) string {
	var words []string
	switch args := options["args"].(type) {
	case []string:
		words = args
	case []any:
		for _, a := range args {
			words = append(words, fmt.Sprint(a))
		}
	}
	return shellquote.Join(words...)
}
