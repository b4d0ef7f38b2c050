package prepare

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
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

// largeText is an event text that is parsed while no other large one is: what is parsed can take
// several times the text's memory.
const largeText = 1 << 20

// batch holds event texts that follow each other in the source, and what was found out about them.
type batch struct {
	texts  []byte
	ends   []int   // of each text in texts; one that was over maxEventText is empty
	places []place // where each begins
	read   int64   // bytes of the file read so far

	items  []item
	lines  []byte // the canonical lines of items
	parsed chan struct{}
	judged chan struct{}
}

// item is one event of a batch.
type item struct {
	event  corpus.Event // without tags and content, which line has
	line   []byte
	key    Key
	drop   DropReason
	tooOld bool // older than as many good events as the limit keeps: not checked, and not kept

	copied bool   // its doubled backslashes have been undone
	at     place  // of what is unparseable
	why    string // it is
}

// pipeline prepares events in four stages that overlap: one goroutine reads and splits; on all
// cores, events are parsed and put into canonical form; one goroutine takes out repeated texts, in
// order of arrival; on all cores, ids and signatures are checked; the caller's goroutine collects,
// in order of arrival again. What comes out so does not depend on scheduling.
type pipeline struct {
	options *Options
	seen    *textSet
	large   sync.Mutex
	used    sync.Pool // of *batch
	budget  *byteBudget
	toParse chan *batch
	toDedup chan *batch
	toJudge chan *batch
	toKeep  chan *batch
	lag     int
	floors  chan int64 // of the newest so many, after each batch that was kept
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
	workers := runtime.GOMAXPROCS(0)
	pl := &pipeline{
		options: o, seen: newTextSet(), budget: newByteBudget(inFlightBytes),
		toParse: make(chan *batch, workers), toDedup: make(chan *batch, 2*workers),
		toJudge: make(chan *batch, workers), toKeep: make(chan *batch, 2*workers), lag: lag, floors: make(chan int64, lag),
	}
	top := newNewest(o.Limit)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel(nil)
	wg.Go(func() {
		defer close(pl.toParse)
		defer close(pl.toDedup)
		if err := pl.split(ctx, src); err != nil {
			cancel(err)
		}
	})
	wg.Go(func() {
		defer close(pl.toJudge)
		defer close(pl.toKeep)
		pl.dedup(ctx)
	})
	for range workers {
		wg.Go(func() { pl.parse(ctx) })
		wg.Go(func() { pl.judge(ctx) })
	}

	for b := range pl.toKeep {
		if !reached(ctx, b.judged) {
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
			if top != nil {
				top.add(it.event.CreatedAt, &it.event.ID)
			}
			if err := sorted.add(it.event.CreatedAt, &it.event.ID, uint16(it.event.Kind), it.line); err != nil {
				return done, err
			}
		}
		select {
		case pl.floors <- top.before():
		case <-ctx.Done():
		}
		pl.budget.give(len(b.texts))
		p.Report("prepare", b.read, src.size)
		pl.recycle(b)
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

// split reads the source to its end.
func (pl *pipeline) split(ctx context.Context, src *source) error {
	texts := Texts{source: src}
	for {
		b := pl.newBatch()
		var err error
		for err == nil && !b.full() {
			var text []byte
			if text, _, err = texts.next(ctx, b.texts); err == nil {
				b.texts, b.ends, b.places = text, append(b.ends, len(text)), append(b.places, texts.place())
			}
		}
		if err != nil && err != io.EOF {
			return err
		}
		b.read = src.read.Load()
		if !pl.budget.take(ctx, len(b.texts)) || !send(ctx, pl.toParse, b) || !send(ctx, pl.toDedup, b) {
			return nil // the context knows why
		}
		if err == io.EOF {
			return nil
		}
	}
}

// newBatch takes the memory of a batch that is done with, if there is one.
func (pl *pipeline) newBatch() *batch {
	b, ok := pl.used.Get().(*batch)
	if !ok {
		b = &batch{texts: make([]byte, 0, batchBytes+batchBytes/4)}
	}
	*b = batch{texts: b.texts[:0], ends: b.ends[:0], places: b.places[:0], items: b.items[:0], lines: b.lines[:0], parsed: make(chan struct{}), judged: make(chan struct{})}
	return b
}

// recycle takes a batch that nobody looks at any more. A large one is left to the collector.
func (pl *pipeline) recycle(b *batch) {
	if cap(b.texts)+cap(b.lines) <= 4*batchBytes {
		pl.used.Put(b)
	}
}

func (b *batch) full() bool { return len(b.ends) >= batchEvents || len(b.texts) >= batchBytes }

// parse turns texts into items.
func (pl *pipeline) parse(ctx context.Context) {
	var reader corpus.EventReader
	for b := range pl.toParse {
		if ctx.Err() != nil {
			return
		}
		b.items = slices.Grow(b.items[:0], len(b.ends))
		b.lines = slices.Grow(b.lines[:0], len(b.texts))
		start := 0
		for i, end := range b.ends {
			pl.parseText(b, b.texts[start:end], b.places[i], &reader)
			start = end
		}
		close(b.parsed)
	}
}

// parseOne reads one event and applies the rules on its form. A large event that is dropped is not
// kept in memory. The error says why the text is no event.
func (pl *pipeline) parseOne(b *batch, text []byte, reader *corpus.EventReader) (item, error) {
	e, err := reader.Read(text)
	unsigned := errors.Is(err, corpus.ErrNoSignature)
	if err != nil && !unsigned {
		return item{}, err
	}
	start := len(b.lines)
	b.lines = e.AppendJSON(b.lines)
	line := b.lines[start:len(b.lines):len(b.lines)]
	it := item{event: e, line: line, key: pl.seen.key(line), drop: DropNoSignature}
	if !unsigned {
		it.drop = pl.options.Drop(&e, line)
	}
	if it.drop != Kept {
		b.lines = b.lines[:start]
		it.event, it.line = corpus.Event{}, nil
	}
	it.event.Tags, it.event.Content = nil, "" // what they point into has other uses next
	return it, nil
}

// dedup marks texts that have come before, in order of arrival, and those that are too old.
func (pl *pipeline) dedup(ctx context.Context) {
	floor, batches := int64(math.MinInt64), 0
	for b := range pl.toDedup {
		if !reached(ctx, b.parsed) {
			return
		}
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
		if !send(ctx, pl.toJudge, b) || !send(ctx, pl.toKeep, b) {
			return
		}
	}
}

// judge checks ids and signatures.
func (pl *pipeline) judge(ctx context.Context) {
	var buf []byte
	for b := range pl.toJudge {
		for i := range b.items {
			if ctx.Err() != nil {
				return
			}
			it := &b.items[i]
			if it.drop != Kept || it.tooOld {
				continue
			}
			e := &it.event
			if buf = corpus.AppendSerializationOf(buf[:0], it.line); sha256.Sum256(buf) != e.ID && !pl.uncopy(it) {
				it.drop = DropBadID
			} else if it.drop == Kept && !e.CheckSignature() {
				it.drop = DropBadSignature
			}
		}
		close(b.judged)
	}
}

// uncopy makes an event whose id is wrong what it was before psql's COPY doubled its backslashes,
// and reports whether that is what is wrong with it.
func (pl *pipeline) uncopy(it *item) bool {
	e, err := corpus.ParseEvent(undoCopy(it.line))
	if err != nil || !e.CheckID() {
		return false
	}
	it.line = e.AppendJSON(nil)
	it.copied = true
	it.drop = pl.options.Drop(&e, it.line)
	return true
}

// send reports false if the context ended first.
func send(ctx context.Context, to chan<- *batch, b *batch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// reached waits for done and reports false if the context ended first.
func reached(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}

// byteBudget is a number of bytes that one goroutine takes from and others give back to.
type byteBudget struct {
	mu    sync.Mutex
	free  int
	freed chan struct{}
}

func newByteBudget(size int) *byteBudget {
	return &byteBudget{free: size, freed: make(chan struct{}, 1)}
}

// take waits until n bytes are free. It reports false if the context ended first.
func (r *byteBudget) take(ctx context.Context, n int) bool {
	for {
		r.mu.Lock()
		if r.free >= n {
			r.free -= n
			r.mu.Unlock()
			return true
		}
		r.mu.Unlock()
		select {
		case <-r.freed:
		case <-ctx.Done():
			return false
		}
	}
}

func (r *byteBudget) give(n int) {
	r.mu.Lock()
	r.free += n
	r.mu.Unlock()
	select {
	case r.freed <- struct{}{}:
	default:
	}
}
