package model

import (
	"fmt"
	"strings"

	"relaybench/corpus"
)

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

// Summary compares in one line: "498 of 500 events: 2 missing, 1 extra (1 superseded)".
func (v CheckResult) Summary() string {
	var faults []string
	fault := func(n int, format string, args ...any) {
		if n > 0 {
			faults = append(faults, fmt.Sprintf("%d ", n)+fmt.Sprintf(format, args...))
		}
	}
	fault(len(v.Missing), "missing")
	fault(len(v.Extra), "extra (%s)", reasonCounts(v.Extra))
	fault(len(v.Misordered), "out of order")
	fault(len(v.Duplicate), "sent twice")
	text := fmt.Sprintf("%d of %d events", v.Got, v.Want)
	switch {
	case v.Capped:
		text += ": exactly the newest ones, as if capped"
	case len(faults) > 0:
		text += ": " + strings.Join(faults, ", ")
	default:
		text += ", as the model says"
	}
	if len(v.TieOrder) > 0 {
		text += fmt.Sprintf("; %d equally new events not lowest id first", len(v.TieOrder))
	}
	if v.Optional > 0 {
		text += fmt.Sprintf("; %d optional", v.Optional)
	}
	return text
}

// Evidence lists up to max discrepancies, a line each, faults before mere notes, and says in one
// more line how many were left out.
func (v CheckResult) Evidence(max int) []string {
	var lines []string
	total := 0
	add := func(format string, args ...any) {
		if total++; total <= max {
			lines = append(lines, fmt.Sprintf(format, args...))
		}
	}
	for _, d := range v.Missing {
		add("missing %s", d.ID)
	}
	for _, d := range v.Extra {
		add("extra %s: %s", d.ID, d.Reason)
	}
	for _, id := range v.Misordered {
		add("out of order %s: newer than the event before it", id)
	}
	for _, id := range v.Duplicate {
		add("sent twice %s", id)
	}
	for _, id := range v.TieOrder {
		add("tie order %s: a lower id than the equally new event before it", id)
	}
	if total > len(lines) {
		lines = append(lines, fmt.Sprintf("and %d more", total-len(lines)))
	}
	return lines
}

// reasonCounts is like "2 superseded, 1 deleted", in the order of the reasons.
func reasonCounts(list []Discrepancy) string {
	var counts [BeyondLimit + 1]int
	for _, d := range list {
		counts[min(d.Reason, BeyondLimit)]++
	}
	var parts []string
	for r, n := range counts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, Reason(r)))
		}
	}
	return strings.Join(parts, ", ")
}
