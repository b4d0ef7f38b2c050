package compare

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/perf/benchfmt"

	"relaybench/report"
)

// Benchfmt writes the trials of both sides in the Go benchmark format, of which benchstat makes its
// own tables:
//
//	relaybench compare --format benchfmt OLD NEW | benchstat -col /side -
//
// A benchmark is a scenario of a relay, a line a trial, a unit a metric; times are in seconds,
// sizes in bytes. Figures without a direction come along only if o.All was set. Errors are those of
// w.
func (c *Comparison) Benchfmt(w io.Writer) error {
	buffered := bufio.NewWriter(w) // which keeps the first error
	out := benchfmt.NewWriter(buffered)
	var config []benchfmt.Config
	r := c.New.Records[0]
	for _, kv := range [][2]string{{"goos", r.Environment.OS}, {"goarch", r.Environment.Arch}, {"cpu", r.Environment.CPU}, {"fingerprint", r.Corpus.Fingerprint}} {
		if kv[1] != "" && len(c.Differences) == 0 {
			config = append(config, benchfmt.Config{Key: kv[0], Value: []byte(oneLine(kv[1])), File: true})
		}
	}
	for _, d := range c.Differences {
		fmt.Fprintln(buffered, "# not comparable:", oneLine(d.String()))
	}
	units := map[benchfmt.UnitMetadataKey]string{}
	for _, relay := range c.Relays {
		for i := range relay.Figures {
			f := &relay.Figures[i]
			unit, _ := benchUnit(f)
			if directed(f.Better) {
				units[benchfmt.UnitMetadataKey{Unit: unit, Key: "better"}] = string(f.Better)
			}
			if f.Exact {
				units[benchfmt.UnitMetadataKey{Unit: unit, Key: "assume"}] = "exact"
			}
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(units), func(a, b benchfmt.UnitMetadataKey) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), cmp.Compare(b.Key, a.Key))
	}) {
		if err := out.Write(&benchfmt.UnitMetadata{UnitMetadataKey: k, OrigUnit: k.Unit, Value: units[k]}); err != nil {
			return err
		}
	}
	for _, relay := range c.Relays {
		// Figures of a scenario stand together, so that a line holds one trial of all of them.
		var places report.Groups[string, *Figure]
		for i := range relay.Figures {
			places.Add(benchPlace(&relay.Figures[i])+"/relay="+benchWord(relay.New), &relay.Figures[i])
		}
		for _, p := range places.List {
			for _, side := range []string{oldName, newName} {
				for trial, more := 0, true; more; trial++ {
					res := benchfmt.Result{Config: config, Name: benchfmt.Name(p.Key + "/side=" + side), Iters: 1}
					for _, f := range p.Members {
						values := map[string][]float64{oldName: f.Before, newName: f.After}[side]
						if unit, factor := benchUnit(f); trial < len(values) {
							res.Values = append(res.Values, benchfmt.Value{Value: values[trial] * factor, Unit: unit})
						}
					}
					if more = len(res.Values) > 0; more {
						if err := out.Write(&res); err != nil {
							return err
						}
					}
				}
			}
		}
	}
	return buffered.Flush()
}

// benchPlace is what a figure's name begins with: its scenario, the labels that tell it from others
// there, and its peer.
func benchPlace(f *Figure) string {
	name := benchName(f.Scenario)
	for _, label := range f.telling {
		if value, ok := f.Labels[label]; ok {
			name += "/" + benchWord(label) + "=" + benchWord(value)
		}
	}
	if f.Peer != "" {
		name += "/peer=" + benchWord(f.Peer)
	}
	return name
}

// benchName makes a scenario's key a benchmark's name: "query.thread.hot" is QueryThreadHot.
func benchName(key string) string {
	var b strings.Builder
	for part := range strings.FieldsFuncSeq(key, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		first, size := utf8.DecodeRuneInString(part)
		b.WriteString(string(unicode.ToUpper(first)) + part[size:])
	}
	return cmp.Or(b.String(), "Unnamed")
}

// benchWord replaces what would end a name or begin another part of it.
func benchWord(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || r == '/' || r == '=' {
			return '_'
		}
		return r
	}, cmp.Or(s, "unnamed"))
}

// benchUnit names a metric as a unit that benchstat scales rightly, with the factor that takes
// values to it.
func benchUnit(f *Figure) (unit string, factor float64) {
	amount, per, rate := strings.Cut(f.Unit, "/")
	if f.Metric == f.Unit && rate { // "events/s" in events/s
		return benchWord(amount) + "/" + benchWord(per), 1
	}
	amount, factor = report.BaseUnit(f.Unit)
	unit = benchWord(strings.ReplaceAll(f.Metric, " ", "-"))
	if amount != "" && amount != f.Metric {
		unit += "-" + benchWord(amount)
	}
	if rate {
		unit += "/" + benchWord(per)
	}
	return unit, factor
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
