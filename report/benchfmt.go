package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"relaybench/results"
)

// Benchfmt writes the trials of both sides in the Go benchmark format, of which benchstat makes its own tables:
//
//	relaybench compare --format benchfmt OLD NEW | benchstat -col /side -
//
// A benchmark is a scenario of a relay, a line a trial, a unit a metric; times are in seconds, sizes in bytes. Figures without a direction
// come along only if o.All was set. Errors are those of w.
func (c *Comparison) Benchfmt(w io.Writer) error {
	s := newScreen(w, 0, false)
	r := c.New.Records[0]
	for _, d := range c.Differences {
		s.write("# not comparable: " + oneLine(d.String()) + "\n")
	}
	for _, kv := range [][2]string{{"goos", r.Environment.OS}, {"goarch", r.Environment.Arch}, {"cpu", r.Environment.CPU}, {"fingerprint", r.Corpus.Fingerprint}} {
		if kv[1] != "" && len(c.Differences) == 0 {
			s.write(kv[0] + ": " + oneLine(kv[1]) + "\n")
		}
	}
	units := map[string]string{}
	for _, relay := range c.Relays {
		for i := range relay.Figures {
			f := &relay.Figures[i]
			unit, _ := benchUnit(f)
			notes := ""
			switch f.Better {
			case results.Higher:
				notes += " better=higher"
			case results.Lower:
				notes += " better=lower"
			}
			if f.Exact {
				notes += " assume=exact"
			}
			if notes != "" {
				units[unit] = notes
			}
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(units)) {
		s.write("Unit " + unit + units[unit] + "\n")
	}
	s.write("\n")
	for _, relay := range c.Relays {
		// Figures of a scenario stand together, so that a line holds one trial of all of them.
		for from := 0; from < len(relay.Figures); {
			to := from
			for to < len(relay.Figures) && benchPlace(&relay.Figures[to]) == benchPlace(&relay.Figures[from]) {
				to++
			}
			benchLines(s, &relay, relay.Figures[from:to])
			from = to
		}
	}
	return s.flush()
}

func benchLines(s *screen, relay *RelayComparison, figures []Figure) {
	name := "Benchmark" + benchPlace(&figures[0]) + "/relay=" + benchWord(relay.New)
	for _, side := range []struct {
		name   string
		trials func(*Figure) []float64
	}{{oldName, func(f *Figure) []float64 { return f.before }}, {newName, func(f *Figure) []float64 { return f.after }}} {
		for trial := 0; ; trial++ {
			line := ""
			for i := range figures {
				if values := side.trials(&figures[i]); trial < len(values) {
					unit, factor := benchUnit(&figures[i])
					line += " " + strconv.FormatFloat(values[trial]*factor, 'g', -1, 64) + " " + unit
				}
			}
			if line == "" {
				break
			}
			s.write(fmt.Sprintf("%s/side=%s 1%s\n", name, side.name, line))
		}
	}
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
	factor = 1
	if f.Metric == f.Unit && rate { // "events/s" in events/s
		return benchWord(amount) + "/" + benchWord(per), factor
	}
	switch {
	case timeBases[f.Unit] != 0:
		amount, factor = "sec", timeBases[f.Unit]
	case byteBases[amount] != 0:
		amount, factor = "B", byteBases[amount]
	}
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
