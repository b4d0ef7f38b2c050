package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"relaybench/corpus"
	"relaybench/results"
)

// storesAndReturns: an event is acknowledged, found by its id, and every field is as it was signed (NIP-01).
func storesAndReturns(a *asking) (found, error) {
	e := a.event(1, a.recent(0), "A plain note.", corpus.Tag{"t", "relaybench"}, corpus.Tag{"p", a.key.PubKey.String(), "", "mention"})
	return found{}, a.roundTrip(e)
}

// text is what relays have been seen to break: everything that NIP-01 escapes, what HTML encoders
// escape, line separators, characters of two UTF-16 units, joined and combined ones, both
// directions. Other control characters have a check of their own.
const text = "quotes \" ' ` backslash \\ slash / line\nreturn\rtab\tback\bfeed\f html <b>&amp;</b> \u2028\u2029 " +
	"e\u0301 é ß İ 漢字 한국어 עברית العربية 👩\u200d👩\u200d👧 🏴 𝔘 \ufeff \u202e \\u0041 %s {} [] \U0010fffd"

// returnsText: content and tags come back to the byte, white space at the ends, empty values and
// tags of one item included.
func returnsText(a *asking) (found, error) {
	content := " \t\n" + text + "\n  "
	e := a.event(1, a.recent(0), content, corpus.Tag{"t", "żółć"}, corpus.Tag{"subject", " " + text + " "}, corpus.Tag{"x", ""},
		corpus.Tag{"y", "", "between", ""}, corpus.Tag{"alone"})
	return found{}, a.roundTrip(e)
}

// returnsEmptyTag: NIP-01 forbids a tag without items as little as it has a use for it. Refusing it
// is told; an event that comes back without it is not the one that was signed.
func returnsEmptyTag(a *asking) (found, error) {
	e := a.event(1, a.recent(0), "with a tag of no items", corpus.Tag{"t", "relaybench"}, corpus.Tag{}, corpus.Tag{"subject", "tags"})
	err := a.roundTrip(e)
	if short := (*shortfall)(nil); errors.As(err, &short) && short.cause == results.CauseRefused {
		short.stated = true
	}
	return found{}, err
}

// roundTrip publishes an event, reads it back and compares.
func (a *asking) roundTrip(e *corpus.Event) error {
	s, err := a.dial()
	if err != nil {
		return err
	}
	got, err := s.publish(e)
	switch {
	case err != nil:
		return err
	case !got.accepted:
		return (&refusedError{e, got}).refusal()
	case !got.named:
		return fail(results.CauseUnnamed, nil, texts{"reason": got.reason})
	}
	r, err := s.returned(e)
	if err != nil {
		return err
	}
	return same(e, r.texts[slices.Index(r.ids, e.ID)])
}

// returned reads an acknowledged event back by its id. The reply holds it, among the first and with
// its text.
func (s *session) returned(e *corpus.Event) (reply, error) {
	filter := corpus.Filter{IDs: []corpus.ID{e.ID}}
	r, err := s.poll(func(r *reply) bool { return slices.Contains(r.ids, e.ID) }, filter)
	if err != nil {
		return r, fmt.Errorf("reading an event back: %w", err)
	}
	switch i := slices.Index(r.ids, e.ID); {
	case r.closed:
		return r, leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	case i < 0 && r.noID > 0: // what comes back for an id and has none
		return r, fail(results.CauseUnreadable, nil, nil, asked(filter), results.Evidence{Code: results.EvidenceEvent, Text: r.nameless})
	case i < 0 || i >= len(r.texts):
		seen := counts{"kind": float64(e.Kind), "createdAt": float64(e.CreatedAt), "ms": milliseconds(s.settle())}
		if s.elsewhere(e.ID) {
			seen["elsewhere"] = 1
		}
		return r, fail(results.CauseNotReturned, seen, nil, about(results.EvidenceMissing, e))
	}
	s.readable.Store(true)
	return r, nil
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
		from, to := max(at-6, 0), min(at+18, len(s))
		for from > 0 && !utf8.RuneStart(s[from]) {
			from--
		}
		for to < len(s) && !utf8.RuneStart(s[to]) {
			to++
		}
		return strconv.QuoteToASCII(s[min(from, len(s)):to])
	}
	return around(a), around(b)
}

// accepts publishes events and looks for each of them. A refusal, or what is not returned, is the
// relay's shortfall; in what form it comes back is another check's question.
func (a *asking) accepts(events ...*corpus.Event) error {
	s, err := a.dial()
	if err != nil {
		return err
	}
	for _, e := range events {
		err := s.store(e)
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			return refused.refusal()
		}
		if err != nil {
			return err
		}
	}
	for _, e := range events {
		if _, err := s.returned(e); err != nil {
			return err
		}
	}
	return nil
}

// acceptsCorpusTime: the corpus lies in the past, and all of it is to be stored.
func acceptsCorpusTime(a *asking) (found, error) {
	oldest, newest := a.event(1, a.o.Oldest, "from the corpus' beginning"), a.event(1, a.o.Newest, "from the corpus' end")
	if a.o.Newest > a.now { // a corpus that ends ahead of this clock: its newest event is the corpus' matter
		newest = oldest
	}
	return found{counts: counts{"oldest": float64(oldest.CreatedAt), "newest": float64(newest.CreatedAt)}}, a.accepts(oldest, newest)
}

// accepts2020: no window keeps old events out.
func accepts2020(a *asking) (found, error) {
	const newYear2020 = 1577836800
	return found{}, a.accepts(a.event(1, newYear2020, "an old note"))
}

// returnsPrivateKinds: relays may keep encrypted messages (NIP-04, NIP-59) from readers who are not authenticated; then part of the corpus
// cannot be read back.
func returnsPrivateKinds(a *asking) (found, error) {
	to := corpus.Tag{"p", newKey().PubKey.String()}
	return found{}, a.accepts(a.event(4, a.recent(0), "c2VjcmV0?iv=AAAAAAAAAAAAAAAAAAAAAA==", to), a.event(1059, a.recent(1), "c2VjcmV0", to))
}

// answersDuplicate: the same event again gets an OK that names it, true or false.
func answersDuplicate(a *asking) (found, error) {
	s, err := a.dial()
	if err != nil {
		return found{}, err
	}
	e := a.event(1, a.recent(0), "twice")
	if err := s.store(e); err != nil {
		return found{}, err
	}
	got, err := s.publish(e)
	switch {
	case errors.Is(err, errSilent):
		if err := s.meant(); err != nil {
			return found{}, err
		}
		return found{}, fail(results.CauseNoOK, counts{"ms": milliseconds(a.o.Wait)}, nil)
	case err != nil:
		return found{}, err
	case !got.named:
		return found{}, fail(results.CauseUnnamed, nil, texts{"reason": got.reason})
	}
	return found{counts: counts{"accepted": number(got.accepted)}, texts: texts{"reason": got.reason}}, nil
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
