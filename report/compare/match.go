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

// A trait is something in which records may differ.
type trait struct {
	name  string
	value func(r *results.Record) string // "" where it is not known
}

// Traits of machines decide how fast a relay can be on one, and do not change from one run to the
// next by themselves.
var (
	// Every run knows them: records that do not say are not alike.
	knownTraits = []trait{
		{"operating system", func(r *results.Record) string { return r.Environment.OS }},
		{"architecture", func(r *results.Record) string { return r.Environment.Arch }},
		{"processor", func(r *results.Record) string { return r.Environment.CPU }},
		{"cores", func(r *results.Record) string { return fmt.Sprint(r.Environment.Cores) }},
		{"quota of the control group", func(r *results.Record) string {
			if r.Environment.QuotaCores == 0 {
				return "none"
			}
			return report.Number(r.Environment.QuotaCores) + " cores"
		}},
		// Which of them they are may change from boot to boot; that the relay had two of four does not.
		{"cores of the relays alone", func(r *results.Record) string { return fmt.Sprint(len(r.Environment.RelayCores)) }},
		{"cores of the harness alone", func(r *results.Record) string { return fmt.Sprint(len(r.Environment.HarnessCores)) }},
	}
	// Some records do not say. That forbids no comparison, and is told beside it: no machine can be
	// shown to be another one by what was not looked at.
	seenTraits = []trait{
		{"frequency governor", func(r *results.Record) string { return r.Environment.Governor }},
		{"hypervisor", func(r *results.Record) string { return r.Environment.Virtualization }},
		{"file system of the work folder", func(r *results.Record) string { return r.Environment.FileSystem }},
		{"disk of the work folder", func(r *results.Record) string {
			if r.Environment.Disk != "" && r.Environment.Rotational {
				return r.Environment.Disk + ", which turns"
			}
			return r.Environment.Disk
		}},
	}
	// These forbid no comparison either.
	toldTraits = []trait{
		{"Measured by different versions of relaybench", func(r *results.Record) string {
			return report.At(r.Tool.Version, report.Shorten(r.Tool.Revision, 12))
		}},
		{"Signatures were checked by different libraries, of which one may be several times as fast", func(r *results.Record) string { return r.Tool.Verifier }},
		{"Measured on different kernels", func(r *results.Record) string { return r.Environment.Kernel }},
		{"Measured in different containers", func(r *results.Record) string { return r.Environment.Container }},
		{"Measured with different amounts of memory", func(r *results.Record) string {
			return report.BytesText(math.Round(float64(r.Environment.MemoryBytes)/(1<<29)) * (1 << 29)) // what the kernel keeps for itself varies
		}},
	}
)

// of lists the different values of records, in their order, "" where one is not known.
func (t *trait) of(records []*results.Record) (values []string) {
	for _, r := range records {
		values = report.AddNew(values, t.value(r))
	}
	return values
}

// Differences lists in what records differ that must not: corpus, settings that bear on figures,
// and class of machine. The records are report.Sanitized.
func Differences(records ...*results.Record) (out []Difference) {
	differ := func(t trait) {
		if values := t.of(records); len(values) > 1 {
			if i := slices.Index(values, ""); i >= 0 {
				values[i] = "not recorded"
			}
			out = append(out, Difference{t.name, values})
		}
	}
	differ(trait{"corpus fingerprint", func(r *results.Record) string { return report.Shorten(r.Corpus.Fingerprint, 16) }})
	if len(out) == 0 { // the first digits are what people see, but all of them decide
		differ(trait{"corpus fingerprint", func(r *results.Record) string { return r.Corpus.Fingerprint }})
	}
	options := map[string]any{}
	for _, r := range records {
		maps.Copy(options, r.Options)
	}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if !slices.Contains(neutralOptions, name) {
			differ(trait{"option " + name, func(r *results.Record) string { return optionText(r.Options[name]) }})
		}
	}
	for _, t := range knownTraits {
		differ(t)
	}
	for _, t := range seenTraits {
		if !slices.Contains(t.of(records), "") {
			differ(t)
		}
	}
	return out
}

// optionText writes a setting as JSON does, so that a number that was read from a file and one that
// was not are the same.
func optionText(v any) string {
	switch s, text := v.(string); {
	case v == nil:
		return ""
	case text:
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
	for i, records := range [][]*results.Record{before, after} {
		label := [...]string{oldName, newName}[i]
		if slices.ContainsFunc(records, func(r *results.Record) bool { return r.Partial }) {
			out = append(out, fmt.Sprintf("The %s results are partial: that run did not finish.", label))
		}
		for _, name := range RelayNames(records) {
			short := Shortcomings(records, name, func(m *results.Measurement) bool { return m.Better != results.None })
			if len(short) > 0 {
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
	for _, t := range toldTraits {
		values := slices.DeleteFunc(t.of(all), func(s string) bool { return s == "" })
		if len(values) > 1 {
			out = append(out, fmt.Sprintf("%s: %s.", t.name, strings.Join(values, ", ")))
		}
	}
	var silent []string
	for _, t := range slices.Concat(knownTraits, seenTraits) {
		if values := t.of(all); len(values) > 1 && slices.Contains(values, "") {
			silent = append(silent, "the "+t.name)
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
		bars, measured := map[*results.Finding]bool{}, map[string]bool{}
		for i := range r.Measurements {
			if m := &r.Measurements[i]; (m.Relay == relay || m.Peer == relay) && matters(m) {
				measured[m.Scenario] = true
				for _, f := range r.Barring(m) {
					bars[f] = true
				}
			}
		}
		for i := range r.Findings {
			f := &r.Findings[i]
			blamed := cmp.Or(f.Blames, f.Relay) == relay && (f.Blames != "" || f.Peer == "")
			// What was lost, or kept a relay from being measured at all, matters even where there is no figure.
			unmeasured := f.Verdict == results.Failed && (report.Grave(f) || f.Code == results.CodeCompletes && !measured[f.Scenario])
			if blamed && (bars[f] || unmeasured) {
				out = report.AddNew(out, report.At(report.CheckTitle(f.Code), f.Scenario))
			}
		}
	}
	return out
}
