package client

import (
	"cmp"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Stats are what asking came to and what it cost.
type Stats struct {
	Requests, EOSE, Closed int // Closed: without an EOSE before
	// Unfinished are REQs whose connection was lost before they ended.
	Unfinished  int
	Dials, Lost int   // connections made, and those that the relay broke, by stalling also
	Loss        error // how the last of those broke, nil without any
	Events      int64 // passed on
	Duplicates  int64 // events that came again, within what is remembered, and were not passed on
	Repeated    int64 // of those, those that one answer held twice: no lost connection explains them
	// Unexpected are events that nobody had asked for, or without an id or a time where that is
	// needed.
	Unexpected    int64
	Elsewhere     int64              // of those, the ones under a subscription id that was never asked under
	UnexpectedIDs []corpus.ID        // the first few of those that were not asked for by id
	EventBytes    int64              // of the events passed on, as JSON
	FrameBytes    int64              // of all frames
	Bytes         int64              // received on the sockets, compressed where that was agreed
	BytesUp       int64              // sent on them
	Garbage       int                // text frames that are no message
	Malformed     wire.Garbage       // what was wrong with them, with binary frames, and with events of whatever REQ
	Extensions    string             // agreed to by the relay, of the last connection
	Reason        string             // of the last CLOSED or NOTICE; a relay wrote it
	Reasons       map[string]int     // CLOSED by machine-readable prefix (NIP-01)
	Latency       *results.Histogram // of each REQ that ended: from its sending to its EOSE or CLOSED
	FirstEvent    time.Duration      // from the first REQ to the first event; 0 where none came
	Duration      time.Duration      // from the first REQ to the last answer
	Waited        time.Duration      // for a Take that had to wait

	began, ended time.Duration
}

// merge adds what another connection did. Times are joined by whoever knows the whole.
func (s *Stats) merge(o *Stats) {
	s.Requests, s.EOSE, s.Closed, s.Unfinished = s.Requests+o.Requests, s.EOSE+o.EOSE, s.Closed+o.Closed, s.Unfinished+o.Unfinished
	s.Dials, s.Lost = s.Dials+o.Dials, s.Lost+o.Lost
	s.Loss = cmp.Or(o.Loss, s.Loss)
	s.Events, s.Duplicates, s.Unexpected = s.Events+o.Events, s.Duplicates+o.Duplicates, s.Unexpected+o.Unexpected
	s.Repeated, s.Elsewhere = s.Repeated+o.Repeated, s.Elsewhere+o.Elsewhere
	s.UnexpectedIDs = append(s.UnexpectedIDs, o.UnexpectedIDs[:min(len(o.UnexpectedIDs), maxUnexpectedIDs-len(s.UnexpectedIDs))]...)
	s.EventBytes, s.FrameBytes = s.EventBytes+o.EventBytes, s.FrameBytes+o.FrameBytes
	s.Bytes, s.BytesUp = s.Bytes+o.Bytes, s.BytesUp+o.BytesUp
	s.Garbage, s.Waited = s.Garbage+o.Garbage, s.Waited+o.Waited
	s.Malformed.Add(o.Malformed)
	s.Extensions, s.Reason = cmp.Or(o.Extensions, s.Extensions), cmp.Or(o.Reason, s.Reason)
	for prefix, n := range o.Reasons {
		s.closedFor(prefix, n)
	}
	s.Latency.Merge(o.Latency)
	if o.began > 0 && (s.began == 0 || o.began < s.began) {
		s.began = o.began
	}
	if first := o.began + o.FirstEvent; o.FirstEvent > 0 && (s.FirstEvent == 0 || first < s.began+s.FirstEvent) {
		s.FirstEvent = first - s.began
	}
	s.until(max(s.ended, o.ended))
}

// until notes when the last answer, or a part of it, came.
func (s *Stats) until(at time.Duration) { s.ended, s.Duration = at, at-s.began }

// maxUnexpectedIDs bounds UnexpectedIDs.
const maxUnexpectedIDs = 5

// unexpected counts an event that its REQ had not asked for.
func (s *Stats) unexpected(id corpus.ID, known bool) {
	if s.Unexpected++; known && len(s.UnexpectedIDs) < maxUnexpectedIDs {
		s.UnexpectedIDs = append(s.UnexpectedIDs, id)
	}
}

// maxReasons bounds how many kinds of CLOSED are told apart: relays write them.
const maxReasons = 12

func (s *Stats) closedFor(prefix string, n int) {
	if _, known := s.Reasons[prefix]; !known && len(s.Reasons) >= maxReasons {
		prefix = "other"
	}
	s.Reasons[prefix] += n
}

// NewStats are those of nothing yet.
func NewStats() *Stats {
	return &Stats{Reasons: map[string]int{}, Latency: results.NewHistogram()}
}

// Sum adds up what several ways of asking at the same time came to. Its times reach from the first
// REQ of any to the last answer of any.
func Sum(all ...*Stats) *Stats {
	sum := NewStats()
	for _, s := range all {
		if s != nil {
			sum.merge(s)
		}
	}
	return sum
}
