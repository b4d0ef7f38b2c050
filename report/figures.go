package report

import (
	"slices"

	"relaybench/results"
)

// primary is the metric that a query's bars show; nil for every other kind of scenario.
func primary(s *scenario) *block {
	if s.Layout != results.LayoutQueries {
		return nil
	}
	i := slices.IndexFunc(s.blocks, func(b *block) bool { return b.metric.Key == s.Primary })
	if i < 0 {
		return nil
	}
	return s.blocks[i]
}

// flat tells whether bars would say nothing: all relays that have the metric are equal, or there is
// one relay and nothing but its figure.
func flat(b *block) bool {
	var have []*row
	for _, r := range b.rows {
		if r.has {
			have = append(have, r)
		}
	}
	if len(b.rows) == 1 {
		return len(have) == 0 || have[0].dist == nil && len(have[0].m.Timeline) == 0
	}
	return len(have) > 1 && !slices.ContainsFunc(have, func(r *row) bool { return r.value != have[0].value })
}

// direction is what a title says of a metric's better side.
func direction(b results.Better) string {
	switch b {
	case results.Higher:
		return "more is better"
	case results.Lower:
		return "less is better"
	}
	return ""
}

// heading is a block's title with its unit and direction.
func (b *block) heading() string {
	title := WithUnit(b.title, b.unit)
	switch {
	case b.unranked != "":
		title += " (" + b.unranked + ")"
	case direction(b.better) != "":
		title += " (" + direction(b.better) + ")"
	}
	return title
}

// duration shows seconds in the block's unit, or in milliseconds where its values are no times.
func (b *block) duration(seconds float64) string {
	if base := timeBases[b.unit]; base != 0 {
		return b.scale.Format(seconds / base)
	}
	return Number(seconds*1e3) + " ms"
}

func share(b *block, r *row) float64 {
	top := 0.0
	for _, o := range b.rows {
		top = max(top, o.value)
	}
	if top <= 0 {
		return 0
	}
	return r.value / top
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

// trials is the most that any row has.
func (b *block) trials() (n int) {
	for _, r := range b.rows {
		if r.has {
			n = max(n, len(r.m.Trials))
		}
	}
	return n
}

// medianIsP50 tells whether the values are the histograms' medians anyway, so that one column is
// enough.
func medianIsP50(b *block) bool {
	some := false
	for _, r := range b.rows {
		if !r.has {
			continue
		}
		if r.dist == nil || timeBases[b.unit] == 0 {
			return false
		}
		p50 := r.dist.p50 / timeBases[b.unit]
		if diff := r.value - p50; diff > 0.02*p50+1e-9 || -diff > 0.02*p50+1e-9 {
			return false
		}
		some = true
	}
	return some
}

// trials is the most that any figure of a scenario has.
func (s *scenario) trials() (n int) {
	for _, b := range s.blocks {
		n = max(n, b.trials())
	}
	return n
}
