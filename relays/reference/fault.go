package reference

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
)

// Faults make the relay misbehave on purpose, so that tests can show that what measures it notices.
// They are for tests alone. A nil *Faults is an honest relay; where faults strike a share of the
// events, which ones depends on their ids and on nothing else.
type Faults struct {
	lose, hide float64 // share of events: acknowledged and not stored; stored and left out of answers

	extra, backwards, unlimited, early, cut, altered bool // of answers: see faultKinds

	trusting  bool
	garbage   bool
	halfOpen  bool
	perSecond int           // events taken; 0: all
	slow      time.Duration // before each OK
	last      int           // event after which the relay kills itself; 0: none
	pending   int           // bytes that may wait for a peer before it is dropped; 0: it is waited for

	arrived atomic.Int64
	noise   atomic.Uint64 // garbage frames sent

	mu     sync.Mutex
	second int64 // Unix
	taken  int   // events in it
}

// faultKind is one way to misbehave.
type faultKind struct {
	name, arg, help string // arg is "" for a fault without an argument
	set             func(f *Faults, arg string) error
}

var faultKinds = []faultKind{
	{"ack-without-store", "RATE", "that share of the events is answered OK true and never stored", func(f *Faults, arg string) error { return parseRate(&f.lose, arg) }},
	{"drop-results", "RATE", "that share of the events is stored, reconciled, and left out of answers", func(f *Faults, arg string) error { return parseRate(&f.hide, arg) }},
	{"extra-results", "", "each answer begins with an event that nobody asked for", turnOn(func(f *Faults) *bool { return &f.extra })},
	{"wrong-order", "", "answers come oldest first", turnOn(func(f *Faults) *bool { return &f.backwards })},
	{"ignore-limit", "", "answers hold all that matches", turnOn(func(f *Faults) *bool { return &f.unlimited })},
	{"no-verify", "", "ids and signatures are taken on trust", turnOn(func(f *Faults) *bool { return &f.trusting })},
	{"eose-early", "", "EOSE comes before the stored events", turnOn(func(f *Faults) *bool { return &f.early })},
	{"closed-midway", "", "an answer of several events ends in CLOSED half-way", turnOn(func(f *Faults) *bool { return &f.cut })},
	{"notice-throttle", "N/s", "over N events a second are refused as rate-limited, with a NOTICE each", parseThrottle},
	{"slow-ok", "MS", "each OK comes MS milliseconds after its event was stored", parseSlow},
	{"half-open", "", "connections are accepted and never answered", turnOn(func(f *Faults) *bool { return &f.halfOpen })},
	{"die-after", "N", "the relay kills itself when the Nth event has been verified", parseLast},
	{"garbage-frames", "", "frames that are no message stand before each answer and among the OKs", turnOn(func(f *Faults) *bool { return &f.garbage })},
	{"id-mismatch", "", "events come back with another content, under ids that are no longer theirs", turnOn(func(f *Faults) *bool { return &f.altered })},
	{"kill-pending", "MB", "a connection for which more than MB megabytes wait is closed", parsePending},
}

// ParseFaults reads faults, each written NAME or NAME:ARG. The error is one sentence that names the
// fault at fault. Without any it returns nil.
func ParseFaults(specs []string) (*Faults, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	f := new(Faults)
	seen := map[string]bool{}
	for _, spec := range specs {
		name, arg, hasArg := strings.Cut(spec, ":")
		at := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == name })
		if at < 0 {
			return nil, fmt.Errorf("%q is none of %s", spec, FaultNames())
		}
		kind := faultKinds[at]
		switch {
		case seen[name]:
			return nil, fmt.Errorf("%s is given twice", name)
		case kind.arg == "" && hasArg:
			return nil, fmt.Errorf("%q: %s takes no argument", spec, name)
		case kind.arg != "" && !hasArg:
			return nil, fmt.Errorf("%q needs an argument: %s:%s", spec, name, kind.arg)
		}
		seen[name] = true
		if err := kind.set(f, arg); err != nil {
			return nil, fmt.Errorf("%q: %w", spec, err)
		}
	}
	return f, nil
}

// FaultNames lists the faults with their arguments, separated by commas.
func FaultNames() string {
	var names []string
	for _, k := range faultKinds {
		names = append(names, k.usage())
	}
	return strings.Join(names, ", ")
}

// FaultHelp explains the faults, one a line.
func FaultHelp() string {
	var b strings.Builder
	for _, k := range faultKinds {
		fmt.Fprintf(&b, "  %-24s %s\n", k.usage(), k.help)
	}
	return b.String()
}

func (k faultKind) usage() string {
	if k.arg == "" {
		return k.name
	}
	return k.name + ":" + k.arg
}

func turnOn(field func(*Faults) *bool) func(*Faults, string) error {
	return func(f *Faults, _ string) error {
		*field(f) = true
		return nil
	}
}

func parseRate(to *float64, arg string) error {
	rate, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(rate > 0 && rate <= 1) {
		return errors.New("give RATE as a share above 0 and up to 1")
	}
	*to = rate
	return nil
}

func parseThrottle(f *Faults, arg string) (err error) {
	number, ok := strings.CutSuffix(arg, "/s")
	if f.perSecond, err = parseWhole("N", number, math.MaxInt32); err != nil || !ok {
		return errors.New("want N/s, a number of events from 1, as in 100/s")
	}
	return nil
}

func parseSlow(f *Faults, arg string) error {
	n, err := parseWhole("MS", arg, 3_600_000)
	f.slow = time.Duration(n) * time.Millisecond
	return err
}

func parseLast(f *Faults, arg string) (err error) {
	f.last, err = parseWhole("N", arg, math.MaxInt32)
	return err
}

func parseWhole(name, arg string, most int) (int, error) {
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("give %s as a number from 1 to %d", name, most)
	}
	return n, nil
}

func parsePending(f *Faults, arg string) error {
	mb, err := strconv.ParseFloat(arg, 64)
	if err != nil || !(mb > 0 && mb <= 1024) {
		return errors.New("give MB as a number of megabytes above 0 and up to 1024, as in 0.5")
	}
	f.pending = max(1, int(mb*1e6))
	return nil
}

// apply sets what honest options can express.
func (f *Faults) apply(o *Options) {
	if f != nil {
		o.NoVerify = o.NoVerify || f.trusting
		o.Delay += f.slow
	}
}

// limit returns the limit that a filter is answered within.
func (f *Faults) limit(asked int) int {
	if f != nil && f.unlimited {
		return math.MaxInt
	}
	return asked
}

// takes judges an event that has been verified; the reason is why it is refused all the same.
func (f *Faults) takes(s *session) (v decision, refused bool) {
	if f == nil {
		return v, false
	}
	if f.garbage {
		s.out.text(f.nextGarbage())
	}
	if f.perSecond > 0 && !f.inTime(time.Now().Unix()) {
		const reason = "rate-limited: slow down"
		s.send("NOTICE", reason)
		return decision{false, reason}, true
	}
	if f.last > 0 && f.arrived.Add(1) == int64(f.last) {
		s.relay.log("die-after: killed by its own hand after %d events", f.last)
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			self.Kill()
		}
		select {} // the signal is on its way
	}
	return v, false
}

// inTime counts an event, and reports whether it is within what its second may hold.
func (f *Faults) inTime(now int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now != f.second {
		f.second, f.taken = now, 0
	}
	f.taken++
	return f.taken <= f.perSecond
}

// holdOpen serves nobody: it takes connections and lets them wait until ctx ends.
func holdOpen(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	for {
		c, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("accepting connections: %w", err)
		}
		conns = append(conns, c)
	}
}

// loses reports whether an event is acknowledged and otherwise ignored.
func (f *Faults) loses(id *corpus.ID) bool { return f != nil && struck(id, loseAt, f.lose) }

// hides reports whether an event is left out of answers.
func (f *Faults) hides(id *corpus.ID) bool { return f != nil && struck(id, hideAt, f.hide) }

// Where in an id the two faults that strike a share of the events look.
const (
	loseAt = 0
	hideAt = 8
)

// struck reports whether an event is among the share. Ids are hashes, so that any eight bytes
// spread evenly; each fault looks at others.
func struck(id *corpus.ID, at int, share float64) bool {
	return float64(binary.BigEndian.Uint64(id[at:])) < share*(1<<64)
}
