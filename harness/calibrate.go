package harness

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"relaybench/corpus"
	"relaybench/harness/measure"
	"relaybench/harness/wire"
	"relaybench/relays"
)

// Names of the ceilings, as they stand in the record.
const (
	CeilingPublish  = "null relay, EVENT to OK"
	CeilingReceive  = "null relay, EVENT frames received"
	CostPublish     = "harness CPU per published event"
	ChecksOneCore   = "signature checks, one core"
	ChecksAllCores  = "signature checks, all cores"
	calibrationTime = 150 * time.Millisecond // for each round of a figure that is a rate over time
	calibrationSize = 100_000                // events published to the null relay
	calibrations    = 3                      // rounds, of which the best counts: a ceiling is what can be reached
)

// bestOf measures a rate several times and returns the highest.
func bestOf(rate func() (float64, error)) (best float64, err error) {
	for range calibrations {
		r, err := rate()
		if err != nil {
			return 0, err
		}
		best = max(best, r)
	}
	return best, nil
}

// Calibrate measures the harness itself on this machine, against a relay that does no work: what a real relay's figures must stay well
// below to be the relay's own.
func Calibrate(ctx context.Context, null Contender, settings relays.Settings, c *corpus.Corpus, o Options) ([]measure.Calibration, error) {
	var figures []measure.Calibration
	add := func(name string, value float64, unit string) {
		figures = append(figures, measure.Calibration{Name: name, Value: value, Unit: unit})
	}
	for _, workers := range []int{1, runtime.GOMAXPROCS(0)} {
		rate, err := bestOf(func() (float64, error) { return signatureChecks(c, workers) })
		if err != nil {
			return nil, fmt.Errorf("calibrating signature checks: %w", err)
		}
		name := ChecksAllCores
		if workers == 1 {
			name = ChecksOneCore
		}
		add(name, rate, "checks/s")
	}

	process, err := relays.Start(ctx, null.Definition, null.Program, settings)
	if err != nil {
		return figures, fmt.Errorf("calibrating against the null relay: %w", err)
	}
	defer func() {
		process.Stop(context.WithoutCancel(ctx))
		process.Cleanup()
	}()
	indexes := make([]int, calibrationSize)
	for k := range indexes {
		indexes[k] = k % c.Len()
	}
	p := Publisher{URL: process.URL(), Corpus: c, Conns: o.Publishers, Window: o.Window, Stall: o.Stall, Ledger: NewLedger(c.Len())}
	cpu := ownCPU()
	done, err := p.Publish(ctx, indexes)
	if err != nil {
		return figures, fmt.Errorf("calibrating against the null relay: %w", err)
	}
	cpu = ownCPU() - cpu
	answered := float64(done.Accepted + done.Duplicates + done.Refused)
	add(CeilingPublish, answered/done.Seconds(), "events/s")
	add(CostPublish, float64(cpu.Microseconds())/answered, "µs")

	received, err := bestOf(func() (float64, error) { return receive(ctx, process.URL(), o) })
	if err != nil {
		return figures, fmt.Errorf("calibrating against the null relay: %w", err)
	}
	add(CeilingReceive, received, "events/s")
	return figures, nil
}

// nearCeiling is from which share of a ceiling on a figure is the harness's rather than the relay's.
const nearCeiling = 0.8

// LimitedByHarness is the note on such a figure.
const LimitedByHarness = "limited by the harness"

// MarkCeilings notes which rates come within 20 % of what the harness reached against the null relay.
func MarkCeilings(r *measure.Record) {
	ceilings := make(map[string]float64)
	for _, c := range r.Calibration {
		ceilings[c.Name] = c.Value
	}
	for i := range r.Measurements {
		m := &r.Measurements[i]
		name := CeilingReceive
		switch m.Metric {
		case "accepted":
			name = CeilingPublish
		case "events/s":
		default:
			continue
		}
		if value, ok := m.Value(); ok && ceilings[name] > 0 && value >= nearCeiling*ceilings[name] {
			m.Note = LimitedByHarness
		}
	}
}

// signatureChecks returns checks per second over so many workers.
func signatureChecks(c *corpus.Corpus, workers int) (float64, error) {
	sample := make([]corpus.Event, min(c.Len(), 1000))
	for i := range sample {
		var err error
		if sample[i], err = c.Event(i); err != nil {
			return 0, err
		}
	}
	var checked atomic.Int64
	var broken atomic.Pointer[error]
	start := wire.Now()
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for i := w; wire.Now()-start < calibrationTime; i += workers {
				if err := sample[i%len(sample)].Verify(); err != nil {
					broken.Store(&err)
					return
				}
				checked.Add(1)
			}
		})
	}
	all.Wait()
	if err := broken.Load(); err != nil {
		return 0, *err
	}
	return float64(checked.Load()) / (wire.Now() - start).Seconds(), nil
}

// receive returns EVENT frames per second over as many connections as the queries use.
func receive(ctx context.Context, url string, o Options) (float64, error) {
	conns := max(1, o.Publishers)
	var events atomic.Int64
	errs := make(chan error, conns)
	askers := make([]*Asker, conns)
	for k := range askers {
		asker, err := NewAsker(ctx, url, o.Stall)
		if err != nil {
			return 0, err
		}
		defer asker.Close()
		askers[k] = asker
	}
	filter := corpus.Filter{Limit: corpus.Int(500)}
	request := filter.AppendJSON(nil)
	start := wire.Now()
	for _, asker := range askers {
		go func() {
			var r Reply
			for wire.Now()-start < calibrationTime {
				if err := asker.Ask(request, &r); err != nil {
					errs <- err
					return
				}
				events.Add(int64(len(r.IDs)))
			}
			errs <- nil
		}()
	}
	for range conns {
		if err := <-errs; err != nil {
			return 0, err
		}
	}
	return float64(events.Load()) / (wire.Now() - start).Seconds(), nil
}

// ownCPU is the processor time that this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
