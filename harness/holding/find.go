package holding

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

// DefaultSample is how many events of a corpus are asked for by id where a relay was reconciled
// with and said nothing that cannot be; of fewer, and of a relay that was not, all are.
const DefaultSample = 20_000

// MostForeign is how many ids a relay may claim beside those of the corpus before it is not
// listened to any longer: they take memory.
const MostForeign = 100_000

// Question is what a relay is to be asked, and how.
type Question struct {
	URL    string
	Stall  time.Duration // without progress for so long, the relay is given up
	Corpus *corpus.Corpus
	// Against are the events, in corpus order, that the relay is reconciled with; nil: it is not.
	// The nearer to what it holds, the less it costs.
	Against []int
	// Reconciled is told what the reconciliation came to, before anything is asked for by id. It
	// may be nil.
	Reconciled func(negentropy.Result)
	// Must says which events have to be there: they, and those that the relay named, are asked for
	// again where they are not there at once. nil: none.
	Must     func(i int) bool
	Sample   int                   // 0: DefaultSample
	Draw     func(n int) int       // a number from 0 to n-1, for the sample
	OnEvent  func(*client.Event)   // as in Asking
	Progress func(done, total int) // may be nil
}

// Held is what a relay was found to hold.
type Held struct {
	Events     []int // of the corpus, in its order: what was returned, and what was named and not asked for
	Reconciled bool  // it was reconciled with to the end
	// Trouble is why it was not, where it was asked to: any error of negentropy.ReconcileSplit.
	Trouble error

	Unknown map[corpus.ID]bool // ids that it named as its own, of no event of the corpus
	Twice   map[corpus.ID]bool // events that it named as its own, though they stand in Against
	Asked   int                // events asked for by id
	// Unreturned were named and did not come when they were asked for, Unnamed came and had not
	// been named.
	Unreturned, Unnamed []int

	Answered // of all that was asked for; Came is nil
}

// Disagrees reports whether the relay said otherwise in the reconciliation than it answers when it
// is asked by id. Which of the events may rightly do so (that have expired, say) is the caller's to
// know.
func (h *Held) Disagrees() bool {
	return len(h.Unknown)+len(h.Twice)+len(h.Unreturned)+len(h.Unnamed) > 0
}

// Set seals a set of events of the corpus, and of others, to reconcile with.
func Set(c *corpus.Corpus, indexes []int, others ...corpus.Event) (negentropy.Storage, error) {
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

// Find finds out what the relay holds of the corpus. The error says why it could not be asked by
// id; that it could not be reconciled with is none, since what is returned is believed anyway.
func (q *Question) Find(ctx context.Context) (*Held, error) {
	h := &Held{Unknown: map[corpus.ID]bool{}, Twice: map[corpus.ID]bool{}}
	h.Stats = client.Sum()
	var named []bool
	if q.Against != nil {
		if named, h.Trouble = q.reconcile(ctx, h, q.Reconciled); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		h.Reconciled = named != nil
	}
	n := q.Corpus.Len()
	holds, first := make([]bool, n), make([]int, 0, n)
	for i := range n {
		first = append(first, i)
	}
	var rest []int
	if named != nil && n > q.size() && !h.Disagrees() {
		first, rest = q.sample(n)
	}
	if err := q.ask(ctx, h, first, named, holds); err != nil {
		return nil, err
	}
	if len(h.Unnamed)+len(h.Unreturned) > 0 { // perhaps what it held changed after it was reconciled with
		if again, err := q.reconcile(ctx, h, nil); err == nil {
			named = again
			h.Unnamed = slices.DeleteFunc(h.Unnamed, func(i int) bool { return named[i] })
			h.Unreturned = slices.DeleteFunc(h.Unreturned, func(i int) bool { return !named[i] })
		} else if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(rest) > 0 && h.Disagrees() { // what it says of itself is worth nothing
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
			h.Events = append(h.Events, i)
		}
	}
	return h, nil
}

// reconcile says of each event of the corpus whether the relay has it by its own account; nil where
// it cannot be reconciled with.
func (q *Question) reconcile(ctx context.Context, h *Held, tell func(negentropy.Result)) ([]bool, error) {
	set, err := Set(q.Corpus, q.Against)
	if err != nil {
		return nil, err
	}
	conn, err := wire.Dial(ctx, q.URL, wire.Options{})
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, conn.Abort)()
	defer conn.Abort()
	named := make([]bool, q.Corpus.Len())
	for _, i := range q.Against {
		named[i] = true
	}
	ours := slices.Clone(named)
	result, err := negentropy.ReconcileSplit(ctx, conn, []byte("{}"), set, negentropy.Options{Stall: q.Stall, FirstAnswer: q.Stall, MaxNeed: q.Corpus.Len() + MostForeign,
		Have: func(ids []negentropy.ID) {
			for _, id := range ids {
				if i, ok := q.Corpus.Find(corpus.ID(id)); ok {
					named[i] = false
				}
			}
		},
		Need: func(ids []negentropy.ID) {
			for _, id := range ids {
				switch i, ok := q.Corpus.Find(corpus.ID(id)); {
				case !ok:
					h.Unknown[corpus.ID(id)] = true
				case ours[i]:
					h.Twice[corpus.ID(id)] = true
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

func (q *Question) size() int { return cmp.Or(q.Sample, DefaultSample) }

// sample draws one event of each part of the corpus, so that none is drawn twice.
func (q *Question) sample(n int) (drawn, rest []int) {
	next := 0
	size := q.size()
	for k := range size {
		low, high := k*n/size, (k+1)*n/size
		i := low + q.Draw(high-low)
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
func (q *Question) ask(ctx context.Context, h *Held, indexes []int, named, holds []bool) error {
	ids := make([]corpus.ID, len(indexes))
	for k, i := range indexes {
		ids[k] = q.Corpus.Entry(i).ID
	}
	a := Asking{URL: q.URL, Stall: q.Stall, OnEvent: q.OnEvent, Must: func(k int) bool {
		i := indexes[k]
		return named != nil && named[i] || q.Must != nil && q.Must(i)
	}}
	if q.Progress != nil {
		a.Progress = func(came int) { q.Progress(min(came, len(ids)), len(ids)) }
	}
	got, err := a.Run(ctx, ids)
	if err != nil {
		return err
	}
	h.Asked += len(ids)
	h.Late, h.LateBy, h.Longest = h.Late+got.Late, max(h.LateBy, got.LateBy), max(h.Longest, got.Longest)
	h.Stats = client.Sum(h.Stats, got.Stats)
	for k, i := range indexes {
		switch holds[i] = got.Came[k]; {
		case named == nil || holds[i] == named[i]:
		case named[i]:
			h.Unreturned = append(h.Unreturned, i)
		default:
			h.Unnamed = append(h.Unnamed, i)
		}
	}
	return nil
}
