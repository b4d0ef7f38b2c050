// Package layers tells where the time of a reconciliation (NIP-77) goes, by doing the same one in layers, each of which adds something: the engine alone in
// memory, the engine behind hexadecimal digits, JSON and a loopback socket, and a relay's process.
//
//	Measure          the layers of one size after the other
//	stock            the events: what either side holds
//	inMemory, loopback, process
//	                 the layers
package layers

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strconv"
	"time"

	"relaybench/harness"
	"relaybench/relays"
	"relaybench/relays/negentropy"
)

// Names of the layers that need no relay. Those of processes have the relay's name.
const (
	InMemory = "in memory"
	Loopback = "loopback"
)

// PeerFrameLimit bounds the messages of the in-process responder, in bytes before hexadecimal digits double them: what relays ship with.
const PeerFrameLimit = 500_000

// Sizes that can be measured, in items a side.
const (
	MinSize = 10
	MaxSize = 5_000_000
)

// Relay is a program to measure as a layer.
type Relay struct {
	harness.Contender
	// Trusting says that it takes ids and signatures on trust, so that any number of events is quickly made for it.
	Trusting bool
}

// Options say what to measure.
type Options struct {
	Sizes     []int // items a side
	Repeat    int   // reconciliations of which the median is taken, after the first
	Seed      uint64
	Relays    []Relay
	Settings  relays.Settings
	Stall     time.Duration // how long a relay may make no progress
	SignedMax int           // the largest size at which relays that are not Trusting take part: their events are really signed
	Progress  func(text string)
}

// Cost is what one reconciliation took. Total is the sum of the parts.
type Cost struct {
	Total  time.Duration `json:"total_ns"`
	Engine time.Duration `json:"engine_ns"` // the protocol, on the harness's side
	Coding time.Duration `json:"coding_ns"` // hexadecimal digits and JSON, on the harness's side
	// PeerEngine and PeerCoding are the other side's, where it is in this process; elsewhere they are 0 and a part of Rest.
	PeerEngine time.Duration `json:"peer_engine_ns"`
	PeerCoding time.Duration `json:"peer_coding_ns"`
	Rest       time.Duration `json:"rest_ns"` // sockets, the kernel, waiting, and the relay where it is another process
	Rounds     int           `json:"rounds"`
	// BytesUp and BytesDown are those of the frames, of the bare messages in memory.
	BytesUp   int64 `json:"bytes_up"`
	BytesDown int64 `json:"bytes_down"`
	Have      int   `json:"have"`
	Need      int   `json:"need"`
}

// Measured is one reconciliation, done again and again.
type Measured struct {
	Cold  Cost    `json:"cold"`     // the first, with this process's free memory given back before
	Warm  Cost    `json:"warm"`     // of the repetitions, the one with the median total
	Exact bool    `json:"exact"`    // the ids named were those that differ and no others
	Times []int64 `json:"times_ns"` // totals of the repetitions, in the order in which they were done
}

// Row is one layer at one size.
type Row struct {
	Layer     string   `json:"layer"`
	PeerSeen  bool     `json:"peer_seen"` // the other side's shares are known
	Differing Measured `json:"differing"` // a fifth of either side is its alone
	Identical Measured `json:"identical"` // both sides hold the same: the heartbeat of a mirror
	// Problem says why there are no figures, or what is wrong with them; Failed whether the relay is to blame.
	Problem string `json:"problem,omitempty"`
	Failed  bool   `json:"failed,omitempty"`
}

// Size is all layers at one size.
type Size struct {
	Items  int   `json:"items"` // on either side
	Shared int   `json:"shared"`
	Signed bool  `json:"signed"` // the events have real ids and signatures
	Rows   []Row `json:"rows"`
}

// Measure measures the sizes in the order given and hands each over as soon as it is done. A relay that fails has a Row that says so; the error is one of
// this process, or ctx's.
func Measure(ctx context.Context, o Options, done func(Size) error) error {
	for _, n := range o.Sizes {
		size, err := o.measure(ctx, n)
		if err != nil {
			return fmt.Errorf("%d items: %w", n, err)
		}
		if err := done(size); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) measure(ctx context.Context, n int) (Size, error) {
	signed := false
	for _, r := range o.Relays {
		signed = signed || !r.Trusting && n <= o.SignedMax
	}
	o.say("%d items a side: making them", n)
	s, err := newStock(ctx, n, o.Seed, signed)
	if err != nil {
		return Size{}, err
	}
	size := Size{Items: n, Shared: n - s.step, Signed: signed}
	add := func(layer string, measure func(ctx context.Context) (Row, error)) error {
		var row Row
		var err error
		// A profile of this process tells the layers apart by these labels.
		pprof.Do(ctx, pprof.Labels("layer", layer, "size", strconv.Itoa(n)), func(ctx context.Context) { row, err = measure(ctx) })
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		row.Layer = layer
		size.Rows = append(size.Rows, row)
		return err
	}
	if err := add(InMemory, func(ctx context.Context) (Row, error) { return o.inMemory(ctx, s) }); err != nil {
		return size, fmt.Errorf("in memory: %w", err)
	}
	if err := add(Loopback, func(ctx context.Context) (Row, error) { return o.loopback(ctx, s) }); err != nil {
		return size, fmt.Errorf("over a loopback socket: %w", err)
	}
	for _, r := range o.Relays {
		err := add(r.Definition.Name, func(ctx context.Context) (Row, error) {
			if !r.Trusting && n > o.SignedMax {
				return Row{Problem: fmt.Sprintf("not measured above %d items: it needs really signed events", o.SignedMax)}, nil
			}
			row, err := o.process(ctx, s, r)
			if err != nil {
				row.Problem, row.Failed = err.Error(), true
			}
			return row, nil
		})
		if err != nil {
			return size, err
		}
	}
	return size, nil
}

func (o *Options) say(format string, args ...any) {
	if o.Progress != nil {
		o.Progress(fmt.Sprintf(format, args...))
	}
}

// both measures the two reconciliations of a layer. reconcile does one, of what it is given with what the peer holds.
func (o *Options) both(ctx context.Context, s *stock, reconcile reconcileFunc) (row Row, err error) {
	layer, _ := pprof.Label(ctx, "layer") // which also stands on what goes before, such as publishing
	pprof.Do(ctx, pprof.Labels("reconcile", layer), func(ctx context.Context) { row, err = o.measureBoth(ctx, s, reconcile) })
	return row, err
}

func (o *Options) measureBoth(ctx context.Context, s *stock, reconcile reconcileFunc) (row Row, err error) {
	if row.Differing, err = o.repeat(ctx, s.ours, s.alone(), reconcile); err != nil {
		return row, err
	}
	if row.Identical, err = o.repeat(ctx, s.theirs, difference{}, reconcile); err != nil {
		return row, fmt.Errorf("identical sets: %w", err)
	}
	if !row.Differing.Exact || !row.Identical.Exact {
		row.Problem, row.Failed = "the ids named are not those that differ", true
	}
	return row, nil
}

// reconcileFunc does one reconciliation of local with what the peer holds, and hands over the ids.
type reconcileFunc func(local negentropy.Storage, have, need func(ids []negentropy.ID)) (Cost, error)
