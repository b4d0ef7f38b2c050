package negentropy

// Between returns the part of a storage whose timestamps lie in [since, until], both inclusive as
// in a filter (NIP-01), as a storage of its own that shares the items.
func Between(s Storage, since, until uint64) Storage {
	v := &timeRange{of: s}
	v.lo = s.Search(0, s.Len(), Bound{Timestamp: since})
	v.hi = s.Len()
	if until < Infinity {
		v.hi = s.Search(v.lo, s.Len(), Bound{Timestamp: until + 1})
	}
	return v
}

type timeRange struct {
	of     Storage
	lo, hi int
}

func (v *timeRange) Len() int               { return v.hi - v.lo }
func (v *timeRange) Timestamp(i int) uint64 { return v.of.Timestamp(v.lo + i) }
func (v *timeRange) ID(i int) *ID           { return v.of.ID(v.lo + i) }
func (v *timeRange) Sum(lo, hi int) Sum     { return v.of.Sum(v.lo+lo, v.lo+hi) }
func (v *timeRange) Run(lo, hi int) []ID    { return v.of.Run(v.lo+lo, v.lo+hi) }
func (v *timeRange) Search(lo, hi int, b Bound) int {
	return v.of.Search(v.lo+lo, v.lo+hi, b) - v.lo
}
