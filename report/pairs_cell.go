package report

import (
	"fmt"
	"slices"
	"strconv"

	"relaybench/results"
)

// quotient divides two times.
func quotient(a, b *results.Measurement) (float64, bool) {
	if a == nil || b == nil || timeBases[a.Unit] == 0 || timeBases[b.Unit] == 0 {
		return 0, false
	}
	x, _ := a.Value()
	y, _ := b.Value()
	if x <= 0 || y <= 0 {
		return 0, false
	}
	return x * timeBases[a.Unit] / (y * timeBases[b.Unit]), true
}

// shareOfText is a ratio that is mostly below one: "0.034×".
func shareOfText(r float64) string {
	if r < 0.0995 {
		return strconv.FormatFloat(r, 'g', 2, 64) + "×"
	}
	return ratioText(r)
}

// cellFor says all that was measured of one direction in one phase: what is known by name in a form
// of its own, and whatever else there is under its own name.
func (v *view) cellFor(ms []*results.Measurement, clock scale) phaseCell {
	var c phaseCell
	said := map[*results.Measurement]bool{}
	take := func(metric string) (*results.Measurement, float64) {
		m := find(ms, metric)
		if m == nil {
			return nil, 0
		}
		said[m] = true
		value, _ := m.Value()
		return m, value
	}
	say := func(format string, args ...any) { c.parts = append(c.parts, part{text: fmt.Sprintf(format, args...)}) }
	fine := func(format string, args ...any) { c.parts = append(c.parts, part{fmt.Sprintf(format, args...), true}) }
	trials := func(m *results.Measurement, s scale) {
		if text := rangeText(m, s); text != "" {
			say("trials %s", text)
		}
	}
	plain := func(m *results.Measurement, value float64) string {
		return scaleFor(m.Unit, []float64{value}).format(value)
	}

	if m, x := take("events/s"); m != nil {
		c.main = plain(m, x) + "/s"
		trials(m, scaleFor(m.Unit, []float64{x}))
	}
	if m, x := take(metricTime); m != nil {
		base := timeBases[m.Unit]
		if base == 0 {
			c.main = plain(m, x) + " " + unitTitle(m.Unit)
		} else {
			c.main = clock.format(x * base)
			if d := distributionOf(m); d != nil {
				few := ""
				if c.few = d.n < fewSamples; c.few {
					few = "*"
				}
				say("p50, p99 %s%s", clock.format(d.p99), few)
			}
			trials(m, scale{factor: clock.factor * base, suffix: clock.suffix})
		}
	}
	if m, x := take("events"); m != nil {
		took := ""
		if d, s := take("duration"); d != nil {
			took = " in " + plain(d, s)
		}
		say("%s%s", counted(x, "event"), took)
	}
	have, h := take("have")
	need, n := take("need")
	if (have != nil || need != nil) && h+n > 0 {
		say("%s differ", amount(h+n))
		if m, x := take("bytes per difference"); m != nil {
			say("%s B each", number(x))
		}
		fine("%s to have, %s to need", amount(h), amount(n))
	}
	if m, x := take("rounds"); m != nil {
		say("%s", counted(x, "round"))
	}
	for _, way := range []string{"up", "down"} {
		if m, x := take("bytes " + way); m != nil {
			say("%s %s", plain(m, x), way)
		}
	}
	if m, x := take("harness share"); m != nil {
		// Below that, the time is the relay's and the wire's.
		c.parts = append(c.parts, part{"harness " + plain(m, x), x < 10})
	}
	if m, x := take("first answer"); m != nil {
		text := plain(m, x)
		if base := timeBases[m.Unit]; base != 0 {
			text = clock.format(x * base)
		}
		fine("first answer %s", text)
	}
	for _, m := range ms {
		value, ok := m.Value()
		if said[m] || !ok {
			continue
		}
		if reason := m.Labels[results.LabelReason]; reason != "" {
			say("%s %s: %s", amount(value), m.Metric, reason)
			continue
		}
		text := v.rec.Metric(m.Metric).Title + " " + plain(m, value)
		if u := unitTitle(m.Unit); u != "" {
			text += " " + u
		}
		say("%s", text)
	}
	if c.notes = statusTexts(ms); c.main == "" { // which would have the numbers of notes
		for _, text := range c.notes {
			say("%s", text)
		}
	}
	return c
}

// statusTexts are what figures say of themselves and does not bar them, each once.
func statusTexts(ms []*results.Measurement) (all []string) {
	for _, m := range ms {
		for i := range m.Status {
			if text := statusText(&m.Status[i]); !barring[m.Status[i].Code] && !slices.Contains(all, text) {
				all = append(all, text)
			}
		}
	}
	return all
}

// amount is a number of things: without decimals where it is whole.
func amount(x float64) string { return scaleFor("", []float64{x}).format(x) }

// counted is a number, which need not be whole, with its noun.
func counted(x float64, noun string) string {
	if x != 1 {
		noun += "s"
	}
	return amount(x) + " " + noun
}
