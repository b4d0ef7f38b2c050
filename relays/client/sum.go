package client

// Sum adds up what several ways of asking at the same time came to. Its times reach from the first REQ of any to the last answer of any.
func Sum(all ...*Stats) *Stats {
	sum := newStats()
	for _, s := range all {
		if s != nil {
			sum.merge(s)
		}
	}
	return sum
}
