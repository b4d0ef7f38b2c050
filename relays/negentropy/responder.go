package negentropy

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
