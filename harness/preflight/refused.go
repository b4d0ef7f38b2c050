package preflight

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"sync"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// forgery is an EVENT that no relay may accept.
type forgery struct {
	name       string // results.ForgedSignature
	id         corpus.ID
	raw        []byte
	how, words string // what became of it, and the relay's words
}

func forged(name string, e *corpus.Event) *forgery {
	return &forgery{name: name, id: e.ID, raw: e.AppendJSON(nil)}
}

// refusesBadSignature: a signature with one changed bit (BIP-340).
func refusesBadSignature(c *checker) {
	e := c.event(1, c.recent(0), "signed by somebody else")
	e.Sig[40] ^= 1
	c.refuses(forged(results.ForgedSignature, e))
}

// refusesBadID: once the content is changed after signing, so that id and signature still fit each
// other and only hashing the event again tells; and once the id alone, which a relay that signs for
// its own hash takes and serves under the false id.
func refusesBadID(c *checker) {
	changed, renamed := c.event(1, c.recent(0), "what was signed"), c.event(1, c.recent(1), "under another name")
	changed.Content = "what was put in its place"
	renamed.ID[31] ^= 1
	c.refuses(forged(results.ForgedContent, changed), forged(results.ForgedID, renamed))
}

// refusesMalformed: fields that are absent or of another type.
func refusesMalformed(c *checker) {
	var all []*forgery
	for i, edit := range []struct{ name, old, new string }{
		{results.NoSignature, `,"sig":"`, `,"not":"`},
		{results.NoCreatedAt, `"created_at":`, `"created":`},
		{results.ContentNumber, `"content":"7"`, `"content":7`},
		{results.ShortSignature, "", `"}`}, // the last byte of it is cut off
	} {
		f := forged(edit.name, c.event(1, c.recent(i), "7"))
		old := cmp.Or(edit.old, string(f.raw[len(f.raw)-len(`00"}`):]))
		f.raw = bytes.Replace(f.raw, []byte(old), []byte(edit.new), 1)
		all = append(all, f)
	}
	c.refuses(all...)
}

// refuses sends each forgery over a connection of its own, all at once: a relay may close the
// connection, or make its sender wait. Refused is what gets no OK true and is not returned once a
// valid event that came later is.
func (c *checker) refuses(all ...*forgery) {
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, f := range all {
		group.Go(func() { errs[i] = try(func() { c.refused(f) }) })
	}
	group.Wait()
	must(errors.Join(errs...))
	c.seen.Texts = texts{} // the relay's words, by the forgery's name
	for _, f := range all {
		c.seen.Texts[f.name] = f.words
		c.seen.Evidence = append(c.seen.Evidence, results.Evidence{Code: results.EvidenceRefused, ID: f.id.String(), Cause: f.how, Text: f.name})
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
			must(closedBy(r))
		case !holds(valid)(r):
			must(leaveOpen(results.CauseNeeds, nil)) // what is stored cannot be read in time
		}
	}
}

// refused sends one forgery and notes how it was refused; it fails where it was accepted.
func (c *checker) refused(f *forgery) {
	s := c.dial()
	// A greeting has come by the time a first question is answered, and answers nothing.
	s.query(limited(c.mine(7), 1))
	got, err := s.publishRaw(f.raw, f.id, c.quiet())
	switch f.how = results.CauseLost; {
	case c.ctx.Err() != nil:
		must(err)
	case err == nil && got.accepted:
		must(fail(results.CauseAccepted, nil, texts{"forgery": f.name, "reason": got.reason},
			results.Evidence{Code: results.EvidenceEvent, ID: f.id.String(), Text: string(f.raw)}))
	case err == nil:
		f.how, f.words = results.CauseRefused, got.reason
	case s.notice != "":
		f.how, f.words = results.CauseNotice, s.notice
	case errors.Is(err, client.ErrSilent):
		f.how = results.CauseSilent
	}
}
