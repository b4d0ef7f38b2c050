package model

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"

	"relaybench/corpus"
)

const (
	kindChannelMetadata = 41   // NIP-28
	kindGiftWrap        = 1059 // NIP-59
)

// cutoff is up to which created_at a request takes effect, for certain and possibly.
type cutoff struct{ certain, possible int64 }

const never = math.MinInt64

func (r *cutoff) extend(at int64, certain bool) {
	if certain {
		r.certain = max(r.certain, at)
	} else {
		r.possible = max(r.possible, at)
	}
}

// extend widens the cutoff of a key's requests.
func extend[K comparable](cutoffs map[K]cutoff, key K, at int64, certain bool) {
	r, ok := cutoffs[key]
	if !ok {
		r = cutoff{never, never}
	}
	r.extend(at, certain)
	cutoffs[key] = r
}

// remove takes event i away for the given reason, or makes it optional if that is not certain. A
// reason found earlier stays.
func (m *Model) remove(i int, r Reason, certain bool) {
	switch f := &m.statuses[i]; {
	case f.reason() != Stored:
	case certain:
		*f = status(r)
	default:
		*f |= optional
	}
}

// vanish applies the requests to vanish (NIP-62): everything of the author up to the request's
// created_at goes, and gift wraps to the author likewise, but for requests to vanish.
func (m *Model) vanish(requests []uint32) error {
	authors := map[corpus.PubKey]cutoff{}
	for _, i := range requests {
		entry := m.corpus.Entry(int(i))
		if entry.Kind != corpus.KindVanish {
			continue
		}
		named, all := false, false
		err := corpus.ScanTags(m.corpus.Raw(int(i)), func(name, value []byte, elements int) {
			if elements > 1 && string(name) == "relay" {
				named = true
				all = all || string(value) == "ALL_RELAYS"
			}
		})
		if err != nil {
			return fmt.Errorf("reading the request to vanish %s: %w", entry.ID, err)
		}
		if named { // without a relay tag it asks nothing of anyone
			extend(authors, entry.PubKey, entry.CreatedAt, all && m.statuses[i].certain())
		}
		m.remove(int(i), Stored, false)
	}
	if len(authors) == 0 {
		return nil
	}
	for i := range m.statuses {
		entry := m.corpus.Entry(i)
		if m.statuses[i].reason() != Stored || entry.Kind == corpus.KindVanish {
			continue
		}
		if r, ok := authors[entry.PubKey]; ok && entry.CreatedAt <= max(r.certain, r.possible) {
			m.remove(i, Vanished, entry.CreatedAt <= r.certain)
		}
		if entry.Kind != kindGiftWrap {
			continue
		}
		err := corpus.ScanTags(m.corpus.Raw(i), func(name, value []byte, elements int) {
			if recipient, ok := corpus.ParsePubKey(value); ok && string(name) == "p" {
				if r, ok := authors[recipient]; ok {
					m.remove(i, Vanished, entry.CreatedAt <= r.certain)
				}
			}
		})
		if err != nil {
			return fmt.Errorf("reading the gift wrap %s: %w", entry.ID, err)
		}
	}
	return nil
}

// delete applies the e tags of deletion requests, and returns the cutoffs of their a tags (NIP-09).
func (m *Model) delete(requests []uint32, seed maphash.Seed) (map[uint64]cutoff, error) {
	addresses := map[uint64]cutoff{}
	for _, i := range requests {
		if m.corpus.Entry(int(i)).Kind != corpus.KindDeletion {
			continue
		}
		r := deletion{m: m, seed: seed, entry: m.corpus.Entry(int(i)), addresses: addresses}
		if err := corpus.ScanTags(m.corpus.Raw(int(i)), r.read); err != nil {
			return nil, fmt.Errorf("reading the deletion request %s: %w", r.entry.ID, err)
		}
		if r.foreign {
			m.remove(int(i), Stored, false)
		}
		for _, take := range r.effects {
			take(m.statuses[i].certain())
		}
	}
	return addresses, nil
}

type deletion struct {
	m         *Model
	seed      maphash.Seed
	entry     *corpus.Entry
	addresses map[uint64]cutoff
	effects   []func(certain bool)
	foreign   bool // it also names what is another's
}

func (r *deletion) read(name, value []byte, elements int) {
	switch {
	case elements < 2:
	case string(name) == "e":
		r.readID(value)
	case string(name) == "a":
		r.readAddress(string(value))
	}
}

// readID takes an e tag. Requests to delete and to vanish cannot be deleted.
func (r *deletion) readID(value []byte) {
	id, clean := corpus.ParseID(value)
	if !clean {
		var ok bool
		if id, ok = corpus.ParseID(bytes.ToLower(bytes.TrimSpace(value))); !ok {
			return
		}
	}
	i, ok := r.m.corpus.Find(id)
	if !ok || r.m.statuses[i].reason() == NotOffered || r.m.statuses[i].reason() == Ephemeral {
		return
	}
	switch target := r.m.corpus.Entry(i); {
	case target.PubKey == r.entry.PubKey:
		if target.Kind != corpus.KindDeletion && target.Kind != corpus.KindVanish {
			r.effects = append(r.effects, func(certain bool) { r.m.remove(i, Deleted, certain && clean) })
		}
	case target.Kind == kindGiftWrap && r.m.mentions(i, &r.entry.PubKey):
		r.effects = append(r.effects, func(bool) { r.m.remove(i, Deleted, false) })
	default:
		r.foreign = true
	}
}

// readAddress takes an a tag, "kind:pubkey:d", with an empty d but both colons for replaceable
// kinds (NIP-01). What can only be read with good will may count or not.
func (r *deletion) readAddress(value string) {
	kindText, rest, _ := strings.Cut(value, ":")
	authorText, d, both := strings.Cut(rest, ":")
	kind, err := strconv.Atoi(strings.TrimSpace(kindText))
	author, ok := corpus.ParsePubKey(strings.ToLower(strings.TrimSpace(authorText)))
	if err != nil || !ok || !corpus.IsReplaceable(kind) && !corpus.IsAddressable(kind) {
		return
	}
	if author != r.entry.PubKey {
		r.foreign = true
		return
	}
	clean := both && kindText == strconv.Itoa(kind) && authorText == author.String()
	if corpus.IsReplaceable(kind) {
		clean = clean && d == ""
		d = ""
	}
	address := hashAddress(r.seed, &author, kind, []byte(d))
	r.effects = append(r.effects, func(certain bool) { extend(r.addresses, address, r.entry.CreatedAt, certain && clean) })
}

// mentions reports whether event i has a p tag for the key. An event that cannot be read has none.
func (m *Model) mentions(i int, key *corpus.PubKey) (found bool) {
	err := corpus.ScanTags(m.corpus.Raw(i), func(name, value []byte, elements int) {
		if p, ok := corpus.ParsePubKey(value); ok && string(name) == "p" && p == *key {
			found = true
		}
	})
	return found && err == nil
}

// supersede leaves one version of each replaceable and addressable event: the newest, the lowest id
// among equally new ones (NIP-01). deleted says up to when versions are gone by their address.
func (m *Model) supersede(versions []version, deleted map[uint64]cutoff) {
	m.candidates = map[uint32]uint64{}
	slices.SortFunc(versions, func(a, b version) int {
		return cmp.Or(cmp.Compare(a.address, b.address), cmp.Compare(b.rank, a.rank)) // the winner first
	})
	for len(versions) > 0 {
		n := 1
		for n < len(versions) && versions[n].address == versions[0].address {
			n++
		}
		group := versions[:n]
		versions = versions[n:]
		if r, ok := deleted[group[0].address]; ok {
			for _, v := range group {
				i := int(m.ranks[v.rank])
				if at := m.corpus.Entry(i).CreatedAt; at <= max(r.certain, r.possible) {
					m.remove(i, Deleted, at <= r.certain)
				}
			}
		}
		if m.corpus.Entry(int(m.ranks[group[0].rank])).Kind == kindChannelMetadata {
			for _, v := range group[1:] {
				m.remove(int(m.ranks[v.rank]), Stored, false)
			}
			continue
		}
		m.rank(group)
	}
}

// rank settles the versions of one event, best first. If the best is held for certain, all others
// are superseded. If it may have come and gone, or may never have been taken, any of the others may
// be the one that is held (see Optional): the next one, while the best was away; or one
// still older, where the best had replaced the next one before it went.
func (m *Model) rank(group []version) {
	settled := m.statuses[m.ranks[group[0].rank]].certain()
	held := false
	for _, v := range group {
		i := m.ranks[v.rank]
		f := m.statuses[i]
		if f.reason() != Stored {
			continue
		}
		if held {
			f = status(Superseded) | f&optional
		}
		if !settled {
			f |= optional
			m.candidates[i] = v.address
		} else if held {
			f = status(Superseded)
		}
		held = true
		m.statuses[i] = f
	}
}
