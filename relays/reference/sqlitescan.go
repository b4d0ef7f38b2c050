package reference

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
)

const (
	pageSize   = 512  // the most events that one statement returns
	fewMatches = 1024 // less than that is sorted at once
)

// Scan reads no events yet. The cursor reads page after page, each with one statement that names
// its index.
//
// What stands in an index in the order of an answer, as all of one author or one tag does, is read
// as it stands. What several authors or tags match SQLite does not merge but sorts. Where that is
// much, time is cut into windows, newest first: the first is as wide as twice what is wanted would
// take if every event matched, and each further one so wide that it probably holds the rest.
func (t *sqliteTx) Scan(q *Query, after Position) Cursor {
	c := &sqliteCursor{tx: t, query: q, since: max(0, q.Since), to: q.Until, tie: []byte{}, widen: 1, left: q.Limit}
	if after.valid {
		c.to, c.tie = after.CreatedAt, after.ID[:]
	}
	c.plan()
	if c.sorts { // no windows where few match
		n := 0
		t.scan(`SELECT count(*) FROM (`+c.text+` LIMIT ?)`, append(slices.Clip(c.args), c.since, c.to, c.to, c.tie, fewMatches), &n)
		c.sorts = n == fewMatches
	}
	return c
}

type sqliteCursor struct {
	tx    *sqliteTx
	query *Query
	text  string
	args  []any // of the statement's conditions but that on time
	sorts bool  // reads windows

	since int64
	to    int64  // the newest time of the next page
	tie   []byte // its events of that time are those with a higher id
	widen int64  // how many times as wide as the first the next window is
	full  bool   // the last page was
	over  bool

	left int // matches that the caller will probably still take
	size int // of the last page
	page []Record
	last uint64 // Seq looked at last: an event with two of the tags asked for is found twice
}

// plan picks the index that leaves the fewest candidates, since a tag value is mostly rarer than an
// author or a kind.
func (c *sqliteCursor) plan() {
	q := c.query
	from, kinds := "events INDEXED BY ", len(q.Kinds)
	switch {
	case len(q.IDs) > 0:
		from += "events_by_id"
		c.where("id", "unhex(value)", len(q.IDs), jsonList(q.IDs, appendHex))
	case len(q.Tags) > 0:
		t := fewestValues(q.Tags)
		from, c.sorts = "tags", len(t.Values) > 1
		c.where("tag", "value", len(t.Values), jsonList(t.Values, func(b []byte, value string) []byte {
			return appendInt(b, int64(tagHash(t.Name, value)))
		}))
	case len(q.Authors) > 0 && kinds > 0:
		from += "events_by_author_and_kind"
		c.sorts = len(q.Authors) > 1 || kinds > 1
	case len(q.Authors) > 0:
		from, c.sorts = from+"events_by_author", len(q.Authors) > 1
	case kinds > 0:
		from, c.sorts = from+"events_by_kind", kinds > 1
	default:
		from += "events_by_time"
	}
	if len(q.Authors) > 0 {
		c.where("pubkey", "unhex(value)", len(q.Authors), jsonList(q.Authors, appendHex))
	}
	if kinds > 0 {
		c.where("kind", "value", kinds, jsonList(q.Kinds, appendInt))
	}
	c.text = `SELECT seq FROM ` + from + ` WHERE ` + c.text + `created_at BETWEEN ? AND ? AND (created_at < ? OR id > ?)`
}

// where adds a condition on a list. A list of one is known to SQLite as such, and needs no sorting.
func (c *sqliteCursor) where(column, value string, n int, list string) {
	is := ` IN `
	if n == 1 {
		is = ` = `
	}
	c.text += column + is + `(SELECT ` + value + ` FROM json_each(?)) AND `
	c.args = append(c.args, list)
}

// jsonList writes a list as one argument, so that its length makes no other statement.
func jsonList[T any](list []T, add func([]byte, T) []byte) string {
	b := []byte{'['}
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, v)
	}
	return string(append(b, ']'))
}

func appendInt[T int | int64](b []byte, v T) []byte { return strconv.AppendInt(b, int64(v), 10) }

func appendHex[T ~[32]byte](b []byte, v T) []byte {
	array := [32]byte(v)
	return append(hex.AppendEncode(append(b, '"'), array[:]), '"')
}

func (c *sqliteCursor) Next() *Record {
	for {
		for len(c.page) > 0 {
			r := &c.page[0]
			c.page = c.page[1:]
			again := r.Seq == c.last
			c.last = r.Seq
			if !again && c.query.Matches(r) {
				c.left--
				return r
			}
		}
		if c.over || c.tx.err != nil {
			return nil
		}
		c.readPage()
	}
}

// readPage reads a little more than is wanted, and more from page to page where the rest of the
// filter drops many.
func (c *sqliteCursor) readPage() {
	wanted := min(pageSize, max(1, c.left)) // the caller may leave out some that match
	if wanted += wanted/16 + 2; c.full {
		wanted = max(wanted, 2*c.size)
	}
	c.size = min(pageSize, wanted)
	start := c.windowStart()
	c.page = c.tx.records(sqlitePage(c.text), append(slices.Clip(c.args), start, c.to, c.to, c.tie, c.size)...)
	slices.SortFunc(c.page, func(a, b Record) int { return oldestFirst(&b, &a) })
	n := len(c.page)
	c.full = n == c.size
	switch {
	case c.full:
		c.to, c.tie = c.page[n-1].CreatedAt, bytes.Clone(c.page[n-1].ID[:])
	case start > c.since:
		c.to, c.tie = start-1, []byte{}
		c.widen *= min(64, max(2, int64(2*c.size/(n+1))))
	default:
		c.over = true
	}
}

// sqlitePage loads the first events of what a statement finds.
func sqlitePage(found string) string {
	return `SELECT e.seq, e.event FROM (` + found + ` ORDER BY created_at DESC, id LIMIT ?) AS found CROSS JOIN events AS e ON e.seq = found.seq`
}

// windowStart returns the oldest time of the next page.
func (c *sqliteCursor) windowStart() int64 {
	start := c.since
	if c.sorts {
		c.tx.scan(`SELECT created_at FROM events INDEXED BY events_by_time WHERE created_at <= ? ORDER BY created_at DESC LIMIT 1 OFFSET ?`,
			[]any{c.to, 2 * c.size}, &start)
	}
	width := c.to - start
	if width >= (c.to-c.since)/c.widen {
		return c.since
	}
	return c.to - c.widen*width
}
