package relays

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestARelayIsKeptToItsProcessorsAndTheNextIsNot(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	last := 0
	for i := range 1024 {
		if all.IsSet(i) {
			last = i
		}
	}
	for _, processors := range [][]int{{last}, nil} {
		p := startHelper(t, "good", Settings{Processors: processors})
		want := all
		if processors != nil {
			want.Zero()
			want.Set(last)
		}
		var got unix.CPUSet
		if err := unix.SchedGetaffinity(p.cmd.Process.Pid, &got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("kept to %v: it may use %d processors, want %d", processors, got.Count(), want.Count())
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
