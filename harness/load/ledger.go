package load

import "sync/atomic"

// Answer is what a relay said of an event.
type Answer uint32

// The answers.
const (
	NotOffered  Answer = iota
	Unanswered         // sent, and no OK came back
	Accepted           // OK true
	Duplicate          // OK true, with the prefix "duplicate:" (NIP-01)
	Refused            // OK false
	NotImported        // left out by the relay's own import command
)

// Ledger keeps what one relay answered for each event of the corpus, by the event's index. It is
// safe for concurrent use.
type Ledger struct {
	answers []atomic.Uint32
	longest atomic.Int64
}

// Saw notes how many events one answer to a query held, and returns the most that any has: a
// relay that has sent so many at once does not cap its answers below that.
func (l *Ledger) Saw(events int) (longest int) {
	for {
		was := l.longest.Load()
		if int64(events) <= was {
			return int(was)
		}
		if l.longest.CompareAndSwap(was, int64(events)) {
			return events
		}
	}
}

// NewLedger makes a ledger for a corpus of n events, none offered.
func NewLedger(n int) *Ledger { return &Ledger{answers: make([]atomic.Uint32, n)} }

// Set notes the answer for event i. An acceptance is never taken back: an event refused as a
// repetition is stored all the same.
func (l *Ledger) Set(i int, a Answer) {
	if was := Answer(l.answers[i].Load()); was == Accepted || was == Duplicate {
		return
	}
	l.answers[i].Store(uint32(a))
}

// Get returns the answer for event i.
func (l *Ledger) Get(i int) Answer { return Answer(l.answers[i].Load()) }

// Acknowledged reports whether the relay has said that it has event i.
func (l *Ledger) Acknowledged(i int) bool {
	a := l.Get(i)
	return a == Accepted || a == Duplicate
}

// Len returns the number of events the ledger is for.
func (l *Ledger) Len() int { return len(l.answers) }

// Count returns how many events have the answer.
func (l *Ledger) Count(a Answer) int {
	n := 0
	for i := range l.answers {
		if l.Get(i) == a {
			n++
		}
	}
	return n
}
