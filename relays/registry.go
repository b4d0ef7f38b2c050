package relays

import (
	"errors"
	"sync"
)

// registry knows every boot whose folder is not yet cleaned up, so that an exit by any path can end
// and remove them all.
var registry struct {
	sync.Mutex
	boots map[*Process]bool
}

func remember(p *Process) {
	registry.Lock()
	defer registry.Unlock()
	if registry.boots == nil {
		registry.boots = map[*Process]bool{}
	}
	registry.boots[p] = true
}

// forget says whether p was still known.
func forget(p *Process) bool {
	registry.Lock()
	defer registry.Unlock()
	known := registry.boots[p]
	delete(registry.boots, p)
	return known
}

// KillAll kills every relay that still runs, with its whole process group, and removes their
// folders (unless KeepData is set). It returns when that is done; a signal handler calls it before
// the program exits. Relays that are being started are killed too; end their context first, so that
// no start is tried again. The error says what could not be ended, a *LeftoverError, or removed.
func KillAll() error {
	registry.Lock()
	var all []*Process
	for p := range registry.boots {
		all = append(all, p)
	}
	registry.Unlock()
	for _, p := range all {
		p.Kill()
	}
	var wg sync.WaitGroup
	errs := make([]error, len(all))
	for i, p := range all {
		wg.Go(func() { errs[i] = p.Cleanup() })
	}
	wg.Wait()
	return errors.Join(errs...)
}
