package harness

// Turn is one relay's one trial.
type Turn struct {
	Relay int // index of the contender
	Trial int // counts from 0
}

// Plan orders the trials of all relays so that drift of the machine touches each alike: interleaved, and every other round backwards (A B,
// B A, …).
func Plan(relays, trials int) []Turn {
	turns := make([]Turn, 0, relays*trials)
	for trial := range trials {
		for i := range relays {
			if trial%2 == 1 {
				i = relays - 1 - i
			}
			turns = append(turns, Turn{i, trial})
		}
	}
	return turns
}
