// Package holding finds out what a relay holds, in one way for whatever moves events: the relay is
// reconciled with where it speaks NIP-77, and asked by id for all or for a sample. Where the two
// disagree, that is said, and what was returned is believed.
package holding

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
)

// Grace is how long an event that was not there at once is asked for again before it is said not to
// be there: relays may acknowledge before they can answer.
const Grace = 2 * time.Second

const (
	batch  = 100 // ids in one REQ: within the filter limits of every relay in the catalog
	atOnce = 4   // REQs in flight: within their subscription limits

	firstPause, longestPause = 50 * time.Millisecond, 500 * time.Millisecond // before what is missing is asked for again
)

// Asking asks a relay for events by id, and again for those that have to be there and are not.
type Asking struct {
	URL   string
	Stall time.Duration // without progress for so long, the relay is given up
	// Must says of the k-th id whether its event has to be there; nil: each. Only those are asked
	// for again while they are missing. The others are where they came: what supersedes them may
	// have come to be there since.
	Must func(k int) bool
	// OnEvent is given each event that came and was asked for; its memory is valid during the call.
	// It may be nil.
	OnEvent func(*client.Event)
	// Progress is told how many events have come. It may be nil.
	Progress func(came int)
}

// Answered is what came of an Asking.
type Answered struct {
	Came    []bool        // by the ids' order
	Late    int           // events that came only when they were asked for again
	LateBy  time.Duration // the longest delay among them: from the first answer without the event to the event
	Longest int           // events in one answer at most
	Stats   *client.Stats // of the first asking alone: what came that was not asked for, and how
}

// Run asks for the ids. The error says why some had no answer, which says nothing of what the relay
// holds; it is a *client.ClosedError where the relay ended a REQ by CLOSED.
func (a *Asking) Run(ctx context.Context, ids []corpus.ID) (*Answered, error) {
	done, err := a.run(ctx, ids)
	if err != nil || a.Must == nil {
		return done, err
	}
	var again []corpus.ID
	var at []int
	for k, came := range done.Came {
		if came && !a.Must(k) {
			again, at = append(again, ids[k]), append(at, k)
		}
	}
	if len(again) == 0 {
		return done, nil
	}
	once := Asking{URL: a.URL, Stall: a.Stall, Must: func(int) bool { return false }}
	if now, err := once.run(ctx, again); err == nil { // else what came stands
		for j, k := range at {
			done.Came[k] = now.Came[j]
		}
	}
	return done, context.Cause(ctx)
}

func (a *Asking) run(ctx context.Context, ids []corpus.ID) (*Answered, error) {
	done := &Answered{Came: slices.Repeat([]bool{true}, len(ids))}
	var mu sync.Mutex
	since := make(map[corpus.ID]time.Duration) // when an answer was first without it
	came := 0
	size := batch
	most := 2 * len(ids) // events in one answer: a relay that ignores the filter may send all it holds
	ask := func(ids []corpus.ID, take func(*client.Event)) ([]corpus.ID, error) {
		b := client.ByID{Options: client.Options{URL: a.URL, Stall: a.Stall, Answer: most}, Batch: size, InFlight: atOnce, Refusals: 1}
		b.Take = client.Each(func(e *client.Event) {
			take(e)
			if a.OnEvent != nil {
				a.OnEvent(e)
			}
			if came++; a.Progress != nil && came%batch == 0 {
				a.Progress(came)
			}
		})
		b.Left = func(ids []corpus.ID, at time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			for _, id := range ids {
				if _, known := since[id]; !known {
					since[id] = at
				}
			}
		}
		var missing []corpus.ID
		for {
			got, err := b.Run(ctx, ids)
			missing = append(missing, got.Missing...)
			if done.Longest = max(done.Longest, got.Longest); done.Stats == nil {
				done.Stats = got.Stats
			}
			if ids = got.Failed; len(ids) == 0 {
				return missing, nil
			}
			closed := &client.ClosedError{Reason: got.Reason}
			ended := err == nil || errors.As(err, &closed)
			switch nothing := got.Events == 0; {
			case ctx.Err() != nil, ended && closed.Refused(), errors.Is(err, wire.ErrStalled), nothing && b.Batch == 1:
				return missing, cmp.Or(err, error(closed))
			case nothing || !ended: // some relays close or hang up where an answer is large: ask for less
				b.Batch, b.InFlight = max(1, b.Batch/4), 1
			}
		}
	}
	missing, err := ask(ids, func(*client.Event) {})
	if n := done.Longest; err == nil && n > 0 && n <= min(batch, len(ids))/2 && len(missing) > 0 {
		size = n // it caps its answers: what did not come then is not late
		missing, err = ask(missing, func(*client.Event) {})
	}
	if err != nil {
		return done, err
	}
	if len(missing) == 0 {
		return done, nil
	}
	at := make(map[corpus.ID]int, len(missing)) // of those that are not there yet
	for _, id := range missing {
		at[id] = -1
	}
	var left []corpus.ID // of those, what has to be there
	for k, id := range ids {
		if _, ok := at[id]; ok {
			at[id], done.Came[k] = k, false
			if a.Must == nil || a.Must(k) {
				left = append(left, id)
			}
		}
	}
	end, pause := wire.Now()+Grace, firstPause
	for len(left) > 0 && wire.Now() < end {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return done, context.Cause(ctx)
		}
		pause = min(2*pause, longestPause)
		left, err = ask(left, func(e *client.Event) {
			done.Came[at[e.ID]] = true
			done.Late++
			done.LateBy = max(done.LateBy, e.At-since[e.ID])
		})
		if err != nil {
			return done, err
		}
	}
	return done, nil
}
