package harness

import "context"

// Kill ends the relay's processes at once, as a crash would. The scenario owes it a Restart once Relay.Done tells that they are gone.
func (t *Trial) Kill() {
	t.spent() // the last that can be seen of what they used
	t.Relay.Kill()
}

// Restart boots the relay again over the data that a killed process left, under another address. After an error no scenario can talk to it any more.
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
