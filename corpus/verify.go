package corpus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
)

// verifyChunk is how many events one core checks at a time.
const verifyChunk = 64

// Verify checks the prepared corpus in dir in full, on all cores: every line is canonical JSON,
// every id the hash of its event, every signature valid, the order right, and the manifest's
// counts, bytes, kinds and fingerprint are those of the events. The error is ErrDamaged and names
// the first line that is wrong.
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
	var done atomic.Int64
	err := TryInParallel(ctx, (c.Len()+verifyChunk-1)/verifyChunk, func(chunk int) error {
		end := min((chunk+1)*verifyChunk, c.Len())
		for i := chunk * verifyChunk; i < end; i++ {
			if err := c.verifyEvent(i); err != nil {
				return &lineError{i + 1, err}
			}
		}
		p.Report("verify", done.Add(int64(end-chunk*verifyChunk)), int64(c.Len()))
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("verifying the corpus: %w", context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrDamaged, filepath.Join(c.dir, EventsFile), err)
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
