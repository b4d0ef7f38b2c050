package layers

import (
	"cmp"
	"context"
	"runtime/debug"
	"slices"

	"relaybench/relays/negentropy"
)

// difference is what a reconciliation must find: how many ids, and their sums.
type difference struct {
	have, need       int
	haveSum, needSum negentropy.Sum
}

// repeat measures a reconciliation cold, then warm, and once more, untimed, to see whether it finds what it must.
func (o *Options) repeat(ctx context.Context, local negentropy.Storage, want difference, reconcile reconcileFunc) (m Measured, err error) {
	ignore := func([]negentropy.ID) {}
	giveBackMemory()
	if m.Cold, err = reconcile(local, ignore, ignore); err != nil {
		return m, err
	}
	warm := make([]Cost, o.Repeat)
	for k := range warm {
		if ctx.Err() != nil {
			return m, context.Cause(ctx)
		}
		if warm[k], err = reconcile(local, ignore, ignore); err != nil {
			return m, err
		}
		m.Times = append(m.Times, int64(warm[k].Total))
	}
	slices.SortStableFunc(warm, func(a, b Cost) int { return cmp.Compare(a.Total, b.Total) })
	m.Warm = warm[(len(warm)-1)/2] // not a mean of two: its parts add up to its total

	var got difference
	_, err = reconcile(local, tally(&got.have, &got.haveSum), tally(&got.need, &got.needSum))
	m.Exact = got == want
	return m, err
}

// giveBackMemory leaves this process without memory to reuse, as a new one is: buffers in pools, which survive one collection, and free pages.
func giveBackMemory() {
	debug.FreeOSMemory()
	debug.FreeOSMemory()
}

// tally counts and sums ids: two sets of as many ids with the same sum are the same set.
func tally(n *int, sum *negentropy.Sum) func([]negentropy.ID) {
	return func(ids []negentropy.ID) {
		*n += len(ids)
		for i := range ids {
			sum.Add(&ids[i])
		}
	}
}
