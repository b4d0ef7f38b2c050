package model

import (
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

func (x *tagIndex) list(name byte, value string) []uint32 {
	h := hashTag(x.seed, name, []byte(value))
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
			m.authors = group(m, func(e *corpus.Entry) corpus.PubKey { return e.PubKey })
		case 1:
			m.kinds = group(m, func(e *corpus.Entry) uint16 { return e.Kind })
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

// group lists the ranks of all events that may be held, by a key of each.
func group[K comparable](m *Model, of func(e *corpus.Entry) K) map[K][]uint32 {
	lists := map[K][]uint32{}
	for rank, i := range m.ranks {
		if m.statuses[i].possible() {
			key := of(m.corpus.Entry(int(i)))
			lists[key] = append(lists[key], uint32(rank))
		}
	}
	return lists
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
