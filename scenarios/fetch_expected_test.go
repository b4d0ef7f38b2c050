package scenarios

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/results"
)

// cellOf is a cell in which so many events a second came, each of which took so much of
// relaybench's CPU time on one core.
func cellOf(rate int, cpu time.Duration) *fetchResult {
	return &fetchResult{Account: load.Account{Wall: time.Second, Delivered: rate, Usage: &load.Usage{Tool: load.Spent{CPU: time.Duration(rate) * cpu * time.Duration(runtime.GOMAXPROCS(0))}}}}
}

func TestWhatSetsThePace(t *testing.T) {
	failed := cellOf(1000, time.Microsecond)
	failed.Err = errors.New("it broke")
	for _, c := range []struct {
		name        string
		raw, parsed *fetchResult
		share       float64
		want        string
	}{
		{"a slow relay", cellOf(1000, time.Microsecond), cellOf(950, 80*time.Microsecond), 0.95, results.BottleneckRelay},
		{"a fast relay and a client that cannot verify as fast", cellOf(100_000, time.Microsecond), cellOf(10_000, 80*time.Microsecond), 0.1, results.BottleneckClient},
		{"the same, while others take most of the processors", cellOf(100_000, time.Microsecond), cellOf(1000, 80*time.Microsecond), 0.01, results.BottleneckClient},
		{"slower, though the client could verify as fast", cellOf(1000, time.Microsecond), cellOf(500, 80*time.Microsecond), 0.5, results.BottleneckMixed},
		{"a relay as fast as relaybench can read", cellOf(500_000, 1800*time.Nanosecond), cellOf(10_000, 80*time.Microsecond), 0.02, results.BottleneckHarness},
		{"one of them failed", failed, cellOf(10, time.Microsecond), 0, ""},
		{"nothing came", cellOf(0, 0), cellOf(10, time.Microsecond), 0, ""},
		{"one of them was not measured", &fetchResult{notMeasured: results.Reason{Code: "no"}}, cellOf(10, time.Microsecond), 0, ""},
		{"there is no other", nil, cellOf(10, time.Microsecond), 0, ""},
	} {
		share, got := bottleneck(c.raw, c.parsed)
		if got != c.want || share < c.share-1e-9 || share > c.share+1e-9 {
			t.Errorf("%s: %v of raw, %q", c.name, share, got)
		}
	}
}

func TestTheTimeIsDividedByEventsWhereTheyAreKnown(t *testing.T) {
	times := func(all ...int64) *expectedSet { return &expectedSet{now: 1000, times: all} }
	at := corpus.Int64
	for _, c := range []struct {
		name   string
		set    *expectedSet
		filter corpus.Filter
		n      int
		want   []int64 // the first seconds of all shares but the first
	}{
		{"equally many", times(9, 8, 7, 6, 5, 4, 3, 2), corpus.Filter{}, 4, []int64{4, 6, 8}},
		{"a busy second", times(9, 5, 5, 5, 5, 5, 5, 1), corpus.Filter{}, 4, []int64{5}},
		{"one second", times(5, 5, 5), corpus.Filter{}, 4, nil},
		{"fewer events than shares", times(7, 5), corpus.Filter{}, 4, []int64{7}},
		{"nothing is known: equal time", times(), corpus.Filter{Since: at(100), Until: at(500)}, 4, []int64{200, 300, 400}},
		{"nothing is known up to now", times(), corpus.Filter{Since: at(800)}, 2, []int64{900}},
		{"an empty time", times(), corpus.Filter{Since: at(500), Until: at(400)}, 2, nil},
		{"one share", times(9, 8, 7), corpus.Filter{}, 1, nil},
	} {
		spans := c.set.shares(&c.filter, c.n)
		if len(spans) != len(c.want)+1 {
			t.Errorf("%s: %d shares, want %d", c.name, len(spans), len(c.want)+1)
			continue
		}
		if spans[0].since != c.filter.Since || spans[len(spans)-1].until != c.filter.Until {
			t.Errorf("%s: the shares do not reach from end to end", c.name)
		}
		for i, first := range c.want {
			if *spans[i+1].since != first || *spans[i].until != first-1 {
				t.Errorf("%s: share %d begins at %d, want %d", c.name, i+2, *spans[i+1].since, first)
			}
		}
	}
}
