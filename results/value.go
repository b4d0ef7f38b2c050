package results

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// Values are figures of one measurement, in its unit.
type Values []float64

// UnmarshalJSON reads what encoding/json would pass over in silence or refuse without its place, so
// that Record.validate can name it: null and text as NaN, a number beyond a float64 as an infinity.
func (v *Values) UnmarshalJSON(b []byte) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var all []any
	if err := d.Decode(&all); err != nil {
		return &json.UnmarshalTypeError{Value: "value that is no list", Type: reflect.TypeFor[[]any](), Field: "trials or timeline"}
	}
	*v = nil
	if all != nil {
		*v = make(Values, len(all))
	}
	for i, x := range all {
		switch x := x.(type) {
		case json.Number:
			(*v)[i], _ = strconv.ParseFloat(x.String(), 64) // which is infinite where it is out of range
		default:
			(*v)[i] = math.NaN()
		}
	}
	return nil
}

// valid tells whether a value is one that a run can have measured: finite, and not below 0. No
// metric counts below it; where the difference of two readings does, a counter was set back.
func valid(v float64) bool { return v >= 0 && v <= math.MaxFloat64 }

// Value returns the median over the trials; ok is false when none gave a value.
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

// Range returns the smallest and the largest trial; zeros when there is none.
func (m *Measurement) Range() (lo, hi float64) {
	if len(m.Trials) == 0 {
		return 0, 0
	}
	return slices.Min(m.Trials), slices.Max(m.Trials)
}
