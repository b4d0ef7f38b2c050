package model

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"relaybench/corpus"
)

func modelOf(t testing.TB, events []corpus.Event, offered func(i int) bool) (*corpus.Corpus, *Model) {
	t.Helper()
	c, err := corpus.FromEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(c, offered, testNow)
	if err != nil {
		t.Fatal(err)
	}
	return c, m
}

func randomFilter(r *rand.Rand, events []corpus.Event) corpus.Filter {
	var f corpus.Filter
	some := func(odds int) bool { return r.IntN(odds) == 0 }
	e := func() *corpus.Event { return &events[r.IntN(len(events))] }
	if some(5) {
		f.IDs = []corpus.ID{{1}}
		for range r.IntN(20) {
			f.IDs = append(f.IDs, e().ID)
		}
	}
	if some(3) {
		f.Authors = []corpus.PubKey{}
		for range r.IntN(12) {
			f.Authors = append(f.Authors, cmp.Or(e().PubKey, corpus.PubKey{byte(r.IntN(3))}))
		}
	}
	if some(2) {
		f.Kinds = []int{-1, 1 << 20}
		for range r.IntN(10) {
			f.Kinds = append(f.Kinds, e().Kind)
		}
	}
	for _, name := range "deptT" {
		if some(6) {
			tf := corpus.TagFilter{Name: byte(name), Values: []string{}}
			for range r.IntN(9) {
				if tags := e().Tags; len(tags) > 0 {
					tf.Values = append(tf.Values, tags[r.IntN(len(tags))].Value())
				}
			}
			f.Tags = append(f.Tags, tf)
		}
	}
	if some(4) {
		f.Since = corpus.Int64(e().CreatedAt)
	}
	if some(4) {
		f.Until = corpus.Int64(e().CreatedAt)
	}
	if some(2) {
		f.Limit = corpus.Int(r.IntN(8))
	}
	return f
}

// However a compliant relay decides where it may, and in whatever order events come, the model must
// find no fault in it.
func TestModelFindsNoFaultInCompliantRelays(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	both := map[bool]int{} // by Optional: events seen both held and not
	for round := range 400 {
		events := randomEvents(r, 4+r.IntN(40))
		c, m := modelOf(t, events, nil)
		seen := make([]int, c.Len())
		const relays = 12
		for range relays {
			relay := newTestRelay(r)
			for _, i := range r.Perm(len(events)) {
				relay.offer(&events[i])
			}
			held := relay.returned(&corpus.Filter{})
			for _, id := range held {
				i, _ := c.Find(id)
				seen[i]++
			}
			if v := m.Check(&corpus.Filter{}, held); !v.OK() || v.Capped {
				t.Fatalf("round %d: %+v\nrelay %+v\n%s", round, v, relay, listing(c, m))
			}
			f := randomFilter(r, events)
			if v := m.Check(&f, relay.returned(&f)); !v.OK() {
				t.Fatalf("round %d: %s: %+v\n%s", round, f.AppendJSON(nil), v, listing(c, m))
			}
		}
		for i, n := range seen {
			if 0 < n && n < relays {
				both[m.Optional(i)]++
			}
		}
	}
	if both[true] == 0 || both[false] > 0 {
		t.Errorf("relays differed over %d optional events and %d others", both[true], both[false])
	}
}

func listing(c *corpus.Corpus, m *Model) string {
	var b strings.Builder
	for i := range c.Len() {
		e, _ := c.Event(i)
		fmt.Fprintf(&b, "%x by %x at %d kind %d %q: %s, optional %v\n", e.ID[:4], e.PubKey[:2], e.CreatedAt, e.Kind, e.Tags, m.Why(i), m.Optional(i))
	}
	return b.String()
}

func TestModelAgreesWithNaiveRulesAndSearch(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	reasons := map[Reason]int{}
	for round := range 400 {
		events := randomEvents(r, 1+r.IntN(40))
		withheld := map[corpus.ID]bool{}
		for _, e := range events {
			if r.IntN(10) == 0 {
				withheld[e.ID] = true
			}
		}
		c, err := corpus.FromEvents(events)
		if err != nil {
			t.Fatal(err)
		}
		n := naive{offered: func(i int) bool { return !withheld[c.Entry(i).ID] }}
		m, err := New(c, n.offered, testNow)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Len() {
			e, err := c.Event(i)
			if err != nil {
				t.Fatal(err)
			}
			n.events = append(n.events, e)
		}
		for i := range c.Len() {
			reason, optional := n.status(i)
			reasons[reason]++
			if m.Why(i) != reason || m.Optional(i) != optional || m.Holds(i) != (reason == Stored) {
				t.Fatalf("round %d: %x is %s (optional: %v), want %s (%v)\n%s", round, c.Entry(i).ID[:4], m.Why(i), m.Optional(i), reason, optional, listing(c, m))
			}
		}
		var effective []int
		for i := range c.Len() {
			if m.Holds(i) {
				effective = append(effective, i)
			}
		}
		if !slices.Equal(m.Effective(), effective) {
			t.Fatal("Effective is not what Holds says")
		}
		for range 20 {
			f := randomFilter(r, events)
			var want []int
			for i := range n.events {
				if m.Holds(i) && f.Matches(&n.events[i]) {
					want = append(want, i)
				}
			}
			count := len(want)
			slices.SortFunc(want, func(a, b int) int {
				if newer(&n.events[a], &n.events[b]) {
					return -1
				}
				return 1
			})
			want = want[:min(limitOf(&f), len(want))]
			if got := m.Query(&f); !slices.Equal(got, want) {
				t.Fatalf("round %d: %s: %v, want %v", round, f.AppendJSON(nil), got, want)
			}
			if got := m.Count(&f); got != count {
				t.Fatalf("round %d: %s: counted %d, want %d", round, f.AppendJSON(nil), got, count)
			}
		}
	}
	for reason := Stored; reason <= NotOffered; reason++ {
		if reasons[reason] < 40 {
			t.Errorf("only %d events were %s: the test does not test that", reasons[reason], reason)
		}
	}
}

func TestModelDoesNotDependOnTheOrderOfEvents(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		events := randomEvents(r, 30)
		c1, m1 := modelOf(t, events, nil)
		r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		c2, m2 := modelOf(t, events, nil)
		for i := range c1.Len() {
			if c1.Entry(i).ID != c2.Entry(i).ID || m1.statuses[i] != m2.statuses[i] {
				t.Fatalf("event %d differs", i)
			}
		}
	}
}

// Long lists and large corpora take other paths through the index: windows of ranks, sets of bits.
func TestQueryAgreesWithNaiveSearchInALargeCorpus(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 8))
	events := make([]corpus.Event, 12_000)
	for i := range events {
		e := &events[i]
		for j := range e.ID {
			e.ID[j] = byte(r.Uint32())
		}
		e.PubKey = corpus.PubKey{byte(r.IntN(100)), byte(r.IntN(100))}
		e.CreatedAt = int64(1000 + r.IntN(5000))
		e.Kind = []int{1, 1, 6, 7}[r.IntN(4)]
		for range r.IntN(4) {
			e.Tags = append(e.Tags, corpus.Tag{"e", strconv.Itoa(r.IntN(200) * r.IntN(200))})
		}
	}
	c, m := modelOf(t, events, nil)
	parsed := make([]corpus.Event, c.Len())
	for i := range parsed {
		parsed[i], _ = c.Event(i)
	}
	for range 80 {
		var f corpus.Filter
		if r.IntN(2) == 0 {
			for range 1 + r.IntN(300) {
				f.Authors = append(f.Authors, parsed[r.IntN(len(parsed))].PubKey)
			}
		}
		if r.IntN(2) == 0 {
			f.Kinds = []int{1, 6, 7}[r.IntN(3):]
		}
		if r.IntN(2) == 0 {
			f.Tags = []corpus.TagFilter{{Name: 'e'}}
			for range 1 + r.IntN(300)*r.IntN(2) {
				f.Tags[0].Values = append(f.Tags[0].Values, strconv.Itoa(r.IntN(200)*r.IntN(200)))
			}
		}
		if r.IntN(3) == 0 {
			f.Since = corpus.Int64(int64(1000 + r.IntN(5000)))
		}
		if r.IntN(3) == 0 {
			f.Until = corpus.Int64(int64(1000 + r.IntN(5000)))
		}
		if r.IntN(2) == 0 {
			f.Limit = corpus.Int(1 + r.IntN(500))
		}
		var want []int
		for rank := len(parsed) - 1; rank >= 0 && len(want) < limitOf(&f); rank-- {
			if i := int(m.ranks[rank]); f.Matches(&parsed[i]) {
				want = append(want, i)
			}
		}
		if got := m.Query(&f); !slices.Equal(got, want) {
			t.Fatalf("%s: %d events, want %d", f.AppendJSON(nil), len(got), len(want))
		}
	}
}

// TestEachEventIsSurveyedOnce in a corpus of several chunks: a version that came twice would be
// superseded by itself.
func TestEachEventIsSurveyedOnce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{chunkEvents - 1, chunkEvents, chunkEvents + 1, 2*chunkEvents + 2} {
		var events []corpus.Event
		for i := range n {
			key := [2]byte{byte(i), byte(i >> 8)}
			events = append(events, corpus.Event{ID: corpus.ID{key[0], key[1]}, PubKey: corpus.PubKey{key[0], key[1]}, CreatedAt: 1000 + int64(i)})
		}
		if _, m := modelOf(t, events, nil); len(m.Effective()) != n {
			t.Errorf("%d of %d profiles are held", len(m.Effective()), n)
		}
	}
}

// A tag without a value has none that a filter could ask for, not even an empty one.
func TestATagWithoutAValueIsNotFound(t *testing.T) {
	t.Parallel()
	_, m := modelOf(t, []corpus.Event{{ID: corpus.ID{1}, Kind: 1, CreatedAt: 1, Tags: []corpus.Tag{{"t"}}}, {ID: corpus.ID{2}, Kind: 1, CreatedAt: 2, Tags: []corpus.Tag{{"t", ""}}}}, nil)
	if got := m.Query(&corpus.Filter{Tags: []corpus.TagFilter{{Name: 't', Values: []string{""}}}}); !slices.Equal(got, []int{1}) {
		t.Errorf("found %v, want the second event alone", got)
	}
}
