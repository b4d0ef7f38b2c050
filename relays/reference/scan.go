package reference

import (
	"slices"

	"relaybench/corpus"
)

const (
	// maxWalks bounds how many groups one filter is read from at once.
	maxWalks = 4096
	// pageSize is the most events that are loaded ahead of the caller.
	pageSize = 512
)

// databaseView reads at one state of the index.
type databaseView struct {
	store *database
	rows  engineView
	state *indexState
}

// Scan merges the groups where matching events stand, newest first, and stops reading where the caller does.
func (v *databaseView) Scan(q *Query, after Position) (Cursor, error) {
	if len(q.IDs) > 0 {
		return v.scanIDs(q, after)
	}
	c := &groupCursor{view: v, query: q, oldest: ^uint64(max(0, q.Since)), left: q.Limit}
	for i := range q.Authors {
		c.authors[q.Authors[i][31]] = true
	}
	if q.Until < 0 {
		return c, nil
	}
	start := entry{late: ^uint64(q.Until)}
	if after.valid {
		start = entry{late: ^uint64(after.CreatedAt), id: idHalf(&after.ID), event: ^uint64(0)}
	}
	for _, g := range groups(q) {
		start.group = g
		var err error
		if c.walks, err = v.state.walks(c.walks, v.rows, &start, &v.store.index.cache); err != nil {
			return nil, err
		}
	}
	for i := len(c.walks)/2 - 1; i >= 0; i-- {
		c.walks.down(i)
	}
	return c, nil
}

// groups picks the index that leaves the fewest candidates: the tag condition with the fewest values, since a tag value is mostly
// rarer than an author or a kind; then author and kind; then either; then time.
func groups(q *Query) (list []uint64) {
	switch {
	case len(q.Tags) > 0:
		t := fewestValues(q.Tags)
		for _, v := range t.Values {
			list = append(list, tagGroup(t.Name, v))
		}
	case len(q.Authors) > 0 && len(q.Kinds) > 0 && len(q.Authors)*len(q.Kinds) <= maxWalks:
		for i := range q.Authors {
			for _, kind := range q.Kinds {
				list = append(list, authorKindGroup(&q.Authors[i], kind))
			}
		}
	case len(q.Authors) > 0 && len(q.Authors) <= maxWalks:
		for i := range q.Authors {
			list = append(list, authorGroup(&q.Authors[i]))
		}
	case len(q.Kinds) > 0 && len(q.Kinds) <= maxWalks:
		for _, kind := range q.Kinds {
			list = append(list, kindGroup(kind))
		}
	default:
		return append(list, timeGroup())
	}
	slices.Sort(list) // neighbours are in the same blocks
	return slices.Compact(list)
}

func fewestValues(tags []TagQuery) *TagQuery {
	best := &tags[0]
	for i := range tags {
		if len(tags[i].Values) < len(best.Values) {
			best = &tags[i]
		}
	}
	return best
}

// groupCursor collects some candidates and loads them together.
type groupCursor struct {
	view    *databaseView
	query   *Query
	oldest  uint64    // the inverted since
	authors [256]bool // last bytes of the authors asked for
	walks   walks
	last    entry // looked at last: an event with two of the tags asked for stands in two groups

	left int // matches that the caller will probably still take
	size int // of the last page
	seqs []uint64
	page []Record // without Raw where an event has gone
	at   int
}

func (c *groupCursor) Next() (*Record, error) {
	for {
		for c.at < len(c.page) {
			r := &c.page[c.at]
			c.at++
			if r.Raw != nil && c.query.Matches(r) {
				c.left--
				return r, nil
			}
		}
		if len(c.walks) == 0 {
			return nil, nil
		}
		if err := c.readPage(); err != nil {
			return nil, err
		}
	}
}

func (c *groupCursor) Close() {}

// readPage loads a little more than is wanted, and more from page to page where the filter drops many.
func (c *groupCursor) readPage() error {
	wanted := min(pageSize, max(1, c.left)) // the caller may leave out some that match
	c.size = min(pageSize, max(wanted+wanted/16+2, 2*c.size))
	c.seqs = c.seqs[:0]
	for len(c.walks) > 0 && len(c.seqs) < c.size {
		if err := c.collect(); err != nil {
			return err
		}
	}
	c.at = 0
	c.page = append(c.page[:0], make([]Record, len(c.seqs))...)
	return c.view.rows.events(c.seqs, func(i int, raw []byte) (err error) {
		c.page[i], err = parseRecord(c.seqs[i], raw)
		return err
	})
}

// collect notes the next candidate, unless its entry says that it does not match.
func (c *groupCursor) collect() error {
	e := c.walks[0].list[0]
	if e.late > c.oldest {
		c.walks = nil
		return nil
	}
	again := e.event == c.last.event && e.late == c.last.late && e.id == c.last.id
	c.last = e
	if !again && in(c.query.kinds, e.kind()) && (c.query.authors == nil || c.authors[e.author()]) {
		c.seqs = append(c.seqs, e.seq())
	}
	return c.walks.step(c.view.rows, &c.view.store.index.cache)
}

// walks is a heap: the newest event first.
type walks []walk

func (w walks) before(i, j int) bool {
	a, b := &w[i].list[0], &w[j].list[0]
	switch {
	case a.late != b.late:
		return a.late < b.late
	case a.id[0] != b.id[0]:
		return a.id[0] < b.id[0]
	case a.id[1] != b.id[1]:
		return a.id[1] < b.id[1]
	}
	return a.event < b.event
}

// step moves the first walk on.
func (w *walks) step(v engineView, cache *blockCache) error {
	if err := (*w)[0].step(v, cache); err != nil {
		return err
	}
	if len((*w)[0].list) == 0 {
		last := len(*w) - 1
		(*w)[0] = (*w)[last]
		*w = (*w)[:last]
	}
	w.down(0)
	return nil
}

func (w walks) down(i int) {
	for {
		first := 2*i + 1
		if first >= len(w) {
			return
		}
		if second := first + 1; second < len(w) && w.before(second, first) {
			first = second
		}
		if !w.before(first, i) {
			return
		}
		w[i], w[first] = w[first], w[i]
		i = first
	}
}

// scanIDs looks every id up; there are few, since a message lists them.
func (v *databaseView) scanIDs(q *Query, after Position) (Cursor, error) {
	var seqs []uint64
	for i := range q.IDs {
		e := idEntry(&q.IDs[i])
		candidates, err := v.state.find(v.rows, &e, &v.store.index.cache)
		if err != nil {
			return nil, err
		}
		seqs = append(seqs, candidates...)
	}
	last := Record{CreatedAt: after.CreatedAt, ID: after.ID}
	var found []*Record
	err := v.rows.events(seqs, func(i int, raw []byte) error {
		r, err := parseRecord(seqs[i], raw)
		if err == nil && q.Matches(&r) && (!after.valid || last.Before(&r)) {
			found = append(found, &r)
		}
		return err
	})
	return newListCursor(found), err
}

// idEntry is where an event with that id would stand.
func idEntry(id *corpus.ID) entry {
	return entry{group: idGroup(id), late: ^uint64(0), id: idHalf(id)}
}

// listCursor goes through a list.
type listCursor struct{ rest []*Record }

func newListCursor(list []*Record) *listCursor {
	slices.SortFunc(list, func(a, b *Record) int {
		if a.Before(b) {
			return -1
		}
		return 1
	})
	return &listCursor{list}
}

func (c *listCursor) Next() (*Record, error) {
	if len(c.rest) == 0 {
		return nil, nil
	}
	r := c.rest[0]
	c.rest = c.rest[1:]
	return r, nil
}

func (c *listCursor) Close() {}
