package reference

// What one step of an answer may gather before it is sent. A step holds a read transaction, which
// must not last as long as a slow reader does: under an open one bolt can reuse no pages.
const (
	batchEvents = 512
	batchBytes  = 512 << 10
)

// resultStream merges the filters of one REQ or COUNT into one stream, newest first and without
// repetition, each filter within its own limit (NIP-01). It can go on in another View.
type resultStream struct {
	queries []*Query
	left    []int // of each filter's limit
	upTo    uint64
	now     int64
	faults  *Faults // nil for an honest answer
	last    Position
	done    bool

	heads []head // of the step under way
}

// head is one filter's next event.
type head struct {
	cursor Cursor
	record *Record
	filter int
}

// newResultStream leaves out what was accepted after Seq upTo and what has expired at now (Unix
// seconds).
func newResultStream(queries []*Query, upTo uint64, now int64) *resultStream {
	a := &resultStream{queries: queries, upTo: upTo, now: now}
	for _, q := range queries {
		a.left = append(a.left, q.Limit)
	}
	return a
}

// batch is the outcome of one step: the events' JSON, copied out of the View.
type batch struct {
	bytes []byte
	ends  []int
}

// each yields the events of the batch.
func (b *batch) each(yield func(raw []byte) bool) {
	start := 0
	for _, end := range b.ends {
		if !yield(b.bytes[start:end]) {
			return
		}
		start = end
	}
}

// read fills b with the next events.
func (a *resultStream) read(store Store, b *batch) error {
	b.bytes, b.ends = b.bytes[:0], b.ends[:0]
	return a.step(store, func(r *Record) bool {
		b.bytes = append(b.bytes, r.Raw...)
		b.ends = append(b.ends, len(b.bytes))
		return len(b.ends) < batchEvents && len(b.bytes) < batchBytes
	})
}

// step takes events in order until take says to stop or there are no more; then done is set.
func (a *resultStream) step(store Store, take func(*Record) bool) error {
	return store.View(func(v View) error {
		defer a.endStep()
		for i, q := range a.queries {
			if a.left[i] > 0 && !q.nothing {
				a.heads = append(a.heads, head{cursor: v.Scan(q, a.last), filter: i})
				a.advance(&a.heads[len(a.heads)-1])
			}
		}
		for {
			r := a.next()
			if r == nil {
				a.done = true
				return nil
			}
			a.last = positionOf(r)
			if !take(r) {
				return nil
			}
		}
	})
}

// endStep gives what a filter read ahead back to its limit: the next step reads it again.
func (a *resultStream) endStep() {
	for _, h := range a.heads {
		if h.record != nil && h.record.ID != a.last.ID {
			a.left[h.filter]++
		}
	}
	a.heads = a.heads[:0]
}

// advance moves one filter to its next event that may be sent, nil when there is none.
func (a *resultStream) advance(h *head) {
	h.record = nil
	for a.left[h.filter] > 0 {
		r := h.cursor.Next()
		if r == nil {
			return
		}
		if r.Seq <= a.upTo && r.Expires > a.now && !a.faults.hides(&r.ID) {
			a.left[h.filter]--
			h.record = r
			return
		}
	}
}

// next takes the first of the heads. The record it returns stays valid until the next call, since
// heads that show a record already taken move on only then.
func (a *resultStream) next() (first *Record) {
	for i := range a.heads {
		h := &a.heads[i]
		for a.last.valid && h.record != nil && h.record.ID == a.last.ID {
			a.advance(h)
		}
		if h.record != nil && (first == nil || h.record.Before(first)) {
			first = h.record
		}
	}
	return first
}
