package preflight

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"relaybench/corpus"
	"relaybench/results"
)

// text is what relays have been seen to break: everything that NIP-01 escapes, what HTML encoders
// escape, line separators, characters of two UTF-16 units, joined and combined ones, both
// directions. Other control characters have a check of their own.
const text = "quotes \" ' ` backslash \\ slash / line\nreturn\rtab\tback\bfeed\f html <b>&amp;</b> \u2028\u2029 " +
	"e\u0301 é ß İ 漢字 한국어 עברית العربية 👩\u200d👩\u200d👧 🏴 𝔘 \ufeff \u202e \\u0041 %s {} [] \U0010fffd"

// returnsEmptyTag: NIP-01 forbids a tag without items as little as it has a use for it. Refusing it
// is told; an event that comes back without it is not the one that was signed.
func returnsEmptyTag(c *checker) {
	err := try(func() {
		c.roundTrip(c.event(1, c.recent(0), "with a tag of no items", corpus.Tag{"t", "relaybench"}, corpus.Tag{}, corpus.Tag{"subject", "tags"}))
	})
	if short := failure(err); short != nil && short.Cause == results.CauseRefused {
		short.Verdict = results.Stated
	}
	must(err)
}

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

// acceptsCorpusTime: the corpus lies in the past, and all of it is to be stored.
func acceptsCorpusTime(c *checker) {
	oldest, newest := c.event(1, c.o.Oldest, "from the corpus' beginning"), c.event(1, c.o.Newest, "from the corpus' end")
	if c.o.Newest > c.now { // a corpus that ends ahead of this clock: its newest event is the corpus' matter
		newest = oldest
	}
	c.seen.Counts = counts{"oldest": float64(oldest.CreatedAt), "newest": float64(newest.CreatedAt)}
	c.accepts(oldest, newest)
}

// answersDuplicate: the same event again gets an OK that names it, true or false.
func answersDuplicate(c *checker) {
	s, e := c.dial(), c.event(1, c.recent(0), "twice")
	s.store(e)
	got, silent := s.offer(e)
	if silent {
		s.meant()
		must(fail(results.CauseNoOK, counts{"ms": milliseconds(c.o.Wait)}, nil))
	}
	if !got.named {
		must(fail(results.CauseUnnamed, nil, texts{"reason": got.reason}))
	}
	c.seen.Counts, c.seen.Texts = counts{"accepted": number(got.accepted)}, texts{"reason": got.reason}
}
