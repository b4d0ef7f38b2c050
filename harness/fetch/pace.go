package fetch

import "relaybench/results"

// Pace says what keeps a fetch from being faster: a cause of results.StatusPace.
type Pace string

// The answers.
const (
	ByRelay   Pace = results.CausePaceRelay
	ByClient  Pace = results.CausePaceClient
	ByHarness Pace = results.CausePaceHarness
	Mixed     Pace = results.CausePaceMixed
)

const (
	// asFast is from which share of the raw rate on verifying has cost nothing.
	asFast = 0.9
	// busy is from which share of the processors on it is relaybench that sets the pace.
	busy = 0.8
)

// Discriminate finds out what sets the pace, from the same cell with and without verification: share is the verified rate as a share of the raw one. The
// client's CPU it is where verifying as fast as the raw events came would take more than the processors that there are, whoever else uses them.
// ok is false where one of the two cells says nothing.
func Discriminate(raw, parsed *Result) (share float64, p Pace, ok bool) {
	if raw == nil || parsed == nil || !raw.NA.None() || !parsed.NA.None() || raw.Err != nil || parsed.Err != nil || raw.Rate() <= 0 || parsed.Rate() <= 0 {
		return 0, "", false
	}
	share = parsed.Rate() / raw.Rate()
	switch {
	case raw.ToolShare() >= busy:
		return share, ByHarness, true
	case share >= asFast:
		return share, ByRelay, true
	case parsed.demand()*raw.Rate() >= busy:
		return share, ByClient, true
	}
	return share, Mixed, true
}
