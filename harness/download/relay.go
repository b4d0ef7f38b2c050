package download

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/harness/receive"
	"relaybench/relays/client"
)

const (
	// mostPending is how many events of a relay may wait to be verified before its reader does.
	mostPending = 512
	// rememberIDs is how many ids of a relay are known as verified and not kept, at least.
	rememberIDs = 1 << 14
	// mostOfAnswer bounds the events in answer to one REQ: a relay might send for ever.
	mostOfAnswer = 1 << 20
	// mostRefused is how many forged or malformed events a relay may send before it is asked
	// whether it sends more of them than others.
	mostRefused = 1000
	// troubleEvery is how often trouble with one relay is worth a line.
	troubleEvery = 30 * time.Second
)

// errEnough: the relay has no more that is wanted.
var errEnough = errors.New("no more is wanted")

// relay is one relay's part of a download.
type relay struct {
	*download
	state  *relayState // the download's mu guards it
	feeder *receive.Feeder

	received atomic.Int64 // events of the page that is being read
	page     Counts       // what else came of it, but for New; mu guards it
	troubled time.Time
	pace     pace
}

// run asks until there is no more, it fails, or ctx ends.
func (r *relay) run(ctx context.Context) {
	said, _ := client.Inform(ctx, r.state.URL, min(r.o.Stall, informationTime)) // one without a document has said nothing
	if warning := warning(&said); warning != "" {
		r.note("%s %s", r.state.URL, warning)
	}
	pipeline := receive.New(ctx, receive.Options{Remember: rememberIDs}, r.keep)
	r.feeder = pipeline.Feeder()
	p := client.Pages{
		Options: client.Options{URL: r.state.URL, Stall: r.o.Stall, Interval: r.o.Interval, Attempts: r.o.Attempts, Backoff: r.o.Backoff,
			ReadLimit: r.mostRaw() + 4096, Answer: r.o.mostOfAnswer, Trouble: r.trouble},
		Filter: corpus.Filter{Since: r.o.Since, Until: corpus.Int64(r.state.Next)},
		Size:   pageSize(said.Limits.Events, r.o.Limit), Widest: said.Limits.Widest(), Single: said.Limits.Subscriptions == 1, Confirm: r.o.Confirm, Take: r.take, Turned: r.turned,
	}
	done, err := p.Run(ctx)
	if closing := pipeline.Close(); err == nil {
		err = closing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Truncated += int64(len(done.Stepped))
	if ctx.Err() != nil {
		return // the page will be asked for again
	}
	r.count()
	switch refused := r.state.Refused(); {
	case errors.Is(err, errEnough):
		r.state.Outcome = Enough
	case err != nil:
		r.state.Failure = err.Error()
	case refused > 0 && refused >= r.state.Received:
		r.state.Failure = fmt.Sprintf("all %d events that it sent are forged or malformed", refused)
	default:
		r.state.Outcome = All
		r.state.Next = done.Until
	}
	if r.state.Failure != "" {
		r.state.Outcome = Failed
	}
	r.conclude()
	if err := r.save(); err != nil {
		r.fail(err)
	}
}

// conclude says what people should know about how it ended.
func (r *relay) conclude() {
	s := r.state
	if s.Outcome == Failed {
		r.note("%s is given up after %d events: %s", s.URL, s.Received, s.Failure)
	}
	if n := s.Refused(); n > 0 {
		r.note("%s sent %d events that are forged or malformed (%d with a wrong id, %d with a wrong signature): they are left out", s.URL, n, s.BadID, s.BadSignature)
	}
	if s.Truncated > 0 {
		r.note("%s may hold more events of a second than it sends at once, so that not all may have come; seconds of which this is so: %d", s.URL, s.Truncated)
	}
}

// mostRaw is the longest event that is looked at, as a relay may write it: with every character
// escaped it is six times as long as in canonical form.
func (r *relay) mostRaw() int64 { return min(6*int64(r.o.Prepare.MaxEventBytes)+64<<10, 32<<20) }

// take implements client.Take. An id is known only if an event was verified under it.
func (r *relay) take(_ context.Context, e *client.Event, wait bool) (ok bool, err error) {
	switch {
	case r.seen.Has(keyOf(&e.ID)):
	case !wait && r.pending() >= mostPending:
		return false, nil
	default:
		if _, err := r.feeder.Event(e.Raw, e.At); err != nil {
			return true, err
		}
	}
	r.received.Add(1)
	return true, nil
}

// pending is how many events wait to be verified.
func (r *relay) pending() int64 {
	c := r.feeder.Counts()
	return c.Events - c.Duplicates - c.WithoutID - c.Delivered - c.Refused()
}

// keep implements receive.Consumer: it stores what is new.
func (r *relay) keep(b *receive.Batch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range b.Refused {
		switch e := &b.Refused[i]; {
		case errors.Is(e.Err, receive.ErrMalformed):
			r.page.Malformed++
		case errors.Is(e.Err, corpus.ErrBadID):
			r.page.BadID++
		default:
			r.page.BadSignature++
		}
	}
	if n, of := r.state.Refused()+r.page.Refused(), r.state.Received+r.received.Load(); n > mostRefused && 2*n > of {
		return fmt.Errorf("%d of the %d events that it sent are forged or malformed", n, of)
	}
	for i := range b.Events {
		if err := r.store(&b.Events[i].Parsed); err != nil {
			return r.fail(err)
		}
	}
	return nil
}

// store keeps an event that is verified.
func (r *relay) store(e *corpus.Event) error {
	r.line = e.AppendJSON(r.line[:0])
	if r.o.Prepare.Drop(e, r.line) != prepare.Kept {
		r.page.LeftOut++
		return nil
	}
	if !r.seen.Add(keyOf(&e.ID)) {
		return nil
	}
	if r.spill.bytes+int64(len(r.line))+1 > r.o.MaxBytes {
		return fmt.Errorf("the download has reached %d bytes, the most that it may take: allow more, or ask for fewer events", r.o.MaxBytes)
	}
	if err := r.spill.add(r.line); err != nil {
		return err
	}
	r.newest.add(e.CreatedAt)
	r.download.state.Events++
	r.state.New++
	return nil
}

// count adds the page's events to the relay's.
func (r *relay) count() {
	r.page.Received = r.received.Swap(0)
	r.state.Counts.add(&r.page)
	r.page = Counts{}
}

// turned stores the events of a whole page, then has the checkpoint say so.
func (r *relay) turned(next int64) error {
	if err := r.feeder.Wait(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count()
	r.state.Next = next
	if err := r.save(); err != nil {
		return r.fail(err)
	}
	if r.enough(next) {
		return errEnough
	}
	return nil
}

// trouble tells what is tried again, now and then.
func (r *relay) trouble(err error) {
	if time.Since(r.troubled) < troubleEvery {
		return
	}
	r.troubled = time.Now()
	r.note("%s: %s; it is asked again", r.state.URL, err.Error())
}
