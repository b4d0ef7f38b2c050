package negentropy

import (
	"errors"
	"hash/maphash"
)

// Initiator is the side that asks: the client of NIP-77. It learns which ids the other side lacks
// and which it lacks itself, and names each once, even to a peer that comes back to ranges which
// are settled (peers that limit their frames do).
type Initiator struct {
	writer
	have, need func(ids []ID)
	theirs     idTable
	open       []span // what the last message asked about, in ascending order; all else is settled
	asked      []span // what the message that is being written asks about
	done       bool
	failed     error
}

// NewInitiator starts a reconciliation of the storage. frameLimit bounds each message that this
// side sends, in bytes before NIP-77's hexadecimal digits double them; 0 or less means no limit,
// and limits from 1 to 4095 are raised to MinFrameLimit. have is called with ids that only this
// side has and need with ids that only the other side has, piece by piece as rounds arrive; the
// slices are valid during the call and must not be written to. Either may be nil.
func NewInitiator(s Storage, frameLimit int, have, need func(ids []ID)) *Initiator {
	return &Initiator{writer: newWriter(s, frameLimit), have: have, need: need}
}

// Open appends the first message, of at most 1,000 bytes, to dst.
func (n *Initiator) Open(dst []byte) []byte {
	n.done, n.failed, n.asked = false, nil, n.asked[:0]
	n.begin(dst)
	n.ask(0, n.storage.Len(), &infinite)
	n.open, n.asked = n.asked, n.open
	return n.out
}

// Done reports whether the reconciliation is complete.
func (n *Initiator) Done() bool { return n.done }

// Next takes the other side's message and appends the answer to dst. Where the reconciliation is
// complete, nothing is appended and Done turns true. The error is a *FormatError for a message that
// breaks the protocol, which ends the reconciliation; ids of the ranges before the mistake have
// been reported.
func (n *Initiator) Next(dst, message []byte) ([]byte, error) {
	switch {
	case n.failed != nil:
		return dst, n.failed
	case n.done || len(n.open) == 0:
		return dst, errors.New("negentropy: a message while nothing is asked")
	}
	n.begin(dst)
	n.asked = n.asked[:0]
	d := decode(message)
	open, full := n.open, false
	for lo := 0; !full && d.next(); {
		hi := n.storage.Search(lo, n.storage.Len(), d.upper)
		if n.agrees(&d, lo, hi) {
			n.skipTo(&d.upper)
			lo = hi
			continue
		}
		for len(open) > 0 && open[0].to.compare(&n.end) <= 0 {
			open = open[1:]
		}
		if lo, full = n.differs(open, lo, hi, &d); full {
			n.askRest(open, lo)
		}
	}
	if n.failed = d.err; n.failed != nil {
		return dst, n.failed
	}
	n.open, n.asked = n.asked, n.open
	if n.done = n.empty(); n.done {
		return dst, nil
	}
	return n.out, nil
}

// differs deals with a range that is not agreed upon: all of it where all is open, else the open
// pieces of it. full is true where the message has no room for what begins at rest.
func (n *Initiator) differs(open []span, lo, hi int, d *decoder) (rest int, full bool) {
	if len(open) > 0 && open[0].from.compare(&n.end) <= 0 && d.upper.compare(&open[0].to) <= 0 {
		if d.mode == modeIDList {
			n.compare(d.payload, lo, hi)
			n.skipTo(&d.upper)
			return hi, false
		}
		if !n.ask(lo, hi, &d.upper) {
			return lo, true
		}
		return hi, false
	}
	// The peer took settled ranges in again. An id list over them is of no use, since it does not
	// say which id lies where.
	for i := range open {
		piece := &open[i]
		if piece.from.compare(&d.upper) >= 0 {
			break
		}
		if piece.from.compare(&n.end) > 0 {
			n.skipTo(&piece.from)
			lo = n.storage.Search(lo, hi, piece.from)
		}
		to, end := d.upper, hi
		if piece.to.compare(&to) < 0 {
			to = piece.to
			end = n.storage.Search(lo, hi, to)
		}
		if !n.ask(lo, end, &to) {
			return lo, true
		}
		lo = end
	}
	if n.end.compare(&d.upper) < 0 {
		n.skipTo(&d.upper)
	}
	return hi, false
}

// ask writes questions about our range [lo, hi), from where the message is up to the bound.
func (n *Initiator) ask(lo, hi int, to *Bound) bool {
	from := n.end
	if !n.split(lo, hi, to) {
		return false
	}
	n.asked = appendSpan(n.asked, &from, to)
	return true
}

// askRest closes a full message with a question about everything that follows, of which only what
// is open counts.
func (n *Initiator) askRest(open []span, lo int) {
	from := n.end
	n.rest(lo)
	for i := range open {
		if piece := &open[i]; piece.to.compare(&from) > 0 {
			start := &piece.from
			if start.compare(&from) < 0 {
				start = &from
			}
			n.asked = appendSpan(n.asked, start, &piece.to)
		}
	}
}

// compare finds out how an id list of theirs, one id after another, differs from our range.
func (n *Initiator) compare(raw []byte, lo, hi int) {
	theirs := asIDs(raw)
	if lo == hi {
		report(n.need, theirs)
		return
	}
	n.theirs.fill(theirs)
	for lo < hi {
		_, ours := n.storage.Run(lo, hi)
		lo += len(ours)
		from := 0 // of a stretch of ids that they lack
		if len(theirs) > 0 {
			for i := range ours {
				if n.theirs.take(&ours[i]) {
					report(n.have, ours[from:i])
					from = i + 1
				}
			}
		}
		report(n.have, ours[from:])
	}
	n.theirs.rest(n.need)
}

func report(to func([]ID), ids []ID) {
	if len(ids) > 0 && to != nil {
		to(ids)
	}
}

// span is a stretch of the space of timestamps and ids.
type span struct{ from, to Bound }

// maxSpans bounds what a hostile peer can make this side remember, to 6 MB. Beyond it, settled
// stretches between spans count as open again, which costs rounds, and ids may be named twice if
// the peer does come back to them.
const maxSpans = 1 << 16

// appendSpan adds a span that does not lie below the ones there.
func appendSpan(spans []span, from, to *Bound) []span {
	if k := len(spans); k > 0 && (k == maxSpans || spans[k-1].to.compare(from) >= 0) {
		spans[k-1].to = *to
		return spans
	}
	return append(spans, span{*from, *to})
}

// tableSeed keeps a hostile relay from choosing ids that all want the same slot.
var tableSeed = maphash.MakeSeed()

// idTable is the set of the ids in one list: open addressing over positions in the list, memory
// kept between lists. It takes at most half of what the list does.
type idTable struct {
	ids   []ID
	slots []int32 // position + 1, negative once taken, 0 for empty
	mask  uint64
}

func (t *idTable) fill(ids []ID) {
	size := 16
	for size < 2*len(ids) {
		size *= 2
	}
	if size > cap(t.slots) {
		t.slots = make([]int32, size)
	}
	t.slots = t.slots[:size]
	clear(t.slots)
	t.ids, t.mask = ids, uint64(size-1)
	for i := range ids {
		if slot := t.find(&ids[i]); *slot == 0 {
			*slot = int32(i + 1)
		}
	}
}

// find returns the slot of an id, or the empty one where it would go.
func (t *idTable) find(id *ID) *int32 {
	for at := maphash.Bytes(tableSeed, id[:]); ; at++ {
		slot := &t.slots[at&t.mask]
		if i := max(*slot, -*slot); i == 0 || t.ids[i-1] == *id {
			return slot
		}
	}
}

// take marks an id as taken and reports whether it was there.
func (t *idTable) take(id *ID) bool {
	slot := t.find(id)
	*slot = min(*slot, -*slot)
	return *slot != 0
}

// rest calls each with stretches of the ids that were not taken, in the order of the list, each id
// once.
func (t *idTable) rest(each func([]ID)) {
	from := 0
	for i := range t.ids {
		if *t.find(&t.ids[i]) != int32(i+1) {
			report(each, t.ids[from:i])
			from = i + 1
		}
	}
	report(each, t.ids[from:])
	t.ids = nil // the list is the caller's
}

// Responder is the side that answers: the relay of NIP-77. It keeps nothing between messages.
type Responder struct{ writer }

// NewResponder makes the answering side for a storage. frameLimit bounds each message that this
// side sends, in bytes before NIP-77's hexadecimal digits double them; 0 or less means no limit,
// and limits from 1 to 4095 are raised to MinFrameLimit.
func NewResponder(s Storage, frameLimit int) *Responder {
	return &Responder{newWriter(s, frameLimit)}
}

// Next takes the initiator's message and appends the answer to dst. A message of another version of
// the protocol is answered with the version that this side speaks. The error is a *FormatError; dst
// is returned as it was then.
//
// The answer is at most the frame limit long. Without a limit it may be as long as 32 bytes for
// each item, besides 53 for each byte of the message.
func (r *Responder) Next(dst, message []byte) ([]byte, error) {
	r.begin(dst)
	d := decode(message)
	for lo, full := 0, false; !full && d.next(); {
		hi := r.storage.Search(lo, r.storage.Len(), d.upper)
		switch {
		case r.agrees(&d, lo, hi):
			r.skipTo(&d.upper)
		case d.mode == modeFingerprint:
			full = !r.split(lo, hi, &d.upper)
		default:
			lo, full = r.answer(lo, hi, &d.upper)
		}
		if full {
			r.rest(lo)
		}
		lo = hi
	}
	if wrong, _ := d.err.(*FormatError); wrong != nil && wrong.Code != WrongVersion {
		return dst, wrong
	}
	return r.out, nil
}

// answer writes our ids of [lo, hi), as many as fit, and returns where those that did not fit
// begin.
func (r *Responder) answer(lo, hi int, upper *Bound) (rest int, full bool) {
	fit := (r.room() - (maxBound + 1 + maxBound + 1 + maxVarint)) / IDSize // after a skip, the range's bound, mode and count
	switch {
	case hi-lo <= fit:
		r.list(lo, hi, upper)
		return hi, false
	case fit < 1:
		return lo, true
	}
	bound := between(r.storage, lo+fit)
	r.list(lo, lo+fit, &bound)
	return lo + fit, true
}
