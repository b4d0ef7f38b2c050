package preflight

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/results"
)

// The delayed acknowledgement of TCP, which a sender with Nagle's algorithm waits for, takes 40 ms
// on Linux.
const (
	delayedAck       = 40 * time.Millisecond
	delayedAckSpread = 6 * time.Millisecond
)

// heldBack counts the answers whose last frames came 40 ± 6 ms after those before them, and returns
// the median of these gaps. Each answer is the times at which its frames came; what came together
// has one time. Answers that came all at once say nothing.
func heldBack(answers [][]time.Duration) (held int, gap time.Duration) {
	var gaps []time.Duration
	for _, times := range answers {
		times = slices.Compact(slices.Clone(times))
		if n := len(times); n > 1 {
			if gap := times[n-1] - times[n-2]; gap >= delayedAck-delayedAckSpread && gap <= delayedAck+delayedAckSpread {
				gaps = append(gaps, gap)
			}
		}
	}
	if len(gaps) == 0 {
		return 0, 0
	}
	slices.Sort(gaps)
	return len(gaps), gaps[len(gaps)/2]
}

const (
	nagleAsks = 20 // REQs of several events
	nagleFew  = 5  // answers that are too few to judge by
)

// holdsBack: whether the ends of answers wait for an acknowledgement of TCP, as they do where a
// relay writes them in pieces and leaves Nagle's algorithm on.
func holdsBack(c *checker) {
	s, newest := c.series(5)
	s.read(exactly(ids(newest...)), limited(c.mine(1), 50))
	var answers [][]time.Duration
	for i := range nagleAsks {
		r := s.query(limited(c.mine(1), 10+i)) // another filter each time: none is answered from memory
		if !r.closed && len(r.frames) > 2 {
			answers = append(answers, r.frames)
		}
	}
	if len(answers) < nagleFew {
		must(leaveOpen(results.CauseFew, counts{"answers": float64(len(answers))}, nil))
	}
	held, gap := heldBack(answers)
	c.seen.counts = counts{"answers": float64(len(answers)), "held": float64(held), "ms": milliseconds(gap)}
	if 2*held > len(answers) {
		must(fail(results.CauseHeldBack, c.seen.counts, nil))
	}
}

const (
	syncSingle = 30  // events published one by one
	syncMany   = 192 // and with syncWindow in flight
	syncWindow = 32
	// leastSync is the least that an fsync must take to be told from the work on an event.
	leastSync = 500 * time.Microsecond
)

// syncsEach: whether each event waits for an fsync of its own. From outside that can be said where
// both hold: an OK takes about as long as an fsync of that disk, and many events in flight take as
// long each as one by one.
func syncsEach(c *checker) {
	if c.o.Fsync < leastSync {
		must(errNoQuestion)
	}
	s := c.dial()
	note := func(i int) *corpus.Event { return c.event(1, c.recent(i), "one of many") }
	single := make([]time.Duration, syncSingle)
	for i := range single {
		e := note(i)
		start := time.Now()
		s.store(e)
		single[i] = time.Since(start)
	}
	slices.Sort(single)
	alone := single[len(single)/2]
	many := make([]*corpus.Event, syncMany)
	for i := range many {
		many[i] = note(syncSingle + i)
	}
	stored, took, err := s.flood(many, syncWindow)
	must(err)
	if len(stored) < 2*syncWindow {
		must(leaveOpen(results.CauseFew, counts{"answers": float64(len(stored))}, nil))
	}
	each := took / time.Duration(len(stored))
	c.seen.counts = counts{"alone": milliseconds(alone), "each": milliseconds(each), "fsync": milliseconds(c.o.Fsync), "window": syncWindow}
	if oneSyncEach(alone, each, c.o.Fsync) {
		must(fail(results.CauseHeldBack, c.seen.counts, nil))
	}
}

// oneSyncEach weighs what an event takes alone, what it takes among many, and what an fsync takes.
// A store writes once or twice for a commit, data and then what names it. More than that is not the
// disk's.
func oneSyncEach(alone, each, fsync time.Duration) bool {
	return fsync >= leastSync && alone*5 >= fsync*4 && alone <= fsync*4 && each*10 >= alone*7
}

// speaksWhatItNames compares the NIPs that a relay names (NIP-11) with what asking found. Asking
// decides.
func speaksWhatItNames(c *checker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.said.NIPs) == 0 {
		must(errNoQuestion)
	}
	var asked, silent, unnamed []string
	for nip := range 100 {
		speaks, known := c.result.Speaks[nip]
		named := c.said.Names(nip)
		name := strconv.Itoa(nip)
		if known && named {
			asked = append(asked, name)
		}
		if known && named && !speaks {
			silent = append(silent, name)
		}
		if known && !named && speaks && nip != 11 { // the document itself tells of NIP-11
			unnamed = append(unnamed, name)
		}
	}
	c.seen = found{counts: counts{"asked": float64(len(asked))}, texts: texts{"nips": strings.Join(silent, ", "), "unnamed": strings.Join(unnamed, ", ")}}
	if len(silent) > 0 {
		must(fail(results.CauseNotSpoken, c.seen.counts, c.seen.texts))
	}
}
