package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
)

// verifyChunk is how many events one core checks at a time.
const verifyChunk = 64

// Verify checks the prepared corpus in dir in full, on all cores: every line is canonical JSON, every id the hash of its event, every signature
// valid, the order right, and the manifest's counts, bytes, kinds and fingerprint are those of the events. The error is ErrDamaged and
// names the first line that is wrong.
func Verify(ctx context.Context, dir string, p Progress) error {
	c, err := load(dir)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.verifyEvents(ctx, p); err != nil {
		return err
	}
	return c.checkManifest()
}

// verifyEvents reports the first wrong line, whichever core meets its own first.
func (c *Corpus) verifyEvents(ctx context.Context, p Progress) error {
	var mu sync.Mutex
	var first *lineError
	var wrong atomic.Int64 // no event from here on need be checked
	wrong.Store(int64(c.Len()))
	var done atomic.Int64
	InParallel((c.Len()+verifyChunk-1)/verifyChunk, func(chunk int) {
		end := min((chunk+1)*verifyChunk, c.Len())
		for i := chunk * verifyChunk; i < end && int64(i) < wrong.Load() && ctx.Err() == nil; i++ {
			err := c.verifyEvent(i)
			if err == nil {
				continue
			}
			mu.Lock()
			if first == nil || i+1 < first.line {
				first = &lineError{i + 1, err}
				wrong.Store(int64(i))
			}
			mu.Unlock()
		}
		p.Report("verify", done.Add(int64(end-chunk*verifyChunk)), int64(c.Len()))
	})
	if err := context.Cause(ctx); err != nil {
		return fmt.Errorf("verifying the corpus: %w", err)
	}
	if first != nil {
		return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Join(c.dir, EventsFile), first)
	}
	return nil
}

func (c *Corpus) verifyEvent(i int) error {
	e, err := ParseEvent(c.Raw(i))
	if err != nil {
		return fmt.Errorf("not an event: %w", err)
	}
	if !bytes.Equal(e.AppendJSON(nil), c.Raw(i)) {
		return errors.New("not canonical JSON")
	}
	return e.Verify()
}
