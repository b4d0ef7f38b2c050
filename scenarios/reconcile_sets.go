package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays/negentropy"
)

const (
	reconcileNewest  = 1780272000 // Unix seconds, the end of the synthetic corpus: the same bytes on every machine
	perSecond        = 4          // events; they share their created_at, as those of a busy relay do
	reconcileAuthors = 16
	seedBatch        = 50_000 // events in memory at once while a relay is being seeded
	seedConns        = 4
	seedAhead        = 200 // unacknowledged events on each connection
)

// reconcileItem is one event.
type reconcileItem struct {
	at     uint64 // Unix seconds
	id     negentropy.ID
	number uint32 // what it was made of
}

// reconcileSets are the events of one size, short notes (kind 1). The harness holds all but the
// newest, the peer all but the oldest: either lacks step.
type reconcileSets struct {
	step         int
	items        []reconcileItem // in the order of reconciliation
	keys         []corpus.SecretKey
	signatures   []corpus.Signature // by number; none where events are not signed
	ours, theirs *negentropy.Set
}

// newReconcileSets makes n items a side, the same for the same seed. Where they are not signed, ids
// and signatures are well-formed and no more.
func newReconcileSets(ctx context.Context, n int, seed uint64, signed bool) (*reconcileSets, error) {
	s := &reconcileSets{step: n / 5, keys: make([]corpus.SecretKey, reconcileAuthors)}
	for k := range s.keys {
		var err error
		if s.keys[k], err = corpus.NewSecretKey(sha256.Sum256(binary.LittleEndian.AppendUint64([]byte{byte(k)}, seed))); err != nil {
			return nil, fmt.Errorf("making keys: %w", err)
		}
	}
	s.items = make([]reconcileItem, n+s.step)
	for i := range s.items {
		s.items[i] = reconcileItem{at: uint64(reconcileNewest - (len(s.items)-1-i)/perSecond), number: uint32(i)}
	}
	if signed {
		if err := s.sign(ctx); err != nil {
			return nil, err
		}
	} else {
		r := rand.New(rand.NewPCG(seed, 77))
		for i := range s.items {
			for at := 0; at < negentropy.IDSize; at += 8 {
				binary.LittleEndian.PutUint64(s.items[i].id[at:], r.Uint64())
			}
		}
	}
	slices.SortFunc(s.items, func(a, b reconcileItem) int { return cmp.Or(cmp.Compare(a.at, b.at), bytes.Compare(a.id[:], b.id[:])) })
	var err error
	if s.ours, err = setOf(s.items[:n]); err == nil {
		s.theirs, err = setOf(s.items[s.step:])
	}
	return s, err
}

func setOf(items []reconcileItem) (*negentropy.Set, error) {
	set := negentropy.NewSet(len(items))
	for i := range items {
		set.Add(items[i].at, &items[i].id)
	}
	return set, set.Seal()
}

// namedIDs is what a reconciliation found, or must find.
type namedIDs struct{ have, need idCount }

// idCount counts and sums ids: two sets of as many ids with the same sum are the same set.
type idCount struct {
	n   int
	sum negentropy.Sum
}

func (c *idCount) add(ids []negentropy.ID) {
	c.n += len(ids)
	for i := range ids {
		c.sum.Add(&ids[i])
	}
}

// alone is what a reconciliation of the two sides must find.
func (s *reconcileSets) alone() namedIDs {
	n := s.ours.Len()
	return namedIDs{idCount{s.step, s.ours.Sum(0, s.step)}, idCount{s.step, s.theirs.Sum(n-s.step, n)}}
}

// sign gives every item the id of a real event and keeps its signature.
func (s *reconcileSets) sign(ctx context.Context) error {
	s.signatures = make([]corpus.Signature, len(s.items))
	workers := runtime.GOMAXPROCS(0)
	errs := make([]error, workers)
	var next atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(s.items) && errs[w] == nil && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				e := s.event(&s.items[i])
				errs[w] = s.keys[i%reconcileAuthors].Sign(&e, [32]byte{})
				s.items[i].id, s.signatures[i] = negentropy.ID(e.ID), e.Sig
			}
		})
	}
	all.Wait()
	return cmp.Or(cmp.Or(errs...), context.Cause(ctx))
}

func (s *reconcileSets) event(of *reconcileItem) corpus.Event {
	e := corpus.Event{
		ID:        corpus.ID(of.id),
		PubKey:    s.keys[of.number%reconcileAuthors].PubKey,
		CreatedAt: int64(of.at),
		Kind:      1,
		Content:   "note " + strconv.Itoa(int(of.number)) + ", of which two sides may or may not know",
	}
	if s.signatures != nil {
		e.Sig = s.signatures[of.number]
	}
	return e
}

// publish gives a relay the peer's share, from old to new. The error says as well where it did not
// take all of it.
func (s *reconcileSets) publish(ctx context.Context, url string, stall time.Duration) error {
	share := s.items[s.step:]
	taken := 0
	for batch := range slices.Chunk(share, seedBatch) {
		events := make([]corpus.Event, len(batch))
		indexes := make([]int, len(batch))
		for i := range batch {
			events[i], indexes[i] = s.event(&batch[i]), i
		}
		c, err := corpus.FromEvents(events)
		if err != nil {
			return err
		}
		p := load.Publisher{URL: url, Corpus: c, Conns: seedConns, Window: seedAhead, Stall: stall, Ledger: load.NewLedger(len(batch))}
		result, err := p.Publish(ctx, indexes)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
		taken += int(result.Accepted + result.Duplicates)
		if taken == 0 { // the rest would fare no better
			for _, r := range result.Reasons {
				return fmt.Errorf("it refuses events: %q", r.Example)
			}
			return fmt.Errorf("it acknowledges no event")
		}
	}
	if taken < len(share) {
		return fmt.Errorf("it took %d of %d events", taken, len(share))
	}
	return nil
}
