package wire

import (
	"bytes"
	"io"
	"math"
	"net"
	"testing"
	"time"
)

func TestADelayFallsIntoABucketThatHoldsIt(t *testing.T) {
	last := time.Duration(-1)
	for i := range delayBuckets {
		high := highestIn(i)
		if bucketOf(high) != i || bucketOf(last+1) != i {
			t.Fatalf("bucket %d is said to be from %d to %d, which are in %d and %d", i, last+1, high, bucketOf(last+1), bucketOf(high))
		}
		if low := last + 1; float64(high) > float64(low)*9/8 {
			t.Fatalf("bucket %d, from %d to %d, is more than an eighth wide", i, low, high)
		}
		last = high
		if high == math.MaxInt64 {
			break
		}
	}
	if last != math.MaxInt64 {
		t.Errorf("the longest delay in a bucket is %d", last)
	}
	if bucketOf(-time.Second) != 0 {
		t.Error("a clock that stood still is no delay")
	}
}

func TestQuantilesOfDelays(t *testing.T) {
	var d Delays
	if got := d.Quantile(0.99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	d.frames[bucketOf(5)] = 98
	d.frames[bucketOf(time.Millisecond)] = 1
	d.frames[bucketOf(time.Second)] = 1
	for q, want := range map[float64]time.Duration{0: 5, 0.98: 5, 0.981: time.Millisecond, 0.99: time.Millisecond, 0.991: time.Second, 1: time.Second} {
		if got := d.Quantile(q); bucketOf(got) != bucketOf(want) || got < want {
			t.Errorf("quantile %g is %v, want %v", q, got, want)
		}
	}
}

// TestAFramesDelayIsThatOfItsReader sends frames in one segment to a reader that takes its time
// over each: what waits behind it waits as long.
func TestAFramesDelayIsThatOfItsReader(t *testing.T) {
	const frames, pause = 40, 5 * time.Millisecond
	url := rawRelay(t, func(conn net.Conn) {
		conn.Write(bytes.Repeat(serverFrame(opText, `["NOTICE",""]`), frames)) // small enough to arrive together
		io.Copy(io.Discard, conn)
	})
	c := connect(t, url)
	before := ReadingDelays()
	var first, last, shortest time.Duration
	for k := range frames {
		_, at, err := c.Read()
		if err != nil {
			t.Fatal(err)
		}
		last = at
		if k == 0 {
			first = at
			shortest = Now()
			time.Sleep(pause) // the reader is what is slow here
			shortest = Now() - shortest
		}
	}
	if first != last {
		t.Fatalf("the frames did not arrive together: %v and %v", first, last)
	}
	d := ReadingDelays().Since(before)
	if d.Samples != frames {
		t.Errorf("%d of %d frames were looked at", d.Samples, frames)
	}
	// All but the first waited for the reader.
	for q, least := range map[float64]time.Duration{0.99: shortest, 0.05: shortest} {
		if got := d.Quantile(q); got < least {
			t.Errorf("quantile %g is %v, and the reader paused for %v", q, got, least)
		}
	}
	if got := d.Quantile(1.0 / frames); got > d.Quantile(0.05) {
		t.Errorf("the first frame waited for %v, longer than those behind it", got)
	}
}

func TestOfManyFramesSomeAreLookedAtAndStandForTheOthers(t *testing.T) {
	const frames = dense + 10*sparse + 3
	url := rawRelay(t, func(conn net.Conn) {
		conn.Write(bytes.Repeat(serverFrame(opText, `["NOTICE",""]`), frames))
		io.Copy(io.Discard, conn)
	})
	c := connect(t, url)
	before := ReadingDelays()
	for range frames {
		if _, _, err := c.Read(); err != nil {
			t.Fatal(err)
		}
	}
	d := ReadingDelays().Since(before)
	counted := uint64(0)
	for _, n := range d.frames {
		counted += n
	}
	if d.Samples != dense+10 || counted != dense+10*sparse {
		t.Errorf("%d samples for %d frames, want %d for %d", d.Samples, counted, dense+10, dense+10*sparse)
	}
}
