package model

import (
	"context"
	"fmt"
	"hash/maphash"
	"sync"

	"relaybench/corpus"
)

// survey is what one pass over the offered events collects for the rules and the index.
type survey struct {
	seed     maphash.Seed
	indexed  bool // tags are collected
	tags     [tagBuckets][]tagPosting
	versions []version
	requests []uint32 // indices of kinds 5 and 62, in no particular order
}

// version is one event of a kind of which relays keep only the newest.
type version struct {
	address uint64 // hash of author, kind and d
	rank    uint32
}

// chunkEvents is how many events a goroutine takes at a time.
const chunkEvents = 2048

// forgetFrom is how many events have so much text that it is forgotten once it was read.
const forgetFrom = 200_000

// survey reads the tags of every event that may be held, and decides expiry and protection, which
// need nothing but the event itself.
func (m *Model) survey(now int64, indexed bool) (*survey, error) {
	whole := &survey{seed: maphash.MakeSeed(), indexed: indexed}
	var mu sync.Mutex
	chunks := (len(m.statuses) + chunkEvents - 1) / chunkEvents
	spare := sync.Pool{New: func() any { return &survey{seed: whole.seed, indexed: indexed} }}
	err := corpus.TryInParallel(context.Background(), chunks, func(chunk int) error {
		part := spare.Get().(*survey)
		for i := chunk * chunkEvents; i < min((chunk+1)*chunkEvents, len(m.statuses)); i++ {
			if m.statuses[i].reason() != Stored {
				continue
			}
			if err := part.read(m, i, now); err != nil {
				return fmt.Errorf("modelling event %d of the corpus: %w", i, err)
			}
		}
		if len(m.statuses) >= forgetFrom {
			m.corpus.ForgetPart(chunk*chunkEvents, min((chunk+1)*chunkEvents, len(m.statuses)))
		}
		mu.Lock()
		defer mu.Unlock()
		whole.take(part)
		spare.Put(part)
		return nil
	})
	return whole, err
}

func (s *survey) read(m *Model, i int, now int64) error {
	entry := m.corpus.Entry(i)
	kind, rank := int(entry.Kind), m.ranks[i]
	var d []byte
	hasD, protected := false, false
	expiry := noExpiry
	err := corpus.ScanTags(m.corpus.Raw(i), func(name, value []byte, elements int) {
		switch {
		case elements > 1 && len(name) == 1 && s.indexed:
			h := hashTag(s.seed, name[0], value)
			s.tags[h>>tagBucketShift] = append(s.tags[h>>tagBucketShift], tagPosting{h, rank})
		case string(name) == "expiration":
			if e := readExpiry(value, now); expiry == noExpiry || expiry == e {
				expiry = e
			} else { // tags that disagree leave it open
				expiry = openExpiry
			}
		}
		switch {
		case !hasD && string(name) == "d":
			hasD = true
			d = append(d, value...)
		case string(name) == "-":
			protected = true
		}
	})
	if err != nil {
		return err
	}

	switch {
	case expiry == pastExpiry:
		m.statuses[i] = status(Expired)
	case expiry == openExpiry:
		m.statuses[i] = optional
	case protected:
		m.statuses[i] = optional
	}
	switch {
	case kind == corpus.KindDeletion || kind == corpus.KindVanish:
		s.requests = append(s.requests, uint32(i))
	case corpus.IsAddressable(kind):
		s.versions = append(s.versions, version{hashAddress(s.seed, &entry.PubKey, kind, d), rank})
	case corpus.IsReplaceable(kind) || kind == kindChannelMetadata:
		s.versions = append(s.versions, version{hashAddress(s.seed, &entry.PubKey, kind, nil), rank})
	}
	return nil
}

// take moves everything out of part.
func (s *survey) take(part *survey) {
	for b := range s.tags {
		s.tags[b] = append(s.tags[b], part.tags[b]...)
		part.tags[b] = part.tags[b][:0]
	}
	s.versions = append(s.versions, part.versions...)
	part.versions = part.versions[:0]
	s.requests = append(s.requests, part.requests...)
	part.requests = part.requests[:0]
}

// expiry is what an event's NIP-40 tags come to at the model's time.
type expiry uint8

const (
	noExpiry   expiry = iota
	farExpiry         // it outlasts the run
	pastExpiry        // it has expired
	openExpiry        // it may have, or may while the run lasts
)

// readExpiry judges one expiration value. Anything but a positive decimal number of sensible length
// leaves it open: relays refuse it, ignore it, or read it loosely.
func readExpiry(value []byte, now int64) expiry {
	at := int64(0)
	for _, c := range value {
		if c < '0' || c > '9' || len(value) > 18 {
			return openExpiry
		}
		at = at*10 + int64(c-'0')
	}
	switch {
	case at == 0:
		return openExpiry
	case at <= now:
		return pastExpiry
	case at <= now+ExpiryMargin:
		return openExpiry
	}
	return farExpiry
}

// hashTag is the index's key for a single-letter tag with a value.
func hashTag(seed maphash.Seed, name byte, value []byte) uint64 {
	return maphash.Bytes(seed, value) ^ uint64(name)*0x9e3779b97f4a7c15
}

// hashAddress is the key of all versions of one replaceable (d is empty) or addressable event.
func hashAddress(seed maphash.Seed, author *corpus.PubKey, kind int, d []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	h.Write(author[:])
	h.WriteByte(byte(kind))
	h.WriteByte(byte(kind >> 8))
	h.Write(d)
	return h.Sum64()
}
