// Package client is the one client of relays: a connection and the REQs open on it (Conn), and on
// top of that one REQ for everything, pages by time, ids in batches, and what a relay says of
// itself. It knows no corpus and no clock of a scenario; what becomes of the events is the
// caller's.
//
// A relay is not trusted: what nobody asked for is counted and not passed on, every wait has a
// deadline that moves only when events or answers come, CLOSED is taken for an end only behind the
// EOSE of the same REQ, and an answer that goes on far beyond what was asked for ends everything.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Options say how to ask. The zero value of each but URL stands for its default.
type Options struct {
	URL         string
	Compression bool  // offer permessage-deflate (RFC 7692)
	ReadLimit   int64 // the largest frame taken, in bytes; that of wire where 0
	// Stall is how long the handshake may take, and an answer may bring nothing of use, before the
	// connection is given up: 30 s. Where Patient is set the handshake alone: whoever waits for
	// answers has deadlines of its own.
	Stall    time.Duration
	Patient  bool
	Interval time.Duration // the least time between two REQs on one connection: none
	Answer   int           // events in one answer at most, whatever they are: twice as many as were asked for
	// Attempts is how many times in a row asking may bring nothing (the connection is lost, or the
	// REQ ends in CLOSED) before it is given up: 1, which is not to try again. Between two attempts
	// lies a growing pause.
	Attempts int
	Backoff  time.Duration // the first pause, doubled each time up to a minute: 250 ms
	// Trouble is told what went wrong when it is tried again. It may be nil.
	Trouble func(err error)
}

const (
	defaultStall   = 30 * time.Second
	defaultBackoff = 250 * time.Millisecond
	longestBackoff = time.Minute
)

func (o *Options) stall() time.Duration { return cmp.Or(max(0, o.Stall), defaultStall) }

// pause is how long to wait after so many failures in a row.
func (o *Options) pause(failures int) time.Duration {
	pause := cmp.Or(max(0, o.Backoff), defaultBackoff)
	for range failures - 1 {
		pause = min(2*pause, longestBackoff)
	}
	return pause
}

// Event is an event as it came. Raw and Frame lie in the connection's buffer and are valid during
// the call.
type Event struct {
	ID        corpus.ID // as the event says: nothing is verified here
	CreatedAt int64     // Unix seconds, as the event says; 0 where Dated is false
	Dated     bool
	Raw       []byte        // the event object as sent
	Frame     []byte        // the whole message
	At        time.Duration // arrival, on wire.Now's scale
}

// Take is given the events that were asked for, as they come. With wait unset it must not block,
// and returns false where dealing with the event would have to wait; it is then called again with
// wait set, and the relay's deadline stands still meanwhile. An error ends everything. Over several
// connections it is called from several goroutines.
type Take func(ctx context.Context, e *Event, wait bool) (ok bool, err error)

// Each makes a Take of what never has to wait.
func Each(f func(e *Event)) Take {
	return func(_ context.Context, e *Event, _ bool) (bool, error) {
		f(e)
		return true, nil
	}
}

// ClosedError is a REQ that ended in CLOSED, where that is not tried again.
type ClosedError struct {
	Reason string // the relay's words, of any characters
}

func (e *ClosedError) Error() string {
	if e.Reason == "" {
		return "the relay closed the REQ without a reason"
	}
	return fmt.Sprintf("the relay closed the REQ: %q", e.Reason)
}

// Refused says whether trying again is in vain: the relay wants to know who asks, or does not serve
// who asks (NIP-01, NIP-42).
func (e *ClosedError) Refused() bool {
	return strings.HasPrefix(e.Reason, "auth-required:") || strings.HasPrefix(e.Reason, "restricted:") || strings.HasPrefix(e.Reason, "blocked:")
}

// FloodError is an answer that went on beyond Options.Answer. It is not asked for again.
type FloodError struct{ Sent, Asked int } // events; Asked is the filter's limit

func (e *FloodError) Error() string {
	return fmt.Sprintf("the relay sent %d events where %d were asked for, and went on", e.Sent, e.Asked)
}

// Once asks with one REQ and takes all that comes up to its EOSE: the giant REQ of a client that
// asks for everything at once. Whether all came is for the caller to know, since relays cap their
// answers. The error is a *ClosedError, or why the connection broke; the Stats count what was done
// also then. It is tried once.
func Once(ctx context.Context, o Options, filter corpus.Filter, take Take) (*Stats, error) {
	stats := NewStats()
	return stats, o.over(ctx, stats, func(c *Conn) error {
		if _, err := c.ask(ctx, &filter); err != nil {
			return err
		}
		for {
			s, err := c.next()
			switch {
			case err != nil:
				return err
			case c.Message.Type == wire.EOSE:
				return c.End(s)
			case c.Message.Type != wire.Event:
				return &ClosedError{c.Message.ReasonText()}
			case !c.Message.HasID:
				c.Stats.Unexpected++
			default:
				if err := c.pass(ctx, take); err != nil {
					return err
				}
			}
		}
	})
}

// over makes a connection for do, and counts in stats what became of it.
func (o *Options) over(ctx context.Context, stats *Stats, do func(*Conn) error) error {
	c, err := dial(ctx, o, stats)
	if err == nil {
		err = do(c)
		c.finish(ctx, err)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// persist makes one connection after another for do, until it is done or trying again is in vain.
func (o *Options) persist(ctx context.Context, stats *Stats, do func(*Conn) error) error {
	for again := (retry{o: o}); ; {
		before := stats.Events
		err := o.over(ctx, stats, do)
		if err == nil {
			return nil
		}
		if err := again.after(ctx, err, stats.Events > before); err != nil {
			return err
		}
	}
}

// retry decides what comes after a failure: a pause, or the end.
type retry struct {
	o      *Options
	barren int // failures in a row that brought nothing
}

// after waits before the next attempt, or returns why there is none.
func (r *retry) after(ctx context.Context, err error, progress bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.barren++; progress {
		r.barren = 1
	}
	var closed *ClosedError
	var flood *FloodError
	if errors.As(err, &closed) && closed.Refused() || errors.As(err, &flood) || r.barren >= max(1, r.o.Attempts) {
		return err
	}
	if r.o.Trouble != nil {
		r.o.Trouble(err)
	}
	return sleep(ctx, r.o.pause(r.barren))
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
