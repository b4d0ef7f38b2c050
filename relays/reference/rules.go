package reference

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/corpus"
)

// A decision is what an OK message says (NIP-01).
type decision struct {
	accepted bool
	reason   string
}

var (
	stored    = decision{true, ""}
	duplicate = decision{true, "duplicate: have this event"}
	replaced  = decision{false, "replaced: have newer event"}
	deleted   = decision{false, "blocked: deleted by its author"}
	vanished  = decision{false, "blocked: its author, or the one it is for, asked to vanish"}
	expired   = decision{false, "invalid: the event has expired"}
	protected = decision{false, "restricted: protected events need authentication, which this relay does not offer"}
)

const kindGiftWrap = 1059 // NIP-59

// rules decide what a group's events do to the store. They see events in the order of arrival, and
// what is held in the end does not depend on that order: what would have removed an event also
// keeps it out when it comes later.
type rules struct {
	url string // under which clients know this relay (NIP-62); "" where nobody does
}

// candidate is an event on its way into a store.
type candidate struct {
	event    corpus.Event
	record   Record // where it is not refused
	decision decision
	refused  bool  // the decision stands without the store
	keep     bool  // an ephemeral event is passed on without being stored
	problem  error // why it is no event: then it is refused without a decision
}

// examine parses and verifies what was sent as an event: the costly part.
func (c *candidate) examine(text []byte, maxBytes int, noVerify bool, now int64) {
	c.refused = true
	if c.event, c.problem = corpus.ParseEvent(text); c.problem != nil {
		return
	}
	e := &c.event
	if len(text) > maxBytes {
		c.decision = decision{false, fmt.Sprintf("invalid: event is %d bytes, over the limit of %d", len(text), maxBytes)}
		return
	}
	if !noVerify {
		if err := e.Verify(); err != nil {
			c.decision = decision{false, "invalid: " + err.Error()}
			return
		}
	}
	at, expires := e.Expiration()
	switch {
	case expires && at <= now:
		c.decision = expired
	case slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return len(t) == 1 && t[0] == "-" }):
		c.decision = protected // NIP-70
	default:
		c.refused, c.keep, c.record = false, !corpus.IsEphemeral(e.Kind), NewRecord(e)
	}
}

// admit stores an event, or says why not; what it replaces, deletes or makes vanish goes.
func (ru rules) admit(tx Tx, e *corpus.Event, r *Record) decision {
	if e.CreatedAt <= vanishedUntil(tx, e) {
		return ru.admitVanished(tx, e)
	}
	isDeleted := tx.Note(deletedKey(e.ID, e.PubKey)) != nil && deletable(e.Kind)
	switch {
	case corpus.IsReplaceable(e.Kind) || corpus.IsAddressable(e.Kind):
		return admitVersion(tx, e, r, isDeleted)
	case isDeleted:
		return deleted
	case !tx.Insert(r):
		return duplicate
	case e.Kind == corpus.KindDeletion:
		carryOut(tx, e)
	case e.Kind == corpus.KindVanish:
		ru.vanish(tx, e)
	}
	return stored
}

// admitVanished refuses an event from before its author vanished. The request to vanish itself,
// which is kept, comes as a duplicate; a deletion is refused but carried out, as it would have been
// had it come in time.
func (ru rules) admitVanished(tx Tx, e *corpus.Event) decision {
	switch e.Kind {
	case corpus.KindDeletion:
		carryOut(tx, e)
	case corpus.KindVanish:
		if _, ok := tx.Find(e.ID); ok {
			return duplicate
		}
	}
	return vanished
}

// admitVersion admits one version of a replaceable or addressable event: the newest stays, of two
// from the same second the one with the lower id (NIP-01). A version that its author deleted by id
// is not stored, but still outdates the older ones: they would be gone as well had it come before
// its deletion.
func admitVersion(tx Tx, e *corpus.Event, r *Record, isDeleted bool) decision {
	address := addressOf(e)
	if e.CreatedAt <= timeNote(tx, address.key('D')) {
		return deleted
	}
	key := address.key('A')
	if current, ok := parseVersion(tx.Note(key)); ok {
		switch {
		case isDeleted && !r.Before(&current):
			return deleted
		case current.ID == e.ID:
			return duplicate
		case current.Before(r):
			return replaced
		case current.Seq != 0:
			tx.Remove(&current)
		}
	}
	if isDeleted {
		tx.SetNote(key, versionNote(r, 0))
		return deleted
	}
	tx.SetNote(key, versionNote(r, r.Seq))
	tx.Insert(r)
	return stored
}

// deletable: deletions (NIP-09) and requests to vanish (NIP-62) cannot be deleted.
func deletable(kind int) bool { return kind != corpus.KindDeletion && kind != corpus.KindVanish }

// carryOut does what a deletion (NIP-09) asks for with the author's own events: any by id, by
// address up to its time.
func carryOut(tx Tx, deletion *corpus.Event) {
	for _, t := range deletion.Tags {
		switch t.Name() {
		case "e":
			id, ok := corpus.ParseID(t.Value())
			if !ok {
				continue
			}
			tx.SetNote(deletedKey(id, deletion.PubKey), []byte{1})
			if r, found := tx.Find(id); found && r.PubKey == deletion.PubKey && deletable(r.Kind) {
				tx.Remove(&r)
			}
		case "a":
			a, ok := parseAddress(t.Value())
			if !ok || a.author != deletion.PubKey {
				continue
			}
			raiseTimeNote(tx, a.key('D'), deletion.CreatedAt)
			if r, ok := parseVersion(tx.Note(a.key('A'))); ok && r.CreatedAt <= deletion.CreatedAt && r.Seq != 0 {
				tx.Remove(&r)
			}
		}
	}
}

// vanish carries out NIP-62: all by the author up to its time goes, and so do gift wraps for them.
func (ru rules) vanish(tx Tx, e *corpus.Event) {
	if !ru.concerns(e) {
		return
	}
	raiseTimeNote(tx, vanishKey(e.PubKey), e.CreatedAt)
	until := corpus.Int64(e.CreatedAt)
	for _, f := range []corpus.Filter{
		{Authors: []corpus.PubKey{e.PubKey}, Until: until},
		{Kinds: []int{kindGiftWrap}, Tags: []corpus.TagFilter{{Name: 'p', Values: []string{e.PubKey.String()}}}, Until: until},
	} {
		removeAll(tx, NewQuery(&f, 0), e.ID)
	}
}

// concerns reports whether a request to vanish is addressed to this relay.
func (ru rules) concerns(e *corpus.Event) bool {
	return slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool {
		return t.Name() == "relay" && (t.Value() == "ALL_RELAYS" || ru.url != "" && sameRelay(t.Value(), ru.url))
	})
}

// removeAll removes what a query finds but for one event, in batches: there may be a million.
func removeAll(tx Tx, q *Query, but corpus.ID) {
	q.Limit = 1000
	for after := (Position{}); ; {
		found := nextRecords(tx, q, after, q.Limit)
		if len(found) == 0 {
			return
		}
		after = positionOf(&found[len(found)-1])
		for i := range found {
			if found[i].ID != but {
				tx.Remove(&found[i])
			}
		}
	}
}

// vanishedUntil returns when the author, or anyone a gift wrap is for, last vanished; -1 for never.
func vanishedUntil(tx Tx, e *corpus.Event) int64 {
	until := timeNote(tx, vanishKey(e.PubKey))
	if e.Kind != kindGiftWrap {
		return until
	}
	for _, t := range e.Tags {
		if pk, ok := corpus.ParsePubKey(t.Value()); ok && t.Name() == "p" {
			until = max(until, timeNote(tx, vanishKey(pk)))
		}
	}
	return until
}

// address is what all versions of a replaceable or addressable event share.
type address struct {
	kind   int
	author corpus.PubKey
	d      string
}

func addressOf(e *corpus.Event) address {
	a := address{kind: e.Kind, author: e.PubKey}
	if corpus.IsAddressable(e.Kind) {
		a.d = e.D()
	}
	return a
}

// parseAddress reads the value of an a tag: kind:pubkey:d (NIP-01). d may itself hold colons.
func parseAddress(s string) (a address, ok bool) {
	parts := strings.SplitN(s, ":", 3)
	if len(parts) < 2 {
		return a, false
	}
	kind, err := strconv.ParseUint(parts[0], 10, 16)
	a.kind = int(kind)
	a.author, ok = corpus.ParsePubKey(parts[1])
	if corpus.IsAddressable(a.kind) && len(parts) == 3 {
		a.d = parts[2]
	}
	return a, ok && err == nil && (corpus.IsReplaceable(a.kind) || corpus.IsAddressable(a.kind))
}

// key makes a note's key: 'A' for the newest version, 'D' for when versions were last deleted.
func (a address) key(note byte) []byte {
	d := sha256.Sum256([]byte(a.d))
	return slices.Concat([]byte{note, byte(a.kind >> 8), byte(a.kind)}, a.author[:], d[:])
}

func deletedKey(id corpus.ID, by corpus.PubKey) []byte {
	return slices.Concat([]byte{'d'}, id[:], by[:])
}

func vanishKey(pk corpus.PubKey) []byte { return slices.Concat([]byte{'v'}, pk[:]) }

// versionNote remembers a version, and the number under which it is stored, 0 if it is not.
func versionNote(r *Record, seq uint64) []byte {
	note := binary.BigEndian.AppendUint64(make([]byte, 0, 48), uint64(r.CreatedAt))
	return append(binary.BigEndian.AppendUint64(note, seq), r.ID[:]...)
}

// parseVersion reads what Tx.Remove needs of a version.
func parseVersion(note []byte) (r Record, ok bool) {
	if len(note) != 48 {
		return r, false
	}
	r.CreatedAt, r.Seq, r.ID = int64(binary.BigEndian.Uint64(note)), binary.BigEndian.Uint64(note[8:]), corpus.ID(note[16:])
	return r, true
}

// timeNote reads a note that holds a Unix time, -1 where there is none.
func timeNote(tx Tx, key []byte) int64 {
	if note := tx.Note(key); len(note) == 8 {
		return int64(binary.BigEndian.Uint64(note))
	}
	return -1
}

func raiseTimeNote(tx Tx, key []byte, to int64) {
	if timeNote(tx, key) < to {
		tx.SetNote(key, binary.BigEndian.AppendUint64(nil, uint64(to)))
	}
}
