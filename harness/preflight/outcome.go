package preflight

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// counts and texts are the facts of a finding.
type (
	counts = map[string]float64
	texts  = map[string]string
)

// outcome is how a check ended before its end. It is the error that ends it.
type outcome struct {
	// Finding is what was seen. Its verdict is Failed where the relay does otherwise than it
	// should, Stated where that bars nothing even if the check does, and Undecided where it could
	// not be found out. BearsOn is instead of what the check's code bears on.
	results.Finding
	text string // for people, where it is undecided
	err  error  // why an answer did not come
}

func (o *outcome) Error() string { return o.text }
func (o *outcome) Unwrap() error { return o.err }

func found(verdict results.Verdict, text, cause string, c counts, t texts, evidence ...results.Evidence) *outcome {
	return &outcome{Finding: results.Finding{Verdict: verdict, Cause: cause, Counts: c, Texts: t, Evidence: evidence}, text: text}
}

func fail(cause string, c counts, t texts, evidence ...results.Evidence) error {
	return found(results.Failed, "seen: "+cause, cause, c, t, evidence...)
}

func state(cause string, c counts, t texts) error {
	return found(results.Stated, "seen: "+cause, cause, c, t)
}

func leaveOpen(cause string, c counts) error {
	text := map[string]string{results.CauseSlow: "its answers are too slow for silence to mean anything",
		results.CauseNeeds: "what the question rests on does not hold",
		results.CausePlain: "an event of plain text does not come back as it was sent either",
		results.CauseFew:   "too few answers came"}[cause]
	return found(results.Undecided, text, cause, c, nil)
}

func closedBy(r *reply) error {
	return found(results.Undecided, "the REQ was refused: CLOSED "+quoted(r.reason), results.CauseClosed, nil, texts{"reason": r.reason})
}

// needed is a valid event that was refused where a check needed it.
func needed(e *corpus.Event, refused answer) error {
	return found(results.Undecided, fmt.Sprintf("a valid event of kind %d was refused: %v", e.Kind, refused), results.CauseSetup,
		counts{"kind": float64(e.Kind)}, texts{"reason": refused.reason})
}

// refusal is a valid event that was refused where that was the question. A limit of rates is
// another matter.
func refusal(e *corpus.Event, refused answer) error {
	if speaksOfRate(refused.reason) {
		return needed(e, refused)
	}
	return fail(results.CauseRefused, counts{"kind": float64(e.Kind), "createdAt": float64(e.CreatedAt)}, texts{"reason": refused.reason})
}

// noAnswer is an answer that did not come: since none came by a deadline (client.ErrSilent), or
// since the connection ended. doing is for people.
func noAnswer(doing string, err error) *outcome {
	o := found(results.Undecided, doing+": "+err.Error(), results.CauseLost, nil, texts{})
	o.err = err
	switch {
	case errors.Is(err, errOutOfTime):
		o.Cause = results.CauseTime
	case errors.Is(err, client.ErrSilent), errors.Is(err, context.DeadlineExceeded): // the latter of a handshake
		o.Cause = results.CauseSilent
	default:
		o.Texts["error"], o.Texts["doing"] = err.Error(), doing
	}
	return o
}

// errNoQuestion says that a check is none for this run: nothing is to be found out, now or later.
var errNoQuestion = errors.New("there is nothing to ask")

// failure returns what an error says against the relay, nil where it says nothing.
func failure(err error) *outcome {
	if o := (*outcome)(nil); errors.As(err, &o) && o.Verdict != results.Undecided {
		return o
	}
	return nil
}

// undecided is what an error says of why a check is open. No error is held against the relay: only
// what it did is.
func undecided(err error) results.Finding {
	o := (*outcome)(nil)
	if !errors.As(err, &o) {
		o = noAnswer("", err)
	}
	return o.Finding
}

// finding weighs what a check saw.
func (c *check) finding(f results.Finding, err error, relay string) results.Finding {
	f.Verdict = results.Passed
	if short := failure(err); short != nil {
		if f = short.Finding; c.stated {
			f.Verdict = results.Stated
		}
	} else if err != nil {
		f = undecided(err)
	}
	f.Relay, f.Scenario, f.Code = relay, Scenario, c.code
	f.Counts, f.Texts = maps.Clone(f.Counts), bounded(f.Texts)
	f.Evidence = slices.Clone(f.Evidence[:min(len(f.Evidence), maxEvidence)])
	for i := range f.Evidence {
		f.Evidence[i].Text = clip(f.Evidence[i].Text, maxLine)
	}
	switch {
	case f.Verdict != results.Failed:
		f.BearsOn = nil
	case f.BearsOn == nil:
		f.BearsOn = results.BearsOn(c.code, Scenario, nil)
		fallthrough
	default:
		f.Blames = relay
	}
	return f
}

// bounded returns the texts that are not empty, cut.
func bounded(t texts) (out texts) {
	for name, text := range t {
		if text != "" {
			if out == nil {
				out = texts{}
			}
			out[name] = clip(text, maxLine)
		}
	}
	return out
}

// about names an event as evidence.
func about(code string, e *corpus.Event) results.Evidence {
	return results.Evidence{Code: code, ID: e.ID.String(), Kind: new(e.Kind)}
}
