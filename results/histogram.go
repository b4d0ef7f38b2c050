package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// The one geometry of every histogram: anything recorded can be merged with anything else.
const (
	lowestDiscernible  = int64(time.Microsecond)
	highestTrackable   = int64(60 * time.Second)
	significantFigures = 3
)

// Bounds on a payload from outside. A histogram of this geometry has under 18,000 buckets, so that
// even one with every bucket in use encodes to far less than maxEncoded.
const (
	maxEncoded = 512 << 10
	maxCount   = int64(1) << 53 // merging a thousand such totals still fits an int64
)

// Histogram counts durations from 0 to 60 s in an HDR histogram: a resolution of 512 ns up to 1 ms,
// and three significant digits above it. It takes about 140 KB. It is not safe for concurrent use:
// keep one for each worker and merge them at the end.
type Histogram struct {
	h       *hdr.Histogram
	clamped int64
}

// NewHistogram returns an empty histogram.
func NewHistogram() *Histogram {
	return &Histogram{h: hdr.New(lowestDiscernible, highestTrackable, significantFigures)}
}

// Record counts d once. A negative d counts as 0 and one over 60 s as 60 s; both are told by
// Clamped. Record does not allocate.
func (h *Histogram) Record(d time.Duration) { h.RecordN(d, 1) }

// RecordN counts d n times; n below 1 counts nothing.
func (h *Histogram) RecordN(d time.Duration, n int64) {
	if n < 1 {
		return
	}
	v := min(max(int64(d), 0), highestTrackable)
	// The value is in range by now, so that only a total beyond int64 can be refused.
	if h.h.RecordValues(v, n) == nil && v != int64(d) {
		h.clamped += n
	}
}

// Merge adds everything that o counted to h; a nil o adds nothing.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil {
		return
	}
	h.h.Merge(o.h)
	h.clamped += o.clamped
}

// Quantile returns what a share q (0 to 1) of the observations does not exceed, 0 for none.
func (h *Histogram) Quantile(q float64) time.Duration {
	if math.IsNaN(q) || h.Count() == 0 {
		return 0
	}
	return time.Duration(h.h.ValueAtPercentile(100 * min(max(q, 0), 1)))
}

// Mean returns the arithmetic mean, 0 when nothing was counted.
func (h *Histogram) Mean() time.Duration { return h.ofSome(int64(h.h.Mean())) }

// Max returns the largest observation at the histogram's resolution, 0 when nothing was counted.
func (h *Histogram) Max() time.Duration { return h.ofSome(h.h.Max()) }

// Min returns the smallest observation at the histogram's resolution, 0 when nothing was counted.
func (h *Histogram) Min() time.Duration { return h.ofSome(h.h.Min()) }

// ofSome is v of some observations, 0 of none.
func (h *Histogram) ofSome(v int64) time.Duration {
	if h.Count() == 0 {
		return 0
	}
	return time.Duration(v)
}

// Count returns how many observations were counted, clamped ones included.
func (h *Histogram) Count() int64 { return h.h.TotalCount() }

// Clamped returns how many observations lay outside 0…60 s and were counted at that bound. The
// encoded form does not carry it: Measurement.Clamped does.
func (h *Histogram) Clamped() int64 { return h.clamped }

// Encode returns the histogram as base64 of HdrHistogram's compressed V2 payload, in nanoseconds;
// any HdrHistogram tool reads it.
func (h *Histogram) Encode() (string, error) {
	b, err := h.h.Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		return "", fmt.Errorf("encoding a histogram: %w", err)
	}
	return string(b), nil
}

// DecodeHistogram reads what Encode wrote. It refuses a payload of another geometry before anything
// is allocated for it, so that a hostile one costs no more memory than an honest one.
func DecodeHistogram(s string) (*Histogram, error) {
	if len(s) > maxEncoded {
		return nil, fmt.Errorf("decoding a histogram: %d characters are more than any histogram of relaybench takes (%d)", len(s), maxEncoded)
	}
	if err := checkGeometry(s); err != nil {
		return nil, fmt.Errorf("decoding a histogram: %w", err)
	}
	h, err := hdr.Decode([]byte(s))
	if err != nil {
		return nil, fmt.Errorf("decoding a histogram: %w", err)
	}
	if h.TotalCount() > maxCount {
		return nil, fmt.Errorf("decoding a histogram: it claims %d observations", h.TotalCount())
	}
	return &Histogram{h: h}, nil
}

// checkGeometry inflates the payload's header and nothing more. The library sizes its counts by
// that header, and would take 50 MB for the widest one.
func checkGeometry(s string) error {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return err
	}
	if len(raw) < 8 {
		return errors.New("the payload is cut short")
	}
	z, err := zlib.NewReader(bytes.NewReader(raw[8:]))
	if err != nil {
		return err
	}
	defer z.Close()
	var head [hdr.ENCODING_HEADER_SIZE]byte
	if _, err := io.ReadFull(z, head[:]); err != nil {
		return fmt.Errorf("reading the payload's header: %w", err)
	}
	digits := binary.BigEndian.Uint32(head[12:])
	low, high := binary.BigEndian.Uint64(head[16:]), binary.BigEndian.Uint64(head[24:])
	if digits != significantFigures || low != uint64(lowestDiscernible) || high != uint64(highestTrackable) {
		return fmt.Errorf("it spans %d…%d at %d digits, relaybench's span %d…%d at %d", low, high, digits, lowestDiscernible, highestTrackable, significantFigures)
	}
	return nil
}

// SetHistogram stores h in m with the counts that belong to it.
func (m *Measurement) SetHistogram(h *Histogram) error {
	s, err := h.Encode()
	if err != nil {
		return fmt.Errorf("%s of %s in %s: %w", m.Metric, m.Relay, m.Scenario, err)
	}
	m.Histogram, m.Samples, m.Clamped = s, h.Count(), h.Clamped()
	return nil
}
