package client

import (
	"context"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Once asks with one REQ and takes all that comes up to its EOSE: the giant REQ of a client that asks for everything at once. Whether all came is for
// the caller to know, since relays cap their answers. The error is a *ClosedError, or why the connection broke; the Stats count what was done also
// then. It is tried once.
func Once(ctx context.Context, o Options, filter corpus.Filter, take Take) (*Stats, error) {
	stats := newStats()
	l, err := dial(ctx, &o, stats)
	if err != nil {
		return stats, err
	}
	err = l.once(ctx, &filter, take)
	l.close(ctx, err)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return stats, err
}

func (l *link) once(ctx context.Context, filter *corpus.Filter, take Take) error {
	if err := l.ask(ctx, filter, nil); err != nil {
		return err
	}
	for {
		r, at, err := l.next()
		if err != nil {
			return err
		}
		switch l.m.Type {
		case wire.Event:
			if !l.m.HasID {
				l.stats.Strays++
				continue
			}
			if err := l.pass(ctx, take, at); err != nil {
				return err
			}
		case wire.EOSE:
			return l.end(r, true)
		default:
			_ = l.end(r, false)
			return &ClosedError{l.m.ReasonText()}
		}
	}
}
