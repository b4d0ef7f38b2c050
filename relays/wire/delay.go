package wire

import (
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Each of a connection's first frames is looked at, so that a short scenario has samples enough,
// and then one of sparse, which stands for that many: reading the clock for each would cost a
// twentieth of what a frame costs.
const (
	dense  = 256
	sparse = 16
)

// Delays counts how long frames waited from their arrival to the moment when Read handed them to
// its caller. A frame waits while the caller is busy with those that arrived together with it.
type Delays struct {
	Samples int64                  // how often the clock was read
	frames  *hdrhistogram.Snapshot // in nanoseconds
}

const longestDelay = time.Minute // longer ones count as this

// delayed is what all connections of the process have counted.
var delayed = struct {
	sync.Mutex
	samples int64
	frames  *hdrhistogram.Histogram
}{frames: hdrhistogram.New(1, int64(longestDelay), 2)}

// ReadingDelays returns what all connections have counted since the process started.
func ReadingDelays() *Delays {
	delayed.Lock()
	defer delayed.Unlock()
	return &Delays{delayed.samples, delayed.frames.Export()}
}

// Since returns what was counted after before was taken; nil stands for the start of the process.
func (d *Delays) Since(before *Delays) *Delays {
	if before == nil {
		return d
	}
	since := *d.frames
	since.Counts = make([]int64, len(d.frames.Counts))
	for i, n := range d.frames.Counts {
		since.Counts[i] = n - before.frames.Counts[i]
	}
	return &Delays{d.Samples - before.Samples, &since}
}

// Quantile returns the delay that a share q (0 to 1) of the frames does not exceed, at most a
// hundredth too high; 0 when there are none.
func (d *Delays) Quantile(q float64) time.Duration {
	h := hdrhistogram.Import(d.frames)
	all := max(1, float64(h.TotalCount()))
	return time.Duration(h.ValueAtPercentile(100 * math.Ceil(q*all) / all)) // else it rounds down as well
}

// handedOver counts a connection's nth frame, counted from 1, which arrived at a moment of Now.
func handedOver(n uint64, arrived time.Duration) {
	weight := int64(1)
	if n > dense {
		if n%sparse != 0 {
			return
		}
		weight = sparse
	}
	waited := min(max(Now()-arrived, 0), longestDelay)
	delayed.Lock()
	defer delayed.Unlock()
	delayed.samples++
	_ = delayed.frames.RecordValues(int64(waited), weight)
}
