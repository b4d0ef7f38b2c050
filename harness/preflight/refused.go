package preflight

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// forgery is an EVENT that no relay may accept.
type forgery struct {
	name string // results.ForgedSignature
	id   corpus.ID
	raw  []byte
}

// refusesBadSignature: a signature with one changed bit (BIP-340).
func refusesBadSignature(c *checker) {
	e := c.event(1, c.recent(0), "signed by somebody else")
	e.Sig[40] ^= 1
	c.refuses(forgery{results.ForgedSignature, e.ID, e.AppendJSON(nil)})
}

// refusesBadID: once the content is changed after signing, so that id and signature still fit each
// other and only hashing the event again tells; and once the id alone, which a relay that signs for
// its own hash takes and serves under the false id.
func refusesBadID(c *checker) {
	changed, renamed := c.event(1, c.recent(0), "what was signed"), c.event(1, c.recent(1), "under another name")
	changed.Content = "what was put in its place"
	renamed.ID[31] ^= 1
	c.refuses(forgery{results.ForgedContent, changed.ID, changed.AppendJSON(nil)},
		forgery{results.ForgedID, renamed.ID, renamed.AppendJSON(nil)})
}

// refusesMalformed: fields that are absent or of another type.
func refusesMalformed(c *checker) {
	var all []forgery
	for i, f := range []struct{ name, old, new string }{
		{results.NoSignature, `,"sig":"`, `,"not":"`},
		{results.NoCreatedAt, `"created_at":`, `"created":`},
		{results.ContentNumber, `"content":"7"`, `"content":7`},
		{results.ShortSignature, "", ""}, // see below
	} {
		e := c.event(1, c.recent(i), "7")
		text := string(e.AppendJSON(nil))
		if f.old == "" {
			text = text[:len(text)-len(`00"}`)] + `"}`
		} else {
			text = strings.Replace(text, f.old, f.new, 1)
		}
		all = append(all, forgery{f.name, e.ID, []byte(text)})
	}
	c.refuses(all...)
}

// refuses sends each forgery over a connection of its own, all at once: a relay may close the
// connection, or make its sender wait. Refused is what gets no OK true and is not returned once a
// valid event that came later is.
func (c *checker) refuses(all ...forgery) {
	hows, words := make([]string, len(all)), make([]string, len(all))
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { errs[i] = try(func() { hows[i], words[i] = c.refused(f) }) })
	}
	group.Wait()
	c.seen.texts = texts{} // the relay's words, by the forgery's name
	for i, f := range all {
		must(errs[i])
		c.seen.texts[f.name] = words[i]
		c.seen.evidence = append(c.seen.evidence, results.Evidence{Code: results.EvidenceRefused, ID: f.id.String(), Cause: hows[i], Text: f.name})
	}
	s, valid := c.dial(), c.event(1, c.recent(60), "a valid event after those")
	s.store(valid)
	wanted := ids(valid)
	for _, f := range all {
		wanted = append(wanted, f.id)
	}
	for _, filter := range []corpus.Filter{c.mine(), {IDs: wanted}} {
		r := s.poll(holds(valid), filter)
		// Whatever else is in the answer, only a forgery's own id says that it is stored.
		for _, f := range all {
			if slices.Contains(r.ids, f.id) {
				must(fail(results.CauseServed, nil, texts{"forgery": f.name},
					queried(filter), results.Evidence{Code: results.EvidenceExtra, ID: f.id.String(), Text: string(r.text(f.id))}))
			}
		}
		switch {
		case r.closed:
			must(closedBy(&r))
		case !holds(valid)(&r):
			must(leaveOpen(results.CauseNeeds, nil, nil)) // what is stored cannot be read in time
		}
	}
}

// refused sends one forgery and says how it was refused, with the words of the relay; it fails
// where it was accepted.
func (c *checker) refused(f forgery) (how, words string) {
	s := c.dial()
	// A greeting has come by the time a first question is answered, and answers nothing.
	s.query(limited(c.mine(7), 1))
	got, err := s.publishRaw(f.raw, f.id, c.quiet())
	switch {
	case c.ctx.Err() != nil:
		must(err)
	case err == nil && got.accepted:
		must(fail(results.CauseAccepted, nil, texts{"forgery": f.name, "reason": got.reason},
			results.Evidence{Code: results.EvidenceEvent, ID: f.id.String(), Text: string(f.raw)}))
	case err == nil:
		return results.CauseRefused, got.reason
	case s.notice != "":
		return results.CauseNotice, s.notice
	case errors.Is(err, client.ErrSilent):
		return results.CauseSilent, ""
	}
	return results.CauseLost, ""
}
