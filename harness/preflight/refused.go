package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"relaybench/corpus"
)

// forgery is an EVENT that no relay may accept.
type forgery struct {
	what string
	id   corpus.ID
	raw  []byte
}

// refusesBadSignature: a signature with one changed bit (BIP-340).
func refusesBadSignature(a *asking) (string, error) {
	e := a.event(1, a.recent(0), "signed by somebody else")
	e.Sig[40] ^= 1
	return a.refuses(forgery{"an event with a bad signature", e.ID, e.AppendJSON(nil)})
}

// refusesBadID: once the content is changed after signing, so that id and signature still fit each other and only hashing the event again
// tells; and once the id alone, which a relay that signs for its own hash takes and serves under the false id.
func refusesBadID(a *asking) (string, error) {
	changed, renamed := a.event(1, a.recent(0), "what was signed"), a.event(1, a.recent(1), "under another name")
	changed.Content = "what was put in its place"
	renamed.ID[31] ^= 1
	return a.refuses(forgery{"an event changed after it was signed", changed.ID, changed.AppendJSON(nil)},
		forgery{"an event under another id", renamed.ID, renamed.AppendJSON(nil)})
}

// refusesMalformed: fields that are absent or of another type.
func refusesMalformed(a *asking) (string, error) {
	var all []forgery
	for i, f := range []struct{ what, old, new string }{
		{"an event without sig", `,"sig":"`, `,"not":"`},
		{"an event without created_at", `"created_at":`, `"created":`},
		{"an event whose content is a number", `"content":"7"`, `"content":7`},
		{"an event whose sig is too short", `"}`, ``}, // see below
	} {
		e := a.event(1, a.recent(i), "7")
		text := string(e.AppendJSON(nil))
		if f.new == "" {
			text = text[:len(text)-len(`00"}`)] + `"}`
		} else {
			text = strings.Replace(text, f.old, f.new, 1)
		}
		all = append(all, forgery{f.what, e.ID, []byte(text)})
	}
	return a.refuses(all...)
}

// refuses sends each forgery over a connection of its own, all at once: a relay may close the connection, or make its sender wait. Refused is
// what gets no OK true and is not returned once a valid event that came later is.
func (a *asking) refuses(all ...forgery) (string, error) {
	answers := make([]string, len(all)) // how each was refused
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { answers[i], errs[i] = a.refused(f, len(all) > 1) })
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return "", err
		}
	}
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	valid := a.event(1, a.recent(60), "a valid event after those")
	if err := s.store(valid); err != nil {
		return "", err
	}
	asked := []corpus.ID{valid.ID}
	for _, f := range all {
		asked = append(asked, f.id)
	}
	for _, filter := range []corpus.Filter{a.mine(), {IDs: asked}} {
		r, err := s.poll(exactly(ids(valid)), filter)
		if err != nil {
			return "", err
		}
		if _, extra := difference(ids(valid), r.ids); len(extra) > 0 || r.noID > 0 {
			var evidence []string
			for _, t := range r.texts {
				evidence = append(evidence, clip(string(t), 2*maxText))
			}
			return "", fail(evidence, "%s is stored and returned to readers", returned(all, extra))
		}
	}
	if len(all) == 1 {
		return fmt.Sprintf("%s gets %s", all[0].what, answers[0]), nil
	}
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.what
	}
	slices.Sort(answers)
	return fmt.Sprintf("%s: refused by %s", strings.Join(names, ", "), strings.Join(slices.Compact(answers), "; ")), nil
}

// returned names the forgery that is among the ids returned.
func returned(all []forgery, extra []corpus.ID) string {
	for _, f := range all {
		if slices.Contains(extra, f.id) {
			return f.what
		}
	}
	return "one of: " + all[0].what
}

// manner shortens an answer where it is one of several.
func manner(answer string, short bool) string {
	if first, _, cut := strings.Cut(answer, ` "`); short && cut {
		return first
	}
	return answer
}

// refused sends one forgery and says how it was refused; it fails where it was accepted.
func (a *asking) refused(f forgery, all bool) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	got, err := s.publishRaw(f.raw, f.id, a.o.Quiet)
	switch {
	case a.ctx.Err() != nil:
		return "", err
	case err == nil && got.accepted:
		return "", fail([]string{clip(string(f.raw), 2*maxText)}, "%s is accepted: %v", f.what, got)
	case err == nil:
		return manner(got.String(), all), nil
	case s.notice != "":
		return manner("NOTICE "+quoted(s.notice), all), nil
	case errors.Is(err, errSilent):
		return "no answer", nil
	}
	return "the end of the connection", nil
}
