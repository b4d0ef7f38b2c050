// Package model tells what a compliant relay holds after it was offered events of a corpus, and
// what it answers to a filter.
package model

import (
	"iter"
	"sync"

	"relaybench/corpus"
)

// ExpiryMargin is how long a run may last, in seconds: an event that expires within this time of
// the model's now may be gone by the time it is asked for (NIP-40), so that either answer is right.
const ExpiryMargin = 24 * 60 * 60

// Model is what a compliant relay holds after being offered events of a corpus, and what it then
// answers. It does not depend on the order in which the events came: where the protocol lets that
// order decide, the event is Optional. It holds 64-bit hashes of tag values and addresses under a
// seed of its own, never the values: with ten million different ones the odds that any two are
// mistaken for each other are one in 400,000, anew in each process. A Model is safe for concurrent
// use and needs its corpus open.
type Model struct {
	corpus     *corpus.Corpus
	statuses   []status
	ranks      []uint32          // ranks and indices into each other, see ranking
	candidates map[uint32]uint64 // addresses of versions of which any may be held, but only one
	index      tagIndex

	authors, kinds postings

	popularOnce sync.Once
	popular     *Popular
	popularErr  error
}

// New computes what a compliant relay holds at time now (Unix seconds) after being offered, in any
// order, the events of c for which offered(i) is true (nil: all of them). offered should leave out
// what the relay refused for a policy of its own, such as a rate limit; it is called once for each
// event, from this goroutine. The rules: NIP-01 versions and ephemeral kinds, NIP-09 deletion,
// NIP-40 expiry, NIP-62 vanishing, NIP-70 protection. A relay without one of these NIPs differs,
// and Check's reasons tell by which. The error is that an event of the corpus cannot be read.
func New(c *corpus.Corpus, offered func(i int) bool, now int64) (*Model, error) {
	return build(c, offered, now, true)
}

// NewStatuses is New for those who ask only what is held and why, event by event: it answers no
// filter, and takes much less memory.
func NewStatuses(c *corpus.Corpus, offered func(i int) bool, now int64) (*Model, error) {
	return build(c, offered, now, false)
}

func build(c *corpus.Corpus, offered func(i int) bool, now int64, indexed bool) (*Model, error) {
	m := &Model{corpus: c, statuses: make([]status, c.Len()), ranks: ranking(c)}
	for i := range m.statuses {
		switch {
		case offered != nil && !offered(i):
			m.statuses[i] = newStatus(NotOffered, Unambiguous)
		case corpus.IsEphemeral(int(c.Entry(i).Kind)):
			m.statuses[i] = newStatus(Ephemeral, Unambiguous)
		}
	}
	s, err := m.survey(now, indexed)
	if err != nil {
		return nil, err
	}
	if err := m.vanish(s.requests); err != nil {
		return nil, err
	}
	deleted, err := m.delete(s.requests, s.seed)
	if err != nil {
		return nil, err
	}
	m.supersede(s.versions, deleted)
	if indexed {
		m.buildIndex(s)
	}
	return m, nil
}

// Corpus returns the corpus that the model is of.
func (m *Model) Corpus() *corpus.Corpus { return m.corpus }

// Holds reports whether the relay holds event i; where that is Optional, what is more likely.
func (m *Model) Holds(i int) bool { return m.statuses[i].reason() == Stored }

// Why says why event i is held, or why not.
func (m *Model) Why(i int) Reason { return m.statuses[i].reason() }

// Optional reports whether a compliant relay may do the opposite of what Holds says of event i.
func (m *Model) Optional(i int) bool { return m.statuses[i].ambiguity() != Unambiguous }

// Ambiguity says why event i is Optional; Unambiguous if it is not.
func (m *Model) Ambiguity(i int) Ambiguity { return m.statuses[i].ambiguity() }

// Effective returns the events that Holds reports, in corpus order.
func (m *Model) Effective() []int {
	n := 0
	for _, f := range m.statuses {
		if f.reason() == Stored {
			n++
		}
	}
	list := make([]int, 0, n)
	for i, f := range m.statuses {
		if f.reason() == Stored {
			list = append(list, i)
		}
	}
	return list
}

// Events goes through the events that Holds reports, in corpus order, and parses each; an error
// ends the iteration after it was yielded beside a nil event. For what the tags of all events add
// up to, Popular is faster.
func (m *Model) Events() iter.Seq2[*corpus.Event, error] {
	return func(yield func(*corpus.Event, error) bool) {
		for i := range m.statuses {
			if !m.Holds(i) {
				continue
			}
			e, err := m.corpus.Event(i)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&e, nil) {
				return
			}
		}
	}
}

// ranking maps indices to ranks. Rank order is created_at ascending, then id descending: walked
// backwards it is the order of answers, newest first and the lowest id first among equals (NIP-01).
// As corpus order differs only in runs of equal created_at, which are reversed, the same table maps
// ranks to indices.
func ranking(c *corpus.Corpus) []uint32 {
	flip := make([]uint32, c.Len())
	for start := 0; start < len(flip); {
		end := start + 1
		for end < len(flip) && c.Entry(end).CreatedAt == c.Entry(start).CreatedAt {
			end++
		}
		for i := start; i < end; i++ {
			flip[i] = uint32(start + end - 1 - i)
		}
		start = end
	}
	return flip
}
