package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"relaybench/results"
)

// answersDiffer is why relays that answered differently are not ranked.
const answersDiffer = "answers differ: not ranked"

// agreement tells which relays answered the same in a scenario, by its exact figures that have no
// direction (how many events came back). Relays that answered differently did different work and
// are not ranked against each other: the largest group that agrees competes, and nobody does when
// two groups are equally large. A nil result lets all compete.
func (v *view) agreement(ms []*results.Measurement) map[string]bool {
	answers := map[string]string{}
	for _, m := range ms {
		// A relay that does not compete has no say in what the others should have answered.
		if !m.Exact || m.Better != results.None || v.rec.Metric(m.Metric).Role == results.RoleResource || len(v.bars(m)) > 0 {
			continue
		}
		if value, ok := m.Value(); ok {
			k := rowKey{m.Relay, m.Peer}.name()
			answers[k] += fmt.Sprintf("%s%s=%v;", m.Metric, LabelKey(m.Labels), value)
		}
	}
	sizes := map[string]int{}
	for _, a := range answers {
		sizes[a]++
	}
	if len(sizes) < 2 {
		return nil
	}
	counts := slices.Sorted(maps.Values(sizes))
	largest := counts[len(counts)-1]
	agreeing := map[string]bool{}
	for name, a := range answers {
		agreeing[name] = sizes[a] == largest && largest > counts[len(counts)-2]
	}
	return agreeing
}

// rank finds who competes in a block and who is best. A figure that anything bars does not compete,
// nor does anyone win past one that the harness limited and that is better still. Exact ties share
// no star.
func (v *view) rank(b *block, agreeing map[string]bool) {
	var field []*row
	disagree := false
	for _, r := range b.rows {
		switch {
		case !r.has || len(r.bars) > 0:
		case agreeing != nil && !agreeing[r.name]:
			disagree = true
		default:
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

// compare puts the better one of two values first.
func (b *block) compare(x, y float64) int {
	if b.better == results.Lower {
		return cmp.Compare(x, y)
	}
	return cmp.Compare(y, x)
}

// crown ranks the rows of a field and finds the best, if there is one.
func (v *view) crown(b *block, field []*row) {
	if len(field) < 2 {
		return
	}
	b.ranked = true
	slices.SortStableFunc(field, func(x, y *row) int { return b.compare(x.value, y.value) })
	first, tied := field[0], field[1].value == field[0].value
	for _, r := range field {
		r.competes = true
		r.ratio = ratio(b.better, r.value, first.value)
		r.tied = tied && r.value == first.value
		b.across = b.across || b.scenario.Durability && r.relay != nil && first.relay != nil && r.relay.Durability != first.relay.Durability
	}
	if tied {
		return
	}
	for _, r := range b.rows {
		if r.has && r.m.Is(results.StatusLimited) != nil && !v.accused(r.m) && b.compare(r.value, first.value) < 0 {
			b.unranked = "the best figure is limited by the harness"
			return
		}
	}
	first.best = v.tested() && settled(field)
	first.close = !first.best
}

// tested tells whether the run has trials enough for a test to tell a difference from chance. With
// fewer there are no stars.
func (v *view) tested() bool { return v.trials >= results.TrialsFor(results.Alpha) }

// settled tells whether the first of a field is ahead of every other one beyond chance:
// significantly so, or, where both figures are exact and there is nothing to test, simply ahead.
func settled(field []*row) bool {
	sample := func(r *row) []float64 {
		if r.pooled != nil {
			return r.pooled
		}
		return r.m.Trials
	}
	first := field[0]
	return !slices.ContainsFunc(field[1:], func(r *row) bool {
		if first.m.Exact && r.m.Exact {
			lo, hi := r.m.Range()
			least, most := first.m.Range()
			return least <= hi && most >= lo
		}
		return !results.Compare(sample(r), sample(first)).Significant
	})
}

// ratio is how many times the best a value is, 1 or more; 0 where there is none.
func ratio(better results.Better, value, best float64) float64 {
	if value == best {
		return 1
	}
	if better == results.Higher {
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
	wins   int // or, where nothing can be tested, in how many it is ahead
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
	scale Scale
	ratio float64  // a geometric mean where the headline stands for several scenarios
	n, of int      // over how many of them
	notes []string // why it does not compete in all of them
}

// headlines are the columns that scenarios name, each with all blocks that stand under its title. A
// section that names none is represented by the first ranked metric of its scenarios.
func (v *view) headlines() []Group[string, *block] {
	var columns Groups[string, *block]
	for _, s := range v.sections {
		blocks := s.contests()
		named := slices.ContainsFunc(blocks, func(b *block) bool { return len(b.scenario.Headlines) > 0 })
		var shown []string
		for _, b := range blocks {
			for _, h := range b.scenario.Headlines {
				if h.Metric == b.metric.Key && b.labels.Contains(h.Labels) && b.contested() {
					columns.Add(h.Title, b)
				}
			}
			if !named && b.ranked && len(shown) < 4 && !slices.Contains(shown, b.scenario.Key) {
				shown = append(shown, b.scenario.Key)
				columns.Add(b.scenario.Key, b)
			}
		}
	}
	return columns.List
}

// contested tells whether several relays have the figure for themselves, whether or not they may
// compete.
func (b *block) contested() bool {
	have := slices.DeleteFunc(slices.Clone(b.rows), func(r *row) bool { return !r.has })
	return len(have) > 1 && !slices.ContainsFunc(have, func(r *row) bool { return r.m.Peer != "" })
}

// headToHead gathers wins and headline figures; ok is false when nothing was ranked.
func (v *view) headToHead() (titles []string, standings []*standing, ok bool) {
	columns := v.headlines()
	for _, h := range columns {
		titles = append(titles, h.Key)
	}
	for _, r := range v.relays {
		st := &standing{name: r.Name}
		competes, why := false, Prefixed(r.Name+": ", v.out(r.Name))
		for _, b := range v.contests() {
			for _, row := range b.rows {
				if row.m == nil || row.m.Relay != r.Name {
					continue
				}
				why = cmp.Or(why, strings.Join(row.bars, "; "))
				if !row.competes {
					continue
				}
				competes, ok = true, true
				if b.echo || allTied(b) {
					continue
				}
				st.of++
				if row.best || row.close && !v.tested() {
					st.wins++
				}
			}
		}
		if !competes {
			st.reason = cmp.Or(why, r.Name+" has no figures to set beside another relay's")
		}
		for _, h := range columns {
			st.cells = append(st.cells, v.cellOf(r.Name, h.Members))
		}
		standings = append(standings, st)
	}
	return titles, standings, ok
}

func (v *view) cellOf(relay string, members []*block) standingCell {
	c := standingCell{of: len(members)}
	var logs float64
	var barred []*results.Measurement
	for _, b := range members {
		for _, r := range b.rows {
			if r.m == nil || r.m.Relay != relay || !r.has {
				continue
			}
			if len(members) == 1 {
				c.row, c.scale = r, b.scale
			}
			switch {
			case r.ratio > 0:
				logs += math.Log(r.ratio)
				c.n++
			case len(r.bars) > 0:
				barred = append(barred, r.m)
			case b.unranked != "":
				c.notes = AddNew(c.notes, b.unranked)
			}
		}
	}
	if len(barred) > 0 {
		c.notes = append(c.notes, strings.Join(v.bars(barred...), "; "))
	}
	if c.n > 0 {
		c.ratio = math.Exp(logs / float64(c.n))
	}
	if len(c.notes) > 2 { // a cell has no room for more numbers
		c.notes = []string{Some(c.notes, 3)}
	}
	return c
}

// findEchoes marks the blocks of a query that would only count another one's win a second time: a
// time that is that of a headline (a first event in the packet of its EOSE: within 5 %), and a rate
// that follows from a headline's rate.
func findEchoes(s *scenario) {
	for _, b := range s.blocks {
		for _, o := range s.blocks {
			if s.layout != results.LayoutQueries || b.headline() || !o.headline() || b.better != o.better {
				continue
			}
			low, high := math.Inf(1), 0.0
			for i, r := range b.rows {
				switch other := o.rows[i]; {
				case b.unit == o.unit && r.has && other.has && (r.best || r.close):
					b.echo = math.Abs(r.value-other.value) <= 0.05*other.value
				case b.unit != o.unit && r.competes && r.value > 0:
					low, high = min(low, other.value/r.value), max(high, other.value/r.value)
				}
			}
			b.echo = b.echo || b.unit != o.unit && o.ranked && high <= 1.05*low
		}
	}
}

// headline tells whether a scenario names the metric for the summary.
func (b *block) headline() bool {
	return slices.ContainsFunc(b.scenario.Headlines, func(h results.Headline) bool { return h.Metric == b.metric.Key })
}

// winsTitle heads the count of wins. Without a test nobody wins.
func (v *view) winsTitle() string {
	return map[bool]string{true: "wins", false: "ahead in"}[v.tested()]
}

// winsNotes say what is counted, and what may not be concluded from it.
func (v *view) winsNotes() []string {
	notes := []string{"\"wins\" counts the ranked figures in which a relay is significantly ahead of every other (Mann–Whitney U, " +
		"p < 0.05, each pair by itself), of those it competes in: where the difference may be chance (~) or there is none (=) " +
		"nobody wins, so that wins need not add up."}
	if !v.tested() {
		notes[0] = fmt.Sprintf("%s: no test can tell a difference from chance, and there is no ★ (--trials %d tests them). "+
			"\"ahead in\" counts the ranked figures in which a relay is ahead, of those it competes in.", Count(v.trials, "trial"), results.EnoughTrials)
	}
	if slices.ContainsFunc(v.contests(), func(b *block) bool { return b.echo && b.ranked }) {
		notes = append(notes, "Not counted, since it only repeats another figure: a first event that comes with its EOSE, "+
			"and answers/s where events/s says the same.")
	}
	return append(notes, "Latencies are medians. 1.00× is the best; several scenarios together are a geometric mean of such ratios.")
}

// allTied tells whether a block was no contest: all who compete in it are equal.
func allTied(b *block) bool {
	return !slices.ContainsFunc(b.rows, func(r *row) bool { return r.competes && !r.tied })
}

// contests are the blocks that count for the standings.
func (v *view) contests() (all []*block) {
	for _, s := range v.sections {
		all = append(all, s.contests()...)
	}
	return all
}

// contests are the blocks of a section that count for the standings. Of downloads those of raw
// events do: verified ones say what a client can do, and of the many settings each counts for
// little. Pairs are summed up.
func (s *section) contests() (all []*block) {
	for _, sc := range s.scenarios {
		counts := sc.layout != results.LayoutPairs
		if sc.layout == results.LayoutDownloads {
			counts = formOf(sc.labels) == formRaw && sc.labels[results.LabelBatch] == ""
		}
		if counts {
			all = append(all, sc.blocks...)
		}
	}
	return append(all, s.summary...)
}
