package load

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
)

// Transferred is what came of a transfer.
type Transferred struct {
	Published                // at the sink
	Altered    []corpus.ID   // sent by the source with other fields than they were signed with, and not passed on: what the sink says of them is no verdict on it
	Unexpected int           // events that are not of the corpus, and were not passed on
	Waiting    int           // events that had come and waited for the sink when it ended
	Asked      bool          // the source had sent all that it was asked for
	Duration   time.Duration // from the first question to the last OK
}

// A SourceError is a source that failed, or could not keep up with what it was asked.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return "the source: " + e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// A SinkError is a sink that failed.
type SinkError struct{ Err error }

func (e *SinkError) Error() string { return "the sink: " + e.Err.Error() }
func (e *SinkError) Unwrap() error { return e.Err }

// ahead is how many events may wait between source and sink.
const ahead = 256

// beyond is how many events may come in all, beside twice as many as were asked for.
const beyond = 100

// Transfer passes events of the corpus on as they come from a source: what ask gets of it and gives
// to take, about total events. What has come and was not yet published is bounded, so that the
// slower side sets the pace: no faster source can fill memory. The error is a *SourceError or a
// *SinkError, or that of ctx; what was done until then is returned with it.
func (p *Publisher) Transfer(ctx context.Context, total int, ask func(ctx context.Context, take client.Take) error) (*Transferred, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	between := passing{corpus: p.Corpus, came: make([]bool, p.Corpus.Len()), to: make(chan outgoing, ahead), total: total}
	asked := make(chan error, 1)
	start := wire.Now()
	go func() {
		defer close(between.to)
		asked <- ask(ctx, between.take)
	}()
	published, failed, err := p.publish(ctx, between.feed, total)
	interrupted := context.Cause(ctx)
	cancel() // a source whose sink has gone has nobody to wait for
	askErr := <-asked
	done := &between.done
	done.Asked = askErr == nil
	for range between.to {
		done.Waiting++
	}
	if err != nil {
		return done, &SinkError{err}
	}
	done.Published = *published
	done.Duration = max(published.Last, start) - start
	switch {
	case interrupted != nil:
		return done, interrupted
	case len(failed) > 0:
		return done, &SinkError{failed[0]}
	case askErr != nil:
		return done, &SourceError{askErr}
	}
	return done, nil
}

// feed hands out what has come.
func (p *passing) feed(wait bool) (e outgoing, ok bool) {
	if wait {
		e, ok = <-p.to
		return e, ok
	}
	select {
	case e, ok = <-p.to:
	default:
	}
	return e, ok
}

// passing stands between source and sink.
type passing struct {
	corpus *corpus.Corpus
	to     chan outgoing
	total  int // events that were asked for

	taken atomic.Int64
	mu    sync.Mutex // over the rest: several connections may bring events
	came  []bool     // by corpus index
	done  Transferred
}

// take is a client.Take. An event that came byte for byte as it was prepared is passed on from the
// corpus, without a copy.
func (p *passing) take(ctx context.Context, e *client.Event, wait bool) (bool, error) {
	if !wait {
		if n := int(p.taken.Add(1)); n > 2*p.total+beyond {
			return false, &client.FloodError{Sent: n, Asked: p.total}
		}
		if len(p.to) == cap(p.to) {
			return false, nil
		}
	}
	i, ok := p.corpus.Find(e.ID)
	if p.keepBack(e, i, ok) {
		return true, nil
	}
	out := outgoingOf(p.corpus, i)
	if !bytes.Equal(out.raw, e.Raw) { // the sink is to see how the source writes JSON
		out.raw = bytes.Clone(e.Raw)
	}
	select {
	case p.to <- out:
	default:
		if !wait {
			return false, nil
		}
		select {
		case p.to <- out:
		case <-ctx.Done():
			return false, fmt.Errorf("passing an event on: %w", context.Cause(ctx))
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came[i] = true
	return true, nil
}

// keepBack counts an event that is not to be passed on.
func (p *passing) keepBack(e *client.Event, i int, known bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !known:
		p.done.Unexpected++
	case p.came[i]: // where a connection was lost in between, say
	case Altered(p.corpus, i, e.Raw) != "":
		p.done.Altered = append(p.done.Altered, e.ID)
	default:
		return false
	}
	return true
}
