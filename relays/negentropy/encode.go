package negentropy

// Version is the protocol's version byte.
const Version = 0x61

// isVersion says whether a byte can stand for a version of the protocol.
func isVersion(b byte) bool { return b>>4 == Version>>4 }

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

func (w *writer) begin(dst []byte) {
	w.out, w.start = append(dst, Version), len(dst)
	w.last, w.end, w.skip = 0, Bound{}, false
}

// finish hands over the message. The writer lets go of it.
func (w *writer) finish() []byte {
	out := w.out
	w.out = nil
	return out
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
	w.out = append(w.out, byte(b.Length))
	w.out = append(w.out, b.Prefix[:b.Length]...)
}

func (w *writer) matches(lo, hi int, fingerprint []byte) bool {
	return FingerprintOf(w.storage, lo, hi) == Fingerprint(fingerprint)
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
		ids := w.storage.Run(lo, hi)
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
	length, last, end, skip := len(w.out), w.last, w.end, w.skip
	n := hi - lo
	if n < 2*buckets {
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
	if w.room() >= 0 {
		return true
	}
	w.out, w.last, w.end, w.skip = w.out[:length], last, end, skip
	return false
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
