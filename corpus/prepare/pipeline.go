package prepare

import (
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"sync"

	"relaybench/corpus"
)

// A batch is what passes from stage to stage. It is small enough that a cancelled preparation stops
// within a few hundredths of a second, and large enough that handing it over costs nothing.
const (
	batchEvents = 128
	batchBytes  = 256 << 10
)

// inFlightBytes bounds the event texts held by all stages together.
const inFlightBytes = 64 << 20

// pipeline prepares events in stages that overlap: one goroutine reads and splits; on all cores,
// events are parsed and put into canonical form; one goroutine takes out repeated texts, in order
// of arrival; on all cores, signatures are checked; the caller's goroutine collects, in order of
// arrival again. What comes out so does not depend on scheduling.
type pipeline struct {
	options  *Options
	seen     *textSet
	large    sync.Mutex
	used     sync.Pool     // of *batch
	inFlight chan struct{} // one for each batchBytes of texts on their way
	stages   sync.WaitGroup
	lag      int
	floors   chan int64 // of the newest so many, after each batch that was kept
}

// floorLag, the usual lag, is how many batches later the age that an event needs to count is used:
// a fixed number, so that what is counted does not depend on scheduling, and more than are on their
// way at a time.
const floorLag = 256

// outcome is what became of the event texts of a source.
type outcome struct {
	read   int             // event texts
	drops  dropCounts      // those that were left out
	tooOld int             // those that were found too old for the limit before they were checked
	copied int             // those kept whose doubled backslashes were undone
	first  *corpus.Failure // the first that was unparseable
}

// runPipeline adds the good events of src to sorted and counts the others.
func runPipeline(ctx context.Context, src *source, o *Options, sorted *sorter, lag int, p corpus.Progress) (done outcome, err error) {
	asked := ctx
	ctx, cancel := context.WithCancelCause(asked)
	pl := &pipeline{
		options: o, seen: newTextSet(), inFlight: make(chan struct{}, inFlightBytes/batchBytes), lag: lag, floors: make(chan int64, lag),
	}
	top := newNewest(o.Limit)
	defer pl.stages.Wait()
	defer cancel(nil)
	parsed := pl.inOrder(ctx, pl.split(ctx, src.Texts, cancel), (*batch).parse)
	judged := pl.inOrder(ctx, pl.dedup(ctx, parsed), func(b *batch) { b.judge(ctx) })
	for b := range judged {
		if ctx.Err() != nil {
			break
		}
		done.read += len(b.items)
		for i := range b.items {
			it := &b.items[i]
			if it.tooOld {
				done.tooOld++
				continue
			}
			done.drops[it.drop]++
			if it.drop == DropUnparseable && done.first == nil {
				done.first = &corpus.Failure{Part: it.at.part, Line: it.at.line, Why: it.why}
			}
			if it.drop != Kept {
				continue
			}
			if it.copied {
				done.copied++
			}
			top.add(it.event.CreatedAt, &it.event.ID)
			if err := sorted.add(it.event.CreatedAt, &it.event.ID, uint16(it.event.Kind), it.line); err != nil {
				return done, err
			}
		}
		select {
		case pl.floors <- top.before():
		case <-ctx.Done():
		}
		p.Report("prepare", b.read, src.info.Size())
		pl.release(b)
	}
	// The reader's error and the caller's cancellation are both the context's cause.
	if err := context.Cause(ctx); err != nil {
		if asked.Err() != nil {
			err = fmt.Errorf("preparing %s: %w", src.path, err)
		}
		return done, err
	}
	return done, nil
}

// inOrder has all cores work on batches, and hands them on in their order.
func (pl *pipeline) inOrder(ctx context.Context, in iter.Seq[*batch], work func(*batch)) iter.Seq[*batch] {
	type job struct {
		b    *batch
		done chan struct{}
	}
	return func(yield func(*batch) bool) {
		jobs := make(chan job, 2*runtime.GOMAXPROCS(0))
		pl.stages.Go(func() {
			defer close(jobs)
			for b := range in {
				j := job{b, make(chan struct{})}
				select {
				case jobs <- j:
				case <-ctx.Done():
					return
				}
				pl.stages.Go(func() {
					defer close(j.done)
					work(b)
				})
			}
		})
		for j := range jobs {
			if <-j.done; !yield(j.b) {
				return
			}
		}
	}
}

// split reads the source to its end.
func (pl *pipeline) split(ctx context.Context, texts *Texts, fail func(error)) iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		for err := error(nil); err == nil; {
			b := pl.newBatch()
			for err == nil && len(b.ends) < batchEvents && len(b.texts) < batchBytes {
				var text []byte
				if text, _, err = texts.next(ctx, b.texts); err == nil {
					b.texts, b.ends, b.places = text, append(b.ends, len(text)), append(b.places, texts.place())
				}
			}
			if err != nil && err != io.EOF {
				fail(err)
				return
			}
			b.read = texts.read.Load()
			for range b.weight() {
				select {
				case pl.inFlight <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
			if !yield(b) {
				return
			}
		}
	}
}

// newBatch takes the memory of a batch that is done with, if there is one.
func (pl *pipeline) newBatch() *batch {
	b, ok := pl.used.Get().(*batch)
	if !ok {
		b = &batch{pl: pl, texts: make([]byte, 0, batchBytes+batchBytes/4)}
	}
	b.texts, b.ends, b.places, b.items, b.lines = b.texts[:0], b.ends[:0], b.places[:0], b.items[:0], b.lines[:0]
	return b
}

// release takes a batch that nobody looks at any more. A large one is left to the collector.
func (pl *pipeline) release(b *batch) {
	for range b.weight() {
		<-pl.inFlight
	}
	if cap(b.texts)+cap(b.lines) <= 4*batchBytes {
		pl.used.Put(b)
	}
}

// dedup marks texts that have come before, in order of arrival, and those that are too old.
func (pl *pipeline) dedup(ctx context.Context, in iter.Seq[*batch]) iter.Seq[*batch] {
	return func(yield func(*batch) bool) {
		floor, batches := int64(math.MinInt64), 0
		for b := range in {
			if batches++; batches > pl.lag {
				select {
				case floor = <-pl.floors:
				case <-ctx.Done():
					return
				}
			}
			for i := range b.items {
				it := &b.items[i]
				if it.drop != DropUnparseable && pl.seen.repeats(it.key) {
					it.drop = DropDuplicate
				}
				it.tooOld = it.drop == Kept && it.event.CreatedAt < floor
			}
			if !yield(b) {
				return
			}
		}
	}
}
