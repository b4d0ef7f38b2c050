package harness

import (
	"testing"

	"relaybench/relays"
)

func TestPairsChangePlacesFromTrialToTrial(t *testing.T) {
	a, b := Target{Definition: &relays.Definition{Name: "a"}}, Target{Definition: &relays.Definition{Name: "b"}}
	pair := []Target{a, b}
	for trial, first := range []string{"a", "b", "a", "b"} {
		if got := alternated(pair, trial); got[0].Definition.Name != first || got[1].Definition.Name == first {
			t.Errorf("trial %d: %s and %s", trial, got[0].Definition.Name, got[1].Definition.Name)
		}
	}
	if pair[0].Definition.Name != "a" {
		t.Error("the caller's pair was changed")
	}
}
