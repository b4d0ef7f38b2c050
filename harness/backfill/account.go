// Package backfill accounts for moving many events: what was asked, what came, what it adds up to as the state of a relay, what it cost, and
// whether it is all. Scenarios that move events in bulk record the same figures in the same way, so that a run that fell short
// never passes for one that did not.
package backfill

import (
	"fmt"
	"time"

	"relaybench/harness/measure"
	"relaybench/harness/pull"
)

// Completeness says whether a run brought all that it set out to bring.
type Completeness string

// The answers. Only figures of a complete run are ranked.
const (
	Complete   Completeness = "complete"   // all came
	Capped     Completeness = "capped"     // it was cut on purpose, by a limit of time or events that whoever measures had set
	Failed     Completeness = "failed"     // it ended before its end, or did not bring what is known to be there
	Unresolved Completeness = "unresolved" // it came to its end, and nobody knows whether that is all
)

// Requests are what was asked, and how it was answered.
type Requests struct {
	Sent       int // REQs, or NEG-OPENs and NEG-MSGs
	EOSE       int // answered to the end
	Closed     int // ended by the relay (NIP-01 CLOSED)
	Unfinished int // without an end, since the connection was lost or given up
}

// Account is the account of one run. The relay's and the tool's versions stand in the record that holds its figures.
type Account struct {
	Wall          time.Duration // from the first request to the last event dealt with
	ResponseBytes int64         // received on the sockets, compressed where that was agreed; 0: not known
	Requests      Requests
	Delivered     int // records delivered, each counted once
	Expected      int // records that had to come; less than 0: nobody knows
	Missing       int // of those, how many did not
	State         *State
	Usage         *Usage

	// Cut names the limit that ended the run, where one did: "--cell-time 10s".
	Cut string
	// Err is why the run ended early.
	Err error
	// Assured says that a run without Expected came to an end that can be relied on: every id that was asked for came.
	Assured bool
	// Why explains missing records where more is known than their number: "the relay sends 500 events at most".
	Why string
	// Excused says that what is missing is no fault of the relay: a limit that it declares, say. The run is incomplete all the same.
	Excused bool
}

// Add takes in what asking came to.
func (a *Account) Add(s *pull.Stats) {
	a.ResponseBytes += s.Bytes
	a.Requests.Sent += s.Requests
	a.Requests.EOSE += s.EOSE
	a.Requests.Closed += s.Closed
	a.Requests.Unfinished += s.Unfinished
}

// Completeness judges the run. The reason is one clause, empty for a complete run.
func (a *Account) Completeness() (c Completeness, reason string) {
	switch {
	case a.Cut != "":
		return Capped, "cut by " + a.Cut
	case a.Err != nil:
		return Failed, a.Err.Error()
	case a.Expected >= 0 && a.Missing > 0:
		reason = fmt.Sprintf("%d of %d records never came", a.Missing, a.Expected)
		if a.Why != "" {
			reason += ": " + a.Why
		}
		return Failed, reason
	case a.Expected >= 0 || a.Assured:
		return Complete, ""
	}
	reason = a.Why
	if reason == "" {
		reason = "nothing says whether that is all"
	}
	return Unresolved, reason
}

// RecordsPerSecond is what was delivered by the run's wall time.
func (a *Account) RecordsPerSecond() float64 {
	if a.Wall <= 0 {
		return 0
	}
	return float64(a.Delivered) / a.Wall.Seconds()
}

// Mark notes on a figure of the run that it is incomplete, where it is.
func (a *Account) Mark(m measure.Measurement) measure.Measurement {
	if c, _ := a.Completeness(); c != Complete {
		m.MarkIncomplete(a.kind())
	}
	return m
}

// kind is the reason without what differs from trial to trial.
func (a *Account) kind() string {
	switch c, _ := a.Completeness(); c {
	case Capped:
		return "cut by " + a.Cut
	case Failed:
		switch {
		case a.Err != nil:
			return "it ended early"
		case a.Why != "":
			return a.Why
		}
		return "records are missing"
	case Unresolved:
		if a.Why != "" {
			return "unresolved, " + a.Why
		}
		return "unresolved, nothing says whether it is all"
	}
	return ""
}

const mib = 1 << 20

// Measurements are the account's figures, marked where the run is incomplete; relay and scenario are the caller's to set. Records per second is
// the only one with a direction.
func (a *Account) Measurements() []measure.Measurement {
	var all []measure.Measurement
	add := func(metric, unit string, better measure.Better, value float64) {
		all = append(all, a.Mark(measure.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{value}}))
	}
	add("records/s", "events/s", measure.Higher, a.RecordsPerSecond())
	all[0].Samples = int64(a.Delivered)
	add("wall time", "s", measure.None, a.Wall.Seconds())
	add("delivered", "events", measure.None, float64(a.Delivered))
	if a.Expected >= 0 {
		add("expected", "events", measure.None, float64(a.Expected))
		add("missing", "events", measure.None, float64(a.Missing))
	}
	if a.ResponseBytes > 0 {
		add("response bytes", "MiB", measure.None, float64(a.ResponseBytes)/mib)
	}
	if a.Requests.Sent > 0 {
		add("requests", "requests", measure.None, float64(a.Requests.Sent))
		add("requests answered", "requests", measure.None, float64(a.Requests.EOSE))
		add("requests closed", "requests", measure.None, float64(a.Requests.Closed))
		add("requests unfinished", "requests", measure.None, float64(a.Requests.Unfinished))
	}
	if s := a.State; s != nil {
		add("current state", "events", measure.None, float64(s.Current))
		add("superseded", "events", measure.None, float64(s.Superseded))
		add("deleted", "events", measure.None, float64(s.Deleted))
		add("expired or vanished", "events", measure.None, float64(s.Gone))
		add("authors", "authors", measure.None, float64(s.Authors))
	}
	if u := a.Usage; u != nil {
		if u.Tool.Known {
			add("tool peak rss", "MiB", measure.None, float64(u.Tool.PeakRSS)/mib)
			add("tool cpu", "s", measure.None, u.Tool.CPU.Seconds())
		}
		for i, r := range u.Relays {
			name := "relay "
			if len(u.Relays) > 1 {
				name = [...]string{"source ", "sink "}[min(i, 1)]
			}
			if r.Known {
				add(name+"peak rss", "MiB", measure.None, float64(r.PeakRSS)/mib)
				add(name+"cpu", "s", measure.None, r.CPU.Seconds())
			}
		}
	}
	return all
}

// IsComplete is the check under which an account's verdict is kept.
const IsComplete = "is complete"

// Finding is the account's verdict; ok is false for a run that was cut on purpose, or that is unresolved: neither is a verdict on anybody. What bars a relay from
// rankings is required: that it ended a run early, or did not send what it holds.
func (a *Account) Finding() (f measure.Finding, ok bool) {
	f.Check = IsComplete
	c, reason := a.Completeness()
	switch c {
	case Complete:
		f.OK, f.Required = true, true
		f.Detail = fmt.Sprintf("all %d records came", a.Expected)
		if a.Expected < 0 {
			f.Detail = fmt.Sprintf("%d records came, which is all that was asked for", a.Delivered)
		}
	case Failed:
		f.Required = !a.Excused
		f.Detail = reason
	default:
		return f, false
	}
	return f, true
}
