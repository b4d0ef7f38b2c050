package client

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Grace is how long an event that was not there at once is asked for again before it is said not to
// be there: relays may acknowledge before they can answer.
const Grace = 2 * time.Second

const (
	lookupBatch  = 100 // ids in one REQ: within the filter limits of every relay in the catalog
	lookupAtOnce = 4   // REQs in flight: within their subscription limits

	firstPause, longestPause = 50 * time.Millisecond, 500 * time.Millisecond // before what is missing is asked for again
)

// Lookup finds out which events a relay has, by asking for them by id, and again for those that
// have to be there and are not.
type Lookup struct {
	URL   string
	Stall time.Duration // without progress for so long, the relay is given up
	// Must says of the k-th id whether its event has to be there; nil: each. Only those are asked
	// for again while they are missing. The others are where they came: what supersedes them may
	// have come to be there since.
	Must func(k int) bool
	// OnEvent is given each event that came and was asked for; its memory is valid during the call.
	// It may be nil.
	OnEvent func(*Event)
	// Progress is told how many events have come. It may be nil.
	Progress func(came int)
}

// LookedUp is what came of a Lookup.
type LookedUp struct {
	Came    []bool        // by the ids' order
	Late    int           // events that came only when they were asked for again
	LateBy  time.Duration // the longest delay among them: from the first answer without the event to the event
	Longest int           // events in one answer at most
	Stats   *Stats        // of the first asking alone: what came that was not asked for, and how
}

// Run asks for the ids. The error says why some had no answer, which says nothing of what the relay
// holds; it is a *ClosedError where the relay ended a REQ by CLOSED.
func (l *Lookup) Run(ctx context.Context, ids []corpus.ID) (*LookedUp, error) {
	u := &lookingUp{Lookup: l, done: &LookedUp{Came: make([]bool, len(ids))}, since: map[corpus.ID]time.Duration{},
		batch: lookupBatch, most: 2 * len(ids)}
	must := func(k int) bool { return l.Must == nil || l.Must(k) }
	missing, err := u.askAll(ctx, ids)
	at := positions(missing) // where the ids that are not there yet stand among all
	var left []corpus.ID     // of them, what has to be there
	for k, id := range ids {
		_, absent := at[id]
		if u.done.Came[k] = !absent; absent {
			at[id] = k
			if must(k) {
				left = append(left, id)
			}
		}
	}
	end, pause := wire.Now()+Grace, firstPause
	for err == nil && len(left) > 0 && wire.Now() < end {
		if err = sleep(ctx, pause); err != nil {
			break
		}
		pause = min(2*pause, longestPause)
		left, err = u.ask(ctx, left, func(e *Event) {
			u.done.Came[at[e.ID]] = true
			u.done.Late++
			u.done.LateBy = max(u.done.LateBy, e.At-u.since[e.ID])
		})
	}
	var again []corpus.ID // what came and need not be there
	var places []int
	for k, came := range u.done.Came {
		if came && !must(k) {
			again, places = append(again, ids[k]), append(places, k)
		}
	}
	if err != nil || len(again) == 0 {
		return u.done, err
	}
	now := &lookingUp{Lookup: &Lookup{URL: l.URL, Stall: l.Stall}, done: &LookedUp{}, since: u.since, batch: lookupBatch, most: 2 * len(again)}
	if missing, err := now.askAll(ctx, again); err == nil { // else what came stands
		gone := positions(missing)
		for j, k := range places {
			_, absent := gone[again[j]]
			u.done.Came[k] = !absent
		}
	}
	return u.done, context.Cause(ctx)
}

func positions(ids []corpus.ID) map[corpus.ID]int {
	at := make(map[corpus.ID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	return at
}

// lookingUp is a Lookup on its way.
type lookingUp struct {
	*Lookup
	done  *LookedUp
	batch int // ids in one REQ
	most  int // events in one answer: a relay that ignores the filter may send all it holds
	came  int

	mu    sync.Mutex
	since map[corpus.ID]time.Duration // when an answer was first without it
}

// askAll asks once for all, and returns what is missing. Of a relay that caps its answers it asks
// for as much as comes at once: what did not come before is not late.
func (u *lookingUp) askAll(ctx context.Context, ids []corpus.ID) (missing []corpus.ID, err error) {
	missing, err = u.ask(ctx, ids, nil)
	if n := u.done.Longest; err == nil && n > 0 && n <= min(lookupBatch, len(ids))/2 && len(missing) > 0 {
		u.batch = n
		return u.ask(ctx, missing, nil)
	}
	return missing, err
}

// ask asks for ids until each has had an answer, and returns those whose answers were without them.
func (u *lookingUp) ask(ctx context.Context, ids []corpus.ID, take func(*Event)) (missing []corpus.ID, err error) {
	b := ByID{Options: Options{URL: u.URL, Stall: u.Stall, Answer: u.most}, Batch: u.batch, InFlight: lookupAtOnce, Refusals: 1}
	b.Take = Each(func(e *Event) {
		if take != nil {
			take(e)
		}
		if u.OnEvent != nil {
			u.OnEvent(e)
		}
		if u.came++; u.Progress != nil && u.came%lookupBatch == 0 {
			u.Progress(u.came)
		}
	})
	b.Left = func(ids []corpus.ID, at time.Duration) {
		u.mu.Lock()
		defer u.mu.Unlock()
		for _, id := range ids {
			if _, known := u.since[id]; !known {
				u.since[id] = at
			}
		}
	}
	for {
		got, err := b.Run(ctx, ids)
		missing = append(missing, got.Missing...)
		if u.done.Longest = max(u.done.Longest, got.Longest); u.done.Stats == nil {
			u.done.Stats = got.Stats
		}
		if ids = got.Failed; len(ids) == 0 {
			return missing, nil
		}
		closed := &ClosedError{Reason: got.Reason}
		ended := err == nil || errors.As(err, &closed)
		switch nothing := got.Events == 0; {
		case ctx.Err() != nil, ended && closed.Refused(), errors.Is(err, wire.ErrStalled), nothing && b.Batch == 1:
			return missing, cmp.Or(err, error(closed))
		case nothing || !ended: // some relays close or hang up where an answer is large: ask for less
			b.Batch, b.InFlight = max(1, b.Batch/4), 1
		}
	}
}
