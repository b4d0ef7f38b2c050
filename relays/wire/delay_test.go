package wire

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func TestQuantilesOfDelays(t *testing.T) {
	frames := hdrhistogram.New(1, int64(longestDelay), 2)
	d := &Delays{0, frames.Export()}
	if got := d.Quantile(0.99); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for delay, n := range map[time.Duration]int64{5: 98, time.Millisecond: 1, time.Second: 1} {
		frames.RecordValues(int64(delay), n)
	}
	d = &Delays{100, frames.Export()}
	for q, want := range map[float64]time.Duration{0: 5, 0.98: 5, 0.981: time.Millisecond, 0.99: time.Millisecond, 0.991: time.Second, 1: time.Second} {
		if got := d.Quantile(q); got < want || got > want+want/64 {
			t.Errorf("quantile %g is %v, want %v", q, got, want)
		}
	}
	if none := d.Since(d); none.Samples != 0 || none.Quantile(1) != 0 {
		t.Errorf("since then: %+v", none)
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
	counted := int64(0)
	for _, n := range d.frames.Counts {
		counted += n
	}
	if d.Samples != dense+10 || counted != dense+10*sparse {
		t.Errorf("%d samples for %d frames, want %d for %d", d.Samples, counted, dense+10, dense+10*sparse)
	}
}
