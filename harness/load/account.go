package load

import (
	"cmp"
	"errors"
	"maps"
	"time"

	"relaybench/relays/client"
	"relaybench/results"
)

// Completeness says whether a run brought all that it set out to bring.
type Completeness string

// The answers. Only figures of a complete run are ranked.
const (
	Complete   Completeness = "complete"   // all came
	Capped     Completeness = "capped"     // cut by a limit of time or events that the user set
	Failed     Completeness = "failed"     // it ended before its end, or did not bring what is known to be there
	Unresolved Completeness = "unresolved" // it ended, and it is unknown whether that is all
)

// Requests are what was asked, and how it was answered.
type Requests struct {
	Sent       int // REQs, or NEG-OPENs and NEG-MSGs
	EOSE       int // answered to the end
	Closed     int // ended by the relay (NIP-01 CLOSED)
	Unfinished int // without an end, since the connection was lost or given up
}

// Account is the account of one run. The relay's and the tool's versions stand in the record that
// holds its figures.
type Account struct {
	Wall          time.Duration // from the first request to the last event dealt with, or to its being ended
	ResponseBytes int64         // received on the sockets, compressed where that was agreed; 0: not known
	Requests      Requests
	Delivered     int // records delivered, each counted once
	Expected      int // records that had to come; less than 0: unknown
	Missing       int // of those, how many did not
	State         *State
	Usage         *Usage

	// Cut names the limit that ended the run, where one did: "--cell-time 10s".
	Cut string
	// Err is why the run ended early.
	Err error
	// Assured says that a run without Expected came to an end that can be relied on: every id that
	// was asked for came.
	Assured bool
	// Why explains missing records where more is known than their number.
	Why results.Reason
	// Excused says that what is missing is no fault of the relay: a limit that it declares, say, or
	// an end whose fault is unknown. The run is incomplete nevertheless.
	Excused bool
}

// Add takes in what asking came to.
func (a *Account) Add(s *client.Stats) {
	a.ResponseBytes += s.Bytes
	a.Requests.Sent += s.Requests
	a.Requests.EOSE += s.EOSE
	a.Requests.Closed += s.Closed
	a.Requests.Unfinished += s.Unfinished
}

// End notes what ended the run early: a *CutError was meant, and anything else was not.
func (a *Account) End(err error) {
	if cut := (*CutError)(nil); errors.As(err, &cut) {
		a.Cut = cut.Limit
		return
	}
	a.Err = err
}

// ended is Err as a reason.
func (a *Account) ended() results.Reason {
	var flood *client.FloodError
	var late *TimeError
	r := results.Reason{Code: results.CauseEnded, Texts: map[string]string{"error": a.Err.Error()}}
	switch {
	case errors.As(a.Err, &flood):
		r.Code, r.Counts = results.WhyFlood, map[string]float64{"sent": float64(flood.Sent), "asked": float64(flood.Asked)}
	case errors.As(a.Err, &late):
		r.Code, r.Counts = results.WhyTime, map[string]float64{"s": late.After.Seconds()}
	}
	return r
}

// Completeness judges the run.
func (a *Account) Completeness() Completeness {
	switch {
	case a.Cut != "":
		return Capped
	case a.Err != nil, a.Expected >= 0 && a.Missing > 0:
		return Failed
	case a.Expected >= 0 || a.Assured:
		return Complete
	}
	return Unresolved
}

// status says how the run is incomplete, without what differs from trial to trial; nil for a
// complete one.
func (a *Account) status() *results.Status {
	s := &results.Status{Code: results.StatusIncomplete, Because: a.Why.Code, Counts: a.Why.Counts, Texts: a.Why.Texts}
	switch a.Completeness() {
	case Complete:
		return nil
	case Capped:
		s.Cause, s.Because, s.Counts, s.Texts = results.CauseCut, "", nil, map[string]string{"limit": a.Cut}
	case Unresolved:
		s.Cause = results.CauseUnresolved
	case Failed:
		if s.Cause = results.CauseMissing; a.Err == nil {
			break
		}
		s.Cause, s.Because, s.Counts, s.Texts = results.CauseEnded, "", nil, nil
		if why := a.ended(); why.Code != s.Cause {
			s.Because, s.Counts = why.Code, why.Counts
		}
	}
	return s
}

// RecordsPerSecond is what was delivered by the run's wall time.
func (a *Account) RecordsPerSecond() float64 {
	if a.Wall <= 0 {
		return 0
	}
	return float64(a.Delivered) / a.Wall.Seconds()
}

// Mark notes on a figure of the run that it is incomplete, where it is.
func (a *Account) Mark(m results.Measurement) results.Measurement {
	if s := a.status(); s != nil {
		m.AddStatus(*s)
	}
	return m
}

const mib = 1 << 20

// Measurements are the account's figures, marked where the run is incomplete; relay and scenario
// are the caller's to set. Records per second is the only one with a direction.
func (a *Account) Measurements() []results.Measurement {
	var all []results.Measurement
	add := func(metric, unit string, better results.Better, value float64) {
		all = append(all, a.Mark(results.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{value}}))
	}
	add("records/s", "events/s", results.Higher, a.RecordsPerSecond())
	all[0].Samples = int64(a.Delivered)
	add("wall time", "s", results.None, a.Wall.Seconds())
	add("delivered", "events", results.None, float64(a.Delivered))
	count := func(when bool, unit string, figures ...any) { // names and numbers in turn
		for i := 0; when && i < len(figures); i += 2 {
			add(figures[i].(string), unit, results.None, float64(figures[i+1].(int)))
		}
	}
	count(a.Expected >= 0, "events", "expected", a.Expected, "missing", a.Missing)
	if a.ResponseBytes > 0 {
		add("response bytes", "MiB", results.None, float64(a.ResponseBytes)/mib)
	}
	count(a.Requests.Sent > 0, "requests", "requests", a.Requests.Sent, "requests answered", a.Requests.EOSE,
		"requests closed", a.Requests.Closed, "requests unfinished", a.Requests.Unfinished)
	if s := a.State; s != nil {
		count(true, "events", "current state", s.Current, "superseded", s.Superseded, "deleted", s.Deleted, "expired or vanished", s.Gone)
		count(true, "authors", "authors", s.Authors)
	}
	if u := a.Usage; u != nil {
		names := []string{"tool ", "relay "}
		if len(u.Relays) > 1 {
			names = []string{"tool ", "source ", "sink "}
		}
		for i, used := range append([]Spent{u.Tool}, u.Relays...) {
			if used.Known {
				add(names[i]+"peak rss", "MiB", results.None, float64(used.PeakRSS)/mib)
				add(names[i]+"cpu", "s", results.None, used.CPU.Seconds())
			}
		}
	}
	return all
}

// Finding is the account's verdict; ok is false for a run that was cut on purpose, or that is
// unresolved: neither is a verdict on anybody. What bars a relay's figures is that it ended a run
// early, or did not send what it holds.
func (a *Account) Finding() (f results.Finding, ok bool) {
	f.Code, f.Verdict = results.CodeComplete, results.Passed
	f.Counts = map[string]float64{"delivered": float64(a.Delivered)}
	if a.Expected >= 0 {
		f.Counts["expected"], f.Counts["missing"] = float64(a.Expected), float64(a.Missing)
	}
	how := a.Completeness()
	if how != Failed {
		return f, how == Complete
	}
	if f.Verdict = results.Failed; a.Excused {
		f.Verdict = results.Stated
	}
	why := a.Why
	if a.Err != nil {
		why = a.ended()
	}
	f.Cause, f.Texts = cmp.Or(why.Code, results.CauseMissing), maps.Clone(why.Texts)
	maps.Copy(f.Counts, why.Counts)
	return f, true
}
