package client

import (
	"context"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// Once asks with one REQ and takes all that comes up to its EOSE: the giant REQ of a client that
// asks for everything at once. Whether all came is for the caller to know, since relays cap their
// answers. The error is a *ClosedError, or why the connection broke; the Stats count what was done
// also then. It is tried once.
func Once(ctx context.Context, o Options, filter corpus.Filter, take Take) (*Stats, error) {
	stats := NewStats()
	c, err := dial(ctx, &o, stats)
	if err != nil {
		return stats, err
	}
	err = c.once(ctx, &filter, take)
	c.finish(ctx, err)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return stats, err
}

func (c *Conn) once(ctx context.Context, filter *corpus.Filter, take Take) error {
	if _, err := c.ask(ctx, filter); err != nil {
		return err
	}
	for {
		s, err := c.next()
		if err != nil {
			return err
		}
		switch c.Message.Type {
		case wire.Event:
			if !c.Message.HasID {
				c.Stats.Unexpected++
				continue
			}
			if err := c.pass(ctx, take); err != nil {
				return err
			}
		case wire.EOSE:
			return c.End(s)
		default:
			return &ClosedError{c.Message.ReasonText()}
		}
	}
}
