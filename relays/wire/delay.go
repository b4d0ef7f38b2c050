package wire

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// Each of a connection's first frames is looked at, so that a short scenario has samples
	// enough, and then one of sparse, which stands for that many: reading the clock for each would
	// cost a twentieth of what a frame costs.
	dense  = 256
	sparse = 16

	// fine is how many bits of a delay are kept below its highest: a bucket is an eighth of its
	// value wide at most.
	fine         = 3
	delayBuckets = (64 - fine) << fine
)

// Delays counts how long frames waited from their arrival to the moment when Read handed them to
// its caller. A frame waits while the caller is busy with those that arrived together with it. The
// zero value has counted nothing.
type Delays struct {
	Samples uint64 // how often the clock was read
	frames  [delayBuckets]uint64
}

// delayed is what all connections of the process have counted.
var delayed struct {
	samples atomic.Uint64
	frames  [delayBuckets]atomic.Uint64
}

// ReadingDelays returns what all connections have counted since the process started.
func ReadingDelays() *Delays {
	d := &Delays{Samples: delayed.samples.Load()}
	for i := range d.frames {
		d.frames[i] = delayed.frames[i].Load()
	}
	return d
}

// Since returns what was counted after before was taken; nil stands for the start of the process.
func (d *Delays) Since(before *Delays) *Delays {
	since := *d
	if before != nil {
		since.Samples -= before.Samples
		for i := range since.frames {
			since.frames[i] -= before.frames[i]
		}
	}
	return &since
}

// Quantile returns the delay that a share q (0 to 1) of the frames does not exceed, at most an
// eighth too high; 0 when there are none.
func (d *Delays) Quantile(q float64) time.Duration {
	all := uint64(0)
	for _, n := range d.frames {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank := max(1, uint64(math.Ceil(q*float64(all))))
	seen := uint64(0)
	for i, n := range d.frames {
		if seen += n; seen >= rank {
			return highestIn(i)
		}
	}
	return highestIn(delayBuckets - 1)
}

// handedOver counts a connection's nth frame, counted from 1, which arrived at a moment of Now.
func handedOver(n uint64, arrived time.Duration) {
	weight := uint64(1)
	if n > dense {
		if n%sparse != 0 {
			return
		}
		weight = sparse
	}
	delayed.samples.Add(1)
	delayed.frames[bucketOf(Now()-arrived)].Add(weight)
}

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < 1<<fine {
		return int(v)
	}
	shift := bits.Len64(v) - fine - 1
	return shift<<fine + int(v>>shift)
}

// highestIn is the longest delay that falls into a bucket.
func highestIn(bucket int) time.Duration {
	if bucket < 1<<fine {
		return time.Duration(bucket)
	}
	shift := bucket>>fine - 1
	return time.Duration((uint64(bucket&(1<<fine-1)|1<<fine)+1)<<shift - 1)
}
