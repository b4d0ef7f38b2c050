package load

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Budget limits how long a transfer of events may take: to a multiple of what it would take at the
// pace of the slowest transfer that this run has completed. So every transfer ends, even one that
// keeps making a little progress. It is safe for concurrent use; nil has measured no transfer yet.
type Budget struct {
	Least time.Duration // that any may take; 2 min unless set

	mu      sync.Mutex
	slowest time.Duration // for each event
}

const (
	budgetLeast = 2 * time.Minute
	// budgetTimes is how many times the pace of the slowest transfer is allowed.
	budgetTimes = 10
	// budgetEach is what an event may take before any has been measured that was slower: 1,000
	// events/s is what slow relays that sync each event to disk take in.
	budgetEach = time.Millisecond
)

// Took notes a run that moved so many events, all that it set out to move.
func (b *Budget) Took(events int, d time.Duration) {
	if b == nil || events <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.slowest = max(b.slowest, d/time.Duration(events))
}

// For is how long a run of so many events may take.
func (b *Budget) For(events int) time.Duration {
	least, each := budgetLeast, budgetEach
	if b != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		each = max(each, b.slowest)
		if b.Least > 0 {
			least = b.Least
		}
	}
	return max(least, time.Duration(events)*budgetTimes*each)
}

// Within makes the context of a transfer of a number of events. Its cause says why it ended: a
// *CutError after the time that the user set, or a *TimeError after the budget where that is 0.
func (b *Budget) Within(ctx context.Context, set time.Duration, events int) (context.Context, context.CancelFunc) {
	if set > 0 {
		return context.WithTimeoutCause(ctx, set, &CutError{"--cell-time " + set.String()})
	}
	limit := b.For(events)
	return context.WithTimeoutCause(ctx, limit, &TimeError{limit})
}

// CutError is a limit that the user set, and that ended a transfer.
type CutError struct{ Limit string } // "--cell-time 10s"

func (e *CutError) Error() string { return "cut by " + e.Limit }

// TimeError is the end of a run's budget.
type TimeError struct{ After time.Duration }

func (e *TimeError) Error() string { return fmt.Sprintf("it was ended after %v", e.After) }
