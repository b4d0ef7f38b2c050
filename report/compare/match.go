package compare

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"relaybench/report"
	"relaybench/results"
)

// Difference is something in which results differ that must be the same for their figures to
// compare.
type Difference struct {
	Field  string   `json:"field"`  // "corpus fingerprint", "option window", "processor"
	Values []string `json:"values"` // the different values, in the order of the records
}

func (d Difference) String() string { return d.Field + ": " + strings.Join(d.Values, " ≠ ") }

// neutralOptions are the settings that bear on no figure, or whose effect is recorded elsewhere:
// what the corpus is made of is in its fingerprint, what --quick lowers in the lowered settings,
// and which scenarios ran in what was measured.
var neutralOptions = []string{"args", "trials", "only", "skip", "quick", "timeout", "ready-timeout", "stop-grace", "geode-no-search",
	"events", "base-time", "corpus", "real", "limit", "keep-deletions", "keep-control-characters", "download", "download-since", "download-until",
	"neg-scattered", "sync", "sync-modes", "fetch", "matrix", "adaptive"}

// Differences lists in what records differ that must not: corpus, settings that bear on figures,
// and class of machine. The records are report.Sanitized.
func Differences(records ...*results.Record) (out []Difference) {
	field := func(name string, value func(r *results.Record) string) {
		var values []string
		for _, r := range records {
			values = report.AddNew(values, cmp.Or(value(r), "not recorded"))
		}
		if len(values) > 1 {
			out = append(out, Difference{name, values})
		}
	}
	field("corpus fingerprint", func(r *results.Record) string { return report.Shorten(r.Corpus.Fingerprint, 16) })
	if len(out) == 0 { // the first digits are what people see, but all of them decide
		field("corpus fingerprint", func(r *results.Record) string { return r.Corpus.Fingerprint })
	}
	options := map[string]bool{}
	for _, r := range records {
		for name := range r.Options {
			options[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(neutralOptions, name) {
			field("option "+name, func(r *results.Record) string { return optionText(r.Options[name]) })
		}
	}
	for _, m := range machineClass {
		if m.always || !unknown(records, m.value) {
			field(m.name, func(r *results.Record) string { return m.value(&r.Environment) })
		}
	}
	return out
}

// A machineField is something in which machines must be alike for their figures to compare.
type machineField struct {
	name   string
	always bool                                // every run knows it: records that do not say are not alike
	value  func(e *results.Environment) string // "" where it is not known
}

// machineClass is the class of a machine: what decides how fast a relay can be on it, and does not
// change from one run to the next by itself.
var machineClass = []machineField{
	{"operating system", true, func(e *results.Environment) string { return e.OS }},
	{"architecture", true, func(e *results.Environment) string { return e.Arch }},
	{"processor", true, func(e *results.Environment) string { return e.CPU }},
	{"cores", true, func(e *results.Environment) string { return fmt.Sprint(e.Cores) }},
	{"quota of the control group", true, func(e *results.Environment) string {
		if e.QuotaCores == 0 {
			return "none"
		}
		return report.Number(e.QuotaCores) + " cores"
	}},
	{"frequency governor", false, func(e *results.Environment) string { return e.Governor }},
	{"hypervisor", false, func(e *results.Environment) string { return e.Virtualization }},
	{"file system of the work folder", false, func(e *results.Environment) string { return e.FileSystem }},
	{"disk of the work folder", false, func(e *results.Environment) string {
		if e.Disk != "" && e.Rotational {
			return e.Disk + ", which turns"
		}
		return e.Disk
	}},
	// Which of them they are may change from boot to boot; that the relay had two of four does not.
	{"cores of the relays alone", true, func(e *results.Environment) string { return fmt.Sprint(len(e.RelayCores)) }},
	{"cores of the harness alone", true, func(e *results.Environment) string { return fmt.Sprint(len(e.HarnessCores)) }},
}

// unknown tells whether some of the records do not say. That forbids no comparison, and is told
// beside it: no machine can be shown to be another one by what was not looked at.
func unknown(records []*results.Record, value func(e *results.Environment) string) bool {
	return slices.ContainsFunc(records, func(r *results.Record) bool { return value(&r.Environment) == "" })
}

// optionText writes a setting as JSON does, so that a number that was read from a file and one that
// was not are the same.
func optionText(v any) string {
	if v == nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// cautions lists what does not forbid a comparison and must be known all the same.
func cautions(before, after []*results.Record) []string {
	out := Unlike(slices.Concat(before, after)...)
	directed := func(m *results.Measurement) bool { return m.Better != results.None }
	for i, records := range [][]*results.Record{before, after} {
		label := [...]string{oldName, newName}[i]
		if slices.ContainsFunc(records, func(r *results.Record) bool { return r.Partial }) {
			out = append(out, fmt.Sprintf("The %s results are partial: that run did not finish.", label))
		}
		for _, name := range RelayNames(records) {
			if short := Shortcomings(records, name, directed); len(short) > 0 {
				out = append(out, fmt.Sprintf("%s fell short in the %s results: %s.", name, label, report.Some(short, 3)))
			}
		}
	}
	durability := func(records []*results.Record, relay string) string {
		for _, r := range records {
			if x := report.RelayOf(r, relay); x != nil {
				return x.Durability
			}
		}
		return ""
	}
	for _, name := range RelayNames(before) {
		if a, b := durability(before, name), durability(after, name); a != "" && b != "" && a != b {
			out = append(out, fmt.Sprintf("An OK of %s promises another durability: %s before, %s now. Its ingest is not like for like.", name, a, b))
		}
	}
	return out
}

// Unlike lists in what records differ, or do not tell, that forbids no comparison.
func Unlike(all ...*results.Record) (out []string) {
	for _, x := range []struct {
		what  string
		value func(*results.Record) string
	}{
		{"Measured by different versions of relaybench", func(r *results.Record) string {
			if r.Tool.Revision == "" {
				return r.Tool.Version
			}
			return r.Tool.Version + " (" + report.Shorten(r.Tool.Revision, 12) + ")"
		}},
		{"Signatures were checked by different libraries, of which one may be several times as fast", func(r *results.Record) string { return r.Tool.Verifier }},
		{"Measured on different kernels", func(r *results.Record) string { return r.Environment.Kernel }},
		{"Measured in different containers", func(r *results.Record) string { return r.Environment.Container }},
		{"Measured with different amounts of memory", func(r *results.Record) string {
			return report.BytesText(math.Round(float64(r.Environment.MemoryBytes)/(1<<29)) * (1 << 29)) // what the kernel keeps for itself varies
		}},
	} {
		var values []string
		for _, r := range all {
			if v := x.value(r); v != "" {
				values = report.AddNew(values, v)
			}
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("%s: %s.", x.what, strings.Join(values, ", ")))
		}
	}
	var silent []string
	for _, m := range machineClass {
		if unknown(all, m.value) && slices.ContainsFunc(all, func(r *results.Record) bool { return m.value(&r.Environment) != "" }) {
			silent = append(silent, "the "+m.name)
		}
	}
	if len(silent) > 0 {
		out = append(out, fmt.Sprintf("Some of the results do not tell %s: make sure that it was the same.", report.And(silent...)))
	}
	return out
}

// Shortcomings lists, a phrase each, in what a relay of some records fell short: an outcome that is
// not ok, and failed checks of which it is to blame and that bear on a figure that matters here.
func Shortcomings(records []*results.Record, relay string, matters func(*results.Measurement) bool) (out []string) {
	for _, r := range records {
		if x := report.RelayOf(r, relay); x != nil && x.Outcome != results.OutcomeOK && x.Outcome != results.OutcomeUnmeasured {
			out = report.AddNew(out, report.OutcomeText(x))
		}
		bars := barringFindings(r, relay, matters)
		for i := range r.Findings {
			f := &r.Findings[i]
			if !bars[f] || cmp.Or(f.Blames, f.Relay) != relay || f.Blames == "" && f.Peer != "" {
				continue
			}
			text := report.CheckTitle(f.Code)
			if f.Scenario != "" {
				text += " (" + f.Scenario + ")"
			}
			out = report.AddNew(out, text)
		}
	}
	return out
}

// barringFindings are those of a record that bar a figure of a relay that matters. What was lost,
// or kept a relay from being measured at all, matters even where there is no figure.
func barringFindings(r *results.Record, relay string, matters func(*results.Measurement) bool) map[*results.Finding]bool {
	bars := map[*results.Finding]bool{}
	measured := map[string]bool{}
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if m.Relay != relay && m.Peer != relay || !matters(m) {
			continue
		}
		measured[m.Scenario] = true
		for _, f := range r.Barring(m) {
			bars[f] = true
		}
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		everything := slices.ContainsFunc(f.BearsOn, func(s results.Scope) bool { return s.Scenario == "*" && s.Uses == "" })
		if f.Verdict == results.Failed && (everything || f.Code == results.CodeCompletes && !measured[f.Scenario]) {
			bars[f] = true
		}
	}
	return bars
}
