package preflight

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/results"
)

// asking is one check at work: its time, its author and its connections.
type asking struct {
	*prober
	ctx    context.Context
	key    corpus.SecretKey
	people []string // public keys of others, whom its author names

	opened sync.Mutex
	all    []*session

	slowest atomic.Int64 // what one of its answers took at most, in ns
}

// took notes how long an answer took.
func (a *asking) took(d time.Duration) {
	for {
		was := a.slowest.Load()
		if int64(d) <= was || a.slowest.CompareAndSwap(was, int64(d)) {
			return
		}
	}
}

func (a *asking) slow() time.Duration { return time.Duration(a.slowest.Load()) }

// settle is how long what was acknowledged may take to be readable: a relay that is slow at
// everything has more time.
func (a *asking) settle() time.Duration { return max(a.o.Settle, min(4*a.slow(), a.o.Check/4)) }

// quiet is how long an answer that may be left out is waited for.
func (a *asking) quiet() time.Duration { return max(a.o.Quiet, min(4*a.slow(), a.o.Check/4)) }

// meant finds out whether silence means anything: another question on the connection is answered,
// and no answer so far took more than a third of the time that was waited. Anything else leaves the
// matter open.
func (s *session) meant() error {
	r, err := s.ask(limited(s.mine(7), 1))
	switch {
	case err != nil:
		return err
	case r.closed:
		return leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	case s.slow() > s.o.Wait/3:
		return leaveOpen(results.CauseSlow, counts{"ms": milliseconds(s.slow())}, nil)
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }

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

// asked is a question as evidence.
func asked(filters ...corpus.Filter) results.Evidence {
	var text []byte
	for i := range filters {
		if i > 0 {
			text = append(text, ',')
		}
		text = filters[i].AppendJSON(text)
	}
	return results.Evidence{Code: results.EvidenceQuestion, Text: string(text)}
}

// wrongAnswer says how a reply differs from what was wanted.
func wrongAnswer(want []corpus.ID, r *reply, filters ...corpus.Filter) error {
	missing, extra := difference(want, r.ids)
	evidence := []results.Evidence{asked(filters...)}
	for _, id := range missing {
		evidence = append(evidence, results.Evidence{Code: results.EvidenceMissing, ID: id.String()})
	}
	for _, id := range extra {
		evidence = append(evidence, results.Evidence{Code: results.EvidenceExtra, ID: id.String()})
	}
	seen := counts{"got": float64(len(r.ids) + r.noID), "want": float64(len(want)), "missing": float64(len(missing)), "extra": float64(len(extra))}
	if len(filters) == 1 && filters[0].Limit != nil {
		seen["limit"] = float64(*filters[0].Limit)
	}
	switch {
	case r.closed:
		return leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	case r.noID > 0:
		seen["unreadable"] = float64(r.noID)
		return fail(results.CauseUnreadable, seen, nil, evidence...)
	case len(missing) > 0 || len(extra) > 0:
		return fail(results.CauseAnswer, seen, nil, evidence...)
	}
	places := make([]string, len(r.ids))
	for i, id := range r.ids {
		places[i] = strconv.Itoa(slices.Index(want, id) + 1)
	}
	order := results.Evidence{Code: results.EvidenceOrder, Text: strings.Join(places, " ")}
	return fail(results.CauseDisorder, counts{"got": float64(len(r.ids))}, nil, evidence[0], order)
}
