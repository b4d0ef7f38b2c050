package calibrate

import (
	"context"
	"errors"
	"fmt"
	"os"

	"relaybench/relays/wire"
	"relaybench/results"
)

// syncedBytes is how much is written before each fsync: a page, as the smallest commit of a store.
const syncedBytes = 4096

// disk measures how long the disk of the relays' data takes to promise that something is kept. The
// file is written over, so that its length and its place are settled, as those of a log that was
// made in advance.
func (c *Stage) disk(ctx context.Context) (err error) {
	f, err := os.CreateTemp(c.Settings.WorkDir, "fsync-")
	if err != nil {
		return fmt.Errorf("making a file in the work folder: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	const places = 256
	page := make([]byte, syncedBytes)
	for i := range page {
		page[i] = byte(i)
	}
	for range places {
		if _, err := f.Write(page); err != nil {
			return fmt.Errorf("writing in the work folder: %w", err)
		}
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing in the work folder: %w", err)
	}
	h := results.NewHistogram()
	begun := wire.Now()
	for i := 0; i < c.effort.syncs && wire.Now()-begun < c.effort.syncTime && ctx.Err() == nil; i++ {
		page[0]++
		if _, err := f.WriteAt(page, int64(i%places)*syncedBytes); err != nil {
			return fmt.Errorf("writing in the work folder: %w", err)
		}
		start := wire.Now()
		if err := f.Sync(); err != nil {
			return fmt.Errorf("syncing in the work folder: %w", err)
		}
		h.Record(wire.Now() - start)
	}
	c.latency(results.SyncMedian, results.SyncTail, h)
	return nil
}
