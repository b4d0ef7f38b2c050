package harness

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"time"

	"relaybench/corpus"
	"relaybench/harness/wire"
)

// Transfer carries events that one relay lacks from another that has them: they are asked for by id, several REQs at a time, and
// published as they come, with a window. What has been fetched and not yet published is bounded, so that the slower side sets the pace.
type Transfer struct {
	From, To string // URLs
	Corpus   *corpus.Corpus
	Batch    int           // ids in one REQ
	InFlight int           // REQs at a time, within what the source allows on one connection
	Window   int           // unacknowledged events at the sink
	Stall    time.Duration // without progress for so long, a side is given up
	Ledger   *Ledger       // the sink's
}

// Transferred is what came of a transfer.
type Transferred struct {
	Published               // at the sink
	Asked     int           // ids
	Fetched   int           // events that came and had been asked for
	Missing   []corpus.ID   // asked for, and never sent
	Altered   []corpus.ID   // sent with other fields than they were signed with, and not passed on: what the sink says of them is no verdict on it
	Strays    int           // events that nobody had asked for, or that came twice
	Closed    int           // REQs that ended in CLOSED
	Reason    string        // of the last CLOSED
	Duration  time.Duration // from the first REQ to the last OK
}

// ahead is how many events may wait between source and sink.
const ahead = 256

// Run transfers the events with these ids. The error says why one of the sides gave up.
func (x *Transfer) Run(ctx context.Context, ids []corpus.ID) (*Transferred, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	source, err := Dial(ctx, x.From)
	if err != nil {
		return nil, fmt.Errorf("the source: %w", err)
	}
	defer source.Abort()
	done := &Transferred{Asked: len(ids)}
	events := make(chan outgoing, ahead)
	fetched := make(chan error, 1)
	start := wire.Now()
	go func() {
		defer close(events)
		f := fetching{Transfer: x, conn: source, done: done, wanted: make(map[corpus.ID]bool, len(ids)), to: events}
		fetched <- f.run(ctx, ids)
	}()
	p := Publisher{URL: x.To, Corpus: x.Corpus, Conns: 1, Window: x.Window, Stall: x.Stall, Ledger: x.Ledger}
	published, failed, err := p.publish(ctx, channelFeed(events), len(ids))
	cancel() // a source whose sink has gone has nobody to wait for
	fetchErr := <-fetched
	if err != nil {
		return done, fmt.Errorf("the sink: %w", err)
	}
	done.Published = *published
	done.Duration = max(published.Last, start) - start
	if len(failed) > 0 {
		return done, fmt.Errorf("the sink: %w", failed[0])
	}
	if fetchErr != nil {
		return done, fmt.Errorf("the source: %w", fetchErr)
	}
	return done, nil
}

// channelFeed hands out what comes through a channel.
type channelFeed chan outgoing

func (f channelFeed) next(wait bool) (outgoing, bool) {
	if wait {
		e, ok := <-f
		return e, ok
	}
	select {
	case e, ok := <-f:
		return e, ok
	default:
		return outgoing{}, false
	}
}

// fetching is the source's side.
type fetching struct {
	*Transfer
	conn   *wire.Conn
	done   *Transferred
	wanted map[corpus.ID]bool // true once it has come
	to     chan<- outgoing
	frame  []byte
	asked  int
}

func (f *fetching) run(ctx context.Context, ids []corpus.ID) error {
	for _, id := range ids {
		f.wanted[id] = false
	}
	err := f.fetch(ctx, ids)
	for _, id := range ids {
		if !f.wanted[id] {
			f.done.Missing = append(f.done.Missing, id)
		}
	}
	return err
}

func (f *fetching) fetch(ctx context.Context, ids []corpus.ID) error {
	f.conn.WatchUseful(f.Stall)
	open := make(map[string]bool, f.InFlight)
	var m wire.Message
	for {
		for len(open) < f.InFlight && len(ids) > 0 {
			n := min(f.Batch, len(ids))
			sub, err := f.ask(ids[:n])
			if err != nil {
				return err
			}
			open[sub] = true
			ids = ids[n:]
		}
		if len(open) == 0 {
			return nil
		}
		frame, _, err := f.conn.Read()
		if err != nil {
			return err
		}
		wire.Parse(frame, &m)
		if !open[string(m.Sub)] {
			continue
		}
		f.conn.Useful()
		switch m.Type {
		case wire.Event:
			if err := f.take(ctx, &m); err != nil {
				return err
			}
		case wire.Closed:
			f.done.Closed++
			f.done.Reason = m.ReasonText()
			delete(open, string(m.Sub))
		case wire.EOSE:
			delete(open, string(m.Sub))
			f.frame = append(append(append(f.frame[:0], `["CLOSE","`...), m.Sub...), `"]`...)
			if err := f.conn.Send(f.frame); err != nil {
				return err
			}
		}
	}
}

func (f *fetching) ask(ids []corpus.ID) (sub string, err error) {
	f.asked++
	sub = "t" + strconv.Itoa(f.asked)
	filter := corpus.Filter{IDs: ids, Limit: corpus.Int(len(ids))}
	f.frame = append(append(append(f.frame[:0], `["REQ","`...), sub...), `",`...)
	f.frame = append(filter.AppendJSON(f.frame), ']')
	return sub, f.conn.Send(f.frame)
}

// take passes an event on, once. It waits while too many are ahead of the sink.
func (f *fetching) take(ctx context.Context, m *wire.Message) error {
	id := corpus.ID(m.ID)
	came, asked := f.wanted[id]
	if !m.HasID || !asked || came {
		f.done.Strays++
		return nil
	}
	f.wanted[id] = true
	f.done.Fetched++
	e := outgoing{id: &id, raw: bytes.Clone(m.Event), index: -1}
	if i, ok := f.Corpus.Find(id); ok {
		e.index = i
		if Altered(f.Corpus, i, m.Event) != "" {
			f.done.Altered = append(f.done.Altered, id)
			return nil
		}
	}
	select {
	case f.to <- e:
		return nil
	default:
	}
	f.conn.WatchUseful(0) // a sink that is slow is no fault of the source
	defer f.conn.WatchUseful(f.Stall)
	select {
	case f.to <- e:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
