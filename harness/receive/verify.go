package receive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/relays/wire"
)

// Key stands for an id among those that are known: its first half. To make two events that agree in
// it takes some 2^64 hashes, and whoever did so would keep one of the two out.
func Key(id *corpus.ID) prepare.Key {
	return prepare.Key{binary.BigEndian.Uint64(id[:]) | 1, binary.BigEndian.Uint64(id[8:])}
}

// claim announces an event that is to be verified, whose bytes stay as they are until settle. It
// reports whether there is no need: an event with its id is known by now, or the very same bytes are
// being verified. Where others are under the same id, either may be the forgery.
func (p *Pipeline) claim(e *Event) (needless bool) {
	p.claiming.Lock()
	defer p.claiming.Unlock()
	first, found := p.claims[e.ID]
	if p.known.Has(Key(&e.ID)) || found && bytes.Equal(first, e.Raw) {
		return true
	}
	if e.owner = !found; e.owner {
		p.claims[e.ID] = e.Raw
	}
	return false
}

// settle ends what claim began: the id is known from now on where the event is good. It reports
// whether it is the first good one with this id.
func (p *Pipeline) settle(e *Event) bool {
	p.claiming.Lock()
	defer p.claiming.Unlock()
	if e.owner {
		delete(p.claims, e.ID)
	}
	return e.Err == nil && p.known.Add(Key(&e.ID))
}

// chunkSize is how many events each core checks before the first of all is handed on: some 50 µs
// each.
const chunkSize = 16

// chunk is a part of a buffer. last is set on the one with which the buffer is used up.
type chunk struct {
	buffer *buffer
	events []Event
	last   bool
}

// process checks a buffer's events and hands them on in order, chunk by chunk.
func (p *Pipeline) process(b *buffer, hand func(chunk) error) error {
	events := b.events // the buffer is somebody else's as soon as its last chunk is handed on
	size := len(events)
	switch p.options.Checks {
	case Parallel:
		size = chunkSize * runtime.GOMAXPROCS(0)
	case Inline:
		size = 1
	}
	for part := range slices.Chunk(events, size) {
		switch p.options.Checks {
		case Parallel:
			corpus.InParallel(len(part), func(i int) {
				if p.ctx.Err() == nil { // else nobody will look at it
					p.check(&part[i])
				}
			})
		case Inline:
			p.check(&part[0])
		}
		events = events[len(part):]
		if err := hand(chunk{b, part, len(events) == 0}); err != nil || p.ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// check parses an event and verifies its id (NIP-01) and signature (BIP-340), and counts how long
// that takes.
func (p *Pipeline) check(e *Event) {
	start := wire.Now()
	parsed, err := corpus.ParseEvent(e.Raw)
	switch {
	case err != nil:
		e.Err = fmt.Errorf("%w: %w", ErrMalformed, err)
	case parsed.ID != e.ID:
		e.Err = fmt.Errorf("%w: its id is not the one that it came under", ErrMalformed)
	default:
		e.Parsed, e.Err = parsed, parsed.Verify()
	}
	p.checking.Add(int64(wire.Now() - start))
}
