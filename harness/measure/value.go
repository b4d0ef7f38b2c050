package measure

import "slices"

// Value returns the median over the trials, in the measurement's unit; ok is false when no trial gave a value.
func (m *Measurement) Value() (v float64, ok bool) {
	n := len(m.Trials)
	if n == 0 {
		return 0, false
	}
	s := slices.Sorted(slices.Values(m.Trials))
	if n%2 == 1 {
		return s[n/2], true
	}
	// Halved before the sum, which could otherwise exceed a float64.
	return s[n/2-1]/2 + s[n/2]/2, true
}

// Range returns the smallest and the largest trial, in the measurement's unit; zeros when there is none.
func (m *Measurement) Range() (lo, hi float64) {
	if len(m.Trials) == 0 {
		return 0, 0
	}
	return slices.Min(m.Trials), slices.Max(m.Trials)
}
