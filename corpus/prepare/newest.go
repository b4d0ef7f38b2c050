package prepare

import (
	"cmp"
	"math"
	"slices"

	"relaybench/corpus"
)

// newest finds out, of good events in the order of their arrival, before which time an event cannot
// be among the newest so many any more. It looks at them only when it holds twice as many as it
// needs: a few comparisons an event.
type newest struct {
	limit int
	held  []dated
	floor int64 // Unix seconds
}

// dated is what it knows of an event.
type dated struct {
	createdAt int64
	id        corpus.ID
}

// mostNewest bounds its memory to 160 MB: beyond that, all events are checked and sorted.
const mostNewest = 2_000_000

// newNewest returns nil where there is no limit, or one that is too large to be worth it.
func newNewest(limit int) *newest {
	if limit == 0 || limit > mostNewest {
		return nil
	}
	return &newest{limit: limit, floor: math.MinInt64}
}

// add takes in a good event. Two with one id are one.
func (n *newest) add(createdAt int64, id *corpus.ID) {
	if n == nil || createdAt < n.floor {
		return
	}
	n.held = append(n.held, dated{createdAt, *id})
	if len(n.held) < 2*n.limit {
		return
	}
	slices.SortFunc(n.held, func(a, b dated) int {
		return cmp.Or(cmp.Compare(b.createdAt, a.createdAt), slices.Compare(a.id[:], b.id[:]))
	})
	n.held = slices.CompactFunc(n.held, func(a, b dated) bool { return a.id == b.id })
	if len(n.held) >= n.limit {
		n.held = n.held[:n.limit]
		n.floor = n.held[n.limit-1].createdAt
	}
}

// before returns the time before which nothing can count.
func (n *newest) before() int64 {
	if n == nil {
		return math.MinInt64
	}
	return n.floor
}
