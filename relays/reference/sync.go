package reference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

// SyncOptions say how a store is brought in line with a relay. Zero values: defaults.
type SyncOptions struct {
	ImportOptions
	Down, Up bool // fetch what the relay alone has; send it what the store alone has
	Conns    int  // connections to fetch over: 1
	InFlight int  // REQs at a time on each: 8
	Batch    int  // ids in one REQ: 250
	Window   int  // events sent and not yet acknowledged: 200
	Stall    time.Duration
	Told     func(string)           // called with what comes next
	Moved    func(came, sent int64) // called now and then with all that has moved so far
}

// Synced is what a sync came to.
type Synced struct {
	Imported             // of what came
	Rounds           int // reconciliations
	Reconciling      time.Duration
	Asked            int64 // ids asked for, again in each round
	Missing          int64 // of them, those that the relay named and did not send
	Unexpected       int64 // events that came and had not been asked for
	Sent             int64
	Accepted         int64 // by the relay, duplicates included
	Refused          int64
	Unanswered       int64
	LeftDown, LeftUp int // of the difference, after the last reconciliation, in the directions asked for
}

const mostRounds = 20 // reconciliations of one sync

// ErrNoNegentropy is a relay that does not reconcile (NIP-77).
var ErrNoNegentropy = errors.New("the relay does not speak NIP-77")

// Sync reconciles (NIP-77), fetches and stores by the rules of publishing what the relay alone has,
// sends it what the store alone has, and begins again until nothing differs or nothing moves any
// more: the reconciliation is the check that all has arrived. Synced is returned with any error.
func Sync(ctx context.Context, s Store, address string, o SyncOptions) (Synced, error) {
	setDefault(&o.Conns, 1)
	setDefault(&o.InFlight, 8)
	setDefault(&o.Batch, 250)
	setDefault(&o.Window, 200)
	setDefault(&o.Stall, 30*time.Second)
	x, err := newIndexed(s)
	if err != nil {
		return Synced{}, fmt.Errorf("reading the store: %w", err)
	}
	sy := &syncing{o: o, address: address, store: x, importer: NewImporter(x, o.ImportOptions)}
	err = sy.run(ctx)
	sy.done.Imported = sy.importer.Total()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return sy.done, err
}

// syncing is a Sync on its way.
type syncing struct {
	o          SyncOptions
	address    string
	store      *indexed
	importer   *Importer
	done       Synced
	came, sent atomic.Int64
}

func (sy *syncing) run(ctx context.Context) error {
	for sy.done.Rounds < mostRounds {
		have, need, err := sy.reconcile(ctx)
		if err != nil {
			return err
		}
		sy.done.LeftDown, sy.done.LeftUp = len(need), len(have)
		if len(need)+len(have) == 0 {
			return nil
		}
		before := sy.importer.Total().Stored + sy.done.Accepted
		if sy.o.Told != nil {
			sy.o.Told(fmt.Sprintf("round %d: %d to fetch, %d to send", sy.done.Rounds, len(need), len(have)))
		}
		if err := sy.fetch(ctx, need); err != nil {
			return fmt.Errorf("fetching: %w", err)
		}
		if err := sy.push(ctx, have); err != nil {
			return fmt.Errorf("sending: %w", err)
		}
		if sy.importer.Total().Stored+sy.done.Accepted == before {
			return nil // what is left is what one side or the other does not take
		}
	}
	return nil
}

// reconcile returns the ids that only the store and that only the relay has, where asked for.
func (sy *syncing) reconcile(ctx context.Context) (have, need []corpus.ID, err error) {
	conn, err := wire.Dial(ctx, sy.address, wire.Options{ReadLimit: max(negentropy.MinReadLimit, 4<<20)})
	if err != nil {
		return nil, nil, err
	}
	defer conn.Abort()
	add := func(list *[]corpus.ID) func([]negentropy.ID) {
		return func(ids []negentropy.ID) {
			for _, id := range ids {
				*list = append(*list, corpus.ID(id))
			}
		}
	}
	n := negentropy.Options{Stall: sy.o.Stall, FirstAnswer: sy.o.Stall}
	if sy.o.Up {
		n.Have = add(&have)
	}
	if sy.o.Down {
		n.Need = add(&need)
	}
	result, err := negentropy.ReconcileSplit(ctx, conn, []byte("{}"), sy.store.snapshot(sy.importer.options.Now().Unix()), n)
	sy.done.Rounds++
	sy.done.Reconciling += result.Duration
	if unsupported := (*negentropy.UnsupportedError)(nil); errors.As(err, &unsupported) {
		err = fmt.Errorf("%w: %w", ErrNoNegentropy, err)
	}
	return have, need, err
}

// syncAhead is how many events may have come that the importer has not taken.
const syncAhead = 256

// fetch asks for events and stores them as they come: the store sets the pace.
func (sy *syncing) fetch(ctx context.Context, ids []corpus.ID) error {
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	texts := make(chan []byte, syncAhead)
	stored := make(chan error, 1)
	go func() {
		err := sy.importer.Run(ctx, func([]byte) ([]byte, bool, error) {
			select {
			case text, more := <-texts:
				if !more {
					return nil, false, io.EOF
				}
				return text, true, nil
			case <-ctx.Done():
				return nil, false, ctx.Err()
			}
		})
		if err != nil {
			cancel(err)
		}
		stored <- err
	}()
	by := client.ByID{Options: client.Options{URL: sy.address, Stall: sy.o.Stall, Attempts: 3}, Conns: sy.o.Conns, Batch: sy.o.Batch, InFlight: sy.o.InFlight, Retries: 2,
		Take: func(ctx context.Context, e *client.Event, wait bool) (bool, error) {
			if !wait && len(texts) == cap(texts) {
				return false, nil
			}
			select {
			case texts <- bytes.Clone(e.Raw):
			case <-ctx.Done():
				return false, context.Cause(ctx)
			}
			sy.moved(&sy.came)
			return true, nil
		}}
	fetched, err := by.Run(ctx, ids)
	close(texts)
	storeErr := <-stored
	if fetched != nil {
		sy.done.Asked += int64(fetched.Asked)
		sy.done.Missing += int64(len(fetched.Missing) + len(fetched.Failed))
		sy.done.Unexpected += fetched.Unexpected
	}
	if storeErr != nil {
		return fmt.Errorf("storing: %w", storeErr)
	}
	return err
}

// moved counts an event, and tells of it now and then.
func (sy *syncing) moved(counter *atomic.Int64) {
	if counter.Add(1)%1024 == 0 && sy.o.Moved != nil {
		sy.o.Moved(sy.came.Load(), sy.sent.Load())
	}
}

// push sends events over one connection with a window of those that have no OK yet.
func (sy *syncing) push(ctx context.Context, ids []corpus.ID) error {
	if len(ids) == 0 {
		return nil
	}
	conn, err := client.Dial(ctx, client.Options{URL: sy.address, Stall: sy.o.Stall})
	if err != nil {
		return err
	}
	defer conn.Abort()
	conn.Wire().WatchUseful(sy.o.Stall)
	flight := make(map[corpus.ID]struct{}, sy.o.Window)
	defer func() { sy.done.Unanswered += int64(len(flight)) }()
	settle := func(most int) error { // reads until no more than that are in flight
		for len(flight) > most {
			if _, err := conn.Read(); err != nil {
				return err
			}
			m := &conn.Message
			id := corpus.ID(m.ID)
			if _, waits := flight[id]; m.Type != wire.OK || !waits {
				continue
			}
			delete(flight, id)
			conn.Useful()
			if m.Accepted {
				sy.done.Accepted++
			} else {
				sy.done.Refused++
			}
		}
		return nil
	}
	for start := 0; start < len(ids); start += byIDBatch {
		raws, err := recordsByID(sy.store, ids[start:min(len(ids), start+byIDBatch)])
		if err != nil {
			return err
		}
		for _, r := range raws {
			if err := settle(sy.o.Window - 1); err != nil {
				return err
			}
			if err := conn.Wire().SendEvent(r.Raw); err != nil {
				return err
			}
			flight[r.ID] = struct{}{}
			sy.done.Sent++
			sy.moved(&sy.sent)
		}
	}
	return settle(0)
}
