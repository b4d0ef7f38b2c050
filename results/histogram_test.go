package results

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

func TestHistogramQuantilesStayWithinItsResolution(t *testing.T) {
	h, rnd := NewHistogram(), rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 20_000 {
		d := time.Duration(rnd.ExpFloat64() * float64(20*time.Millisecond))
		all = append(all, d)
		h.Record(d)
	}
	slices.Sort(all)
	for _, q := range []float64{0.001, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[max(int(q*float64(len(all)))-1, 0)]
		got, slack := h.Quantile(q), want/500+2*time.Microsecond
		if got < want-slack || got > want+slack {
			t.Errorf("quantile %v: %v, by sorting %v", q, got, want)
		}
	}
	if h.Count() != 20_000 || h.Clamped() != 0 {
		t.Errorf("counted %d, clamped %d", h.Count(), h.Clamped())
	}
	if h.Max() < all[len(all)-1] || h.Min() > all[0] {
		t.Errorf("min %v max %v, recorded %v…%v", h.Min(), h.Max(), all[0], all[len(all)-1])
	}
}

func TestHistogramCountsWhatIsOutOfRangeAtTheBound(t *testing.T) {
	h := NewHistogram()
	h.Record(-time.Second)
	h.RecordN(2*time.Minute, 3)
	h.Record(60 * time.Second)
	h.RecordN(time.Second, 0)
	h.RecordN(time.Second, -5)
	if h.Count() != 5 || h.Clamped() != 4 {
		t.Fatalf("counted %d, clamped %d; want 5 and 4", h.Count(), h.Clamped())
	}
	if h.Quantile(0) > time.Microsecond || h.Quantile(1) < 60*time.Second || h.Quantile(1) > 61*time.Second {
		t.Errorf("bounds %v…%v", h.Quantile(0), h.Quantile(1))
	}
}

func TestEmptyHistogramIsZeroEverywhere(t *testing.T) {
	h := NewHistogram()
	if h.Quantile(0.5) != 0 || h.Mean() != 0 || h.Min() != 0 || h.Max() != 0 || h.Count() != 0 {
		t.Errorf("an empty histogram says %v %v %v %v %v", h.Quantile(0.5), h.Mean(), h.Min(), h.Max(), h.Count())
	}
	s, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if d, err := DecodeHistogram(s); err != nil || d.Count() != 0 {
		t.Errorf("decoded: %v, %v", d, err)
	}
}

func TestHistogramSurvivesEncodingAndMerging(t *testing.T) {
	a, b := NewHistogram(), NewHistogram()
	for i := range 5000 {
		a.Record(time.Duration(i) * 7 * time.Microsecond)
		b.Record(time.Duration(i) * 11 * time.Millisecond)
	}
	b.Record(time.Hour)
	a.Merge(b)
	a.Merge(nil)
	if a.Count() != 10_001 || a.Clamped() != 1 {
		t.Fatalf("merged: %d, clamped %d", a.Count(), a.Clamped())
	}
	s, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	d, err := DecodeHistogram(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []float64{0, 0.5, 0.99, 1} {
		if d.Quantile(q) != a.Quantile(q) {
			t.Errorf("quantile %v: %v became %v", q, a.Quantile(q), d.Quantile(q))
		}
	}
	if d.Count() != a.Count() || d.Mean() != a.Mean() {
		t.Errorf("count %d became %d, mean %v became %v", a.Count(), d.Count(), a.Mean(), d.Mean())
	}
	t.Logf("10,001 observations encode to %d characters", len(s))
}

func TestFullestHistogramFitsTheDecodersBound(t *testing.T) {
	h, rnd := NewHistogram(), rand.New(rand.NewPCG(3, 4))
	for d := int64(0); d <= highestTrackable; d += max(d/1500, 256) {
		h.RecordN(time.Duration(d), 1+rnd.Int64N(1<<36))
	}
	s, err := h.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := DecodeHistogram(s); err != nil {
		t.Fatal(err)
	}
	t.Logf("every bucket in use: %d characters", len(s))
}

func TestDecodeHistogramRefusesHostilePayloadsCheaply(t *testing.T) {
	widest, err := hdr.New(1, 1<<62, 5).Encode(hdr.V2CompressedEncodingCookieBase)
	if err != nil {
		t.Fatal(err)
	}
	heavy := NewHistogram()
	heavy.RecordN(time.Second, 1<<60)
	tooMany, err := heavy.Encode()
	if err != nil {
		t.Fatal(err)
	}
	// A header of our geometry, and then 64 MB of zeros.
	var bomb bytes.Buffer
	z, err := zlib.NewWriterLevel(&bomb, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	head := binary.BigEndian.AppendUint32(nil, 0x1c849313)
	head = binary.BigEndian.AppendUint32(head, 64<<20)
	head = binary.BigEndian.AppendUint32(head, 0)
	head = binary.BigEndian.AppendUint32(head, significantFigures)
	head = binary.BigEndian.AppendUint64(head, uint64(lowestDiscernible))
	head = binary.BigEndian.AppendUint64(head, uint64(highestTrackable))
	z.Write(append(head, make([]byte, 8)...))
	zeros := make([]byte, 1<<20)
	for range 64 {
		z.Write(zeros)
	}
	z.Close()
	framed := binary.BigEndian.AppendUint32(nil, 0x1c849314)
	framed = append(binary.BigEndian.AppendUint32(framed, uint32(bomb.Len())), bomb.Bytes()...)

	for name, payload := range map[string]string{
		"empty": "", "not base64": "<script>", "short": "HISTFA==", "long": strings.Repeat("A", maxEncoded+4), "garbage": base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 100)),
		"the widest geometry": string(widest), "zip bomb": base64.StdEncoding.EncodeToString(framed), "more observations than there can be": tooMany,
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := DecodeHistogram(payload); err == nil {
				t.Fatal("it was accepted")
			} else {
				t.Log(err)
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
				t.Errorf("%d bytes were allocated for it", grown)
			}
		})
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := NewHistogram()
	var d time.Duration
	if n := testing.AllocsPerRun(1000, func() { d += 1237 * time.Microsecond; h.Record(d); h.Record(-d); h.Record(time.Hour) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRecord(b *testing.B) {
	h := NewHistogram()
	b.ReportAllocs()
	var d time.Duration
	for b.Loop() {
		d = (d + 7919) & (1<<26 - 1)
		h.Record(d)
	}
}

func BenchmarkNewHistogram(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		NewHistogram()
	}
}

func FuzzDecodeHistogram(f *testing.F) {
	h := NewHistogram()
	f.Add("")
	for range 3 {
		s, err := h.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(s)
		h.RecordN(3*time.Millisecond, 9)
		h.Record(time.Minute)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := DecodeHistogram(s)
		if err != nil {
			return
		}
		other := NewHistogram()
		other.Merge(h)
		if other.Count() != h.Count() || h.Quantile(0.5) > h.Quantile(1) || h.Quantile(1) > 61*time.Second {
			t.Errorf("inconsistent: %d %d %v %v", other.Count(), h.Count(), h.Quantile(0.5), h.Quantile(1))
		}
	})
}
