package scenarios

import (
	"math"
	"slices"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness/load"
)

// expectedSet is what a relay should send: by the model of a corpus that it was given, or by what
// it sent before.
type expectedSet struct {
	now    int64
	corpus *corpus.Corpus // nil where nobody knows
	model  *model.Model
	whole  *load.State
	must   []int  // corpus indices of what has to come, newest first
	may    []bool // by corpus index: what may come as well
	open   bool   // the relay may hold more than the corpus

	records *load.Records // of a relay that nobody knows
	listed  []corpus.ID   // all that it ever sent and that was verified, newest first
	times   []int64       // of them
}

// expectCorpus is what a relay sends that holds what the model says. open says that it may hold
// more, which is no fault then.
func expectCorpus(m *model.Model, f corpus.Filter, open bool, now int64) *expectedSet {
	f.Limit = nil
	c := m.Corpus()
	g := &expectedSet{now: now, corpus: c, model: m, open: open, may: make([]bool, c.Len())}
	for i := range g.may { // what is in doubt and not held may come all the same
		g.may[i] = m.Optional(i)
	}
	for _, i := range m.Query(&f) {
		if m.Optional(i) {
			continue
		}
		g.must = append(g.must, i)
	}
	return g
}

// expectAnything is of a relay of which nothing is known yet.
func expectAnything(now int64) *expectedSet {
	return &expectedSet{now: now, open: true, records: load.NewRecords()}
}

// known reports whether it is known what must come.
func (g *expectedSet) known() bool { return g.corpus != nil }

// ids lists what can be asked for by id: what must come, or what is known to be there. Newest
// first.
func (g *expectedSet) ids() []corpus.ID {
	if g.corpus == nil {
		return g.listed
	}
	return idsOf(g.corpus, g.must)
}

// seen are the created_at of what ids lists, newest first.
func (g *expectedSet) seen() []int64 {
	if g.corpus == nil {
		return g.times
	}
	times := make([]int64, len(g.must))
	for k, i := range g.must {
		times[k] = g.corpus.Entry(i).CreatedAt
	}
	return times
}

// learn lists what a relay that nobody knew has sent so far.
func (g *expectedSet) learn() {
	if g.corpus == nil {
		g.listed, g.times = g.records.Newest()
	}
}

// size is how many events a download may be of.
func (g *expectedSet) size() int {
	if g.corpus == nil {
		return max(len(g.listed), mostOfGiant)
	}
	return len(g.must)
}

// unnamed counts what a reconciliation that named these ids has kept back, and invented what it
// named though nobody published it and it did not come.
func (g *expectedSet) unnamed(named, came []corpus.ID) (unnamed, invented int) {
	known := make(map[corpus.ID]bool, len(named))
	for _, id := range named {
		known[id] = true
	}
	for _, id := range g.ids() {
		if !known[id] {
			unnamed++
		}
	}
	if g.corpus == nil || g.open {
		return unnamed, 0
	}
	for _, id := range came {
		delete(known, id)
	}
	for id := range known {
		if _, published := g.corpus.Find(id); !published {
			invented++
		}
	}
	return unnamed, invented
}

// room is how many events an honest answer may hold at most, 0 where nobody knows.
func (g *expectedSet) room() int {
	if g.corpus == nil {
		return 0
	}
	n := len(g.must)
	for _, may := range g.may {
		if may {
			n++
		}
	}
	return n
}

// fetchTally is what came, held against what was expected.
type fetchTally struct {
	unique, duplicates int
	bytes              int64 // of the unique ones as JSON; 0 where nobody knows
	stepped            int   // of those missing, how many lie in seconds that were left before they had been read whole
	expected, missing  int   // expected is less than 0 where nobody knows
	unexpected         int   // that should not be there; each counted once
	newest             bool  // in each share of the time, what is missing is older than everything that came: answers that were cut at their end
}

// judge counts what came. Where asked is not nil it is what was expected, and else all that is
// known to be there. spans are the shares of the time that were asked for one by one, oldest first,
// and stepped the seconds that were left before they had been read whole.
func (g *expectedSet) judge(came, asked []corpus.ID, spans []timeSpan, stepped []int64) fetchTally {
	t := fetchTally{expected: -1}
	left := make(map[int64]bool, len(stepped))
	for _, at := range stepped {
		left[at] = true
	}
	if g.corpus == nil {
		distinct := make(map[corpus.ID]struct{}, len(came))
		for _, id := range came {
			distinct[id] = struct{}{}
		}
		t.unique, t.duplicates = len(distinct), len(came)-len(distinct)
		if asked != nil {
			t.expected = len(asked)
			for _, id := range asked {
				if _, ok := distinct[id]; !ok {
					t.missing++
				}
			}
		}
		return t
	}
	here := make([]bool, g.corpus.Len())
	unexpected := make(map[corpus.ID]struct{})
	must := make([]bool, g.corpus.Len())
	for _, i := range g.must {
		must[i] = true
	}
	share := func(at int64) int { // the span that a second lies in
		i, _ := slices.BinarySearchFunc(spans, at, func(s timeSpan, at int64) int {
			if s.until == nil || *s.until >= at {
				return 1
			}
			return -1
		})
		return min(i, len(spans))
	}
	oldest := slices.Repeat([]int64{math.MaxInt64}, len(spans)+1)
	for _, id := range came {
		i, ok := g.corpus.Find(id)
		switch {
		case !ok || !must[i] && !g.may[i]:
			if _, again := unexpected[id]; again {
				t.duplicates++
			}
			unexpected[id] = struct{}{}
		case here[i]:
			t.duplicates++
		default:
			here[i] = true
			t.unique++
			e := g.corpus.Entry(i)
			t.bytes += int64(e.Length)
			k := share(e.CreatedAt)
			oldest[k] = min(oldest[k], e.CreatedAt)
		}
	}
	t.newest = t.unique > 0
	expect := func(i int) {
		t.expected++
		if !here[i] {
			t.missing++
			at := g.corpus.Entry(i).CreatedAt
			if left[at] {
				t.stepped++
			}
			k := share(at)
			t.newest = t.newest && oldest[k] < math.MaxInt64 && at <= oldest[k]
		}
	}
	t.expected = 0
	if asked != nil {
		for _, id := range asked {
			if i, ok := g.corpus.Find(id); ok {
				expect(i)
			}
		}
	} else {
		for _, i := range g.must {
			expect(i)
		}
	}
	if g.open {
		t.unique += len(unexpected)
	} else {
		t.unexpected = len(unexpected)
	}
	return t
}

// fold folds what came, which adds up to y. What all that must come folds to is worked out once.
func (g *expectedSet) fold(came []corpus.ID, y *fetchTally) (*load.State, error) {
	if g.corpus == nil {
		return g.records.Fold(came, g.now), nil
	}
	whole := y.missing == 0 && y.unique == len(g.must) && y.expected == len(g.must) && y.unexpected == 0
	if whole && g.whole != nil {
		return g.whole, nil
	}
	here := make([]bool, g.corpus.Len())
	unread := make(map[corpus.ID]struct{})
	for _, id := range came {
		if i, ok := g.corpus.Find(id); ok {
			here[i] = true
		} else {
			unread[id] = struct{}{}
		}
	}
	s, err := load.FoldCorpus(g.corpus, func(i int) bool { return here[i] }, g.now)
	if err == nil {
		s.Unread = len(unread)
	}
	if err == nil && whole {
		g.whole = s
	}
	return s, err
}

// timeSpan is one share of the time, both ends inclusive; nil is open.
type timeSpan struct{ since, until *int64 }

// genesis is before the first event of Nostr.
const genesis = 1_600_000_000

// shares divides the time that a filter leaves into shares of equally many events, as far as they
// are known and seconds allow, and else of equal length.
func (g *expectedSet) shares(f *corpus.Filter, n int) []timeSpan {
	times := slices.Clone(g.seen())
	slices.Sort(times)
	var cuts []int64 // the first second of each share but the first
	cut := func(at int64) {
		if (f.Since == nil || at > *f.Since) && (len(cuts) == 0 || at > cuts[len(cuts)-1]) {
			cuts = append(cuts, at)
		}
	}
	if len(times) > 0 {
		for k := 1; k < n; k++ {
			if at := times[k*len(times)/n]; at > times[0] {
				cut(at)
			}
		}
	} else {
		oldest, newest := int64(genesis), g.now
		if f.Since != nil {
			oldest = *f.Since
		}
		if f.Until != nil {
			newest = *f.Until
		}
		for k := 1; k < n && newest > oldest; k++ {
			cut(oldest + int64(k)*(newest-oldest)/int64(n))
		}
	}
	var all []timeSpan
	since := f.Since
	for _, at := range cuts {
		all = append(all, timeSpan{since, corpus.Int64(at - 1)})
		since = corpus.Int64(at)
	}
	return append(all, timeSpan{since, f.Until})
}
