package model

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"relaybench/corpus"
)

const testNow = 1_700_000_000

// randomEvents makes events in a key space so small that every rule meets every other.
func randomEvents(r *rand.Rand, n int) []corpus.Event {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	author := func() corpus.PubKey { return corpus.PubKey{0xaa, byte(r.IntN(3))} }
	events := make([]corpus.Event, n)
	for i := range events {
		for j := range events[i].ID {
			events[i].ID[j] = byte(r.Uint32())
		}
	}
	kinds := []int{0, 0, 0, 1, 1, 3, 4, 5, 5, 5, 6, 7, 41, 62, 1059, 1059, 10002, 20001, 30023, 30023, 30023, 30024, 9735}
	for i := range events {
		e := &events[i]
		e.PubKey = author()
		e.CreatedAt = 1000 + int64(r.IntN(12))
		e.Kind = kinds[r.IntN(len(kinds))]
		if e.Kind == corpus.KindVanish && r.IntN(3) > 0 {
			e.Kind = 1
		}
		e.Content = strconv.Itoa(i)
		tag := func(values ...string) { e.Tags = append(e.Tags, values) }
		if corpus.IsAddressable(e.Kind) && r.IntN(4) > 0 {
			tag("d", pick("", "x", "x", "a:b"))
		}
		for range r.IntN(3) {
			tag("e", events[r.IntN(n)].ID.String())
		}
		for range r.IntN(2) {
			tag("p", author().String())
			tag(pick("t", "T"), pick("go", "nostr", "\"q\""))
		}
		switch e.Kind {
		case corpus.KindVanish:
			if r.IntN(5) > 0 {
				tag("relay", pick("ALL_RELAYS", "ALL_RELAYS", "wss://elsewhere.example"))
			}
		case corpus.KindDeletion:
			if r.IntN(3) > 0 {
				a := pick("0", "3", "41", "1", "10002", "30023", "30023", "030023") + ":" + pick(author().String(), e.PubKey.String(), e.PubKey.String(), strings.ToUpper(e.PubKey.String()))
				tag("a", a+pick("", ":", ":x", ":a:b"))
			}
			if r.IntN(6) == 0 {
				tag("e", strings.ToUpper(events[r.IntN(n)].ID.String()))
			}
		}
		if r.IntN(12) == 0 {
			tag("expiration", pick("1", strconv.Itoa(testNow), strconv.Itoa(testNow+1), strconv.Itoa(testNow+10*ExpiryMargin), "soon"))
		}
		if r.IntN(30) == 0 {
			tag("-")
		}
	}
	return events
}

// testRelay is a relay that takes one event after another. Its policies are those over which
// compliant relays differ.
type testRelay struct {
	held map[corpus.ID]*corpus.Event

	deletedIDs  map[string]bool  // author and id
	deletedKeys map[string]int64 // address, author checked
	vanished    map[corpus.PubKey]int64

	dropsExpired, outlivesSoon, refusesBadExpiry bool
	refusesProtected, refusesForeign             bool
	readsLeniently, recipientsDelete             bool
	keepsRequests, isElsewhere, wrapsForever     bool
	forgetsDeletions                             bool // with the request that vanished
	replacesChannels                             bool
}

func newTestRelay(r *rand.Rand) *testRelay {
	coin := func() bool { return r.IntN(2) == 0 }
	return &testRelay{
		held: map[corpus.ID]*corpus.Event{}, deletedIDs: map[string]bool{}, deletedKeys: map[string]int64{}, vanished: map[corpus.PubKey]int64{},
		dropsExpired: coin(), outlivesSoon: coin(), refusesBadExpiry: coin(), refusesProtected: coin(), refusesForeign: coin(),
		readsLeniently: coin(), recipientsDelete: coin(), keepsRequests: coin(), isElsewhere: coin(), wrapsForever: coin(),
		forgetsDeletions: coin(), replacesChannels: coin(),
	}
}

func (r *testRelay) expiry(e *corpus.Event) (expired, bad bool) {
	for _, t := range e.Tags {
		if t.Name() == "expiration" {
			at, err := strconv.ParseInt(t.Value(), 10, 64)
			if err != nil {
				return false, true
			}
			return at <= testNow || at < testNow+ExpiryMargin && !r.outlivesSoon, false
		}
	}
	return false, false
}

func address(e *corpus.Event) string {
	if corpus.IsAddressable(e.Kind) {
		return fmt.Sprintf("%d:%s:%s", e.Kind, e.PubKey, e.D())
	}
	return fmt.Sprintf("%d:%s:", e.Kind, e.PubKey)
}

func tagged(e *corpus.Event, name, value string) bool {
	return slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return len(t) > 1 && t[0] == name && t[1] == value })
}

// gone reports whether requests that came before forbid the event.
func (r *testRelay) gone(e *corpus.Event) bool {
	if e.Kind == corpus.KindVanish {
		return false
	}
	if until, ok := r.vanished[e.PubKey]; ok && e.CreatedAt <= until {
		return true
	}
	for pk, until := range r.vanished {
		if e.Kind == 1059 && tagged(e, "p", pk.String()) && e.CreatedAt <= until {
			return true
		}
	}
	if e.Kind == corpus.KindDeletion {
		return false
	}
	if r.deletedIDs[e.PubKey.String()+e.ID.String()] {
		return true
	}
	if r.recipientsDelete && e.Kind == 1059 {
		for _, t := range e.Tags {
			if t.Name() == "p" && r.deletedIDs[t.Value()+e.ID.String()] {
				return true
			}
		}
	}
	until, ok := r.deletedKeys[address(e)]
	return ok && (corpus.IsReplaceable(e.Kind) || corpus.IsAddressable(e.Kind)) && e.CreatedAt <= until
}

func (r *testRelay) sweep() {
	for id, e := range r.held {
		if r.gone(e) {
			delete(r.held, id)
		}
	}
}

func (r *testRelay) offer(e *corpus.Event) {
	expired, bad := r.expiry(e)
	if corpus.IsEphemeral(e.Kind) || bad && r.refusesBadExpiry || expired && r.dropsExpired || r.gone(e) ||
		r.refusesProtected && slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return t.Name() == "-" }) {
		return
	}
	switch {
	case e.Kind == corpus.KindDeletion:
		if !r.readDeletion(e) {
			return
		}
	case e.Kind == corpus.KindVanish:
		r.readVanish(e)
		if !r.keepsRequests {
			return
		}
	case corpus.IsReplaceable(e.Kind) || corpus.IsAddressable(e.Kind) || e.Kind == 41 && r.replacesChannels:
		for id, other := range r.held {
			if other.Kind != e.Kind || address(other) != address(e) {
				continue
			}
			if cmp.Or(cmp.Compare(other.CreatedAt, e.CreatedAt), bytes.Compare(e.ID[:], other.ID[:])) > 0 {
				return
			}
			delete(r.held, id)
		}
	}
	r.held[e.ID] = e
}

func (r *testRelay) readDeletion(e *corpus.Event) bool {
	var ids []string
	var addresses []string
	for _, t := range e.Tags {
		value := t.Value()
		switch t.Name() {
		case "e":
			if r.readsLeniently {
				value = strings.ToLower(value)
			}
			var id corpus.ID
			if n, _ := hex.Decode(id[:], []byte(value)); n == len(id) {
				if other := r.held[id]; r.refusesForeign && other != nil && other.PubKey != e.PubKey && !(other.Kind == 1059 && tagged(other, "p", e.PubKey.String())) {
					return false
				}
			}
			ids = append(ids, value)
		case "a":
			parts := strings.SplitN(value, ":", 3)
			if r.readsLeniently {
				if n, err := strconv.Atoi(parts[0]); err == nil {
					parts[0] = strconv.Itoa(n)
				}
				parts[1] = strings.ToLower(parts[1])
				if len(parts) == 2 {
					parts = append(parts, "")
				}
				if kind, _ := strconv.Atoi(parts[0]); corpus.IsReplaceable(kind) {
					parts[2] = ""
				}
			}
			if len(parts) < 3 {
				continue
			}
			if parts[1] != e.PubKey.String() {
				kind, _ := strconv.Atoi(parts[0])
				if r.refusesForeign && !strings.EqualFold(parts[1], e.PubKey.String()) && (corpus.IsReplaceable(kind) || corpus.IsAddressable(kind)) {
					return false
				}
				continue
			}
			addresses = append(addresses, strings.Join(parts, ":"))
		}
	}
	for _, id := range ids {
		r.deletedIDs[e.PubKey.String()+id] = true
	}
	for _, a := range addresses {
		r.deletedKeys[a] = max(r.deletedKeys[a], e.CreatedAt)
	}
	r.sweep()
	return true
}

func (r *testRelay) readVanish(e *corpus.Event) {
	named := slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return t.Name() == "relay" })
	if !tagged(e, "relay", "ALL_RELAYS") && (!named || !r.isElsewhere) {
		return
	}
	r.vanished[e.PubKey] = max(r.vanished[e.PubKey], e.CreatedAt)
	r.sweep()
	for id, other := range r.held {
		if r.wrapsForever && other.Kind == 1059 && tagged(other, "p", e.PubKey.String()) {
			delete(r.held, id)
		}
	}
	if !r.forgetsDeletions {
		return
	}
	// What is deleted is known from the requests that are still held.
	clear(r.deletedIDs)
	clear(r.deletedKeys)
	for _, other := range r.held {
		if other.Kind == corpus.KindDeletion {
			strict := *r
			strict.refusesForeign = false
			strict.readDeletion(other)
		}
	}
}

// returned lists what the relay answers to a filter.
func (r *testRelay) returned(f *corpus.Filter) []corpus.ID {
	var list []*corpus.Event
	for _, e := range r.held {
		if expired, _ := r.expiry(e); !expired && f.Matches(e) {
			list = append(list, e)
		}
	}
	slices.SortFunc(list, func(a, b *corpus.Event) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	if f.Limit != nil {
		list = list[:min(len(list), *f.Limit)]
	}
	ids := make([]corpus.ID, len(list))
	for i, e := range list {
		ids[i] = e.ID
	}
	return ids
}
