package results

import (
	"maps"
	"slices"
)

// Labels say under which conditions a figure was taken, by name: phase, form, mode, connections.
type Labels map[string]string

// The labels.
const (
	LabelQuery       = "query"       // a stock query: "thread"
	LabelForm        = "form"        // of a query: "hot" or "varied"; of a download: "raw" or "parsed"
	LabelPhase       = "phase"       // of a reconciled pair: "initial"
	LabelMode        = "mode"        // of a sync: "native"
	LabelDirection   = "direction"   // of a sync: "down"
	LabelStrategy    = "strategy"    // of a download: "by-id"
	LabelEncoding    = "encoding"    // "deflate" where compression was agreed (RFC 7692)
	LabelConnections = "connections" // how many at once
	LabelInFlight    = "in-flight"   // REQs on each connection, or "adaptive"
	LabelBatch       = "batch"       // ids in one REQ
	LabelStep        = "step"        // REQs in flight in one step of an adaptive download
	LabelReason      = "reason"      // why events were refused or left out
	LabelSize        = "size"        // items on either side of a reconciliation
	LabelLayer       = "layer"       // what a reconciliation went through without a relay: "loopback"
	LabelRole        = "role"        // the side of a share of the time: "harness" or "peer"
	LabelShape       = "shape"       // what a client asks for: "global"
	LabelVerifier    = "verifier"    // how a client checks signatures: "inline"
	LabelWhen        = "when"        // of a calibration: "after" for the one at the run's end
)

// Equal reports whether both hold the same labels; none and nil are the same.
func (l Labels) Equal(o Labels) bool { return maps.Equal(l, o) }

// Contains reports whether l holds every label of o with the same value.
func (l Labels) Contains(o Labels) bool {
	for name, value := range o {
		if l[name] != value {
			return false
		}
	}
	return true
}

// With returns l with the labels of o added or replaced; neither is changed.
func (l Labels) With(o Labels) Labels {
	if len(o) == 0 {
		return l
	}
	joined := make(Labels, len(l)+len(o))
	maps.Copy(joined, l)
	maps.Copy(joined, o)
	return joined
}

// Status is one thing that a reader must know of a figure. The renderers make the sentence.
type Status struct {
	Code  string `json:"code"`            // one of the Status codes
	Cause string `json:"cause,omitempty"` // a code of why, where there are several reasons
	// Because is a code that narrows the cause down: "cap" for records that are missing since
	// answers are capped.
	Because string             `json:"because,omitempty"`
	Counts  map[string]float64 `json:"counts,omitempty"`
	Texts   map[string]string  `json:"texts,omitempty"` // words of others: errors, limits
}

// Reason is why something is as it is: a code, with numbers and words of others. None is the zero
// value.
type Reason struct {
	Code   string
	Counts map[string]float64
	Texts  map[string]string
}

// None reports whether there is no reason.
func (r *Reason) None() bool { return r.Code == "" }

// Said is a reason that others put into words: an error, a relay's answer.
func Said(code, words string) Reason {
	return Reason{Code: code, Texts: map[string]string{"text": words}}
}

// The codes of a Status. A figure without one is plain.
const (
	// StatusIncomplete: the transfer did not bring all that it set out to bring. The figure says
	// how fast it went as far as it went; it is neither ranked nor compared with one that is
	// complete.
	StatusIncomplete = "incomplete"
	// StatusLimited: the harness, and not the relay, set the figure.
	StatusLimited = "limited-by-harness"
	// StatusNotMeasured: there is no figure, and Cause or Texts say why.
	StatusNotMeasured = "not-measured"
	// StatusNotComparable: the figure stands for other work than those beside it.
	StatusNotComparable = "not-comparable"
	// StatusAway: relaybench itself did not run for Counts s, Counts times, while this was
	// measured: it was stopped, suspended or not let run.
	StatusAway = "harness-away"
	// StatusRepeated: that was so the first time, of which no figure is taken; Counts are of that
	// time.
	StatusRepeated = "repeated"
	// StatusCoarse: the figure rests on few steps of a coarse clock.
	StatusCoarse = "coarse"
	// StatusNoNumber: a trial gave no finite number, or one below 0, and is left out.
	StatusNoNumber = "no-number"
	// StatusBadHistogram: the histogram of a trial could not be read, and is left out.
	StatusBadHistogram = "bad-histogram"
	// StatusBottleneck: Cause says what keeps a download from being faster.
	StatusBottleneck = "pace"
	// StatusText: words of a record of form 1, which had no codes; Texts["text"] holds them.
	StatusText = "text"
)

// Causes of StatusIncomplete.
const (
	CauseCut        = "cut"        // by a limit that whoever measures had set: Texts["limit"]
	CauseEnded      = "ended"      // early, by an error
	CauseMissing    = "missing"    // it came to its end, and records are missing
	CauseUnresolved = "unresolved" // it came to its end, and nobody knows whether that is all
	CauseShortage   = "shortage"   // the machine was short of what Because says: a Shortage code
)

// Causes of StatusLimited.
const (
	CauseCeiling  = "ceiling"  // within 20 % of what the harness reaches with a relay that does nothing
	CauseCPU      = "cpu"      // the harness used nearly all of the processors that it may use
	CauseReading  = "reading"  // frames waited to be read
	CauseLateness = "lateness" // the schedule was not kept
)

// Causes of StatusBottleneck.
const (
	BottleneckRelay   = "relay"   // parsing and verifying cost no speed
	BottleneckClient  = "client"  // verifying takes the client's processors
	BottleneckHarness = "harness" // relaybench itself, even where it parses nothing
	BottleneckMixed   = "mixed"   // neither alone
)

// AddStatus notes a status that the measurement does not have yet.
func (m *Measurement) AddStatus(s Status) {
	same := func(o Status) bool {
		return o.Code == s.Code && o.Cause == s.Cause && o.Because == s.Because && maps.Equal(o.Texts, s.Texts)
	}
	if !slices.ContainsFunc(m.Status, same) {
		m.Status = append(m.Status, s)
	}
}

// Is returns the first status of this code, nil where there is none.
func (m *Measurement) Is(code string) *Status {
	if i := slices.IndexFunc(m.Status, func(s Status) bool { return s.Code == code }); i >= 0 {
		return &m.Status[i]
	}
	return nil
}
