package harness

import (
	"context"
	"errors"
	"fmt"

	"relaybench/relays"
)

// Refill gives the trial its relay anew, in a fresh folder that the relay's own import command fills: what it held is gone, and so is what the Ledger
// says of it. fill is called with the relay as that command wants it, not yet booted or running. When Refill returns nil the relay runs on what
// the command left, under another address; after an error no scenario can talk to it any more.
func (t *Trial) Refill(ctx context.Context, fill func(*relays.Process) (*relays.Carried, error)) error {
	if t.Relay.External() {
		return relays.ErrExternal
	}
	if _, _, err := t.Stop(ctx); err != nil {
		return fmt.Errorf("stopping the relay: %w", err)
	}
	fresh, err := t.Relay.Fresh()
	if err != nil {
		return err
	}
	old := t.Relay
	t.past, t.Relay = t.used, fresh
	t.Ledger = NewLedger(t.Corpus.Len())
	if err := old.Cleanup(); err != nil {
		return err
	}
	running := fresh.Definition().NeedsRun(relays.Import)
	if running {
		if err := t.boot(ctx); err != nil {
			return err
		}
	}
	carried, err := fill(t.Relay)
	if carried != nil {
		t.past = together(t.past, carried.Usage)
		t.used = together(t.used, carried.Usage)
		t.memory.note(carried.Usage.PeakRSS)
	}
	if err != nil || running {
		return err
	}
	return t.boot(ctx)
}

// boot starts the relay on the folder that it has.
func (t *Trial) boot(ctx context.Context) error {
	process, err := t.Relay.Restart(ctx)
	if start := (*relays.StartError)(nil); errors.As(err, &start) {
		return fmt.Errorf("it did not start on what its import command left: %w", err)
	}
	if err != nil {
		return err
	}
	t.Relay, t.stopped = process, false
	t.attend()
	return nil
}

// together is what two processes that ran one after the other have used. What is open and resident is the second's.
func together(first, second relays.Usage) relays.Usage {
	second.CPUSeconds += first.CPUSeconds
	second.ReadBytes += first.ReadBytes
	second.WriteBytes += first.WriteBytes
	second.ContextSwitches += first.ContextSwitches
	second.PeakRSS = max(second.PeakRSS, first.PeakRSS)
	return second
}
