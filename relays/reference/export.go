package reference

import (
	"bufio"
	"context"
	"io"
	"slices"

	"relaybench/corpus"
)

// ExportOptions say which events are written, and in which order.
type ExportOptions struct {
	Since, Until *int64 // Unix seconds, inclusive; nil for no bound
	NewestFirst  bool   // ties by lowest id, as in an answer (NIP-01); oldest first is exactly the reverse
	Now          int64  // Unix seconds: what has expired by then (NIP-40) is left out
}

// Export writes the events of a store, one a line, and returns how many it wrote.
func Export(ctx context.Context, s Store, out io.Writer, o ExportOptions) (written int64, err error) {
	w := bufio.NewWriterSize(out, 256<<10)
	write := func(r *Record) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Expires <= o.Now {
			return nil
		}
		if _, err := w.Write(r.Raw); err != nil {
			return err
		}
		written++
		return w.WriteByte('\n')
	}
	q := NewQuery(&corpus.Filter{Since: o.Since, Until: o.Until}, 0)
	if o.NewestFirst {
		err = scanAll(s, q, write)
	} else {
		err = exportOldestFirst(ctx, s, q, write)
	}
	if err != nil {
		return written, err
	}
	return written, w.Flush()
}

// exportOldestFirst reads all ids, and from their end the events, many at a time.
func exportOldestFirst(ctx context.Context, s Store, q *Query, write func(*Record) error) error {
	var ids []corpus.ID
	err := scanAll(s, q, func(r *Record) error {
		ids = append(ids, r.ID)
		return context.Cause(ctx)
	})
	if err != nil {
		return err
	}
	for end := len(ids); end > 0; end -= byIDBatch {
		some, err := recordsByID(s, ids[max(0, end-byIDBatch):end])
		if err != nil {
			return err
		}
		for i := range slices.Backward(some) {
			if err := write(&some[i]); err != nil {
				return err
			}
		}
	}
	return nil
}
