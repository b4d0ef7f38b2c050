package preflight

import (
	"context"
	"crypto/rand"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/results"
)

// checker is one check at work: its time, its author and its connections. A check is written as a
// test is: what it sees to fail, or cannot find out, ends it.
type checker struct {
	*prober
	ctx  context.Context
	key  corpus.SecretKey
	seen results.Finding // what it tells where it passes

	opened  sync.Mutex
	all     []*session
	slowest time.Duration // what one of its answers took at most
}

// ended is how a check ends before its end.
type ended struct{ err error }

// must ends the check where there is an error.
func must(err error) {
	if err != nil {
		panic(ended{err})
	}
}

// try carries out a part of a check and returns what ended it.
func try(part func()) (err error) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case ended:
			err = why.err
		default:
			panic(why)
		}
	}()
	part()
	return nil
}

// took notes how long an answer took, and returns the longest time so far.
func (c *checker) took(d time.Duration) time.Duration {
	c.opened.Lock()
	defer c.opened.Unlock()
	c.slowest = max(c.slowest, d)
	return c.slowest
}

// patience is how long something is waited for: a relay that is slow at everything has more time.
func (c *checker) patience(least time.Duration) time.Duration {
	return max(least, min(4*c.took(0), c.o.Check/4))
}

// settle is how long what was acknowledged may take to be readable, and quiet how long an answer
// that may be left out is waited for.
func (c *checker) settle() time.Duration { return c.patience(c.o.Settle) }
func (c *checker) quiet() time.Duration  { return c.patience(c.o.Quiet) }

func (c *checker) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-c.ctx.Done():
		must(context.Cause(c.ctx))
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Round(time.Microsecond)) / 1e6 }

func (c *checker) close() {
	c.opened.Lock()
	defer c.opened.Unlock()
	for _, s := range c.all {
		s.close()
	}
}

// newKey makes the key of an author whom no relay has seen: a check may be repeated on a relay that
// kept everything.
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
func (c *checker) event(kind int, at int64, content string, tags ...corpus.Tag) *corpus.Event {
	return signed(c.key, kind, at, content, tags...)
}

func signed(key corpus.SecretKey, kind int, at int64, content string, tags ...corpus.Tag) *corpus.Event {
	e := &corpus.Event{CreatedAt: at, Kind: kind, Tags: append([]corpus.Tag{}, tags...), Content: content}
	must(key.Sign(e, [32]byte{}))
	return e
}

// recent is a time a while ago, n seconds after the others that the check uses.
func (c *checker) recent(n int) int64 { return c.now - 3600 + int64(n) }

// mine is a filter for the events of the check's author, of these kinds where any are named.
func (c *checker) mine(kinds ...int) corpus.Filter {
	return corpus.Filter{Authors: []corpus.PubKey{c.key.PubKey}, Kinds: kinds}
}

func limited(f corpus.Filter, n int) corpus.Filter {
	f.Limit = corpus.Int(n)
	return f
}

func tagged(name byte, values ...string) corpus.Filter {
	return corpus.Filter{Tags: []corpus.TagFilter{{Name: name, Values: values}}}
}

// both is a filter with the conditions of two, which have none in common.
func both(f, g corpus.Filter) corpus.Filter {
	return corpus.Filter{IDs: slices.Concat(f.IDs, g.IDs), Authors: slices.Concat(f.Authors, g.Authors),
		Kinds: slices.Concat(f.Kinds, g.Kinds), Tags: slices.Concat(f.Tags, g.Tags)}
}

func ids(events ...*corpus.Event) []corpus.ID {
	all := make([]corpus.ID, len(events))
	for i, e := range events {
		all[i] = e.ID
	}
	return all
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// exactly reports whether the reply holds these events and no others, in any order, duplicates
// aside.
func exactly(want []corpus.ID) func(*reply) bool {
	return func(r *reply) bool { return len(without(want, r.ids))+len(without(r.ids, want))+r.noID == 0 }
}

// exactlyOf is exactly where only these events count: what else is in the answer is no matter of
// the check.
func exactlyOf(own, want []corpus.ID) func(*reply) bool {
	return func(r *reply) bool { return exactly(want)(&reply{ids: only(own, r.ids)}) }
}

// inOrder reports whether the reply is these events in this order.
func inOrder(want []corpus.ID) func(*reply) bool {
	return func(r *reply) bool { return slices.Equal(r.ids, want) && r.noID == 0 }
}

// holds reports whether the reply has these events, whatever else is in it.
func holds(events ...*corpus.Event) func(*reply) bool {
	return func(r *reply) bool { return len(without(ids(events...), r.ids)) == 0 }
}

// without returns those of a list that are not among others.
func without(list, others []corpus.ID) []corpus.ID {
	return slices.DeleteFunc(slices.Clone(list), func(id corpus.ID) bool { return slices.Contains(others, id) })
}

// only returns those of a list that are among others.
func only(among, list []corpus.ID) []corpus.ID { return without(list, without(list, among)) }

// queried is a REQ as evidence.
func queried(filters ...corpus.Filter) results.Evidence {
	return results.Evidence{Code: results.EvidenceQuestion, Text: string(filtersText(filters, ""))}
}

// wrongAnswer says how a reply differs from what was wanted.
func wrongAnswer(want []corpus.ID, r *reply, filters ...corpus.Filter) error {
	if r.closed {
		return closedBy(r)
	}
	missing, extra := without(want, r.ids), without(r.ids, want)
	evidence := []results.Evidence{queried(filters...)}
	if len(missing)+len(extra)+r.noID == 0 {
		places := make([]string, len(r.ids))
		for i, id := range r.ids {
			places[i] = strconv.Itoa(slices.Index(want, id) + 1)
		}
		order := results.Evidence{Code: results.EvidenceOrder, Text: strings.Join(places, " ")}
		return fail(results.CauseDisorder, counts{"got": float64(len(r.ids))}, nil, evidence[0], order)
	}
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
	cause := results.CauseAnswer
	if r.noID > 0 {
		cause, seen["unreadable"] = results.CauseUnreadable, float64(r.noID)
	}
	return fail(cause, seen, nil, evidence...)
}
