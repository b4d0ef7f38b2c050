package harness

import (
	"context"
	"errors"
	"syscall"
	"time"

	"relaybench/relays"
	"relaybench/relays/wire"
)

// Kill ends the relay's processes at once, as a crash would. The scenario owes it a Restart once Relay.Done tells that they are gone.
func (t *Trial) Kill() {
	t.spent() // the last that can be seen of what they used
	t.Relay.Kill()
}

// Restart boots the relay again over the data that a killed or stopped process left, under another
// address. After an error no scenario can talk to it any more.
func (t *Trial) Restart(ctx context.Context) error {
	t.past, t.stopped = t.used, true
	process, err := t.Relay.Restart(ctx)
	if err != nil {
		return err
	}
	t.Relay, t.stopped = process, false
	t.attend()
	return nil
}

// A process closes its sockets before it can be reaped.
const (
	reapTime = time.Second      // from a failure to the end that explains it
	endTime  = 30 * time.Second // the same where nothing listens any more: a busy machine takes its time
)

// awaitEnd gives relays of which one failed the moment that they need to have ended, and returns
// the first that has, nil where none does.
func awaitEnd(ctx context.Context, all ...*relays.Process) *relays.Process {
	ended := func(wait time.Duration) *relays.Process {
		select {
		case <-all[0].Done():
			return all[0]
		case <-all[len(all)-1].Done():
			return all[len(all)-1]
		case <-time.After(wait):
		case <-ctx.Done():
		}
		return nil
	}
	if dead := ended(reapTime); dead != nil {
		return dead
	}
	for _, p := range all {
		soon, cancel := context.WithTimeout(ctx, reapTime)
		conn, err := wire.Dial(soon, p.URL(), wire.Options{})
		cancel()
		if err == nil {
			conn.Abort()
		} else if !p.External() && errors.Is(err, syscall.ECONNREFUSED) {
			return ended(endTime)
		}
	}
	return nil
}
