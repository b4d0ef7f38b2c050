package model

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"
	"strings"

	"relaybench/corpus"
)

// naive states the rules for one event at a time, each over all events.
type naive struct {
	events  []corpus.Event // corpus order
	offered func(i int) bool
}

// local returns how the event fares by itself: firmly expired, or ambiguous.
func (n naive) local(e *corpus.Event) (expired bool, ambiguous bool) {
	for _, t := range e.Tags {
		if t.Name() == "-" {
			ambiguous = true
		}
		if t.Name() == "expiration" {
			at, err := strconv.Atoi(t.Value())
			switch {
			case err != nil || at > testNow && at <= testNow+ExpiryMargin:
				ambiguous = true
			case at <= testNow:
				return true, false
			}
		}
	}
	return false, ambiguous
}

func (n naive) requests(kind int, visit func(r *corpus.Event)) {
	for i := range n.events {
		if n.events[i].Kind == kind && n.offered(i) {
			visit(&n.events[i])
		}
	}
}

func (n naive) vanished(e *corpus.Event) (certain, perhaps bool) {
	if e.Kind == corpus.KindVanish {
		return false, false
	}
	n.requests(corpus.KindVanish, func(r *corpus.Event) {
		wrap := e.Kind == 1059 && tagged(e, "p", r.PubKey.String())
		own := r.PubKey == e.PubKey && e.CreatedAt <= r.CreatedAt
		if !own && !wrap || !slices.ContainsFunc(r.Tags, func(t corpus.Tag) bool { return t.Name() == "relay" }) {
			return
		}
		expired, ambiguous := n.local(r)
		if tagged(r, "relay", "ALL_RELAYS") && !expired && !ambiguous && e.CreatedAt <= r.CreatedAt {
			certain = true
		} else {
			perhaps = true
		}
	})
	return certain, perhaps
}

// foreign reports whether a deletion request names what is not its author's.
func (n naive) foreign(r *corpus.Event) bool {
	for _, t := range r.Tags {
		for i := range n.events {
			e := &n.events[i]
			if t.Name() == "e" && strings.EqualFold(t.Value(), e.ID.String()) && n.offered(i) && !corpus.IsEphemeral(e.Kind) && e.PubKey != r.PubKey &&
				!(e.Kind == 1059 && tagged(e, "p", r.PubKey.String())) {
				return true
			}
		}
		if parts := strings.SplitN(t.Value(), ":", 3); t.Name() == "a" && len(parts) > 1 && !strings.EqualFold(parts[1], r.PubKey.String()) {
			kind, _ := strconv.Atoi(parts[0])
			if corpus.IsReplaceable(kind) || corpus.IsAddressable(kind) {
				return true
			}
		}
	}
	return false
}

func (n naive) deleted(e *corpus.Event) (certain, perhaps bool) {
	if e.Kind == corpus.KindDeletion || e.Kind == corpus.KindVanish {
		return false, false
	}
	n.requests(corpus.KindDeletion, func(r *corpus.Event) {
		expired, ambiguous := n.local(r)
		gone, maybeGone := n.vanished(r)
		effective := !expired && !ambiguous && !gone && !maybeGone && !n.foreign(r)
		for _, t := range r.Tags {
			clean, loose := false, false
			switch {
			case t.Name() == "e" && r.PubKey == e.PubKey:
				clean = t.Value() == e.ID.String()
				loose = strings.EqualFold(t.Value(), e.ID.String())
			case t.Name() == "e" && e.Kind == 1059:
				loose = strings.EqualFold(t.Value(), e.ID.String()) && tagged(e, "p", r.PubKey.String())
			case t.Name() == "a" && r.PubKey == e.PubKey && (corpus.IsReplaceable(e.Kind) || corpus.IsAddressable(e.Kind)) && e.CreatedAt <= r.CreatedAt:
				clean = t.Value() == address(e)
				parts := append(strings.SplitN(strings.ToLower(t.Value()), ":", 3), "")
				kind, err := strconv.Atoi(parts[0])
				loose = err == nil && kind == e.Kind && parts[1] == e.PubKey.String() && (corpus.IsReplaceable(kind) || parts[2] == e.D())
			}
			certain = certain || clean && effective
			perhaps = perhaps || loose
		}
	})
	return certain, perhaps
}

// status returns what becomes of event i.
func (n naive) status(i int) (Reason, bool) {
	e := &n.events[i]
	reason, optional := n.alone(i)
	if reason != Stored {
		return reason, false
	}
	if e.Kind == corpus.KindVanish {
		return Stored, true
	}
	best := i
	heldBetter := false
	for j := range n.events {
		o := &n.events[j]
		if j == i || o.Kind != e.Kind || address(o) != address(e) || !n.offered(j) || !newer(o, e) {
			continue
		}
		if e.Kind == 41 {
			optional = true
		}
		if corpus.IsReplaceable(e.Kind) || corpus.IsAddressable(e.Kind) {
			if newer(o, &n.events[best]) {
				best = j
			}
			r, _ := n.alone(j)
			heldBetter = heldBetter || r == Stored
		}
	}
	r, bestOptional := n.alone(best)
	settled := r == Stored && !bestOptional
	switch {
	case best == i:
		return Stored, optional
	case settled:
		return Superseded, false
	case heldBetter:
		return Superseded, true
	}
	return Stored, true
}

// alone leaves out other versions.
func (n naive) alone(i int) (Reason, bool) {
	e := &n.events[i]
	expired, ambiguous := n.local(e)
	gone, maybeGone := n.vanished(e)
	deleted, maybeDeleted := n.deleted(e)
	switch {
	case !n.offered(i):
		return NotOffered, false
	case corpus.IsEphemeral(e.Kind):
		return Ephemeral, false
	case expired:
		return Expired, false
	case gone:
		return Vanished, false
	case deleted:
		return Deleted, false
	}
	return Stored, ambiguous || maybeGone || maybeDeleted || e.Kind == corpus.KindDeletion && n.foreign(e)
}

// newer reports whether a supersedes b.
func newer(a, b *corpus.Event) bool {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(b.ID[:], a.ID[:])) > 0
}
