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

// found is what a check saw, whatever that means.
type found struct {
	cause    string
	counts   counts
	texts    texts
	evidence []results.Evidence
	bearsOn  []results.Scope // instead of what the check's code bears on
}

// shortfall is what a relay does otherwise than it should.
type shortfall struct {
	found
	stated bool // it bars nothing, even where the check does
}

func (s *shortfall) Error() string { return "seen: " + s.cause }

func fail(cause string, c counts, t texts, evidence ...results.Evidence) error {
	return &shortfall{found: found{cause: cause, counts: c, texts: t, evidence: evidence}}
}

func state(cause string, c counts, t texts, evidence ...results.Evidence) error {
	return &shortfall{found{cause: cause, counts: c, texts: t, evidence: evidence}, true}
}

// errNoQuestion says that a check is none for this run: nothing is to be found out, now or later.
var errNoQuestion = errors.New("there is nothing to ask")

// openError says why a question is left open, where it is not an answer that did not come.
type openError struct{ found }

func (e *openError) Error() string {
	return map[string]string{results.CauseClosed: "the REQ was refused: CLOSED " + quoted(e.texts["reason"]),
		results.CauseSlow:  "its answers are too slow for silence to mean anything",
		results.CauseNeeds: "what the question rests on does not hold",
		results.CausePlain: "an event of plain text does not come back as it was sent either",
		results.CauseFew:   "too few answers came"}[e.cause]
}

func leaveOpen(cause string, c counts, t texts) error {
	return &openError{found{cause: cause, counts: c, texts: t}}
}

func closedBy(r *reply) error { return leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason}) }

// refusedError is a valid event that was not accepted, where a question needed it.
type refusedError struct {
	event  *corpus.Event
	answer answer
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("a valid event of kind %d was refused: %v", e.event.Kind, e.answer)
}

// refusal is a valid event that was not accepted, where that was the question. A limit of rates is
// another matter.
func (e *refusedError) refusal() error {
	if speaksOfRate(e.answer.reason) {
		return e
	}
	return fail(results.CauseRefused, counts{"kind": float64(e.event.Kind), "createdAt": float64(e.event.CreatedAt)}, texts{"reason": e.answer.reason})
}

// noAnswerError is an answer that did not come: it wraps client.ErrSilent, or why the connection ended.
type noAnswerError struct {
	doing  string // for people: "publishing"
	notice string // the NOTICE that came in its place
	odd    string // the last frame that was no message of the protocol
	binary int64  // binary frames that came
	err    error
}

func (e *noAnswerError) Unwrap() error { return e.err }

func (e *noAnswerError) Error() string {
	text := e.doing + ": " + e.err.Error()
	if e.notice != "" {
		text += " but NOTICE " + quoted(e.notice)
	}
	return text
}

// undecided is what an error says of why a question is open. No error is held against the relay:
// only what it did is, which is a shortfall.
func undecided(err error) found {
	var (
		open    *openError
		refused *refusedError
		silent  *noAnswerError
	)
	switch {
	case errors.As(err, &open):
		return open.found
	case errors.As(err, &refused):
		return found{cause: results.CauseSetup, counts: counts{"kind": float64(refused.event.Kind)}, texts: texts{"reason": refused.answer.reason}}
	case errors.Is(err, errOutOfTime):
		return found{cause: results.CauseTime}
	}
	f := found{cause: results.CauseLost, texts: texts{}}
	if errors.Is(err, client.ErrSilent) || errors.Is(err, context.DeadlineExceeded) { // the latter of a handshake
		f.cause = results.CauseSilent
	} else {
		f.texts["error"] = err.Error()
	}
	if errors.As(err, &silent) {
		if silent.notice != "" {
			f.texts["notice"] = silent.notice
		}
		if silent.binary > 0 {
			f.counts = counts{"binary": float64(silent.binary)}
		}
		if silent.odd != "" {
			f.evidence = []results.Evidence{{Code: results.EvidenceFrame, Text: silent.odd}}
		}
		if f.cause == results.CauseLost {
			f.texts["error"], f.texts["doing"] = silent.err.Error(), silent.doing
		}
	}
	return f
}

// finding weighs what a check saw.
func (c *check) finding(seen found, err error, relay string) results.Finding {
	verdict := results.Passed
	var short *shortfall
	switch {
	case err == nil:
	case errors.As(err, &short):
		seen, verdict = short.found, results.Failed
		if c.stated || short.stated {
			verdict = results.Stated
		}
	default:
		seen, verdict = undecided(err), results.Undecided
	}
	f := results.Finding{Relay: relay, Scenario: Scenario, Code: c.code, Verdict: verdict,
		Cause: seen.cause, Counts: maps.Clone(seen.counts), Texts: bounded(seen.texts), Evidence: seen.evidence}
	if len(f.Evidence) > maxEvidence {
		f.Evidence = f.Evidence[:maxEvidence]
	}
	f.Evidence = slices.Clone(f.Evidence)
	for i := range f.Evidence {
		f.Evidence[i].Text = clip(f.Evidence[i].Text, maxLine)
	}
	if verdict == results.Failed {
		f.Blames, f.BearsOn = relay, seen.bearsOn
		if f.BearsOn == nil {
			f.BearsOn = results.BearsOn(c.code, Scenario, nil)
		}
	}
	return f
}

// bounded returns the texts that are not empty, cut.
func bounded(t texts) texts {
	out := texts{}
	for name, text := range t {
		if text != "" {
			out[name] = clip(text, maxLine)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// about names an event as evidence.
func about(code string, e *corpus.Event) results.Evidence {
	kind := e.Kind
	return results.Evidence{Code: code, ID: e.ID.String(), Kind: &kind}
}

// onlyMessages tells of all that came on the connections of other checks and was no message of the
// protocol: a binary frame, text that is not UTF-8 or no JSON, an element that NIP-01 does not have
// there.
func onlyMessages(c *checker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g := &c.garbage
	if c.seen.counts = (counts{"frames": float64(g.Count)}); g.Count == 0 {
		return
	}
	var t texts
	var evidence []results.Evidence
	for i, k := range g.Kinds[:min(len(g.Kinds), maxEvidence)] {
		if i == 0 {
			t = texts{"field": k.Field.String()}
		}
		evidence = append(evidence, results.Evidence{Code: results.EvidenceFrame, Cause: k.Fault.String(), Count: int64(k.Count), Text: k.Example})
	}
	must(fail("", c.seen.counts, t, evidence...))
}
