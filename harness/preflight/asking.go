package preflight

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"

	"relaybench/corpus"
)

// asking is one check at work: its time, its author and its connections.
type asking struct {
	*prober
	ctx context.Context
	key corpus.SecretKey

	opened sync.Mutex
	all    []*session
}

func (a *asking) add(s *session) {
	a.opened.Lock()
	defer a.opened.Unlock()
	a.all = append(a.all, s)
}

func (a *asking) close() {
	a.opened.Lock()
	defer a.opened.Unlock()
	for _, s := range a.all {
		s.close()
	}
}

// newKey makes the key of an author whom no relay has seen: a check may be repeated on a relay that kept everything.
func newKey() corpus.SecretKey {
	for {
		var b [32]byte
		rand.Read(b[:]) // never fails
		if key, err := corpus.NewSecretKey(b); err == nil {
			return key
		}
	}
}

// event makes a signed event of the check's author.
func (a *asking) event(kind int, at int64, content string, tags ...corpus.Tag) *corpus.Event {
	return signed(a.key, kind, at, content, tags...)
}

func signed(key corpus.SecretKey, kind int, at int64, content string, tags ...corpus.Tag) *corpus.Event {
	if tags == nil {
		tags = []corpus.Tag{}
	}
	e := &corpus.Event{CreatedAt: at, Kind: kind, Tags: tags, Content: content}
	if err := key.Sign(e, [32]byte{}); err != nil {
		panic(err) // the key is one that signs
	}
	return e
}

// recent is a time a while ago, n seconds after the others that the check uses.
func (a *asking) recent(n int) int64 { return a.now - 3600 + int64(n) }

// mine is a filter for the events of the check's author, of these kinds where any are named.
func (a *asking) mine(kinds ...int) corpus.Filter {
	return corpus.Filter{Authors: []corpus.PubKey{a.key.PubKey}, Kinds: kinds}
}

func limited(f corpus.Filter, n int) corpus.Filter {
	f.Limit = corpus.Int(n)
	return f
}

func ids(events ...*corpus.Event) []corpus.ID {
	all := make([]corpus.ID, len(events))
	for i, e := range events {
		all[i] = e.ID
	}
	return all
}

// exactly reports whether the reply holds these events and no others, in any order, duplicates aside.
func exactly(want []corpus.ID) func(*reply) bool {
	return func(r *reply) bool {
		missing, extra := difference(want, r.ids)
		return len(missing) == 0 && len(extra) == 0 && r.noID == 0
	}
}

// inOrder reports whether the reply is these events in this order.
func inOrder(want []corpus.ID) func(*reply) bool {
	return func(r *reply) bool { return slices.Equal(r.ids, want) && r.noID == 0 }
}

func difference(want, got []corpus.ID) (missing, extra []corpus.ID) {
	for _, id := range want {
		if !slices.Contains(got, id) {
			missing = append(missing, id)
		}
	}
	for _, id := range got {
		if !slices.Contains(want, id) {
			extra = append(extra, id)
		}
	}
	return missing, extra
}

// wrongAnswer says how a reply differs from what was wanted; asked says what was asked for.
func wrongAnswer(asked string, want []corpus.ID, r *reply) error {
	missing, extra := difference(want, r.ids)
	var evidence []string
	for _, id := range missing {
		evidence = append(evidence, "missing "+id.String())
	}
	for _, id := range extra {
		evidence = append(evidence, "extra "+id.String())
	}
	switch {
	case r.closed:
		return fail(nil, "%s: the REQ was refused: CLOSED %s", asked, quoted(r.reason))
	case r.noID > 0:
		return fail(nil, "%s: %d of the events returned have no readable id", asked, r.noID)
	case len(missing) > 0 || len(extra) > 0:
		return fail(evidence, "%s: %d events came instead of %d; %d missing, %d not asked for", asked, len(r.ids), len(want), len(missing), len(extra))
	}
	places := make([]string, len(r.ids))
	for i, id := range r.ids {
		places[i] = fmt.Sprint(slices.Index(want, id) + 1)
	}
	return fail(nil, "%s: the events came in the order %v, numbered as they should have come", asked, places)
}
