// Package model tells what a compliant relay holds after it was offered events of a corpus, and
// what it answers to a filter.
package model

import (
	"slices"
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

	authors map[corpus.PubKey][]uint32 // ranks, ascending
	kinds   map[uint16][]uint32        // likewise

	// Popular reads the tags of the events that the model holds, on all cores, and ranks what they
	// refer to. The result is shared by all callers and must not be changed. The error is that an
	// event of the corpus cannot be read.
	Popular func() (*Popular, error)
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
	m.Popular = sync.OnceValues(m.rankAll)
	for i := range m.statuses {
		switch {
		case offered != nil && !offered(i):
			m.statuses[i] = status(NotOffered)
		case corpus.IsEphemeral(int(c.Entry(i).Kind)):
			m.statuses[i] = status(Ephemeral)
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

// Optional reports whether a compliant relay may do the opposite of what Holds says of event i, for
// one of these reasons:
//   - It expires within ExpiryMargin of the model's time, so perhaps during the run; or its
//     expiration is not a positive decimal number, or its several expirations disagree (NIP-40 does
//     not say which then counts or whether to refuse it).
//   - A NIP-09 request for it may or may not count: its a tag is no clean kind:pubkey:d or its e tag
//     no lower-case id; the request is itself expired, vanished or optional, so that its effect
//     depends on what came first; it also names another author's event, for which a relay may refuse
//     it; or it comes from the recipient of a gift wrap (kind 1059), which newer texts honour. A
//     request that names another author's event is itself optional.
//   - A NIP-62 request names particular relays, and whether this is one cannot be known; or the
//     request is expired or optional; or the event is a gift wrap newer than its recipient's request;
//     or it is a request, which a relay MAY keep.
//   - The best version of the replaceable or addressable event is deleted, expired or optional. If it
//     came first, this one was refused or replaced; if it was gone or refused before this one came,
//     this one is held. That goes for all versions, but only one of them can be held. Kind 41
//     (NIP-28) is optional where there is a newer one of the same author: NIP-01 gives it no special
//     place, strfry replaces it.
//   - It carries a "-" tag, so that a relay with NIP-70 refuses it unless its author has
//     authenticated.
func (m *Model) Optional(i int) bool { return m.statuses[i]&optional != 0 }

// Effective returns the events that Holds reports, in corpus order.
func (m *Model) Effective() []int {
	list := make([]int, 0, len(m.statuses))
	for i := range m.statuses {
		if m.Holds(i) {
			list = append(list, i)
		}
	}
	return slices.Clip(list)
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
