package report

import "relaybench/results"

// duration shows seconds in the block's unit, or in milliseconds where its values are no times.
func (b *block) duration(seconds float64) string {
	if base := timeBases[b.unit]; base != 0 {
		return b.scale.Format(seconds / base)
	}
	return Number(seconds*1e3) + " ms"
}

func rowStyle(r *row) Style {
	switch {
	case r.best:
		return Green
	case r.relay != nil && r.relay.Outcome != results.OutcomeOK:
		return Red
	}
	return Plain
}

// mark is what stands behind a figure: ★ best, ~ first but not clearly, = a tie, and † where the
// first one's competitors are of another durability class.
func mark(b *block, r *row) string {
	m := ""
	switch {
	case r.best:
		m = "★"
	case r.close:
		m = "~"
	case r.tied:
		m = "="
	}
	if b.across && m != "" && m != "=" {
		m += "†"
	}
	return m
}

// fewSamples is the number of observations under which a p99 is a guess.
const fewSamples = 1000

// counted is a number, which need not be whole, with its noun.
func counted(x float64, noun string) string {
	if x != 1 {
		noun += "s"
	}
	return amount(x) + " " + noun
}

// amount is a number of things: without decimals where it is whole.
func amount(x float64) string { return ScaleFor("", []float64{x}).Format(x) }

// boolean sorts false before true.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
