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
	whole  *load.State    // of all that must come, once it is known
	must   []int          // corpus indices of what has to come, newest first
	may    []bool         // by corpus index: what may come, and that
	open   bool           // the relay may hold more than the corpus

	records *load.Records // of a relay that nobody knows
	listed  []corpus.ID   // all that it ever sent and that was verified, newest first
	times   []int64       // of them
}

// expectCorpus is what a relay sends that holds what the model says. What is in doubt may come or
// not. open says that it may hold more, which is no fault then.
func expectCorpus(m *model.Model, f corpus.Filter, open bool, now int64) *expectedSet {
	f.Limit = nil
	must := slices.DeleteFunc(m.Query(&f), m.Optional)
	may := among(m.Corpus(), must, where(m.Corpus(), m.Optional))
	return &expectedSet{now: now, corpus: m.Corpus(), must: must, may: may, open: open}
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

// room is how many events an honest answer may hold at most, 0 where nobody knows.
func (g *expectedSet) room() (n int) {
	for _, may := range g.may {
		if may {
			n++
		}
	}
	return n
}

// unnamed counts what a reconciliation that named these ids has kept back, and invented what it
// named though nobody published it and it did not come.
func (g *expectedSet) unnamed(named, came []corpus.ID) (unnamed, invented int) {
	known := idSet(named...)
	for _, id := range g.ids() {
		if !known[id] {
			unnamed++
		}
	}
	if g.open {
		return unnamed, 0
	}
	for _, id := range came {
		delete(known, id)
	}
	for id := range known {
		if index(g.corpus, id) < 0 {
			invented++
		}
	}
	return unnamed, invented
}

// fetchTally is what came, held against what was expected.
type fetchTally struct {
	here               []bool             // by corpus index
	strangers          map[corpus.ID]bool // that are not of the corpus
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
func (g *expectedSet) judge(came, asked []corpus.ID, spans []timeSpan, stepped []int64) (t fetchTally) {
	if g.corpus == nil {
		distinct := idSet(came...)
		t.unique, t.duplicates, t.expected = len(distinct), len(came)-len(distinct), -1
		if asked != nil {
			t.expected, t.missing = len(asked), len(minus(idSet(asked...), distinct))
		}
		return t
	}
	t.here, t.strangers = make([]bool, g.corpus.Len()), idSet()
	for _, id := range came {
		if i, ok := g.corpus.Find(id); ok {
			t.here[i] = true
		} else {
			t.strangers[id] = true
		}
	}
	share := func(at int64) int { // the span that a second lies in
		i, _ := slices.BinarySearchFunc(spans, at, func(s timeSpan, at int64) int {
			if s.until == nil || *s.until >= at {
				return 1
			}
			return -1
		})
		return i
	}
	oldest := slices.Repeat([]int64{math.MaxInt64}, len(spans)+1)
	t.unexpected = len(t.strangers)
	for i, here := range t.here {
		switch {
		case here && !g.may[i]:
			t.unexpected++
		case here:
			e := g.corpus.Entry(i)
			t.unique++
			t.bytes += int64(e.Length)
			k := share(e.CreatedAt)
			oldest[k] = min(oldest[k], e.CreatedAt)
		}
	}
	t.duplicates = len(came) - t.unique - t.unexpected
	expected := g.must
	if asked != nil {
		expected = nil
		for _, id := range asked {
			if i, ok := g.corpus.Find(id); ok {
				expected = append(expected, i)
			}
		}
	}
	left := make(map[int64]bool, len(stepped))
	for _, at := range stepped {
		left[at] = true
	}
	t.expected, t.newest = len(expected), t.unique > 0
	for _, i := range expected {
		if t.here[i] {
			continue
		}
		t.missing++
		at := g.corpus.Entry(i).CreatedAt
		if left[at] {
			t.stepped++
		}
		k := share(at)
		t.newest = t.newest && oldest[k] < math.MaxInt64 && at <= oldest[k]
	}
	if g.open {
		t.unique, t.unexpected = t.unique+t.unexpected, 0
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
	s, err := load.FoldCorpus(g.corpus, func(i int) bool { return y.here[i] }, g.now)
	if err != nil {
		return nil, err
	}
	if s.Unread = len(y.strangers); whole {
		g.whole = s
	}
	return s, nil
}

// timeSpan is one share of the time, both ends inclusive; nil is open.
type timeSpan struct{ since, until *int64 }

// genesis is before the first event of Nostr.
const genesis = 1_600_000_000

// shares divides the time that a filter leaves into shares of equally many events, as far as they
// are known and seconds allow, and else of equal length.
func (g *expectedSet) shares(f *corpus.Filter, n int) (all []timeSpan) {
	times := slices.Clone(g.times)
	for _, i := range g.must {
		times = append(times, g.corpus.Entry(i).CreatedAt)
	}
	slices.Sort(times)
	oldest, newest, since := int64(genesis), g.now, f.Since
	if since != nil {
		oldest = *since
	}
	if f.Until != nil {
		newest = *f.Until
	}
	if len(times) > 0 {
		oldest = times[0]
	}
	for k := 1; k < n; k++ {
		at := oldest + int64(k)*(newest-oldest)/int64(n)
		if len(times) > 0 {
			at = times[k*len(times)/n]
		}
		if at > oldest && (since == nil || at > *since) {
			all = append(all, timeSpan{since, corpus.Int64(at - 1)})
			since = corpus.Int64(at)
		}
	}
	return append(all, timeSpan{since, f.Until})
}
