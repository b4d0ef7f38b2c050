package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// native has the sink's own command get the events. What it says of its success is not believed:
// the sink is asked afterwards. Where the sink serves meanwhile it is asked once a second how much
// it holds (NIP-45).
func (r *syncing) native(ctx context.Context, stopped bool) error {
	direction := relays.Down
	if r.Direction == relays.Both {
		direction = relays.Both
	}
	watch := &counting{}
	c := relays.CommandOptions{Stall: r.Sink.Options.Stall}
	if stopped {
		r.done.noTimeline = results.Reason{Code: results.StoppedUnseen}
	} else {
		counted, cancel := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			watch.run(counted, r.Sink.Relay.URL())
		}()
		defer func() {
			cancel()
			<-ended
			r.done.timeline, r.done.noTimeline = watch.timeline, watch.trouble
		}()
		c.Moves = watch.now.Load
	}
	done, err := r.Sink.Relay.Sync(ctx, r.Source.Relay.URL(), direction, c)
	if done != nil {
		r.done.account.Wall, r.done.command = done.Took, done
	}
	var failed *relays.CommandError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failed) && ctx.Err() == nil:
		r.done.account.Err, r.done.failed = failed, failed
		switch source := r.Source.Relay.Name(); {
		case source == r.Sink.Relay.Name():
			r.endedBy(r.Sink)
		case slices.Contains(r.stops, source):
			r.endedBy(r.Source)
		default:
			r.endedBy(nil)
		}
		return nil
	}
	return fmt.Errorf("the sync command of %s: %w", r.Sink.Relay.Name(), err)
}

// judgeCommand judges that the sink's own command failed. A command may fail since the source hung
// up on it, which nobody here can see: it is the command's fault for certain only where the relay
// is its own source, and the source's where it was seen to end a transfer by relaybench as well. In
// all other cases it is not known whose it is, and nobody's. A command that brought everything, and
// ended as if it had not, bars nothing.
func (r *syncing) judgeCommand() {
	failed := r.done.failed
	if failed == nil {
		return
	}
	f := results.Finding{Code: results.CodeSyncCommand, Verdict: results.Undecided, Cause: r.done.ended.Code, Texts: map[string]string{"error": failed.Error()}}
	switch f.Cause {
	case results.EndedBySink:
		f.Verdict = results.Failed
	case results.EndedBySource, "":
		f.Verdict = results.Stated
	}
	for _, line := range failed.LogTail {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceLog, Text: line})
	}
	r.Sink.AddFinding(f)
}

// counting asks a relay once a second how many events it holds.
type counting struct {
	now      atomic.Int64
	timeline []float64      // growth in each second
	trouble  results.Reason // why it ended early
}

func (c *counting) run(ctx context.Context, url string) {
	conn, err := client.Dial(ctx, client.Options{URL: url, Stall: countWithin})
	if err != nil {
		c.trouble = results.Said(results.NotWatched, err.Error())
		return
	}
	defer conn.Abort()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		n, ok := count(conn)
		if ctx.Err() != nil {
			return
		}
		if !ok {
			c.trouble = results.Reason{Code: results.NotWatched}
			return
		}
		c.timeline = append(c.timeline, float64(max(0, n-c.now.Load())))
		c.now.Store(max(n, c.now.Load()))
	}
}

// countWithin is how long a COUNT may take: a relay that counts slower is not asked again, since
// counting would be what is measured.
const countWithin = 5 * time.Second

// count asks for the number of all events.
func count(conn *client.Conn) (int64, bool) {
	if _, err := conn.Count([]byte("{}")); err != nil {
		return 0, false
	}
	for {
		s, err := conn.Read()
		switch {
		case err != nil || conn.Message.Type == wire.Notice:
			return 0, false
		case s != nil:
			n, _, ok := conn.Message.Counted() // CLOSED holds none
			return n, ok
		}
	}
}
