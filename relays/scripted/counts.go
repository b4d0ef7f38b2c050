package scripted

import (
	"cmp"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"relaybench/relays/wire"
)

// Clock is CLOCK_MONOTONIC, which is one clock for all processes of the machine: the time of every
// Tally.
func Clock() time.Duration {
	var t unix.Timespec
	check(unix.ClockGettime(unix.CLOCK_MONOTONIC, &t))
	return time.Duration(t.Nano())
}

// Tally counts messages of a kind, and keeps when the first and the last of them came by. It is
// safe for concurrent use, also by several processes.
type Tally struct{ n, first, last atomic.Int64 }

// N is how many there were.
func (t *Tally) N() int64 { return t.n.Load() }

// First is the Clock at the first of them, 0 for none.
func (t *Tally) First() time.Duration { return time.Duration(t.first.Load()) }

// Last is the Clock at the last of them.
func (t *Tally) Last() time.Duration { return time.Duration(t.last.Load()) }

func (t *Tally) add() {
	now := int64(Clock())
	t.first.CompareAndSwap(0, now)
	for was := t.last.Load(); was < now && !t.last.CompareAndSwap(was, now); was = t.last.Load() {
	}
	t.n.Add(1)
}

// Counts are what a scripted relay did, over all its boots. They can be read at any time, whether
// it runs or not and however it ended.
type Counts struct {
	Boots, Stops      Tally // times it began to serve; times it ended by being asked to
	Connections       Tally
	HangUps           Tally // connections dropped by HangUpEvery
	Freezes           Tally
	Imports, Syncs    Tally        // commands that ended
	Lost              Tally        // stored events that were forgotten by LoseOnStop or a command
	BytesIn, BytesOut atomic.Int64 // of messages, without frames' headers
	HeldNanos         atomic.Int64 // from the reading of the EVENT to the writing of the OK, in all

	Events, Reqs, CountReqs, NegOpens Tally // messages read
	NegMsgs                           Tally

	OKs, Accepted, Duplicates, Refused Tally // messages written; the last three are kinds of the first
	Sent, EOSEs, Closeds, Notices      Tally // Sent: EVENT
	CountAnswers, NegAnswers, Garbage  Tally // NegAnswers: NEG-MSG and NEG-ERR; Garbage: all else
}

// wrote counts a message that is about to be written.
func (c *Counts) wrote(frame []byte) {
	var m wire.Message
	wire.Parse(frame, &m)
	c.BytesOut.Add(int64(len(frame)))
	switch {
	case m.Type != wire.OK:
	case !m.Accepted:
		c.Refused.add()
	case wire.ReasonPrefix(m.Reason) == "duplicate":
		c.Duplicates.add()
	default:
		c.Accepted.add()
	}
	kinds := map[wire.Type]*Tally{wire.OK: &c.OKs, wire.Event: &c.Sent, wire.EOSE: &c.EOSEs, wire.Closed: &c.Closeds, wire.Notice: &c.Notices,
		wire.Count: &c.CountAnswers, wire.NegMsg: &c.NegAnswers, wire.NegErr: &c.NegAnswers}
	cmp.Or(kinds[m.Type], &c.Garbage).add()
}

// mapCounts makes the counts of a file, which all processes that map it share and which outlives
// them.
func mapCounts(path string) *Counts {
	f := must(os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600))
	defer f.Close()
	size := int(unsafe.Sizeof(Counts{}))
	check(f.Truncate(int64(size)))
	memory := must(unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED))
	return (*Counts)(unsafe.Pointer(&memory[0]))
}
