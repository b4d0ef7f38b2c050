package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"

	"relaybench/harness/measure"
)

func (m *markdown) findings() {
	if len(m.v.checks) == 0 {
		return
	}
	m.heading(2, "Checks")
	var rows [][]string
	all := map[string][]*failure{}
	names := m.v.findingRelays()
	for _, name := range names {
		failures, passed := m.v.failures(name)
		bad, required := 0, 0
		for _, f := range failures {
			bad += len(f.list)
			if f.required {
				required += len(f.list)
			}
		}
		all[name] = failures
		rows = append(rows, []string{mdText(speaker(name)), fmt.Sprint(passed), fmt.Sprint(bad), fmt.Sprint(required)})
	}
	m.table([]string{"relay", "passed", "failed", "of these required"}, rows, firstLeft)
	for _, name := range names {
		for _, f := range all[name] {
			m.failure(name, f)
		}
	}
}

// Of a check that failed in many scenarios, this many are shown with their evidence.
const mdExamples = 3

// failure writes one failed check: with its evidence, or, where it failed in many scenarios, with a few examples and the rest folded away.
func (m *markdown) failure(name string, f *failure) {
	sign, need := "⚠️", ""
	if f.required {
		sign, need = "❌", ", required"
	}
	first := f.list[0]
	if len(f.list) == 1 {
		other := ""
		if subject(first) == first.Relay {
			other = mdText(with(first))
		}
		m.p("\n%s **%s**%s, %s: %s%s. %s\n", sign, mdText(speaker(name)), other, cmp.Or(mdCode(first.Scenario), "the whole run"), mdText(f.check), need, mdText(sentence(found(first))))
	} else {
		m.p("\n%s **%s**, in %s: %s%s.\n", sign, mdText(speaker(name)), f.where(), mdText(f.check), need)
	}
	if f.follows != "" {
		m.p("\nThis %s\n", mdText(sentence(f.follows)))
	}
	if len(f.list) == 1 {
		m.evidence(first)
		return
	}
	var rows [][]string
	for i, x := range f.list {
		where := mdCode(x.Scenario)
		if subject(x) == x.Relay {
			where += mdText(with(x))
		}
		if i < mdExamples && !elsewhere(x) && len(x.Evidence) > 0 {
			m.p("\n%s: %s\n", where, mdText(sentence(found(x))))
			m.evidence(x)
			continue
		}
		rows = append(rows, []string{where, mdText(found(x))})
	}
	if len(rows) == 0 {
		return
	}
	m.p("\n<details><summary>%s, whose evidence is in results.json</summary>\n\n", several(len(rows), "scenario", "scenarios"))
	m.table([]string{"scenario", "found"}, rows, allLeft)
	m.p("\n</details>\n")
}

func (m *markdown) evidence(f *measure.Finding) {
	if len(f.Evidence) > 0 && !elsewhere(f) { // else it stands with the pair
		m.p("\n%s", mdFence("text", reasonsFirst(f.Evidence)))
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
		if r.Outcome != measure.OutcomeOK {
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
func (m *markdown) relay(r *measure.Relay) {
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
		rows = append(rows, []string{mdText(c.Name), mdText(calibrationText(c))})
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

// commandLine is the words the run was started with, quoted for a shell; where they were not kept, the options as flags.
func commandLine(options map[string]any) string {
	switch args := options["args"].(type) {
	case []string:
		return shellquote.Join(args...)
	case []any:
		var words []string
		for _, a := range args {
			words = append(words, fmt.Sprint(a))
		}
		return shellquote.Join(words...)
	}
	var words []string
	for _, k := range slices.Sorted(maps.Keys(options)) {
		switch x := options[k].(type) {
		case nil:
		case bool:
			if x {
				words = append(words, "--"+k)
			}
		case float64:
			words = append(words, "--"+k, plainNumber(x))
		case []any:
			for _, y := range x {
				words = append(words, "--"+k, fmt.Sprint(y))
			}
		case string:
			if x != "" {
				words = append(words, "--"+k, x)
			}
		default:
			words = append(words, "--"+k, fmt.Sprint(x))
		}
	}
	return shellquote.Join(words...)
}

// plainNumber writes a JSON number as a flag takes it: without an exponent.
func plainNumber(x float64) string {
	if x == float64(int64(x)) {
		return fmt.Sprint(int64(x))
	}
	return fmt.Sprint(x)
}
