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

// outcome is how a check ended before its end. It is the error that ends it.
type outcome struct {
	found
	// verdict is Failed where the relay does otherwise than it should, Stated where that bars
	// nothing even if the check does, and Undecided where it could not be found out.
	verdict results.Verdict
	text    string // for people, where it is undecided
	err     error  // why an answer did not come
}

func (o *outcome) Error() string { return o.text }
func (o *outcome) Unwrap() error { return o.err }

func fail(cause string, c counts, t texts, evidence ...results.Evidence) error {
	return &outcome{found: found{cause: cause, counts: c, texts: t, evidence: evidence}, verdict: results.Failed, text: "seen: " + cause}
}

func state(cause string, c counts, t texts) error {
	return &outcome{found: found{cause: cause, counts: c, texts: t}, verdict: results.Stated, text: "seen: " + cause}
}

func leaveOpen(cause string, c counts, t texts) error {
	text := map[string]string{results.CauseClosed: "the REQ was refused: CLOSED " + quoted(t["reason"]),
		results.CauseSlow:  "its answers are too slow for silence to mean anything",
		results.CauseNeeds: "what the question rests on does not hold",
		results.CausePlain: "an event of plain text does not come back as it was sent either",
		results.CauseFew:   "too few answers came"}[cause]
	return &outcome{found: found{cause: cause, counts: c, texts: t}, verdict: results.Undecided, text: text}
}

func closedBy(r *reply) error { return leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason}) }

// needed is a valid event that was refused where a check needed it.
func needed(e *corpus.Event, refused answer) error {
	return &outcome{found: found{cause: results.CauseSetup, counts: counts{"kind": float64(e.Kind)}, texts: texts{"reason": refused.reason}},
		verdict: results.Undecided, text: fmt.Sprintf("a valid event of kind %d was refused: %v", e.Kind, refused)}
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
	o := &outcome{found: found{cause: results.CauseLost, texts: texts{}}, verdict: results.Undecided, text: doing + ": " + err.Error(), err: err}
	switch {
	case errors.Is(err, errOutOfTime):
		o.cause = results.CauseTime
	case errors.Is(err, client.ErrSilent), errors.Is(err, context.DeadlineExceeded): // the latter of a handshake
		o.cause = results.CauseSilent
	default:
		o.texts["error"], o.texts["doing"] = err.Error(), doing
	}
	return o
}

// errNoQuestion says that a check is none for this run: nothing is to be found out, now or later.
var errNoQuestion = errors.New("there is nothing to ask")

// failure returns what an error says against the relay, nil where it says nothing.
func failure(err error) *outcome {
	if o := (*outcome)(nil); errors.As(err, &o) && o.verdict != results.Undecided {
		return o
	}
	return nil
}

// undecided is what an error says of why a check is open. No error is held against the relay: only
// what it did is.
func undecided(err error) found {
	if o := (*outcome)(nil); errors.As(err, &o) {
		return o.found
	}
	o := noAnswer("", err)
	delete(o.texts, "doing")
	return o.found
}

// finding weighs what a check saw.
func (c *check) finding(seen found, err error, relay string) results.Finding {
	verdict := results.Passed
	switch short := failure(err); {
	case err == nil:
	case short == nil:
		seen, verdict = undecided(err), results.Undecided
	default:
		if seen, verdict = short.found, short.verdict; c.stated {
			verdict = results.Stated
		}
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
