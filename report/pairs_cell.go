package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/harness/measure"
)

// quotient divides two times.
func quotient(a, b *measure.Measurement) (float64, bool) {
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

// cellFor says all that was measured of one direction in one phase: what is known by name in a form of its own, and
// whatever else there is under its own name.
func cellFor(ms []*measure.Measurement, clock scale) phaseCell {
	var c phaseCell
	said := map[*measure.Measurement]bool{}
	take := func(metric string) (*measure.Measurement, float64) {
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
	plain := func(m *measure.Measurement, value float64) string {
		return scaleFor(m.Unit, []float64{value}).format(value)
	}

	if m, x := take("events/s"); m != nil {
		c.main = plain(m, x) + "/s"
		c.trials(m, scaleFor(m.Unit, []float64{x}), 1)
	}
	if m, x := take("time"); m != nil {
		base := timeBases[m.Unit]
		if base == 0 {
			c.main = plain(m, x) + " " + unitTitle(m.Unit)
		} else {
			c.main = clock.format(x * base)
			if d := distributionOf(m); d != nil {
				few := ""
				if d.n < fewSamples {
					few = "*"
				}
				say("p50, p99 %s%s", clock.format(d.p99), few)
			}
			c.trials(m, clock, base)
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
	var notes []string
	for _, m := range ms {
		if m.Note != "" && !slices.Contains(notes, m.Note) {
			notes = append(notes, m.Note)
		}
		value, ok := m.Value()
		if said[m] || !ok {
			continue
		}
		if reason, ok := strings.CutPrefix(m.Metric, "refused: "); ok {
			say("%s refused: %s", amount(value), reason)
			continue
		}
		_, title := metricTitle(m.Metric)
		text := title + " " + plain(m, value)
		if u := unitTitle(m.Unit); u != "" {
			text += " " + u
		}
		say("%s", text)
	}
	for _, n := range notes {
		say("%s", n)
	}
	return c
}

// trials adds the range over several trials.
func (c *phaseCell) trials(m *measure.Measurement, s scale, base float64) {
	if lo, hi := m.Range(); len(m.Trials) > 1 && lo != hi {
		c.parts = append(c.parts, part{text: "trials " + number(lo*base*s.factor) + "–" + number(hi*base*s.factor)})
	}
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
