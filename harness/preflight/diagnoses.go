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
func holdsBack(a *asking) (found, error) {
	s, newest, err := a.series(5)
	if err != nil {
		return found{}, err
	}
	want := ids(newest...)
	if r, err := s.poll(exactly(want), limited(a.mine(1), 50)); err != nil {
		return found{}, err
	} else if r.closed {
		return found{}, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	}
	var answers [][]time.Duration
	for i := range nagleAsks {
		f := limited(a.mine(1), 10+i) // another filter each time: none is answered from memory
		r, err := s.ask(f)
		if err != nil {
			return found{}, err
		}
		if !r.closed && len(r.frames) > 2 {
			answers = append(answers, r.frames)
		}
	}
	if len(answers) < nagleFew {
		return found{}, leaveOpen(results.CauseFew, counts{"answers": float64(len(answers))}, nil)
	}
	held, gap := heldBack(answers)
	facts := counts{"answers": float64(len(answers)), "held": float64(held), "ms": milliseconds(gap)}
	if 2*held > len(answers) {
		return found{}, fail(results.CauseHeldBack, facts, nil)
	}
	return found{counts: facts}, nil
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
func syncsEach(a *asking) (found, error) {
	if a.o.Fsync < leastSync {
		return found{}, errNoQuestion
	}
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	note := func(i int) *corpus.Event { return a.event(1, a.recent(i), "one of many") }
	single := make([]time.Duration, syncSingle)
	for i := range single {
		e := note(i)
		start := time.Now()
		if err := s.store(e); err != nil {
			return found{}, err
		}
		single[i] = time.Since(start)
	}
	slices.Sort(single)
	alone := single[len(single)/2]
	many := make([]*corpus.Event, syncMany)
	for i := range many {
		many[i] = note(syncSingle + i)
	}
	stored, took, err := s.flood(many, syncWindow)
	if err != nil {
		return found{}, err
	}
	if len(stored) < 2*syncWindow {
		return found{}, leaveOpen(results.CauseFew, counts{"answers": float64(len(stored))}, nil)
	}
	each := took / time.Duration(len(stored))
	facts := counts{"alone": milliseconds(alone), "each": milliseconds(each), "fsync": milliseconds(a.o.Fsync), "window": syncWindow}
	if oneSyncEach(alone, each, a.o.Fsync) {
		return found{}, fail(results.CauseHeldBack, facts, nil)
	}
	return found{counts: facts}, nil
}

// oneSyncEach weighs what an event takes alone, what it takes among many, and what an fsync takes.
// A store writes once or twice for a commit, data and then what names it. More than that is not the
// disk's.
func oneSyncEach(alone, each, fsync time.Duration) bool {
	return fsync >= leastSync && alone*5 >= fsync*4 && alone <= fsync*4 && each*10 >= alone*7
}

// speaksWhatItNames compares the NIPs that a relay names (NIP-11) with what asking found. Asking
// decides.
func speaksWhatItNames(a *asking) (found, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.said.NIPs) == 0 {
		return found{}, errNoQuestion
	}
	var asked, silent, unnamed []string
	for nip := range 100 {
		speaks, known := a.result.Speaks[nip]
		named := a.said.Names(nip)
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
	t := texts{"nips": strings.Join(silent, ", "), "unnamed": strings.Join(unnamed, ", ")}
	seen := found{counts: counts{"asked": float64(len(asked))}, texts: t}
	if len(silent) > 0 {
		return found{}, fail(results.CauseNotSpoken, seen.counts, t)
	}
	return seen, nil
}
