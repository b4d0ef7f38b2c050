package model

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"sort"

	"relaybench/corpus"
)

// Tag postings are sorted in buckets by the highest bits of their hash, on all cores at once.
const (
	tagBuckets     = 64
	tagBucketShift = 64 - 6
)

// tagPosting says that the event of this rank has the tag of this hash.
type tagPosting struct {
	hash uint64
	rank uint32
}

// postings lists the ranks that belong to each of some keys, all in one array: key k has
// ranks[starts[k]:starts[k+1]], ascending.
type postings struct {
	keys   []uint32 // ascending in the order of what they stand for: for authors an index of an event by each, for kinds the kind
	starts []uint32
	ranks  []uint32
}

// list returns the ranks of key number k.
func (p *postings) list(k int) []uint32 { return p.ranks[p.starts[k]:p.starts[k+1]] }

// tagIndex is the postings of tag hashes, in the buckets that they were sorted in.
type tagIndex struct {
	seed    maphash.Seed
	buckets [tagBuckets]tagBucket
}

type tagBucket struct {
	hashes []uint64
	starts []uint32
	ranks  []uint32
}

// list returns the ranks of the events that have the tag.
func (x *tagIndex) list(name byte, value string) []uint32 {
	h := hashTag(x.seed, name, value)
	b := &x.buckets[h>>tagBucketShift]
	k, ok := slices.BinarySearch(b.hashes, h)
	if !ok {
		return nil
	}
	return b.ranks[b.starts[k]:b.starts[k+1]]
}

// buildIndex makes the postings of every event that may be held, and frees the survey's memory.
func (m *Model) buildIndex(s *survey) {
	m.index.seed = s.seed
	corpus.InParallel(2+tagBuckets, func(part int) {
		switch part {
		case 0:
			m.indexAuthors()
		case 1:
			m.indexKinds()
		default:
			b := part - 2
			m.index.buckets[b] = m.sortTags(s.tags[b])
			s.tags[b] = nil
		}
	})
}

// sortTags makes one bucket's index of its postings, which it sorts in place.
func (m *Model) sortTags(list []tagPosting) tagBucket {
	list = slices.DeleteFunc(list, func(p tagPosting) bool { return !m.statuses[m.ranks[p.rank]].possible() })
	slices.SortFunc(list, func(a, b tagPosting) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.rank, b.rank))
	})
	list = slices.Compact(list)
	keys := 0
	for i := range list {
		if i == 0 || list[i].hash != list[i-1].hash {
			keys++
		}
	}
	b := tagBucket{hashes: make([]uint64, 0, keys), starts: make([]uint32, 0, keys+1), ranks: make([]uint32, len(list))}
	for i, p := range list {
		if i == 0 || p.hash != list[i-1].hash {
			b.hashes = append(b.hashes, p.hash)
			b.starts = append(b.starts, uint32(i))
		}
		b.ranks[i] = p.rank
	}
	b.starts = append(b.starts, uint32(len(list)))
	return b
}

// group fills p with the ranks of all events that may be held, by the key numbers of numberOf.
func (m *Model) group(p *postings, keys int, numberOf func(i int) uint32) {
	p.starts = make([]uint32, keys+1)
	n := uint32(0)
	for i, f := range m.statuses {
		if f.possible() {
			p.starts[numberOf(i)]++
			n++
		}
	}
	total := uint32(0)
	for k, count := range p.starts {
		p.starts[k] = total
		total += count
	}
	p.ranks = make([]uint32, n)
	for rank := range m.ranks {
		if i := int(m.ranks[rank]); m.statuses[i].possible() {
			k := numberOf(i)
			p.ranks[p.starts[k]] = uint32(rank)
			p.starts[k]++
		}
	}
	copy(p.starts[1:], p.starts) // each start has moved to its list's end
	p.starts[0] = 0
}

func (m *Model) indexAuthors() {
	numbers := map[corpus.PubKey]uint32{}
	number := make([]uint32, len(m.statuses)) // for each event
	var sample []uint32                       // an event by each author
	for i, f := range m.statuses {
		if !f.possible() {
			continue
		}
		n, ok := numbers[m.corpus.Entry(i).PubKey]
		if !ok {
			n = uint32(len(sample))
			numbers[m.corpus.Entry(i).PubKey] = n
			sample = append(sample, uint32(i))
		}
		number[i] = n
	}
	order := make([]uint32, len(sample))
	for n := range order {
		order[n] = uint32(n)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return bytes.Compare(m.corpus.Entry(int(sample[a])).PubKey[:], m.corpus.Entry(int(sample[b])).PubKey[:])
	})
	place := make([]uint32, len(sample))
	m.authors.keys = make([]uint32, len(sample))
	for k, n := range order {
		place[n] = uint32(k)
		m.authors.keys[k] = sample[n]
	}
	m.group(&m.authors, len(sample), func(i int) uint32 { return place[number[i]] })
}

func (m *Model) indexKinds() {
	var place [1 << 16]uint32
	for i, f := range m.statuses {
		if f.possible() {
			place[m.corpus.Entry(i).Kind] = 1
		}
	}
	for kind, used := range place {
		if used > 0 {
			place[kind] = uint32(len(m.kinds.keys))
			m.kinds.keys = append(m.kinds.keys, uint32(kind))
		}
	}
	m.group(&m.kinds, len(m.kinds.keys), func(i int) uint32 { return place[m.corpus.Entry(i).Kind] })
}

// byAuthor returns the ranks of an author's events.
func (m *Model) byAuthor(pk corpus.PubKey) []uint32 {
	k, ok := slices.BinarySearchFunc(m.authors.keys, pk, func(sample uint32, pk corpus.PubKey) int {
		return bytes.Compare(m.corpus.Entry(int(sample)).PubKey[:], pk[:])
	})
	if !ok {
		return nil
	}
	return m.authors.list(k)
}

// byKind returns the ranks of the events of a kind.
func (m *Model) byKind(kind int) []uint32 {
	if kind < 0 || kind >= 1<<16 {
		return nil
	}
	k, ok := slices.BinarySearch(m.kinds.keys, uint32(kind))
	if !ok {
		return nil
	}
	return m.kinds.list(k)
}

// span returns the ranks [low, high) of the events within the filter's since and until.
func (m *Model) span(f *corpus.Filter) (low, high uint32) {
	n := m.corpus.Len()
	high = uint32(n)
	if f.Since != nil {
		low = uint32(sort.Search(n, func(i int) bool { return m.corpus.Entry(i).CreatedAt >= *f.Since }))
	}
	if f.Until != nil {
		high = uint32(sort.Search(n, func(i int) bool { return m.corpus.Entry(i).CreatedAt > *f.Until }))
	}
	return low, max(low, high)
}
