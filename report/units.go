package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"relaybench/results"
)

// A scale shows the values of one block in one unit, so that they compare at a glance.
type Scale struct {
	factor float64 // from the measurement's unit to the shown one
	suffix string  // with its leading space; empty where the block's title names the unit
	whole  bool    // every value is a whole number, and shown as one
	counts bool    // of things, of which a median may have half of one
}

// A step is one size of a family of units, in the family's base.
type step struct {
	size   float64
	suffix string
}

// In a family's smaller size the largest value may reach most; then the next size is taken if the
// smallest value is at least a quarter of it, or if the largest reaches ten times most and the
// smallest at least the share floor.
type family struct {
	list        []step
	most, floor float64
}

var (
	times = family{[]step{{1e-9, " ns"}, {1e-6, " µs"}, {1e-3, " ms"}, {1, " s"}}, 1000, 0.005}
	sizes = family{[]step{{1, " B"}, {1 << 10, " KiB"}, {1 << 20, " MiB"}, {1 << 30, " GiB"}, {1 << 40, " TiB"}}, 4000, 0.1}
	rates = family{[]step{{1, ""}, {1e3, " k"}, {1e6, " M"}}, 10_000, 1}
)

// bases gives a unit's size in the base of its family: seconds or bytes.
var (
	timeBases = map[string]float64{"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1}
	byteBases = map[string]float64{"B": 1, "byte": 1, "bytes": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
)

// BaseUnit is the unit to which benchmarks in Go take what a unit counts, "sec" or "B", with the
// factor that does it; other units stay as they are.
func BaseUnit(unit string) (base string, factor float64) {
	amount, _, _ := strings.Cut(unit, "/")
	switch {
	case timeBases[unit] != 0:
		return "sec", timeBases[unit]
	case byteBases[amount] != 0:
		return "B", byteBases[amount]
	}
	return amount, 1
}

// ScaleFor chooses the size in which all values read well: the smallest without many zeros, the
// largest without many digits.
func ScaleFor(unit string, values []float64) Scale {
	base, steps := 1.0, family{list: []step{{1, ""}}}
	amount, _, per := strings.Cut(unit, "/")
	amount = strings.TrimSpace(amount)
	switch {
	case timeBases[unit] != 0:
		base, steps = timeBases[unit], times
	case byteBases[amount] != 0 && strings.Count(unit, "byte") < 2:
		base, steps = byteBases[amount], sizes
	case strings.HasSuffix(unit, "/s"):
		steps = rates
	case unit == "%":
		steps.list[0].suffix = " %"
	case unit == "×" || unit == "x":
		steps.list[0].suffix = "×"
	}
	low, high := math.Inf(1), 0.0
	for _, v := range values {
		if a := math.Abs(v) * base; a > 0 {
			low, high = min(low, a), max(high, a)
		}
	}
	if high == 0 { // nothing but zeros: the unit as it was recorded
		low, high = base, base
	}
	in := steps.list[0]
	for _, next := range steps.list[1:] {
		most, least := high/in.size, low/next.size
		if !(most >= steps.most && least >= 0.25) && !(most >= 10*steps.most && least >= steps.floor) {
			break
		}
		in = next
	}
	s := Scale{factor: base / in.size, suffix: in.suffix, whole: true, counts: in.suffix == "" && steps.most == 0 && !per}
	for _, v := range values {
		s.whole = s.whole && v*s.factor == math.Trunc(v*s.factor)
	}
	return s
}

// unitTitle is what a heading says of the unit: what the values themselves do not show.
func unitTitle(unit string) string {
	if timeBases[unit] != 0 || byteBases[unit] != 0 || unit == "%" || unit == "count" || strings.Count(unit, "byte") > 1 {
		return ""
	}
	if amount, per, ok := strings.Cut(unit, "/"); ok && byteBases[strings.TrimSpace(amount)] != 0 && !strings.Contains(per, "byte") {
		return "per " + strings.TrimSpace(per)
	}
	return unit
}

// rangeText is the range over several trials; "" where there is none.
func rangeText(m *results.Measurement, s Scale) string {
	lo, hi := m.Range()
	if len(m.Trials) < 2 || lo == hi {
		return ""
	}
	return Number(lo*s.factor) + "–" + Number(hi*s.factor)
}

// WithUnit adds a unit to a title that does not name it already.
func WithUnit(title, unit string) string {
	u := unitTitle(unit)
	amount, per, ok := strings.Cut(u, "/")
	if u == "" || strings.Contains(title, u) || ok && strings.Contains(title, amount+" per ") && strings.HasSuffix(title, per) {
		return title
	}
	return title + ", " + u
}

func (s Scale) Format(v float64) string {
	if v == 0 && (s.suffix == " k" || s.suffix == " M") { // how many times nothing is said for nothing
		return "0"
	}
	v *= s.factor
	if s.whole && v == math.Trunc(v) && math.Abs(v) < 1e15 {
		return Thousands(strconv.FormatFloat(v, 'f', 0, 64)) + s.suffix
	}
	if s.counts && math.Abs(v) < 100 && 2*v == math.Trunc(2*v) {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return Number(v) + s.suffix
}

// Number shows three significant digits, and whole numbers with thousands separators from 100 on.
func Number(v float64) string {
	a := math.Abs(v)
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return "n/a"
	case v == 0:
		return "0"
	case a >= 1e15:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 99.95:
		return Thousands(strconv.FormatFloat(v, 'f', 0, 64))
	case a < 0.001:
		return strconv.FormatFloat(v, 'g', 2, 64)
	}
	digits := 3
	for limit := 0.9995; a >= limit; limit *= 10 {
		digits--
	}
	return strconv.FormatFloat(v, 'f', digits, 64)
}

func Thousands(digits string) string {
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "-", digits[1:]
	}
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return sign + digits
}

// BytesText is a size for prose, in the binary units of all other sizes: "8.02 MiB".
func BytesText(n float64) string {
	for _, s := range slices.Backward(sizes.list[1:]) {
		if n >= s.size {
			return Number(n/s.size) + s.suffix
		}
	}
	return fmt.Sprintf("%.0f bytes", n)
}

// columnSize is a size in a column of MiB. Below a tenth of one it is in KiB: "0.03 MiB" says less
// than "31.2 KiB".
func columnSize(bytes float64) string {
	in := sizes.list[2]
	if bytes > 0 && bytes < 0.1*in.size {
		in = sizes.list[1]
	}
	return Scale{factor: 1 / in.size, suffix: in.suffix}.Format(bytes)
}

// negligible is less time than is counted. A row of nothing else says nothing.
const negligible = "<0.01 s"

// cpuText is CPU time, which kernels count in ticks of 10 ms: no digit beyond that is shown.
func cpuText(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0) || seconds < 0:
		return "n/a"
	case seconds < 0.005:
		return negligible
	case seconds < 9.995:
		return fmt.Sprintf("%.2f s", seconds)
	}
	return Number(seconds) + " s"
}

// ratioText is how many times the best one a value is.
func ratioText(r float64) string {
	if r >= 99.5 {
		return Number(math.Round(r)) + "×"
	}
	return fmt.Sprintf("%.2f×", r)
}

// Count is a number with its noun in the right form.
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return Thousands(strconv.Itoa(n)) + " " + noun
}
