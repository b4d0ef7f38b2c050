package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

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
// and class of machine.
func Differences(records ...*results.Record) []Difference {
	clean := make([]*results.Record, len(records))
	for i, r := range records {
		clean[i] = sanitized(r)
	}
	return differences(clean...)
}

// differences is Differences for records whose strings are visible already.
func differences(records ...*results.Record) []Difference {
	var out []Difference
	field := func(name string, value func(r *results.Record) string) {
		var values []string
		for _, r := range records {
			if v := value(r); !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			for i := range values {
				if values[i] == "" {
					values[i] = "not recorded"
				}
			}
			out = append(out, Difference{name, values})
		}
	}
	field("corpus fingerprint", func(r *results.Record) string { return shorten(r.Corpus.Fingerprint, 16) })
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
		return number(e.QuotaCores) + " cores"
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
	out := unlike(slices.Concat(before, after))
	side := func(label string, records []*results.Record) {
		partial := 0
		for _, r := range records {
			if r.Partial {
				partial++
			}
		}
		if partial > 0 {
			out = append(out, fmt.Sprintf("The %s results are partial: that run did not finish.", label))
		}
		for _, name := range relayNames(records) {
			if short := shortOf(records, name, directed); len(short) > 0 {
				out = append(out, fmt.Sprintf("%s fell short in the %s results: %s.", name, label, some(short, 3)))
			}
		}
	}
	side("old", before)
	side("new", after)
	for _, name := range relayNames(before) {
		if a, b := durability(before, name), durability(after, name); a != "" && b != "" && a != b {
			out = append(out, fmt.Sprintf("An OK of %s promises another durability: %s before, %s now. Its ingest is not like for like.", name, a, b))
		}
	}
	return out
}

// unlike lists in what records differ, or do not tell, that forbids no comparison.
func unlike(all []*results.Record) []string {
	var out []string
	differs := func(what string, value func(*results.Record) string) {
		var values []string
		for _, r := range all {
			if v := value(r); v != "" && !slices.Contains(values, v) {
				values = append(values, v)
			}
		}
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("%s: %s.", what, strings.Join(values, ", ")))
		}
	}
	differs("Measured by different versions of relaybench", func(r *results.Record) string {
		v := r.Tool.Version
		if r.Tool.Revision != "" {
			v += " (" + shorten(r.Tool.Revision, 12) + ")"
		}
		return v
	})
	differs("Signatures were checked by different libraries, of which one may be several times as fast", func(r *results.Record) string { return r.Tool.Verifier })
	differs("Measured on different kernels", func(r *results.Record) string { return r.Environment.Kernel })
	differs("Measured in different containers", func(r *results.Record) string { return r.Environment.Container })
	differs("Measured with different amounts of memory", func(r *results.Record) string {
		return BytesText(math.Round(float64(r.Environment.MemoryBytes)/(1<<29)) * (1 << 29)) // what the kernel keeps for itself varies
	})
	var silent []string
	for _, m := range machineClass {
		if value := m.value; unknown(all, value) && slices.ContainsFunc(all, func(r *results.Record) bool { return value(&r.Environment) != "" }) {
			silent = append(silent, m.name)
		}
	}
	if len(silent) > 0 {
		out = append(out, fmt.Sprintf("Some of the results do not tell the %s: make sure that it was the same.", strings.Join(silent, ", the ")))
	}
	return out
}

// shortOf lists, a phrase each, in what a relay of some records fell short: an outcome that is not
// ok, and failed checks of which it is to blame.
//
// A failed check counts where it bears on a figure that matters here.
func shortOf(records []*results.Record, relay string, matters func(*results.Measurement) bool) []string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, r := range records {
		for i := range r.Relays {
			if x := &r.Relays[i]; x.Name == relay && x.Outcome != results.OutcomeOK && x.Outcome != results.OutcomeUnmeasured {
				add(outcomeText(x))
			}
		}
		bars := barringFindings(r, relay, matters)
		for i := range r.Findings {
			f := &r.Findings[i]
			if !bars[f] || cmp.Or(f.Blames, f.Relay) != relay || f.Blames == "" && f.Peer != "" {
				continue
			}
			text := checkTitle(f.Code)
			if f.Scenario != "" {
				text += " (" + f.Scenario + ")"
			}
			add(text)
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

// directed tells whether a figure is better one way.
func directed(m *results.Measurement) bool { return m.Better != results.None }

func durability(records []*results.Record, relay string) string {
	for _, r := range records {
		for _, x := range r.Relays {
			if x.Name == relay {
				return x.Durability
			}
		}
	}
	return ""
}
