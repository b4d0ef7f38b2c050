package negentropy

import (
	"fmt"
	"unsafe"
)

// Version is the protocol's version byte.
const Version = 0x61

// The modes of a range.
const (
	modeSkip        = 0
	modeFingerprint = 1
	modeIDList      = 2
)

// buckets is how many parts a differing range is split into; a range of fewer than two items a
// bucket is listed instead.
const buckets = 16

// MinFrameLimit is the lowest limit on a message, in bytes: below it a round might not get
// anywhere.
const MinFrameLimit = 4096

const (
	// closing is the most that ends a full message: a skip and one fingerprint for the rest.
	closing = maxBound + 1 + maxBound + 1 + FingerprintSize
	// maxBound is the longest that a bound can be.
	maxBound = maxVarint + 1 + IDSize
	// maxVarint is the longest that a 64-bit varint can be.
	maxVarint = 10
)

// writer builds one message of either side, range by range and in ascending order. Ranges to be
// skipped are gathered, and written only when something else follows.
type writer struct {
	storage Storage
	limit   int // bytes that a message may reach before it is closed
	out     []byte
	start   int    // of the message, in out
	last    uint64 // timestamp of the last bound written
	end     Bound  // what lies below it is dealt with
	skip    bool   // the piece before end is to be skipped, and not written yet
}

func newWriter(s Storage, frameLimit int) writer {
	limit := int(^uint(0) >> 1)
	if frameLimit > 0 {
		limit = max(frameLimit, MinFrameLimit)
	}
	return writer{storage: s, limit: limit - closing}
}

// Reset makes either side ready for another reconciliation, of the storage given, and keeps its
// memory.
func (w *writer) Reset(s Storage) { w.storage = s }

func (w *writer) begin(dst []byte) {
	w.out, w.start = append(dst, Version), len(dst)
	w.last, w.end, w.skip = 0, Bound{}, false
}

// empty reports whether nothing but the version, and perhaps a skip to the end, which goes without
// saying, is in the message.
func (w *writer) empty() bool { return len(w.out) == w.start+1 }

func (w *writer) room() int { return w.limit - (len(w.out) - w.start) }

func (w *writer) skipTo(to *Bound) { w.end, w.skip = *to, true }

func (w *writer) head(upper *Bound, mode byte) {
	if w.skip {
		w.skip = false
		w.bound(&w.end)
		w.out = append(w.out, modeSkip)
	}
	w.bound(upper)
	w.out = append(w.out, mode)
	w.end = *upper
}

// bound writes the timestamp as the distance from the bound before, plus one; 0 stands for
// infinity.
func (w *writer) bound(b *Bound) {
	if b.Timestamp == Infinity {
		w.out = append(w.out, 0)
	} else {
		w.out = appendVarint(w.out, b.Timestamp-w.last+1)
	}
	w.last = b.Timestamp
	w.out = append(append(w.out, byte(b.Length)), b.Prefix[:b.Length]...)
}

// agrees reports whether nothing is left to say of the range [lo, hi) that was read: it is skipped,
// or its fingerprint is ours.
func (w *writer) agrees(d *decoder, lo, hi int) bool {
	return d.mode == modeSkip || d.mode == modeFingerprint && FingerprintOf(w.storage, lo, hi) == Fingerprint(d.payload)
}

func (w *writer) fingerprint(lo, hi int, upper *Bound) {
	w.head(upper, modeFingerprint)
	f := FingerprintOf(w.storage, lo, hi)
	w.out = append(w.out, f[:]...)
}

func (w *writer) list(lo, hi int, upper *Bound) {
	w.head(upper, modeIDList)
	w.out = appendVarint(w.out, uint64(hi-lo))
	for lo < hi {
		_, ids := w.storage.Run(lo, hi)
		for i := range ids {
			w.out = append(w.out, ids[i][:]...)
		}
		lo += len(ids)
	}
}

// split writes what is to be compared next about the range [lo, hi): its ids where there are few,
// else fingerprints of its parts. Where the message has no room for it, nothing is written and the
// result is false.
func (w *writer) split(lo, hi int, upper *Bound) bool {
	before := *w
	if n := hi - lo; n < 2*buckets {
		w.list(lo, hi, upper)
	} else {
		for i := range buckets {
			from, to := lo+bucketStart(n, i), lo+bucketStart(n, i+1)
			bound := *upper
			if to < hi {
				bound = between(w.storage, to)
			}
			w.fingerprint(from, to, &bound)
		}
	}
	if w.room() < 0 {
		*w = before
		return false
	}
	return true
}

// bucketStart returns where the i-th of the buckets of n items begins: the first n mod buckets ones
// are larger by one.
func bucketStart(n, i int) int { return i*(n/buckets) + min(i, n%buckets) }

// rest closes a full message with one range for everything from lo on, so that the other side asks
// for it again. It fits always.
func (w *writer) rest(lo int) {
	n := w.storage.Len()
	if lo == n {
		// As good as a fingerprint of nothing, and it needs no further round. It also keeps clear
		// of peers that, when their answer to this range does not fit, send back the fingerprint of
		// what follows it, which is nothing too, and so seem to agree.
		w.list(n, n, &infinite)
		return
	}
	w.fingerprint(lo, n, &infinite)
}

// appendVarint appends n in base 128, most significant digit first, the high bit set on all digits
// but the last.
func appendVarint(dst []byte, n uint64) []byte {
	var digits [maxVarint]byte
	i := len(digits) - 1
	digits[i] = byte(n & 0x7f)
	for n >>= 7; n > 0; n >>= 7 {
		i--
		digits[i] = byte(n&0x7f) | 0x80
	}
	return append(dst, digits[i:]...)
}

// FormatError is a message that breaks the protocol. Offset counts bytes from the message's start;
// for NotHex, hexadecimal digits.
type FormatError struct {
	Offset int
	Reason string
	Code   Code // NotHex, Malformed, WrongVersion or CountTooLarge
	// Count and Limit are of CountTooLarge: how many ids are announced, and how many there are
	// bytes for.
	Count, Limit uint64
}

func (e *FormatError) Error() string {
	if e.Code == NotHex {
		return fmt.Sprintf("hexadecimal digit %d: %s", e.Offset, e.Reason)
	}
	return fmt.Sprintf("negentropy message: byte %d: %s", e.Offset, e.Reason)
}

// decoder reads a message range by range. The first mistake sticks.
type decoder struct {
	src []byte
	pos int
	err error

	// Of the range that was read last: what it ends below, and what is said of it.
	upper   Bound
	mode    uint64
	payload []byte // modeFingerprint: the fingerprint; modeIDList: the ids one after another
}

// decode begins to read a message.
func decode(message []byte) (d decoder) {
	d = decoder{src: message, pos: 1}
	switch {
	case len(message) == 0:
		d.pos = 0
		d.fail(0, "empty")
	case message[0]>>4 != Version>>4:
		d.fail(0, "0x%02x is not a version byte of negentropy", message[0])
	case message[0] != Version:
		d.err = &FormatError{Reason: fmt.Sprintf("protocol version 0x%02x, only 0x%02x is spoken here", message[0], Version), Code: WrongVersion}
	}
	return d
}

// next reads a range; false at the message's end or at a mistake.
func (d *decoder) next() bool {
	if d.err != nil || d.pos == len(d.src) {
		return false
	}
	d.bound()
	start := d.pos
	switch d.mode, d.payload = d.varint("mode"), nil; {
	case d.err != nil || d.mode == modeSkip:
	case d.mode == modeFingerprint:
		d.payload = d.bytes(FingerprintSize, "fingerprint")
	case d.mode == modeIDList:
		// The count is checked against what is there before anything is done with it.
		start = d.pos
		count := d.varint("number of ids")
		if left := uint64(len(d.src) - d.pos); d.err == nil && count > left/IDSize {
			d.err = &FormatError{start, fmt.Sprintf("%d ids announced, %d bytes left", count, left), CountTooLarge, count, left / IDSize}
		}
		d.payload = d.bytes(int(count)*IDSize, "ids")
	default:
		d.fail(start, "unknown mode %d", d.mode)
	}
	return d.err == nil
}

// bound reads the range's upper bound and checks that it does not lie below the one before.
func (d *decoder) bound() {
	start, last, b := d.pos, d.upper, Bound{}
	delta := d.varint("timestamp")
	if b.Timestamp = last.Timestamp + delta - 1; delta == 0 || last.Timestamp == Infinity {
		b.Timestamp = Infinity
	} else if delta > Infinity-last.Timestamp {
		d.fail(start, "timestamp over 64 bits")
	}
	at := d.pos
	length := d.varint("prefix length")
	if length > IDSize {
		d.fail(at, "prefix of %d bytes, at most %d allowed", length, IDSize)
	}
	prefix := d.bytes(int(length), "prefix")
	if b.Timestamp < Infinity { // nothing is told apart up there
		b.Length = copy(b.Prefix[:], prefix)
	}
	if d.upper = b; b.compare(&last) < 0 {
		d.fail(start, "a bound below the one before")
	}
}

// varint reads digits in base 128, most significant first, the high bit set on all but the last.
func (d *decoder) varint(what string) (n uint64) {
	if d.err != nil {
		return 0
	}
	for i, c := range d.src[d.pos:] {
		if i == maxVarint || n > Infinity>>7 {
			d.fail(d.pos, "%s over 64 bits", what)
			return 0
		}
		if n = n<<7 | uint64(c&0x7f); c < 0x80 {
			d.pos += i + 1
			return n
		}
	}
	d.fail(d.pos, "%s cut short", what)
	return 0
}

func (d *decoder) bytes(n int, what string) []byte {
	if left := len(d.src) - d.pos; d.err == nil && left < n {
		d.fail(d.pos, "%s cut short: %d bytes wanted, %d left", what, n, left)
	}
	if d.err != nil {
		return nil
	}
	d.pos += n
	return d.src[d.pos-n : d.pos]
}

func (d *decoder) fail(at int, format string, args ...any) {
	if d.err == nil {
		d.err = &FormatError{Offset: at, Reason: fmt.Sprintf(format, args...), Code: Malformed}
	}
}

// asIDs looks at ids one after another as what they are, without a copy: an array of bytes has no
// alignment to keep.
func asIDs(raw []byte) []ID {
	return unsafe.Slice((*ID)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/IDSize)
}
