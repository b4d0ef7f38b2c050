package client

import (
	"context"
	"math"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Pages asks for all that matches a filter in pages, newest first: each REQ has a limit, and as
// until the time of the oldest event of the page before. That second is asked for again, since the
// limit may have cut it in two. It ends when a relay answers twice in a row, from one second to the
// next, that there is nothing.
//
// No answer ends it before that. A REQ that ends in CLOSED is asked again, for fewer events where
// it brought none, and so is one whose connection was lost, for half as many, or a quarter where it
// brought none; a page that is not newest first is taken in smaller steps. A second that holds more
// events than the relay sends at once can be read in part only: it is stepped over, and named.
type Pages struct {
	Options
	Filter  corpus.Filter // Until is where to begin; its Limit is not used
	Size    int           // events asked for at a time
	Widest  int           // and of a second that fills a page, so that it can be read whole: asked for by and by, up to so many; 0: never more than Size
	Confirm time.Duration // before "nothing" is asked for again: what a relay may need to send events after their EOSE
	// Single never has two REQs open at once, for relays that allow no more than one. Otherwise an
	// answer without events stays open while it is asked for again.
	Single bool
	Take   Take
	// Turned is called when a page has been taken, whole or up to its CLOSED, before the next is
	// asked for, with where the next begins: all that is newer has been taken, and what lies in
	// that second perhaps in part. An error ends everything. It may be nil.
	Turned func(next int64) error
}

// Paged is what paging came to.
type Paged struct {
	*Stats
	Pages    int
	Stepped  []int64 // seconds that may hold more than the relay sends at once, newest first
	Until    int64   // where it stopped: all newer has been taken
	Complete bool    // the relay says that there is no more
}

// maxStepped bounds how many stepped seconds are listed: each costs a page.
const maxStepped = 100_000

// Run asks until there is no more. The error says why it stopped before, and Paged how far it came.
func (p *Pages) Run(ctx context.Context) (*Paged, error) {
	done := &Paged{Stats: NewStats(), Until: math.MaxInt64}
	if p.Filter.Until != nil {
		done.Until = *p.Filter.Until
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := paging{Pages: p, done: done, end: cancel, size: max(1, p.Size), before: map[corpus.ID]bool{}}
	err := p.persist(ctx, done.Stats, func(c *Conn) error {
		before := done.Events
		err := w.pages(ctx, c)
		if err != nil {
			w.shrink() // perhaps the page was too much for it
			if done.Events == before {
				w.shrink() // and by far: attempts that bring nothing are few
			}
		}
		return err
	})
	// What may hold more than came are seconds of as many events as the relay ever sent at once,
	// more than once.
	for _, s := range w.stepped {
		if s.cut || s.events == w.longest && w.asLong > 1 {
			done.Stepped = append(done.Stepped, s.second)
		}
	}
	return done, err
}

// paging is a Pages on its way.
type paging struct {
	*Pages
	done   *Paged
	end    context.CancelCauseFunc // with what Take or Turned returned
	size   int                     // what is asked for: less than Size after CLOSED or a lost connection, more where a second fills a page
	narrow bool                    // asking for more than Size led to CLOSED or a lost connection, and is not tried again
	before map[corpus.ID]bool      // ids of the last page at or before the cursor

	longest, asLong int       // the most events of a page, and how many pages that brought news had as many
	stepped         []stepped // over these seconds
}

// stepped is a second that was left with as many events of it as came at once.
type stepped struct {
	second int64
	events int
	cut    bool // the relay was asked for no more, or said so itself
}

// pages takes page after page over one connection until the end, or until it breaks.
func (w *paging) pages(ctx context.Context, c *Conn) error {
	since := int64(math.MinInt64)
	if w.Filter.Since != nil {
		since = *w.Filter.Since
	}
	again := retry{o: &w.Options}
	for w.done.Until >= since && !w.done.Complete {
		page, err := w.page(ctx, c)
		if err != nil {
			return err
		}
		switch {
		case page.closed == nil:
			again.barren = 0
			w.done.Pages++
		case len(page.times) == 0:
			w.shrink()
		}
		w.turn(page)
		if w.Turned != nil {
			if err := w.Turned(w.done.Until); err != nil {
				w.end(err)
				return err
			}
		}
		if page.closed == nil {
			continue
		}
		if err := again.after(ctx, page.closed, page.fresh > 0); err != nil {
			return err
		}
	}
	w.done.Complete = true
	return nil
}

// shrink asks for less from here on.
func (w *paging) shrink() {
	if w.size > w.Size {
		w.size, w.narrow = w.Size, true
		return
	}
	w.size = max(1, w.size/2)
}

// page is one answer.
type page struct {
	times   []int64     // of its events, as they came
	ids     []corpus.ID // of them
	fresh   int         // events that had not come with the page before
	ordered bool        // newest first
	closed  *ClosedError
}

// page asks for one page. An answer without events is asked for again while the first REQ stays
// open, so that a relay which sends EOSE before its events is not taken for one that has none.
func (w *paging) page(ctx context.Context, c *Conn) (*page, error) {
	filter := w.Filter
	filter.Limit = corpus.Int(w.size)
	if w.done.Until != math.MaxInt64 {
		filter.Until = corpus.Int64(w.done.Until)
	}
	p := &page{ordered: true}
	first, err := c.ask(ctx, &filter)
	if err != nil {
		return nil, err
	}
	came := map[*Subscription]map[corpus.ID]bool{first: {}} // as many as an answer may hold: see Options.Answer
	for {
		s, err := c.next()
		if err != nil {
			return nil, err
		}
		switch c.Message.Type {
		case wire.Event:
			if err := w.event(ctx, c, came[s], p); err != nil {
				return nil, err
			}
		case wire.Closed:
			if s.Answered {
				continue
			}
			p.closed = &ClosedError{c.Message.ReasonText()}
			return p, c.endAll()
		default:
			if len(p.times) > 0 || len(came) > 1 {
				return p, c.endAll()
			}
			if err := sleep(ctx, w.Confirm); err != nil {
				return nil, err
			}
			if w.Single {
				if err := c.endAll(); err != nil {
					return nil, err
				}
			}
			second, err := c.ask(ctx, &filter)
			if err != nil {
				return nil, err
			}
			came[second] = map[corpus.ID]bool{}
		}
	}
}

// endAll closes the REQs of a page.
func (c *Conn) endAll() error {
	for _, s := range c.open {
		if err := c.End(s); err != nil {
			return err
		}
	}
	return nil
}

// event takes an event of an answer that has brought these ids before.
func (w *paging) event(ctx context.Context, c *Conn, answer map[corpus.ID]bool, p *page) error {
	m := &c.Message
	if !m.HasID || !m.Dated || m.CreatedAt > w.done.Until || w.Filter.Since != nil && m.CreatedAt < *w.Filter.Since {
		c.Stats.Unexpected++
		return nil
	}
	id := corpus.ID(m.ID)
	n := len(p.times)
	p.ordered = p.ordered && (n == 0 || p.times[n-1] >= m.CreatedAt)
	p.times, p.ids = append(p.times, m.CreatedAt), append(p.ids, id)
	if answer[id] {
		c.Stats.Duplicates++
		c.Stats.Repeated++
		return nil
	}
	answer[id] = true
	if w.before[id] {
		c.Stats.Duplicates++
		c.Useful()
		return nil
	}
	p.fresh++
	err := c.pass(ctx, w.Take)
	if err != nil {
		w.end(err)
	}
	return err
}

// turn moves the cursor.
func (w *paging) turn(p *page) {
	n := len(p.times)
	if n == 0 {
		w.done.Complete = p.closed == nil // it was asked for twice
		return
	}
	switch {
	case p.fresh == 0:
	case n > w.longest:
		w.longest, w.asLong = n, 1
	case n == w.longest:
		w.asLong++
	}
	until, full := w.done.Until, n >= w.size || p.closed != nil
	next := w.next(p)
	if next < until {
		clear(w.before)
	}
	for i, at := range p.times {
		if at <= next {
			w.before[p.ids[i]] = true
		}
	}
	if next == until {
		// The whole page lies in one second.
		if full && w.size < w.Size {
			w.size = min(w.Size, 4*w.size)
			return
		}
		if full && p.closed == nil && w.size < w.Widest && !w.narrow {
			w.size = min(w.Widest, 4*w.size)
			return
		}
		if p.fresh > 0 && (p.closed != nil || !full) {
			return
		}
		if len(w.stepped) < maxStepped {
			capped := w.size > w.Size && n <= w.Size // more was asked for, and no more came
			w.stepped = append(w.stepped, stepped{until, n, full || capped})
		}
		next-- // what else that second holds cannot be asked for
	}
	w.done.Until = next
	if p.closed == nil {
		w.size = min(max(1, w.Size), 2*w.size)
	}
}

// next chooses where the next page begins. Newest first, the last event is the oldest, and
// everything newer has come. A page in another order may have been cut anywhere, or hold an event
// that does not belong to it: then the middle is as far as can be trusted, or, where that would
// lead nowhere, its oldest event but one.
func (w *paging) next(p *page) int64 {
	oldest := p.times[len(p.times)-1]
	if p.ordered {
		return oldest
	}
	times := slices.Clone(p.times)
	slices.Sort(times)
	if middle := times[len(times)/2]; middle < w.done.Until && p.fresh > 0 {
		return middle
	}
	if len(times) > 2 && times[1] < w.done.Until {
		return times[1]
	}
	return times[0]
}
