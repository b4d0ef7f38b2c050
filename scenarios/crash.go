package scenarios

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Crash kills the relay with SIGKILL in the middle of publishing, boots it again over what it left,
// and looks for every event that it had acknowledged. A killed process loses what it kept to
// itself; what it had given to the system outlives it, synced or not.
type Crash struct{}

// Describe implements harness.Scenario.
func (Crash) Describe() harness.Description {
	return harness.Description{Needs: harness.Empty, External: results.Finding{Cause: results.ExternalKill}, Scenario: results.Scenario{
		Key: "crash", Title: "Killed in the middle of publishing, and started again", Section: "Crash", Order: orderCrash,
		Primary: "ready again", Unit: "ms", Layout: results.LayoutBars},
		Metrics: figures("ready again", "from start to ready, over what was left", "acknowledged before", "acknowledged before")}
}

// maxCrashEvents is how many events are published at most before the end of the relay: enough to
// keep it busy for a moment.
const maxCrashEvents = 20_000

// killTime is how long a killed process may take to be gone: a busy disk holds it up.
const killTime = 30 * time.Second

// Run implements harness.Scenario.
func (Crash) Run(ctx context.Context, t *harness.Trial) error {
	if err := t.Refill(ctx, func(*relays.Process) (*relays.CommandResult, error) { return nil, nil }); err != nil {
		return fmt.Errorf("starting afresh: %w", err)
	}
	killed := t.Relay
	if err := publishUntilKilled(ctx, t, where(t.Corpus, func(i int) bool { return i < maxCrashEvents })); err != nil {
		return err
	}
	select {
	case <-killed.Done():
	case <-time.After(killTime):
		return fmt.Errorf("still runs %v after SIGKILL", killTime)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	start := wire.Now()
	if err := t.Restart(ctx); err != nil {
		return fmt.Errorf("does not start over what it left when it was killed: %w", err)
	}
	t.Value("ready again", "ms", results.Lower, harness.Milliseconds(wire.Now()-start))
	acknowledged := t.Ledger.Count(load.Accepted) + t.Ledger.Count(load.Duplicate)
	t.Value("acknowledged before", "events", results.None, float64(acknowledged))
	if acknowledged == 0 {
		return errors.New("acknowledged nothing before it was killed")
	}
	// Where the definition does not say that an OK means stored, a loss is told and held against
	// nobody.
	_, _, err := checkStored(ctx, t, durable(t))
	return err
}

// publishUntilKilled publishes at full speed and kills the relay when a third of the events has its
// answer, or all of a small corpus.
func publishUntilKilled(ctx context.Context, t *harness.Trial, events []int) error {
	publishing, over := context.WithCancel(ctx)
	defer over()
	kill := sync.OnceFunc(func() {
		t.Kill()
		over()
	})
	p := t.Publisher(func(done, total int) {
		t.Progress(done, total)
		if done >= total/3 {
			kill()
		}
	})
	_, err := p.Publish(publishing, events)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil && publishing.Err() == nil {
		return err // it goes on running: what failed is told, and not that it was killed
	}
	kill()
	return nil
}
