package relays

import (
	"errors"
	"sync"
)

// boots are the processes whose folders are not yet cleaned up, so that an exit by any path can end
// and remove them all.
var boots sync.Map

func remember(p *Process) { boots.Store(p, nil) }

// forget says whether p was still known.
func forget(p *Process) bool {
	_, known := boots.LoadAndDelete(p)
	return known
}

// KillAll kills every relay that still runs, with its whole process group, and removes their
// folders (unless KeepData is set), those of OpenWork among them. It returns when that is done; a
// signal handler calls it before the program exits. Relays that are being started are killed too;
// end their context first, so that no start is tried again. The error says what could not be ended,
// a *LeftoverError, or removed.
func KillAll() error {
	var all []*Process
	for p := range boots.Range {
		all = append(all, p.(*Process))
		p.(*Process).Kill()
	}
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, p := range all {
		wg.Go(func() { errs[i] = p.Cleanup() })
	}
	wg.Wait()
	endWork()
	return errors.Join(errs...)
}
