package harness

import (
	"os"
	"testing"

	"relaybench/relays/scripted"
)

func TestMain(m *testing.M) { os.Exit(scripted.Run(m)) }

// expect compares what has one right value.
func expect[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
