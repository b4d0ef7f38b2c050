package model

import "relaybench/corpus"

// Discrepancy is an event that an answer lacks (Reason is Stored) or should not have (Reason: why).
type Discrepancy struct {
	ID     corpus.ID
	Reason Reason
}

// CheckResult is what Check finds. Missing is newest first; the other lists are in the order of the
// answer, but for what is Extra because of other events in it, which stands last.
type CheckResult struct {
	Want, Got  int           // events that the model gives, and ids in the answer
	Missing    []Discrepancy // every compliant relay's answer has them
	Extra      []Discrepancy // no compliant relay's answer has them
	Misordered []corpus.ID   // newer than the event before it
	Duplicate  []corpus.ID   // came before in the same answer
	TieOrder   []corpus.ID   // as old as the event before it and of a lower id; for information: NIP-01 wants the lowest id first, few clients mind
	Optional   int           // events within the answer over which compliant relays may differ

	// Capped: the answer is free of faults and holds just the newest of what was asked for, as if
	// the relay had a lower limit of its own, and Missing is what is behind it. One answer cannot
	// tell a cap from a relay that lost its oldest events: believe a cap that several filters run
	// into at one number.
	Capped bool
}

// OK reports whether the answer is right and whole: a Capped one is not, and TieOrder no fault.
func (v CheckResult) OK() bool {
	return !v.Capped && len(v.Missing)+len(v.Extra)+len(v.Misordered)+len(v.Duplicate) == 0
}
