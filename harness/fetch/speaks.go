package fetch

import (
	"context"
	"errors"
	"time"

	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// withoutNegentropy finds out once why a relay does not speak NIP-77, no reason where it does. That
// is no part of any cell, whose time may be shorter than a relay that ignores NEG-OPEN has to be
// waited for. The runner's probing does not serve: it asks a relay in its usual form, and here it
// may run in another. Where the relay cannot be asked, or has a reason of its own not to answer,
// the cell shall say why.
func (t *Target) withoutNegentropy(ctx context.Context, o *Options) (why results.Reason) {
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.no77 != nil {
		return *t.no77
	}
	unsupported, err := t.probe(ctx, o, 0)
	if err == nil && unsupported != nil && unsupported.How == negentropy.BySilence {
		began := wire.Now()
		if silent := t.answers(ctx, o); silent != nil || wire.Now()-began > prompt {
			unsupported, err = t.probe(ctx, o, o.Stall)
		}
	}
	if err != nil {
		return why
	}
	if unsupported != nil {
		why = results.Said(results.CauseNoNIP77, unsupported.Error())
	}
	t.no77 = &why
	return why
}

// prompt is how soon a relay sends one event whose silence on NEG-OPEN means what it seems to: one that is slow at everything, on a busy machine say,
// is asked again and given more time.
const prompt = 300 * time.Millisecond

// probe reconciles nothing. The error says that this left it open whether the relay speaks NIP-77.
func (t *Target) probe(ctx context.Context, o *Options, within time.Duration) (unsupported *negentropy.UnsupportedError, err error) {
	handshake, cancel := context.WithTimeout(ctx, o.Stall)
	defer cancel()
	conn, err := wire.Dial(handshake, t.URL, wire.Options{})
	if err != nil {
		return nil, err
	}
	defer conn.Abort()
	err = negentropy.Probe(ctx, conn, within)
	if errors.As(err, &unsupported) {
		return unsupported, nil
	}
	return nil, err
}
