package negentropy

import (
	"fmt"
	"unsafe"
)

// FormatError is a message that breaks the protocol. Offset counts bytes from the message's start.
type FormatError struct {
	Offset int
	Reason string
	Code   Code // Malformed, WrongVersion or CountTooLarge
	// Count and Limit are of CountTooLarge: how many ids are announced, and how many there are
	// bytes for.
	Count, Limit uint64
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("negentropy message: byte %d: %s", e.Offset, e.Reason)
}

// decoder reads a message range by range. The first mistake sticks.
type decoder struct {
	src   []byte
	pos   int
	upper Bound // of the range last read
	err   error
}

// part is one range of a message: what it ends below, and what is said of it.
type part struct {
	upper   Bound
	mode    uint64
	payload []byte // modeFingerprint: the fingerprint; modeIDList: the ids one after another
}

// next reads a range; false at the message's end or at a mistake.
func (d *decoder) next(p *part) bool {
	if d.err != nil || d.pos == len(d.src) {
		return false
	}
	p.upper = d.bound()
	start := d.pos
	p.mode = d.varint("mode")
	switch {
	case d.err != nil:
		return false
	case p.mode == modeSkip:
		p.payload = nil
	case p.mode == modeFingerprint:
		p.payload = d.bytes(FingerprintSize, "fingerprint")
	case p.mode == modeIDList:
		// The count is checked against what is there before anything is done with it.
		start = d.pos
		count := d.varint("number of ids")
		if left := len(d.src) - d.pos; d.err == nil && count > uint64(left)/IDSize {
			d.err = &FormatError{start, fmt.Sprintf("%d ids announced, %d bytes left", count, left), CountTooLarge, count, uint64(left) / IDSize}
			return false
		}
		p.payload = d.bytes(int(count)*IDSize, "ids")
	default:
		d.fail(start, "unknown mode %d", p.mode)
	}
	return d.err == nil
}

// bound reads a bound and checks that it does not lie below the one before.
func (d *decoder) bound() (b Bound) {
	start := d.pos
	delta := d.varint("timestamp")
	last := d.upper.Timestamp
	switch {
	case d.err != nil:
		return b
	case delta == 0 || last == Infinity:
		b.Timestamp = Infinity
	case delta > Infinity-last:
		d.fail(start, "timestamp over 64 bits")
		return b
	default:
		b.Timestamp = last + delta - 1
	}
	at := d.pos
	length := d.varint("prefix length")
	if d.err == nil && length > IDSize {
		d.fail(at, "prefix of %d bytes, at most %d allowed", length, IDSize)
	}
	prefix := d.bytes(int(length), "prefix")
	if b.Timestamp < Infinity { // nothing is told apart up there
		b.Length = copy(b.Prefix[:], prefix)
	}
	if d.err == nil && b.compare(&d.upper) < 0 {
		d.fail(start, "a bound below the one before")
	}
	d.upper = b
	return b
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
	if d.err != nil {
		return nil
	}
	if left := len(d.src) - d.pos; left < n {
		d.fail(d.pos, "%s cut short: %d bytes wanted, %d left", what, n, left)
		return nil
	}
	b := d.src[d.pos : d.pos+n]
	d.pos += n
	return b
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
