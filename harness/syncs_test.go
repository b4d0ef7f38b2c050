package harness

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"relaybench/relays"
)

func TestAFailedSyncKeepsWhatTheRelaySaidLast(t *testing.T) {
	lines := []string{"1", "2", "3", "4", "5", "6", "7"}
	for name, err := range map[string]error{
		"a relay that did not start": &relays.StartError{LogTail: lines},
		"a command that failed":      &relays.CommandError{LogTail: lines},
		"a relay that died":          &faultError{died: true, log: lines, error: errors.New("killed")},
	} {
		got := logTail(fmt.Errorf("starting the sink: %w", err), mostOfASync)
		if !slices.Equal(got, lines[2:]) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := logTail(errors.New("anything else"), mostOfASync); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
