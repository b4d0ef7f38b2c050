package machine

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
)

func TestKeepMovesEveryThreadAndThoseToCome(t *testing.T) {
	before, err := Affinity(0)
	if err != nil {
		t.Fatal(err)
	}
	procs := runtime.GOMAXPROCS(0)
	p, err := Divide()
	if errors.Is(err, ErrOneCore) && len(before) == 1 {
		return // refused as it must be
	}
	if err != nil {
		t.Fatal(err)
	}
	undo, err := p.Keep()
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range p.Harness {
		if slices.Contains(p.Relay, h) {
			t.Errorf("processor %d is both's: %v and %v", h, p.Harness, p.Relay)
		}
	}
	if all := slices.Sorted(slices.Values(slices.Concat(p.Harness, p.Relay))); !slices.Equal(all, before) {
		t.Errorf("%v are given out of %v", all, before)
	}
	if got := runtime.GOMAXPROCS(0); got != len(p.Harness) {
		t.Errorf("%d goroutines at a time on %d processors", got, len(p.Harness))
	}
	// Threads of their own for goroutines that are locked to them.
	var ready, hold sync.WaitGroup
	hold.Add(1)
	var all sync.WaitGroup
	for range 8 {
		ready.Add(1)
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			hold.Wait()
		})
	}
	ready.Wait()
	everyThread(t, p.Harness)
	hold.Done()
	all.Wait()
	undo()
	everyThread(t, before)
	if got := runtime.GOMAXPROCS(0); got != procs {
		t.Errorf("%d goroutines at a time after undo, want %d", got, procs)
	}
}

func everyThread(t *testing.T, want []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		tid, _ := strconv.Atoi(e.Name())
		if got, err := Affinity(tid); err == nil && !slices.Equal(got, want) {
			t.Errorf("thread %d may use %v, want %v", tid, got, want)
		}
	}
}

func TestDivideRefusesOneProcessor(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before, err := Affinity(0)
	if err != nil {
		t.Fatal(err)
	}
	if err := SetAffinity(0, before[:1]); err != nil {
		t.Fatal(err)
	}
	_, err = Divide()
	if restore := SetAffinity(0, before); restore != nil {
		t.Fatal(restore)
	}
	if !errors.Is(err, ErrOneCore) {
		t.Errorf("Divide with one processor: %v", err)
	}
}
