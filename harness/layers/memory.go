package layers

import (
	"context"
	"time"

	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// inMemory is the engine alone: both sides in one goroutine, messages handed over as they are.
func (o *Options) inMemory(ctx context.Context, s *stock) (Row, error) {
	var c Cost
	var have, need func([]negentropy.ID)
	initiator := negentropy.NewInitiator(s.ours, negentropy.DefaultFrameLimit,
		func(ids []negentropy.ID) { c.Have += len(ids); have(ids) },
		func(ids []negentropy.ID) { c.Need += len(ids); need(ids) })
	responder := negentropy.NewResponder(s.theirs, PeerFrameLimit)
	var message, answer []byte
	row, err := o.both(ctx, s, func(local negentropy.Storage, h, n func([]negentropy.ID)) (Cost, error) {
		c, have, need = Cost{}, h, n
		initiator.Reset(local)
		start := wire.Now()
		mark := start
		message = initiator.Open(message[:0])
		c.Engine += lap(&mark)
		for !initiator.Done() {
			c.Rounds++
			c.BytesUp += int64(len(message))
			var err error
			if answer, err = responder.Next(answer[:0], message); err != nil {
				return c, err
			}
			c.PeerEngine += lap(&mark)
			c.BytesDown += int64(len(answer))
			if message, err = initiator.Next(message[:0], answer); err != nil {
				return c, err
			}
			c.Engine += lap(&mark)
		}
		c.Total = wire.Now() - start
		c.Rest = c.Total - c.Engine - c.PeerEngine
		return c, nil
	})
	row.PeerSeen = true
	return row, err
}

// lap returns the time since mark, and moves mark to now.
func lap(mark *time.Duration) time.Duration {
	now := wire.Now()
	d := now - *mark
	*mark = now
	return d
}
