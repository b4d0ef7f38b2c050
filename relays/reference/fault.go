package reference

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
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
	values map[string]float64 // the arguments by the faults' names; 1 for a fault without an argument

	arrived atomic.Int64
	noise   atomic.Uint64 // garbage frames sent

	mu     sync.Mutex
	second int64 // Unix
	taken  int   // events in it
}

// value is the argument of a fault, 0 where the relay has not got it.
func (f *Faults) value(name string) float64 {
	if f == nil {
		return 0
	}
	return f.values[name]
}

func (f *Faults) has(name string) bool { return f.value(name) > 0 }

type faultKind struct {
	name, arg, help string  // arg is "" for a fault without an argument
	unit            string  // what the argument ends in
	most            float64 // the argument lies above 0, and this is as high as it goes
	whole           bool    // it is a whole number
	want            string  // how it is to be written
}

const wantShare, wantCount = "give RATE as a share above 0 and up to 1", "give N as a number from 1 to 2147483647"

var faultKinds = []faultKind{
	{name: "ack-without-store", arg: "RATE", most: 1, want: wantShare, help: "that share of the events is answered OK true and never stored"},
	{name: "drop-results", arg: "RATE", most: 1, want: wantShare, help: "that share of the events is stored, reconciled, and left out of answers"},
	{name: "extra-results", help: "each answer begins with an event that nobody asked for"},
	{name: "wrong-order", help: "answers come oldest first"},
	{name: "ignore-limit", help: "answers hold all that matches"},
	{name: "no-verify", help: "ids and signatures are taken on trust"},
	{name: "eose-early", help: "EOSE comes before the stored events"},
	{name: "closed-midway", help: "an answer of several events ends in CLOSED half-way"},
	{name: "notice-throttle", arg: "N/s", unit: "/s", most: math.MaxInt32, whole: true, want: "want N/s, a number of events from 1, as in 100/s",
		help: "over N events a second are refused as rate-limited, with a NOTICE each"},
	{name: "slow-ok", arg: "MS", most: 3_600_000, whole: true, want: "give MS as a number from 1 to 3600000",
		help: "each OK comes MS milliseconds after its event was stored"},
	{name: "half-open", help: "connections are accepted and never answered"},
	{name: "die-after", arg: "N", most: math.MaxInt32, whole: true, want: wantCount, help: "the relay kills itself when the Nth event has been verified"},
	{name: "garbage-frames", help: "frames that are no message stand before each answer and among the OKs"},
	{name: "id-mismatch", help: "events come back with another content, under ids that are no longer theirs"},
	{name: "kill-pending", arg: "MB", most: 1024, want: "give MB as a number of megabytes above 0 and up to 1024, as in 0.5",
		help: "a connection for which more than MB megabytes wait is closed"},
}

// ParseFaults reads faults, each written NAME or NAME:ARG. The error is one sentence that names the
// fault at fault. Without any it returns nil.
func ParseFaults(specs []string) (*Faults, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	f := &Faults{values: map[string]float64{}}
	for _, spec := range specs {
		name, arg, hasArg := strings.Cut(spec, ":")
		at := slices.IndexFunc(faultKinds, func(k faultKind) bool { return k.name == name })
		if at < 0 {
			return nil, fmt.Errorf("%q is none of %s", spec, FaultNames())
		}
		kind := faultKinds[at]
		switch {
		case f.has(name):
			return nil, fmt.Errorf("%s is given twice", name)
		case kind.arg == "" && hasArg:
			return nil, fmt.Errorf("%q: %s takes no argument", spec, name)
		case kind.arg != "" && !hasArg:
			return nil, fmt.Errorf("%q needs an argument: %s:%s", spec, name, kind.arg)
		}
		f.values[name] = 1
		if hasArg {
			number, whole := strings.CutSuffix(arg, kind.unit)
			v, err := strconv.ParseFloat(number, 64)
			if !whole || err != nil || !(v > 0 && v <= kind.most) || kind.whole && v != math.Trunc(v) {
				return nil, fmt.Errorf("%q: %s", spec, kind.want)
			}
			f.values[name] = v
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

// apply sets what honest options can express.
func (f *Faults) apply(o *Options) {
	o.NoVerify = o.NoVerify || f.has("no-verify")
	o.Delay += time.Duration(f.value("slow-ok")) * time.Millisecond
}

// takes judges an event that has been verified; the reason is why it is refused all the same.
func (f *Faults) takes(s *session) (v decision, refused bool) {
	if f == nil {
		return v, false
	}
	if f.has("garbage-frames") {
		s.out.text(f.nextGarbage())
	}
	if most := f.value("notice-throttle"); most > 0 && f.inSecond(time.Now().Unix()) > int(most) {
		const reason = "rate-limited: slow down"
		s.say("NOTICE", reason)
		return decision{false, reason}, true
	}
	if last := int64(f.value("die-after")); last > 0 && f.arrived.Add(1) == last {
		s.relay.log("die-after: killed by its own hand after %d events", last)
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			self.Kill()
		}
		select {} // the signal is on its way
	}
	return v, false
}

// inSecond counts an event, and returns how many have come within its second.
func (f *Faults) inSecond(now int64) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now != f.second {
		f.second, f.taken = now, 0
	}
	f.taken++
	return f.taken
}

func (f *Faults) loses(id *corpus.ID) bool {
	return f != nil && struck(id[:], f.value("ack-without-store"))
}

func (f *Faults) hides(id *corpus.ID) bool {
	return f != nil && struck(id[8:], f.value("drop-results"))
}

// struck reports whether an event is among the share. Ids are hashes, so that any eight bytes
// spread evenly; each fault looks at others.
func struck(id []byte, share float64) bool {
	return float64(binary.BigEndian.Uint64(id)) < share*(1<<64)
}

// begin sends what comes before an answer, and says whether its EOSE was among that.
func (f *Faults) begin(s *subscription) (early bool) {
	if f.has("garbage-frames") {
		for range garbage {
			s.session.out.text(f.nextGarbage())
		}
	}
	if early = f.has("eose-early"); early {
		s.goLive()
	}
	if f.has("extra-results") {
		s.session.out.text(s.head, nullEvents()[0]) // with its bracket
	}
	return early
}

// spoil returns the events of a batch as they are to be sent; cut says that nothing comes after them.
func (f *Faults) spoil(b *batch) (events [][]byte, cut bool) {
	events = slices.Collect(b.each)
	if f.has("wrong-order") {
		slices.Reverse(events)
	}
	if cut = f.has("closed-midway") && len(events) > 1; cut {
		events = events[:len(events)/2]
	}
	if f.has("id-mismatch") {
		const key = `"content":"` // unescaped, it stands nowhere else in canonical JSON
		for i, raw := range events {
			events[i] = bytes.Replace(raw, []byte(key), []byte(key+"altered: "), 1)
		}
	}
	return events, cut
}

// garbage is what is no message of the protocol.
var garbage = [][]byte{
	{},
	[]byte("good morning"),
	[]byte("\xff\xfe\x00\x01 \x1b[31mred"),
	[]byte(`["EVENT","`),
	[]byte(`{"EVENT":["OK"]}`),
	[]byte(`[]`),
	[]byte(`]]]]{{{{`),
	[]byte(strings.Repeat("[", 10_000)),
	[]byte(`["OK","not an id",true,""]`),
	[]byte(`["EVENT","nobody's",{"id":17}]`),
}

func (f *Faults) nextGarbage() []byte {
	return garbage[f.noise.Add(1)%uint64(len(garbage))]
}
