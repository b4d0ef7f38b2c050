package negentropy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"relaybench/relays/wire"
)

// maxDepth bounds how often a time range is halved. Every second time it is halved in the middle,
// so that any range comes down to one second before that.
const maxDepth = 256

// maxFruitless is how many NEG-OPENs in a row may come to nothing: refused, or about ranges in
// which neither side has an item. Between two ranges that hold something a tree of halves has at
// most so many of them, but a relay could refuse all ranges, billions of them, that are wider than
// a second.
const maxFruitless = 4 * maxDepth

// latest is the highest created_at that every JSON reader takes for what it is.
const latest = 1<<53 - 1

// ReconcileSplit is Reconcile, except that a time range which the relay finds too big (`blocked:`)
// is split in two and each half reconciled, from old to new, as often as it takes. A single second
// that is too big is an error, a *RelayError. The Result counts all, refused attempts included;
// Duration is the sum of the parts'.
func ReconcileSplit(ctx context.Context, conn *wire.Conn, filter []byte, s Storage, o Options) (Result, error) {
	var r Result
	o = o.withDefaults()
	err := reconcile(ctx, conn, filter, s, o, &r)
	if !splittable(err) {
		return r, err
	}
	r.Refused++
	p := splitter{ctx: ctx, conn: conn, s: s, o: o, result: &r}
	all, wrong := p.readTimes(filter)
	if wrong != nil {
		return r, fmt.Errorf("reading the filter: %w", wrong)
	}
	err = p.halves(all, 0, err)
	return r, err
}

// splittable reports whether the relay refused the query as too big, and before it named any id.
func splittable(err error) bool {
	var refused *RelayError
	return errors.As(err, &refused) && refused.Blocked() && refused.Answers == 0
}

// seconds is a range of created_at, both ends inclusive.
type seconds struct {
	since, until uint64
	open         bool // until is only where halving thinks it might end
}

type splitter struct {
	ctx       context.Context
	conn      *wire.Conn
	fields    map[string]json.RawMessage
	s         Storage
	o         Options
	result    *Result
	fruitless int // NEG-OPENs in a row that came to nothing
}

// halves reconciles the two halves of a range that the relay refused.
func (p *splitter) halves(r seconds, depth int, refused error) error {
	if r.since >= r.until || depth == maxDepth {
		return fmt.Errorf("created_at %d to %d cannot be split further: %w", r.since, r.until, refused)
	}
	middle := p.middle(r, depth)
	for _, half := range []seconds{{r.since, middle, false}, {middle + 1, r.until, r.open}} {
		if half.open && half.since == half.until { // and yet too much lies beyond it
			half.until = min(latest, half.since+math.MaxInt32)
		}
		if err := p.part(half, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// part reconciles one range, and its halves if the relay refuses it too.
func (p *splitter) part(r seconds, depth int) error {
	until := r.until
	p.fields["since"] = strconv.AppendUint(nil, r.since, 10)
	p.fields["until"] = strconv.AppendUint(nil, r.until, 10)
	if r.open {
		until = Infinity
		delete(p.fields, "until")
	}
	filter, err := json.Marshal(p.fields)
	if err != nil {
		return fmt.Errorf("writing the filter of a part: %w", err)
	}
	sum := p.result
	switch asked := sum.Rounds + sum.Refused; {
	case asked >= p.o.MaxRounds:
		return fmt.Errorf("reconciling: %w", endless(sum.Rounds, asked, p.o.MaxRounds))
	case p.fruitless == maxFruitless:
		return fmt.Errorf("reconciling: %w", &ProtocolError{Code: Endless, Answer: sum.Rounds, Count: uint64(p.fruitless), Limit: maxFruitless,
			Err: fmt.Errorf("it refuses ranges of time as too big, and %d smaller ones in a row came to nothing", p.fruitless)})
	}
	own, before := Between(p.s, r.since, until), sum.Need
	err = reconcile(p.ctx, p.conn, filter, own, p.o, sum)
	if p.fruitless++; err == nil && own.Len()+sum.Need-before > 0 {
		p.fruitless = 0
	}
	if splittable(err) {
		sum.Refused++
		return p.halves(r, depth, err)
	}
	return err
}

// middle returns the last second of the older half: where our own items have their middle, since
// the relay's are probably like them, and every second time the middle of the time itself, in case
// they are not.
func (p *splitter) middle(r seconds, depth int) uint64 {
	half := r.since + (r.until-r.since)/2
	if depth%2 == 1 {
		return half
	}
	own := Between(p.s, r.since, r.until)
	if own.Len() < 2 {
		return half
	}
	median, _ := itemAt(own, own.Len()/2)
	return min(max(median, r.since+1)-1, r.until-1)
}

// readTimes takes the time range out of a filter. Without an end, it ends for halving where one may
// expect: a year after the newest item of ours or after now, whichever is later.
func (p *splitter) readTimes(filter []byte) (r seconds, err error) {
	var times struct{ Since, Until *int64 }
	if err := errors.Join(json.Unmarshal(filter, &p.fields), json.Unmarshal(filter, &times)); err != nil {
		return r, err
	}
	if times.Since != nil {
		r.since = uint64(max(0, *times.Since))
	}
	if times.Until != nil {
		r.until = uint64(max(0, *times.Until))
	} else {
		r.open, r.until = true, max(uint64(time.Now().Unix()), r.since)
		if n := p.s.Len(); n > 0 {
			newest, _ := itemAt(p.s, n-1)
			r.until = max(r.until, newest)
		}
		r.until += 365 * 86400
	}
	if r.until >= latest {
		r.until, r.open = latest, true
	}
	return r, nil
}
