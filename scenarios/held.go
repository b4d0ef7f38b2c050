package scenarios

import (
	"cmp"
	"context"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// heldSample is how many events of a corpus are asked for by id where a relay was reconciled
// with and said nothing that cannot be; of fewer, and of a relay that was not, all are.
const heldSample = 20_000

// mostUnexpected is how many ids a relay may claim beside those of the corpus before it is not
// listened to any longer: they take memory.
const mostUnexpected = 100_000

// holding is the question what a relay holds of the corpus. It is reconciled with where it speaks
// NIP-77, and asked by id for all or for a sample. Where the two disagree, that is said, and what
// was returned is believed.
type holding struct {
	url    string
	stall  time.Duration // without progress for so long, the relay is given up
	corpus *corpus.Corpus
	// against are the events, in corpus order, that the relay is reconciled with; nil: it is not.
	// The nearer to what it holds, the less it costs.
	against []int
	// reconciled is told what the reconciliation came to, before anything is asked for by id. It
	// may be nil.
	reconciled func(negentropy.Result)
	// must says which events have to be there: they, and those that the relay named, are asked for
	// again where they are not there at once. nil: none.
	must     func(i int) bool
	sample   int                   // 0: heldSample
	draw     func(n int) int       // a number from 0 to n-1, for the sample
	onEvent  func(*client.Event)   // as in client.Lookup
	progress func(done, total int) // may be nil
}

// found is what a relay was found to hold.
type found struct {
	events     []int // of the corpus, in its order: what was returned, and what was named and not asked for
	reconciled bool  // it was reconciled with to the end
	// trouble is why it was not, where it was asked to: any error of negentropy.ReconcileSplit.
	trouble error

	unexpected map[corpus.ID]bool // ids that it named as its own, of no event of the corpus
	twice      map[corpus.ID]bool // events that it named as its own, though they stand in against
	asked      int                // events asked for by id
	// unreturned were named and did not come when they were asked for, unnamed came and had not
	// been named.
	unreturned, unnamed []int

	client.LookedUp // of all that was asked for; Came is nil
	returned        *comparison
}

// disagrees reports whether the relay said otherwise in the reconciliation than it answers when it
// is asked by id. Which of the events may rightly do so (that have expired, say) is the caller's to
// know.
func (h *found) disagrees() bool {
	return len(h.unexpected)+len(h.twice)+len(h.unreturned)+len(h.unnamed) > 0
}

// sealed is a set of events of the corpus, and of others, to reconcile with.
func sealed(c *corpus.Corpus, indexes []int, others ...corpus.Event) (negentropy.Storage, error) {
	set := negentropy.NewSet(len(indexes) + len(others))
	for _, i := range indexes {
		e := c.Entry(i)
		set.Add(uint64(e.CreatedAt), (*negentropy.ID)(&e.ID))
	}
	for i := range others {
		set.Add(uint64(others[i].CreatedAt), (*negentropy.ID)(&others[i].ID))
	}
	return set, set.Seal()
}

// find finds out what the relay holds of the corpus. The error says why it could not be asked by
// id; that it could not be reconciled with is none, since what is returned is believed anyway.
func (q *holding) find(ctx context.Context) (*found, error) {
	h := &found{unexpected: map[corpus.ID]bool{}, twice: map[corpus.ID]bool{}}
	h.Stats = client.NewStats()
	var named []bool
	if q.against != nil {
		if named, h.trouble = q.reconcile(ctx, h, q.reconciled); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h.reconciled = named != nil
	}
	n := q.corpus.Len()
	holds, first := make([]bool, n), make([]int, 0, n)
	for i := range n {
		first = append(first, i)
	}
	var rest []int
	if named != nil && n > q.size() && !h.disagrees() {
		first, rest = q.parts(n)
	}
	if err := q.ask(ctx, h, first, named, holds); err != nil {
		return nil, err
	}
	if len(h.unnamed)+len(h.unreturned) > 0 { // perhaps what it held changed after it was reconciled with
		if again, err := q.reconcile(ctx, h, nil); err == nil {
			named = again
			h.unnamed = slices.DeleteFunc(h.unnamed, func(i int) bool { return named[i] })
			h.unreturned = slices.DeleteFunc(h.unreturned, func(i int) bool { return !named[i] })
		} else if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(rest) > 0 && h.disagrees() { // what it says of itself is worth nothing
		if err := q.ask(ctx, h, rest, named, holds); err != nil {
			return nil, err
		}
		rest = nil
	}
	for _, i := range rest {
		holds[i] = named[i]
	}
	for i, ok := range holds {
		if ok {
			h.events = append(h.events, i)
		}
	}
	return h, nil
}

// reconcile says of each event of the corpus whether the relay has it by its own account; nil where
// it cannot be reconciled with.
func (q *holding) reconcile(ctx context.Context, h *found, tell func(negentropy.Result)) ([]bool, error) {
	set, err := sealed(q.corpus, q.against)
	if err != nil {
		return nil, err
	}
	conn, err := wire.Dial(ctx, q.url, wire.Options{})
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, conn.Abort)()
	defer conn.Abort()
	named := make([]bool, q.corpus.Len())
	for _, i := range q.against {
		named[i] = true
	}
	ours := slices.Clone(named)
	result, err := negentropy.ReconcileSplit(ctx, conn, []byte("{}"), set, negentropy.Options{Stall: q.stall, FirstAnswer: q.stall, MaxNeed: q.corpus.Len() + mostUnexpected,
		Have: func(ids []negentropy.ID) {
			for _, id := range ids {
				if i, ok := q.corpus.Find(corpus.ID(id)); ok {
					named[i] = false
				}
			}
		},
		Need: func(ids []negentropy.ID) {
			for _, id := range ids {
				switch i, ok := q.corpus.Find(corpus.ID(id)); {
				case !ok:
					h.unexpected[corpus.ID(id)] = true
				case ours[i]:
					h.twice[corpus.ID(id)] = true
				default:
					named[i] = true
				}
			}
		}})
	if err != nil {
		return nil, err
	}
	if tell != nil {
		tell(result)
	}
	return named, nil
}

func (q *holding) size() int { return cmp.Or(q.sample, heldSample) }

// parts draws one event of each part of the corpus, so that none is drawn twice.
func (q *holding) parts(n int) (drawn, rest []int) {
	next := 0
	size := q.size()
	for k := range size {
		low, high := k*n/size, (k+1)*n/size
		i := low + q.draw(high-low)
		drawn = append(drawn, i)
		for ; next < high; next++ {
			if next != i {
				rest = append(rest, next)
			}
		}
	}
	return drawn, rest
}

// ask asks for events, and keeps which of them are there. named is nil where nothing was.
func (q *holding) ask(ctx context.Context, h *found, indexes []int, named, holds []bool) error {
	ids := idsOf(q.corpus, indexes)
	a := client.Lookup{URL: q.url, Stall: q.stall, OnEvent: q.onEvent, Must: func(k int) bool {
		i := indexes[k]
		return named != nil && named[i] || q.must != nil && q.must(i)
	}}
	if q.progress != nil {
		a.Progress = func(came int) { q.progress(min(came, len(ids)), len(ids)) }
	}
	got, err := a.Run(ctx, ids)
	if err != nil {
		return err
	}
	h.asked += len(ids)
	h.Late, h.LateBy, h.Longest = h.Late+got.Late, max(h.LateBy, got.LateBy), max(h.Longest, got.Longest)
	h.Stats = client.Sum(h.Stats, got.Stats)
	for k, i := range indexes {
		switch holds[i] = got.Came[k]; {
		case named == nil || holds[i] == named[i]:
		case named[i]:
			h.unreturned = append(h.unreturned, i)
		default:
			h.unnamed = append(h.unnamed, i)
		}
	}
	return nil
}
