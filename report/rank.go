package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// harnessLimited is how a measurement's note begins when the harness, and not the relay, set the figure.
const harnessLimited = "limited by the harness"

// answersDiffer is why relays that answered differently are not ranked.
const answersDiffer = "answers differ: not ranked"

// enoughTrials is how many trials a ranking should rest on.
const enoughTrials = 6

// agreement tells which relays answered the same in a scenario, by its exact figures that have no direction (how many
// events came back). Relays that answered differently did different work and are not ranked against each other: the
// largest group that agrees competes, and nobody does when two groups are equally large. A nil result lets all compete.
func (v *view) agreement(ms []*measure.Measurement) map[string]bool {
	answers := map[string]string{}
	var names []string
	for _, m := range ms {
		// A relay that competes nowhere has no say in what the others should have answered.
		if !m.Exact || m.Better != measure.None || isResource(m.Metric) || v.barred[m.Relay] != "" {
			continue
		}
		if value, ok := m.Value(); ok {
			k := rowKey{m.Relay, m.Peer}.name()
			if answers[k] == "" {
				names = append(names, k)
			}
			answers[k] += fmt.Sprintf("%s=%v;", m.Metric, value)
		}
	}
	sizes := map[string]int{}
	for _, n := range names {
		sizes[answers[n]]++
	}
	if len(sizes) < 2 {
		return nil
	}
	largest, ties := "", 0
	for _, n := range names {
		switch a := answers[n]; {
		case a == largest:
		case sizes[a] > sizes[largest]:
			largest, ties = a, 1
		case sizes[a] == sizes[largest]:
			ties++
		}
	}
	agreeing := map[string]bool{}
	if ties == 1 {
		for _, n := range names {
			agreeing[n] = answers[n] == largest
		}
	}
	return agreeing
}

// rank finds who competes in a block and who is best. A relay that did not come through, or failed a required check on
// this scenario or as a whole, does not compete; neither does a figure that the harness limited, nor does anyone win
// past one that is better still. Exact ties share no star.
func (v *view) rank(b *block, agreeing map[string]bool) {
	var field []*row
	var disagree bool
	for _, r := range b.rows {
		if !r.has {
			continue
		}
		if agreeing != nil && !agreeing[r.name] && v.barred[r.m.Relay] == "" {
			disagree = true
			continue
		}
		if v.mayCompete(b, r) {
			field = append(field, r)
		}
	}
	if disagree && len(field) < 2 {
		b.unranked = answersDiffer
	}
	if slices.ContainsFunc(field, func(r *row) bool { return r.m.Peer != field[0].m.Peer }) {
		b.unranked = "their peers differ: not ranked"
		return
	}
	v.crown(b, field)
}

// crown ranks the rows of a field and finds the best, if there is one.
func (v *view) crown(b *block, field []*row) {
	better := func(a, c float64) bool {
		if b.better == measure.Lower {
			return a < c
		}
		return a > c
	}
	for _, r := range field {
		r.competes = true
	}
	if len(field) < 2 {
		for _, r := range field {
			r.competes = false
		}
		return
	}
	b.ranked = true
	slices.SortStableFunc(field, func(x, y *row) int {
		switch {
		case better(x.value, y.value):
			return -1
		case better(y.value, x.value):
			return 1
		}
		return 0
	})
	first, second := field[0], field[1]
	for _, r := range field {
		r.ratio = ratio(b.better, r.value, first.value)
		r.tied = first.value == second.value && r.value == first.value
	}
	b.across = durabilityDecides(b.scenario) && slices.ContainsFunc(field, func(r *row) bool {
		return r.relay != nil && first.relay != nil && r.relay.Durability != first.relay.Durability
	})
	if first.tied {
		return
	}
	for _, r := range b.rows {
		if r.has && isLimited(r.m) && better(r.value, first.value) {
			b.unranked = "the best figure is " + harnessLimited
			return
		}
	}
	first.best = settled(field)
	first.close = !first.best
}

// settled tells whether the first of a field is ahead of every other one beyond chance: significantly so, or, where there is nothing to test
// (one trial each, or exact figures), simply ahead. Two or three trials a side can never be significant.
func settled(field []*row) bool {
	first := field[0]
	return !slices.ContainsFunc(field[1:], func(r *row) bool {
		if first.m.Exact && r.m.Exact || first.once() && r.once() {
			return first.lo <= r.hi && first.hi >= r.lo
		}
		return !measure.Compare(r.sample(), first.sample()).Significant
	})
}

// sample is what a test compares.
func (r *row) sample() []float64 {
	if r.pooled != nil {
		return r.pooled
	}
	return r.m.Trials
}

// once tells whether a figure rests on one trial, or on one of each of several pairs.
func (r *row) once() bool {
	if r.pooled != nil {
		return len(r.pooled) == len(r.m.Trials)
	}
	return len(r.m.Trials) == 1
}

func isLimited(m *measure.Measurement) bool { return strings.Contains(m.Note, harnessLimited) }

func (v *view) mayCompete(b *block, r *row) bool {
	if isLimited(r.m) || r.m.IsIncomplete() {
		return false
	}
	if v.barred[r.m.Relay] != "" || r.m.Peer != "" && v.barred[r.m.Peer] != "" {
		return false
	}
	return !slices.ContainsFunc(v.checks, func(f *measure.Finding) bool {
		if f.OK || !f.Required || f.Scenario == "" || !within(b.scenario, f.Scenario) {
			return false
		}
		switch f.Peer {
		case "": // of one relay alone, which spoils its pairs too
			return f.Relay == r.m.Relay || r.m.Peer != "" && f.Relay == r.m.Peer
		case r.m.Peer:
			return f.Relay == r.m.Relay
		case r.m.Relay:
			return f.Relay == r.m.Peer
		}
		return false
	})
}

// ratio is how many times the best a value is, 1 or more; 0 where there is none.
func ratio(better measure.Better, value, best float64) float64 {
	if value == best {
		return 1
	}
	if better == measure.Higher {
		value, best = best, value
	}
	r := value / best
	if math.IsNaN(r) || math.IsInf(r, 0) || r <= 0 {
		return 0
	}
	return r
}

// A standing is one relay's line in the head-to-head summary.
type standing struct {
	name   string
	wins   int
	of     int // ranked rows in which it competes and not all are equal
	cells  []standingCell
	reason string // why it does not compete at all
}

// score is how many of its contests a relay wins.
func (s *standing) score() string {
	if s.of == 0 {
		return nothing
	}
	return fmt.Sprintf("%d of %d", s.wins, s.of)
}

type standingCell struct {
	row   *row
	scale scale
	ratio float64 // a geometric mean where the headline stands for several scenarios
	n, of int     // over how many of them
}

// headToHead gathers wins and headline figures; ok is false when nothing was ranked.
func (v *view) headToHead() (titles []string, standings []*standing, ok bool) {
	var columns [][]*block
	taken := map[*block]bool{}
	blocks := v.rankedBlocks()
	for _, h := range headlines {
		var members []*block
		for _, b := range blocks {
			if b.metric == h.metric && covers(h.scenario, b.scenario) && !pairs(b) {
				members = append(members, b)
				taken[b] = true
			}
		}
		if len(members) > 0 {
			titles, columns = append(titles, h.title), append(columns, members)
		}
	}
	// A section without headlines of its own is represented by the first ranked metric of its scenarios.
	for _, s := range v.sections {
		if slices.ContainsFunc(headlines, func(h struct{ scenario, metric, title string }) bool {
			_, title := sectionOf(h.scenario)
			return title == s.title
		}) {
			continue
		}
		for _, sc := range s.scenarios[:min(len(s.scenarios), 4)] {
			if i := slices.IndexFunc(sc.blocks, func(b *block) bool { return b.ranked && !pairs(b) }); i >= 0 {
				titles, columns = append(titles, sc.key), append(columns, sc.blocks[i:i+1])
			}
		}
	}
	for _, r := range v.relays {
		st := &standing{name: r.Name, reason: v.barred[r.Name]}
		for _, b := range blocks {
			if b.echo || allTied(b) {
				continue
			}
			for _, row := range b.rows {
				if row.competes && row.m.Relay == r.Name {
					st.of++
					ok = true
					if row.best {
						st.wins++
					}
				}
			}
		}
		for _, members := range columns {
			st.cells = append(st.cells, cellOf(r.Name, members))
		}
		standings = append(standings, st)
	}
	return titles, standings, ok
}

func cellOf(relay string, members []*block) standingCell {
	c := standingCell{of: len(members)}
	var logs float64
	for _, b := range members {
		for _, r := range b.rows {
			if r.m == nil || r.m.Relay != relay || !r.has {
				continue
			}
			if len(members) == 1 {
				c.row, c.scale = r, b.scale
			}
			if r.ratio > 0 {
				logs += math.Log(r.ratio)
				c.n++
			}
		}
	}
	if c.n > 0 {
		c.ratio = math.Exp(logs / float64(c.n))
	}
	return c
}

// findEchoes marks the blocks of a query that would only count another one's win a second time: a first event that came with
// its EOSE (in one packet: within 5 %), and queries per second where they follow from the events per second.
func findEchoes(s *scenario) {
	if first, eose := metric(s, "first event"), metric(s, "eose"); first != nil && eose != nil {
		for i, r := range first.rows {
			if o := eose.rows[i]; r.has && o.has && (r.best || r.close) {
				first.echo = first.unit == eose.unit && math.Abs(r.value-o.value) <= 0.05*o.value
			}
		}
	}
	if answers, events := metric(s, "queries/s"), metric(s, "events/s"); answers != nil && events != nil && events.ranked {
		low, high := math.Inf(1), 0.0
		for i, r := range answers.rows {
			if o := events.rows[i]; r.competes && r.value > 0 {
				low, high = min(low, o.value/r.value), max(high, o.value/r.value)
			}
		}
		answers.echo = high <= 1.05*low
	}
}

// echoes tells whether any ranked block is left out of the count of wins.
func (v *view) echoes() bool {
	return slices.ContainsFunc(v.rankedBlocks(), func(b *block) bool { return b.echo })
}

// winsTitle heads the count of wins. One trial is no test, and nobody wins by it.
func (v *view) winsTitle() string {
	if v.trials == 1 {
		return "best in"
	}
	return "wins"
}

// winsNotes say what is counted, and what may not be concluded from it.
func (v *view) winsNotes() []string {
	var out []string
	if v.trials == 1 {
		out = append(out, fmt.Sprintf("One trial: a difference may be chance, none is tested (--trials %d tests them). \"best in\" counts the ranked figures in which a relay is ahead, of those it competes in.", enoughTrials))
	} else {
		out = append(out, "\"wins\" counts the ranked figures in which a relay is significantly ahead of every other (Mann–Whitney U, p < 0.05, each pair by itself), of those it competes in: where the difference may be chance (~) or there is none (=) nobody wins, so that wins need not add up.")
	}
	if v.echoes() {
		out = append(out, "Not counted, since it only repeats another figure: a first event that comes with its EOSE, and answers/s where events/s says the same.")
	}
	return append(out, "Latencies are medians. 1.00× is the best; several scenarios together are a geometric mean of such ratios.")
}

// allTied tells whether a block was no contest: all who compete in it are equal.
func allTied(b *block) bool {
	return !slices.ContainsFunc(b.rows, func(r *row) bool { return r.competes && !r.tied })
}

func pairs(b *block) bool {
	return slices.ContainsFunc(b.rows, func(r *row) bool { return r.m != nil && r.m.Peer != "" })
}

func (v *view) rankedBlocks() []*block {
	var out []*block
	for _, s := range v.sections {
		for _, sc := range s.scenarios {
			for _, b := range sc.blocks {
				if b.ranked {
					out = append(out, b)
				}
			}
		}
		if s.download != nil {
			out = append(out, slices.DeleteFunc(s.download.contests(), func(b *block) bool { return !b.ranked })...)
		}
		if s.pairing == nil {
			continue
		}
		for _, c := range s.pairing.columns {
			if c.block != nil && c.ranked {
				out = append(out, c.block)
			}
		}
	}
	return out
}
