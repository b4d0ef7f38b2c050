// Package synthetic generates corpora: the same name, version and Spec mean the same bytes,
// everywhere and for ever.
package synthetic

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"relaybench/corpus"
)

// Name and Version identify the generator. Whatever changes a byte takes a new version.
const (
	Name    = "relaybench-go"
	Version = 1
)

// Spec says which synthetic corpus to generate.
type Spec corpus.SyntheticSpec

// The bounds of a Spec. A zap is asked for up to half a minute before its receipt.
const (
	MaxEvents   = 100_000_000        // of Spec.Events
	MinBaseTime = windowSeconds + 60 // of Spec.BaseTime, Unix seconds
	MaxBaseTime = 253_402_300_800    // likewise: the year 10000
)

// Validate reports what is wrong with the spec: a number of events that is not 1 to 100,000,000, or
// a base time less than 30 days and a minute after 1970 or after the year 9999.
func (s Spec) Validate() error {
	if s.Events < 1 || s.Events > MaxEvents {
		return fmt.Errorf("a synthetic corpus of %d events cannot be generated: ask for 1 to %d", s.Events, MaxEvents)
	}
	if s.BaseTime < MinBaseTime || s.BaseTime > MaxBaseTime {
		return fmt.Errorf("base time %d is out of range: give Unix seconds from %d to %d", s.BaseTime, MinBaseTime, int64(MaxBaseTime))
	}
	return nil
}

// seed is what everything random in the corpus derives from.
func (s Spec) seed() [32]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s %d events=%d seed=%d base_time=%d", Name, Version, s.Events, s.Seed, s.BaseTime))
}

// chunkEvents is how many events are built and signed before they are handed on: enough to keep all
// cores busy within a wave, few enough to hold in memory whole.
const chunkEvents = 4096

// Generate calls emit with each event in corpus order (created_at, then id, ascending), from the
// calling goroutine. emit may keep the event. Progress counts emitted events in the stage
// "generate". Generation stops with emit's first error, or with ctx's.
//
// Memory is about 120 bytes for each event of the corpus, and some tens of megabytes for those
// being worked on.
func (s Spec) Generate(ctx context.Context, progress corpus.Progress, emit func(*corpus.Event) error) error {
	if err := s.Validate(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g, err := newGeneration(ctx, s)
	if err != nil {
		return err
	}

	// The next chunk is signed while the consumer is busy with this one.
	chunks := make(chan []corpus.Event)
	var failed error // set before chunks is closed
	go func() {
		defer close(chunks)
		for first := 0; first < len(g.plan) && failed == nil; {
			end := g.chunkEnd(first)
			var events []corpus.Event
			if events, failed = g.chunk(ctx, first, end); failed != nil {
				return
			}
			select {
			case chunks <- events:
			case <-ctx.Done():
				failed = context.Cause(ctx)
			}
			first = end
		}
	}()
	done := 0
	for events := range chunks {
		for i := range events {
			err := context.Cause(ctx)
			if err == nil {
				err = emit(&events[i])
			}
			if err != nil {
				cancel()
				for range chunks { // until the signers have stopped
				}
				return err
			}
		}
		done += len(events)
		progress.Report("generate", int64(done), int64(s.Events))
	}
	return failed
}

// generation is one corpus in the making. While a wave is built, workers read all of it, and write
// ids and signatures at the indexes of their own events.
type generation struct {
	start      int64 // Unix seconds at which the window begins
	seed       [32]byte
	popularity zipfTable // of authors
	hashtags   zipfTable
	keys       *syntheticKeys
	plan       []plannedEvent
	ids        []corpus.ID        // by index in the plan, once known
	signatures []corpus.Signature // likewise
	builders   sync.Pool          // of *eventBuilder
}

func newGeneration(ctx context.Context, s Spec) (*generation, error) {
	seed := s.seed()
	authors := authorCount(s.Events)
	keys, err := newSyntheticKeys(ctx, seed, authors)
	if err != nil {
		return nil, err
	}
	popularity := newZipfTable(authors)
	g := &generation{
		start:      s.BaseTime - windowSeconds,
		seed:       seed,
		popularity: popularity,
		hashtags:   newZipfTable(len(words.Hashtags)),
		keys:       keys,
		plan:       planCorpus(s.Events, popularity, derive(seed, "plan", 0)),
		ids:        make([]corpus.ID, s.Events),
		signatures: make([]corpus.Signature, s.Events),
	}
	g.builders.New = func() any { return newEventBuilder(g) }
	return g, nil
}

// chunkEnd returns where the chunk from first on ends: never within a second, whose events have yet
// to be put in the order of their ids.
func (g *generation) chunkEnd(first int) int {
	end := min(first+chunkEvents, len(g.plan))
	for end < len(g.plan) && g.plan[end].at == g.plan[end-1].at {
		end++
	}
	return end
}

// chunk builds and signs the events from first to end, in waves, and puts them in corpus order.
func (g *generation) chunk(ctx context.Context, first, end int) ([]corpus.Event, error) {
	events := make([]corpus.Event, end-first)
	for _, wave := range g.waves(first, end) {
		err := corpus.TryInParallel(ctx, len(wave), func(i int) error {
			builder := g.builders.Get().(*eventBuilder)
			defer g.builders.Put(builder)
			index := int(wave[i])
			e, err := builder.signed(index)
			if err != nil {
				return err
			}
			events[index-first] = e
			g.ids[index], g.signatures[index] = e.ID, e.Sig
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(events, func(a, b corpus.Event) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return events, nil
}

// waves groups the events from first to end by how many references lead from them to an event
// outside: those of a wave need ids of earlier waves only, and can be signed side by side.
func (g *generation) waves(first, end int) [][]int32 {
	var waves [][]int32
	depths := make([]int32, end-first)
	for index := first; index < end; index++ {
		// A reply's thread begins no later than its target, which alone decides.
		if target := int(g.plan[index].target); target >= first {
			depths[index-first] = depths[target-first] + 1
		}
		depth := int(depths[index-first])
		if depth == len(waves) {
			waves = append(waves, nil)
		}
		waves[depth] = append(waves[depth], int32(index))
	}
	return waves
}
