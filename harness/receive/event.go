package receive

import (
	"errors"
	"fmt"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// ErrMalformed: what stands in an event's place is none. It wraps corpus.ParseEvent's error.
var ErrMalformed = errors.New("malformed event")

// Event is one event as it was received.
type Event struct {
	// ID is the event's id: verified in Parallel and Inline, claimed in Unchecked and Raw.
	ID corpus.ID
	// Raw is the event object as the relay sent it. It is valid until the consumer returns.
	Raw []byte
	// Parsed is the event, empty in Raw. It may be kept.
	Parsed corpus.Event
	// Arrived is when the frame's last bytes were taken from the socket, on wire.Now's scale.
	Arrived time.Duration
	// Feeder is the number of the feeder it came through, Mark what that feeder's Mark was.
	Feeder, Mark int
	// Err is nil, or for events in Batch.Refused ErrMalformed, corpus.ErrBadID or ErrBadSignature.
	Err error

	owner bool // the first in flight with its id

}

// check parses the event and, where asked, verifies its id (NIP-01) and signature (BIP-340).
func (e *Event) check(verify bool) {
	parsed, err := corpus.ParseEvent(e.Raw)
	if err != nil {
		parsed, err = e.parseAgain(err)
	}
	switch {
	case err != nil:
		e.Err = fmt.Errorf("%w: %w", ErrMalformed, err)
		return
	case parsed.ID != e.ID: // cannot be: see Scan
		e.Err = fmt.Errorf("%w: its id is not the one found first", ErrMalformed)
		return
	}
	e.Parsed = parsed
	if verify {
		e.Err = parsed.Verify()
	}
}

// parseAgain looks for the event's end as the full pass does: a message may hold elements after the
// event, which a scan took for a part of it.
func (e *Event) parseAgain(why error) (corpus.Event, error) {
	var m wire.Message
	wire.Parse(frameOf(nil, e.Raw), &m)
	if !m.HasID || len(m.Event) >= len(e.Raw) {
		return corpus.Event{}, why
	}
	e.Raw = e.Raw[:len(m.Event):len(m.Event)]
	return corpus.ParseEvent(e.Raw)
}

// frameOf appends an EVENT frame around an event.
func frameOf(dst, event []byte) []byte {
	dst = append(dst, `["EVENT","",`...)
	dst = append(dst, event...)
	return append(dst, ']')
}

// Batch is what a consumer is handed: events of one feeder, in the order in which they arrived. Its
// slices and the events' Raw are valid until the consumer returns.
type Batch struct {
	// Events passed all checks asked for, each for the first time that Remember knows of.
	Events []Event
	// Refused failed a check; each says why in Err.
	Refused []Event
	// At is when the batch was handed over, on wire.Now's scale.
	At time.Duration
}
