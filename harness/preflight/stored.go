package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"relaybench/corpus"
)

// storesAndReturns: an event is acknowledged, found by its id, and every field is as it was signed (NIP-01).
func storesAndReturns(a *asking) (string, error) {
	e := a.event(1, a.recent(0), "A plain note.", corpus.Tag{"t", "relaybench"}, corpus.Tag{"p", a.key.PubKey.String(), "", "mention"})
	if err := a.roundTrip(e); err != nil {
		return "", err
	}
	return "a valid event is acknowledged and comes back by its id with every field as signed", nil
}

// text is what relays have been seen to break: everything that NIP-01 escapes, what HTML encoders escape, line separators, characters of
// two UTF-16 units, joined and combined ones, both directions.
const text = "quotes \" ' ` backslash \\ slash / line\nreturn\rtab\tback\bfeed\f html <b>&amp;</b> \u2028\u2029 " +
	"e\u0301 é ß İ 漢字 한국어 עברית العربية 👩\u200d👩\u200d👧 🏴 𝔘 \ufeff \u202e \u007f \\u0041 %s {} [] \U0010fffd"

// returnsText: content and tags come back to the byte.
func returnsText(a *asking) (string, error) {
	e := a.event(1, a.recent(0), text, corpus.Tag{"t", "żółć"}, corpus.Tag{"subject", text}, corpus.Tag{"x", ""}, corpus.Tag{"alone"})
	if err := a.roundTrip(e); err != nil {
		return "", err
	}
	return "escapes, emoji, line separators and both writing directions come back unchanged", nil
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
		return fail(nil, "a valid event was not acknowledged: %v", err)
	case !got.accepted:
		return fail(nil, "a valid event was refused: %v", got)
	case !got.named:
		return fail(nil, "the OK of an accepted event does not carry the event's id")
	}
	return s.returned(e)
}

// returned reads an acknowledged event back by its id and compares it.
func (s *session) returned(e *corpus.Event) error {
	filter := corpus.Filter{IDs: []corpus.ID{e.ID}}
	r, err := s.poll(func(r *reply) bool { return slices.Contains(r.ids, e.ID) }, filter)
	if err != nil {
		return fmt.Errorf("reading an event back: %w", err)
	}
	if !slices.Contains(r.ids, e.ID) {
		if len(r.ids)+r.noID > 0 || r.closed {
			return wrongAnswer("by id", ids(e), &r)
		}
		return fail(nil, "an acknowledged event of kind %d did not come back by its id within %v", e.Kind, s.o.Settle)
	}
	s.readable.Store(true)
	if len(r.ids) > 1 {
		return wrongAnswer("by id", ids(e), &r)
	}
	return same(e, r.texts[0])
}

// same compares a returned event with what was signed, field by field.
func same(want *corpus.Event, returned []byte) error {
	evidence := []string{clip(string(returned), 2*maxText)}
	got, err := corpus.ParseEvent(returned)
	if err != nil {
		return fail(evidence, "the event came back in another form: %v", err)
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
	if len(differ) > 0 {
		return fail(evidence, "the event came back with another %s", strings.Join(differ, ", "))
	}
	return nil
}

// accepts publishes events and reads each of them back; a refusal is the relay's failure.
func (a *asking) accepts(what string, events ...*corpus.Event) error {
	s, err := a.dial()
	if err != nil {
		return err
	}
	for _, e := range events {
		err := s.store(e)
		if refused := (*refusedError)(nil); errors.As(err, &refused) {
			return fail(nil, "%s was refused: %v", fmt.Sprintf(what, e.CreatedAt, e.Kind), refused.answer)
		}
		if err != nil {
			return err
		}
	}
	for _, e := range events {
		err := s.returned(e)
		if short := (*shortfall)(nil); errors.As(err, &short) {
			return fail(short.evidence, "%s: %s", fmt.Sprintf(what, e.CreatedAt, e.Kind), short.detail)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// acceptsCorpusTime: the corpus lies in the past, and all of it is to be stored.
func acceptsCorpusTime(a *asking) (string, error) {
	oldest, newest := a.event(1, a.o.Oldest, "from the corpus' beginning"), a.event(1, a.o.Newest, "from the corpus' end")
	if a.o.Newest > a.now { // a corpus that ends ahead of this clock: its newest event is the corpus' matter
		newest = oldest
	}
	if err := a.accepts("an event of the corpus' time, created_at %d (kind %d)", oldest, newest); err != nil {
		return "", err
	}
	return fmt.Sprintf("events from %d to %d, the time of the corpus, are accepted and returned", oldest.CreatedAt, newest.CreatedAt), nil
}

// accepts2020: no window keeps old events out.
func accepts2020(a *asking) (string, error) {
	const newYear2020 = 1577836800
	if err := a.accepts("an event of 2020, created_at %d (kind %d)", a.event(1, newYear2020, "an old note")); err != nil {
		return "", err
	}
	return "an event of 2020 is accepted and returned", nil
}

// returnsPrivateKinds: relays may keep encrypted messages (NIP-04, NIP-59) from readers who are not authenticated; then part of the corpus
// cannot be read back.
func returnsPrivateKinds(a *asking) (string, error) {
	to := corpus.Tag{"p", newKey().PubKey.String()}
	err := a.accepts("created_at %d, kind %d", a.event(4, a.recent(0), "c2VjcmV0?iv=AAAAAAAAAAAAAAAAAAAAAA==", to), a.event(1059, a.recent(1), "c2VjcmV0", to))
	if err != nil {
		return "", err
	}
	return "kinds 4 and 1059 are accepted and returned to anybody", nil
}

// answersDuplicate: the same event again gets an OK that names it, true or false.
func answersDuplicate(a *asking) (string, error) {
	s, err := a.dial()
	if err != nil {
		return "", err
	}
	e := a.event(1, a.recent(0), "twice")
	if err := s.store(e); err != nil {
		return "", err
	}
	got, err := s.publish(e)
	switch {
	case errors.Is(err, errSilent):
		return "", fail(nil, "an event that was sent twice got no second OK in %v", a.o.Wait)
	case err != nil:
		return "", err
	case !got.named:
		return "", fail(nil, "the answer to a duplicate does not carry the event's id: %v", got)
	}
	return fmt.Sprintf("a duplicate is answered %v", got), nil
}
