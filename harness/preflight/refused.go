package preflight

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"relaybench/corpus"
	"relaybench/results"
)

// forgery is an EVENT that no relay may accept.
type forgery struct {
	name string // results.ForgedSignature
	id   corpus.ID
	raw  []byte
}

// refusesBadSignature: a signature with one changed bit (BIP-340).
func refusesBadSignature(a *asking) (found, error) {
	e := a.event(1, a.recent(0), "signed by somebody else")
	e.Sig[40] ^= 1
	return a.refuses(forgery{results.ForgedSignature, e.ID, e.AppendJSON(nil)})
}

// refusesBadID: once the content is changed after signing, so that id and signature still fit each other and only hashing the event again
// tells; and once the id alone, which a relay that signs for its own hash takes and serves under the false id.
func refusesBadID(a *asking) (found, error) {
	changed, renamed := a.event(1, a.recent(0), "what was signed"), a.event(1, a.recent(1), "under another name")
	changed.Content = "what was put in its place"
	renamed.ID[31] ^= 1
	return a.refuses(forgery{results.ForgedContent, changed.ID, changed.AppendJSON(nil)},
		forgery{results.ForgedID, renamed.ID, renamed.AppendJSON(nil)})
}

// refusesMalformed: fields that are absent or of another type.
func refusesMalformed(a *asking) (found, error) {
	var all []forgery
	for i, f := range []struct{ name, old, new string }{
		{results.NoSignature, `,"sig":"`, `,"not":"`},
		{results.NoCreatedAt, `"created_at":`, `"created":`},
		{results.ContentNumber, `"content":"7"`, `"content":7`},
		{results.ShortSignature, "", ""}, // see below
	} {
		e := a.event(1, a.recent(i), "7")
		text := string(e.AppendJSON(nil))
		if f.old == "" {
			text = text[:len(text)-len(`00"}`)] + `"}`
		} else {
			text = strings.Replace(text, f.old, f.new, 1)
		}
		all = append(all, forgery{f.name, e.ID, []byte(text)})
	}
	return a.refuses(all...)
}

// refuses sends each forgery over a connection of its own, all at once: a relay may close the connection, or make its sender wait. Refused is
// what gets no OK true and is not returned once a valid event that came later is.
func (a *asking) refuses(all ...forgery) (found, error) {
	seen := found{texts: texts{}} // the relay's words, by the forgery's name
	hows, words := make([]string, len(all)), make([]string, len(all))
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { hows[i], words[i], errs[i] = a.refused(f) })
	}
	group.Wait()
	for i, f := range all {
		if errs[i] != nil {
			return seen, errs[i]
		}
		seen.texts[f.name] = words[i]
		seen.evidence = append(seen.evidence, results.Evidence{Code: results.EvidenceRefused, ID: f.id.String(), Cause: hows[i], Text: f.name})
	}
	s, err := a.dial()
	if err != nil {
		return seen, err
	}
	valid := a.event(1, a.recent(60), "a valid event after those")
	if err := s.store(valid); err != nil {
		return seen, err
	}
	wanted := []corpus.ID{valid.ID}
	for _, f := range all {
		wanted = append(wanted, f.id)
	}
	for _, filter := range []corpus.Filter{a.mine(), {IDs: wanted}} {
		r, err := s.poll(func(r *reply) bool { return slices.Contains(r.ids, valid.ID) }, filter)
		if err != nil {
			return seen, err
		}
		// Whatever else is in the answer, only a forgery's own id says that it is stored.
		for _, f := range all {
			if i := slices.Index(r.ids, f.id); i >= 0 {
				text := ""
				if i < len(r.texts) {
					text = string(r.texts[i])
				}
				return seen, fail(results.CauseServed, nil, texts{"forgery": f.name},
					asked(filter), results.Evidence{Code: results.EvidenceExtra, ID: f.id.String(), Text: text})
			}
		}
		if r.closed {
			return seen, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
		}
		if !slices.Contains(r.ids, valid.ID) {
			return seen, leaveOpen(results.CauseNeeds, nil, nil) // what is stored cannot be read in time
		}
	}
	return seen, nil
}

// refused sends one forgery and says how it was refused, with the words of the relay; it fails
// where it was accepted.
func (a *asking) refused(f forgery) (how, words string, err error) {
	s, err := a.dial()
	if err != nil {
		return "", "", err
	}
	// A greeting has come by the time a first question is answered, and answers nothing.
	if _, err := s.ask(limited(a.mine(7), 1)); err != nil {
		return "", "", err
	}
	got, err := s.publishRaw(f.raw, f.id, a.quiet())
	switch {
	case a.ctx.Err() != nil:
		return "", "", err
	case err == nil && got.accepted:
		return "", "", fail(results.CauseAccepted, nil, texts{"forgery": f.name, "reason": got.reason},
			results.Evidence{Code: results.EvidenceEvent, ID: f.id.String(), Text: string(f.raw)})
	case err == nil:
		return results.CauseRefused, got.reason, nil
	case s.notice != "":
		return results.CauseNotice, s.notice, nil
	case errors.Is(err, errSilent):
		return results.CauseSilent, "", nil
	}
	return results.CauseLost, "", nil
}
