package download

import "container/heap"

// newest keeps the times of the newest events, as many as are wanted, to tell when a relay has
// nothing more to add to them: once all its events down to a time before the oldest of these have
// come. It takes 8 bytes for each event wanted.
type newest struct {
	want  int // 0: all, and nothing is kept
	times times
}

// add notes an event.
func (n *newest) add(at int64) {
	switch {
	case n.want == 0:
	case len(n.times) < n.want:
		heap.Push(&n.times, at)
	case at > n.times[0]:
		n.times[0] = at
		heap.Fix(&n.times, 0)
	}
}

// oldest is the time of the last event wanted; ok is false while there are fewer.
func (n *newest) oldest() (at int64, ok bool) {
	if n.want == 0 || len(n.times) < n.want {
		return 0, false
	}
	return n.times[0], true
}

// times is a heap with the oldest on top.
type times []int64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(int64)) }
func (t *times) Pop() any {
	old := *t
	last := old[len(old)-1]
	*t = old[:len(old)-1]
	return last
}
