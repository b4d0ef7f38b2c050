package fetch

// Pace says what keeps a fetch from being faster.
type Pace string

// The answers, as they stand in notes.
const (
	ByRelay   Pace = "paced by the relay: parsing and verifying cost no speed"
	ByClient  Pace = "paced by the client's CPU when events are verified"
	ByHarness Pace = "paced by relaybench itself, even where it parses nothing"
	Mixed     Pace = "paced by neither alone: both wait, or something else takes the processors"
)

const (
	// asFast is from which share of the raw rate on verifying has cost nothing.
	asFast = 0.9
	// busy is from which share of the processors on it is relaybench that sets the pace, and shared what it has to take at least where the relay, on the same
	// machine, needs them too.
	busy   = 0.8
	shared = 0.5
)

// Discriminate finds out what sets the pace, from the same cell with and without verification: share is the verified rate as a share of the raw one.
// ok is false where one of the two says nothing.
func Discriminate(raw, parsed *Result) (share float64, p Pace, ok bool) {
	if raw == nil || parsed == nil || raw.NA+parsed.NA != "" || raw.Err != nil || parsed.Err != nil || raw.Rate() <= 0 || parsed.Rate() <= 0 {
		return 0, "", false
	}
	share = parsed.Rate() / raw.Rate()
	switch {
	case raw.ToolShare() >= busy:
		return share, ByHarness, true
	case share >= asFast:
		return share, ByRelay, true
	case parsed.ToolShare() >= shared:
		return share, ByClient, true
	}
	return share, Mixed, true
}
