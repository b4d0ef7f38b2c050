package layers

import (
	"context"
	"errors"
	"fmt"

	"relaybench/relays"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// process adds a relay: a program that was started for this and holds the peer's share.
func (o *Options) process(ctx context.Context, s *stock, r Relay) (row Row, err error) {
	o.say("%d items a side: %s: starting", s.ours.Len(), r.Definition.Name)
	p, err := relays.Start(ctx, r.Definition, r.Program, o.Settings)
	if err != nil {
		return row, err
	}
	defer func() {
		err = errors.Join(err, p.Stop(context.WithoutCancel(ctx)), p.Cleanup())
	}()
	defer context.AfterFunc(ctx, p.Kill)() // ends what waits for the relay
	conn, err := wire.Dial(ctx, p.URL(), wire.Options{})
	if err != nil {
		return row, err
	}
	defer func() { conn.Abort() }()
	// Before the relay is given anything, which may take minutes.
	err = negentropy.Probe(ctx, conn, 0)
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		return Row{Problem: unsupported.Error()}, nil
	}
	if err != nil {
		return row, err
	}
	conn.Abort() // relays hang up on those who are silent for long

	o.say("%d items a side: %s: publishing its share", s.ours.Len(), r.Definition.Name)
	if err := s.publish(ctx, p.URL(), o.Stall); err != nil {
		return row, fmt.Errorf("seeding: %w", err)
	}
	o.say("%d items a side: %s: reconciling", s.ours.Len(), r.Definition.Name)
	if conn, err = wire.Dial(ctx, p.URL(), wire.Options{}); err != nil {
		return row, err
	}
	return o.both(ctx, s, o.overWire(ctx, conn, func(*Cost) {}))
}
