package fetch

import (
	"context"
	"errors"

	"relaybench/harness/negentropy"
	"relaybench/harness/wire"
)

// withoutNegentropy finds out once why a relay does not speak NIP-77, "" where it does. That is no part of any cell, whose time may be shorter than a
// relay that ignores NEG-OPEN has to be waited for. The runner's probing does not serve: it asks a relay in its usual form, and here it may run
// in another. Where the relay cannot be asked, or has a reason of its own not to answer, the cell shall say why.
func (t *Target) withoutNegentropy(ctx context.Context, o *Options) string {
	t.asking.Lock()
	defer t.asking.Unlock()
	if t.no77 != nil {
		return *t.no77
	}
	handshake, cancel := context.WithTimeout(ctx, o.Stall)
	defer cancel()
	conn, err := wire.Dial(handshake, t.URL, wire.Options{})
	if err != nil {
		return ""
	}
	defer conn.Abort()
	err = negentropy.Probe(ctx, conn, 0)
	why := ""
	switch unsupported := (*negentropy.UnsupportedError)(nil); {
	case errors.As(err, &unsupported):
		why = unsupported.Error()
	case err != nil:
		return ""
	}
	t.no77 = &why
	return why
}
