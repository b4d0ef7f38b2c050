package negentropy

import (
	"errors"
	"fmt"
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
	n := new(Initiator)
	n.setUp(s, frameLimit, have, need)
	return n
}

func (n *Initiator) setUp(s Storage, frameLimit int, have, need func(ids []ID)) {
	ignore := func([]ID) {}
	if have == nil {
		have = ignore
	}
	if need == nil {
		need = ignore
	}
	n.writer, n.have, n.need = newWriter(s, frameLimit), have, need
	n.Reset(s)
}

// Reset makes the initiator ready for another reconciliation, of the storage given, and keeps its
// memory.
func (n *Initiator) Reset(s Storage) {
	n.storage, n.done, n.failed = s, false, nil
	n.open, n.asked = n.open[:0], n.asked[:0]
}

// Open appends the first message, of at most 1,000 bytes, to dst.
func (n *Initiator) Open(dst []byte) []byte {
	n.Reset(n.storage)
	n.begin(dst)
	n.ask(0, n.storage.Len(), &infinite)
	n.open, n.asked = n.asked, n.open
	return n.finish()
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
	case len(message) == 0:
		n.failed = &FormatError{Reason: "empty", Code: Malformed}
	case !isVersion(message[0]):
		n.failed = &FormatError{Reason: fmt.Sprintf("0x%02x is not a version byte of negentropy", message[0]), Code: Malformed}
	case message[0] != Version:
		n.failed = &FormatError{Reason: fmt.Sprintf("protocol version 0x%02x, only 0x%02x is spoken here", message[0], Version), Code: WrongVersion}
	}
	if n.failed != nil {
		return dst, n.failed
	}
	n.begin(dst)
	d := decoder{src: message, pos: 1}
	var p part
	open, full := n.open, false
	for lo := 0; !full && d.next(&p); {
		hi := n.storage.Search(lo, n.storage.Len(), p.upper)
		if p.mode == modeSkip || p.mode == modeFingerprint && n.matches(lo, hi, p.payload) {
			n.skipTo(&p.upper)
			lo = hi
			continue
		}
		for len(open) > 0 && open[0].to.compare(&n.end) <= 0 {
			open = open[1:]
		}
		if lo, full = n.differs(open, lo, hi, &p); full {
			n.askRest(open, lo)
		}
	}
	if n.failed = d.err; n.failed != nil {
		n.finish()
		return dst, n.failed
	}
	n.open, n.asked = n.asked, n.open[:0]
	if n.empty() {
		n.done = true
		n.finish()
		return dst, nil
	}
	return n.finish(), nil
}

// differs deals with a range that is not agreed upon: all of it where all is open, else the open
// pieces of it. full is true where the message has no room for what begins at rest.
func (n *Initiator) differs(open []span, lo, hi int, p *part) (rest int, full bool) {
	if len(open) > 0 && open[0].from.compare(&n.end) <= 0 && p.upper.compare(&open[0].to) <= 0 {
		if p.mode == modeIDList {
			n.compare(p.payload, lo, hi)
			n.skipTo(&p.upper)
			return hi, false
		}
		if !n.ask(lo, hi, &p.upper) {
			return lo, true
		}
		return hi, false
	}
	// The peer took settled ranges in again. An id list over them is of no use, since it does not
	// say which id lies where.
	for i := range open {
		piece := &open[i]
		if piece.from.compare(&p.upper) >= 0 {
			break
		}
		if piece.from.compare(&n.end) > 0 {
			n.skipTo(&piece.from)
			lo = n.storage.Search(lo, hi, piece.from)
		}
		to, end := p.upper, hi
		if piece.to.compare(&to) < 0 {
			to = piece.to
			end = n.storage.Search(lo, hi, to)
		}
		if !n.ask(lo, end, &to) {
			return lo, true
		}
		lo = end
	}
	if n.end.compare(&p.upper) < 0 {
		n.skipTo(&p.upper)
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
	if len(theirs) > 0 {
		n.theirs.fill(theirs)
	}
	for lo < hi {
		ours := n.storage.Run(lo, hi)
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
	if len(theirs) > 0 {
		n.theirs.rest(n.need)
	}
}

func report(to func([]ID), ids []ID) {
	if len(ids) > 0 {
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
