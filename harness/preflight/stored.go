package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// text is what relays have been seen to break: everything that NIP-01 escapes, what HTML encoders
// escape, line separators, characters of two UTF-16 units, joined and combined ones, both
// directions. Other control characters have a check of their own.
const text = "quotes \" ' ` backslash \\ slash / line\nreturn\rtab\tback\bfeed\f html <b>&amp;</b> \u2028\u2029 " +
	"e\u0301 é ß İ 漢字 한국어 עברית العربية 👩\u200d👩\u200d👧 🏴 𝔘 \ufeff \u202e \\u0041 %s {} [] \U0010fffd"

// roundTrip publishes an event, reads it back and compares.
func (c *checker) roundTrip(e *corpus.Event) {
	s := c.dial()
	if got := s.accepted(e); !got.named {
		must(fail(results.CauseUnnamed, nil, texts{"reason": got.reason}))
	}
	must(same(e, s.returned(e)))
}

// returned reads an acknowledged event back by its id, and returns its text.
func (s *session) returned(e *corpus.Event) []byte {
	filter := corpus.Filter{IDs: ids(e)}
	var r *reply
	if err := try(func() { r = s.read(holds(e), filter) }); err != nil {
		must(fmt.Errorf("reading an event back: %w", err))
	}
	if !slices.Contains(r.ids, e.ID) && r.noID > 0 { // what comes back for an id and has none
		must(fail(results.CauseUnreadable, nil, nil, queried(filter), results.Evidence{Code: results.EvidenceEvent, Text: r.nameless}))
	}
	text := r.text(e.ID)
	if text == nil {
		seen := counts{"kind": float64(e.Kind), "createdAt": float64(e.CreatedAt), "ms": milliseconds(s.settle())}
		if s.elsewhere(e.ID) {
			seen["elsewhere"] = 1
		}
		must(fail(results.CauseNotReturned, seen, nil, about(results.EvidenceMissing, e)))
	}
	s.readable.Store(true)
	return text
}

// same compares a returned event with what was signed, field by field.
func same(want *corpus.Event, returned []byte) error {
	altered := about(results.EvidenceAltered, want)
	altered.Text = string(returned)
	got, err := corpus.ParseEvent(returned)
	if err != nil {
		altered.Cause = results.CauseUnreadable
		return fail(results.CauseUnreadable, nil, texts{"error": err.Error()}, altered)
	}
	var differ []string
	for _, field := range []struct {
		name  string
		equal bool
	}{
		{"pubkey", got.PubKey == want.PubKey}, {"created_at", got.CreatedAt == want.CreatedAt}, {"kind", got.Kind == want.Kind},
		{"tags", slices.EqualFunc(got.Tags, want.Tags, slices.Equal[corpus.Tag])},
		{"content", got.Content == want.Content}, {"sig", got.Sig == want.Sig},
	} {
		if !field.equal {
			differ = append(differ, field.name)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	facts := texts{"fields": strings.Join(differ, ", ")}
	if slices.Contains(differ, "content") {
		facts["sent"], facts["returned"] = apart(want.Content, got.Content)
	}
	cause := results.CauseAltered
	kept := slices.DeleteFunc(slices.Clone(want.Tags), func(t corpus.Tag) bool { return len(t) == 0 })
	switch {
	case slices.Equal(differ, []string{"content"}) && got.Content == strings.TrimFunc(want.Content, unicode.IsSpace):
		cause = results.CauseTrimmed
	case slices.Equal(differ, []string{"tags"}) && slices.EqualFunc(got.Tags, kept, slices.Equal[corpus.Tag]):
		cause = results.CauseTagsDropped
	}
	altered.Cause = cause
	return fail(cause, nil, facts, altered)
}

// apart returns the texts around the first place where they differ, in ASCII.
func apart(a, b string) (string, string) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	around := func(s string) string {
		return strconv.QuoteToASCII(strings.ToValidUTF8(s[min(max(at-6, 0), len(s)):min(at+18, len(s))], ""))
	}
	return around(a), around(b)
}

// accepts publishes events and looks for each of them. A refusal, or what is not returned, is the
// relay's shortfall; in what form it comes back is another check's question.
func (c *checker) accepts(events ...*corpus.Event) {
	s := c.dial()
	for _, e := range events {
		s.accepted(e)
	}
	for _, e := range events {
		s.returned(e)
	}
}

// controls are the control characters for which NIP-01 has no escape of its own. It wants them
// verbatim, JSON forbids that below U+0020, and implementations hash either form.
var controls = func() (all []rune) {
	for c := rune(0); c < 0x20; c++ {
		if !strings.ContainsRune("\b\t\n\f\r", c) {
			all = append(all, c)
		}
	}
	return append(all, 0x7f)
}()

// The ways in which a relay takes a control character, as counts and texts of the finding name
// them.
const (
	controlAccepted   = "accepted" // and returned as it was sent
	controlRefused    = "refused"
	controlAltered    = "altered"
	controlLost       = "lost"       // acknowledged and not returned, or in a frame that is no JSON
	controlUnanswered = "unanswered" // no OK, or the end of the connection
)

// controlCharacters: which control characters a relay takes, each of them alone where it does not
// take all at once.
func controlCharacters(c *checker) {
	c.seen.Counts = counts{controlAccepted: float64(len(controls))}
	err := try(func() { c.roundTrip(c.event(1, c.recent(0), "all: "+string(controls)+".")) })
	if err == nil {
		return
	}
	if failure(err) == nil && !errors.Is(err, client.ErrSilent) {
		must(err) // an answer that did not come may be what becomes of such an event
	}
	// What becomes of every event says nothing of these characters.
	err = try(func() { c.roundTrip(c.event(1, c.recent(1), "nothing unusual")) })
	if short := failure(err); short == nil {
		must(err)
	} else if short.Cause != results.CauseUnnamed {
		must(leaveOpen(results.CausePlain, nil))
	}
	how, reason := c.controlsAlone()
	seen, said := counts{}, texts{"reason": reason}
	of := make(map[string][]rune)
	for _, r := range controls {
		of[how[r]] = append(of[how[r]], r)
	}
	for way, chars := range of {
		seen[way], said[way] = float64(len(chars)), runs(chars)
	}
	if len(of[controlAccepted]) != len(controls) {
		must(fail(results.CauseCharacters, seen, said))
	}
}

// runs names characters, and shortens what follows each other: U+0001–U+0003.
func runs(chars []rune) string {
	var short []string
	for i, n := 0, 0; i < len(chars); i += n {
		for n = 1; i+n < len(chars) && chars[i+n] == chars[i]+rune(n); n++ {
		}
		name := fmt.Sprintf("U+%04X", chars[i])
		if n > 1 {
			name += fmt.Sprintf("–U+%04X", chars[i+n-1])
		}
		short = append(short, name)
	}
	return strings.Join(short, ", ")
}

// controlsAlone publishes an event for each character, and reads the accepted ones back.
func (c *checker) controlsAlone() (how map[rune]string, reason string) {
	const patience = 3 // ends of connections and silences, before the rest counts as unanswered too
	how = make(map[rune]string)
	events := make(map[rune]*corpus.Event)
	var want []corpus.ID // of them
	var s *session
	failures := 0
	for i, r := range controls {
		if failures == patience {
			how[r] = controlUnanswered
			continue
		}
		if s == nil {
			s = c.dial()
		}
		e := c.event(1, c.recent(i), "between a"+string(r)+"b")
		got, err := s.publish(e)
		switch {
		case c.ctx.Err() != nil:
			must(context.Cause(c.ctx))
		case err != nil:
			how[r], s = controlUnanswered, nil
			failures++
		case !got.accepted:
			if speaksOfRate(got.reason) {
				must(needed(e, got))
			}
			how[r], reason = controlRefused, got.reason
		default:
			how[r], events[r] = controlLost, e // until it comes back
			want = append(want, e.ID)
		}
	}
	s = c.dial()
	if failures > 0 { // silence says something of the characters only where other events are answered
		s.store(c.event(1, c.recent(60), "nothing unusual"))
	}
	if len(events) == 0 {
		return how, reason
	}
	answer := s.read(exactly(want), limited(corpus.Filter{IDs: want}, 50))
	for r, e := range events {
		if text := answer.text(e.ID); text != nil && same(e, text) != nil {
			how[r] = controlAltered
		} else if text != nil {
			how[r] = controlAccepted
		}
	}
	return how, reason
}

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
