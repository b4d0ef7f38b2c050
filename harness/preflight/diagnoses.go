package preflight

import (
	"maps"
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
	gaps := []time.Duration{}
	for _, times := range answers {
		times = slices.Compact(slices.Clone(times))
		if n := len(times); n > 1 && (times[n-1]-times[n-2]-delayedAck).Abs() <= delayedAckSpread {
			gaps = append(gaps, times[n-1]-times[n-2])
		}
	}
	if len(gaps) > 0 {
		gap = median(gaps)
	}
	return len(gaps), gap
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
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
		must(leaveOpen(results.CauseFew, counts{"answers": float64(len(answers))}))
	}
	held, gap := heldBack(answers)
	c.seen.Counts = counts{"answers": float64(len(answers)), "held": float64(held), "ms": milliseconds(gap)}
	if 2*held > len(answers) {
		must(fail(results.CauseHeldBack, c.seen.Counts, nil))
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
	alone := median(single)
	var many []*corpus.Event
	for i := range syncMany {
		many = append(many, note(syncSingle+i))
	}
	stored, took, err := s.flood(many, syncWindow)
	must(err)
	if len(stored) < 2*syncWindow {
		must(leaveOpen(results.CauseFew, counts{"answers": float64(len(stored))}))
	}
	each := took / time.Duration(len(stored))
	c.seen.Counts = counts{"alone": milliseconds(alone), "each": milliseconds(each), "fsync": milliseconds(c.o.Fsync), "window": syncWindow}
	if oneSyncEach(alone, each, c.o.Fsync) {
		must(fail(results.CauseHeldBack, c.seen.Counts, nil))
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
	asked := 0
	var silent, unnamed []string
	for _, nip := range slices.Sorted(maps.Keys(c.result.Speaks)) {
		switch speaks, named := c.result.Speaks[nip], c.said.Names(nip); {
		case named && !speaks:
			silent = append(silent, strconv.Itoa(nip))
			fallthrough
		case named:
			asked++
		case speaks && nip != 11: // the document itself tells of NIP-11
			unnamed = append(unnamed, strconv.Itoa(nip))
		}
	}
	c.seen.Counts = counts{"asked": float64(asked)}
	c.seen.Texts = texts{"nips": strings.Join(silent, ", "), "unnamed": strings.Join(unnamed, ", ")}
	if len(silent) > 0 {
		must(fail(results.CauseNotSpoken, c.seen.Counts, c.seen.Texts))
	}
}

// onlyMessages tells of all that came on the connections of other checks and was no message of the
// protocol: a binary frame, text that is not UTF-8 or no JSON, an element that NIP-01 does not have
// there.
func onlyMessages(c *checker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.garbage
	if c.seen.Counts = (counts{"frames": float64(g.Count)}); g.Count == 0 {
		return
	}
	var evidence []results.Evidence
	for _, k := range g.Kinds {
		evidence = append(evidence, results.Evidence{Code: results.EvidenceFrame, Cause: string(k.Fault), Count: int64(k.Count), Text: k.Example})
	}
	must(fail("", c.seen.Counts, texts{"field": string(g.Kinds[0].Field)}, evidence...))
}
