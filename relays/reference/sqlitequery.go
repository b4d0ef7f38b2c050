package reference

import (
	"database/sql"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// sqliteView reads what stands in order in an index as it stands there; that is all of one kind, one author and kind, or one tag.
//
// SQLite cannot merge the index entries of many authors or tags in order of time: given a list it sorts everything that matches. So the
// time is cut into windows, newest first, each about as wide as it takes to find what is still wanted; within a window sorting is
// cheap, since only keys are sorted and the events of those that are needed are loaded after that, and every list element costs one
// seek. Each statement names its index, so that no planner statistics can change the plan.
type sqliteView struct {
	store *SQLite
	on    *statements
}

// pageSize is the most keys that one statement returns.
const pageSize = 512

// Scan looks only at ids itself; everything else is found as the caller goes on.
func (v *sqliteView) Scan(q *Query, after Position) (Cursor, error) {
	if len(q.IDs) > 0 {
		return v.scanIDs(q, after)
	}
	c := &sqliteCursor{view: v, query: q, since: q.Since, from: q.Until, left: q.Limit}
	if after.valid {
		c.from, c.tie = after.CreatedAt, after.ID[:]
	}
	c.plan()
	return c, nil
}

// sqliteCursor reads page after page. The next page begins with the events of time `from` whose id is above tie.
type sqliteCursor struct {
	view   *sqliteView
	query  *Query
	source string // the statement up to the conditions on time
	args   []any
	sorted bool // the index gives its entries in order: no need for windows

	since int64 // the query's, or the time of the oldest event
	from  int64
	tie   []byte // nil: all events of time from are still to come
	width int64  // of the next window, in seconds; 0: not chosen yet
	left  int    // matches that the caller will probably still take
	limit int    // of the last page
	over  bool
	page  []*Record
	at    int
}

// plan writes the first half of the statement.
func (c *sqliteCursor) plan() {
	q := c.query
	if len(q.Tags) > 0 {
		t := fewestValues(q.Tags)
		hashes := make([]any, len(t.Values))
		for i, v := range t.Values {
			hashes[i] = sqlHash(t.Name, v)
		}
		c.sorted = len(t.Values) == 1
		c.source = `SELECT DISTINCT t.seq, t.created_at, e.id`
		if c.sorted {
			c.source = `SELECT t.seq, t.created_at, e.id, e.expires, e.raw`
		}
		c.source += ` FROM tags t CROSS JOIN events e ON e.seq = t.seq WHERE t.hash` + c.list(hashes)
		if len(q.Kinds) > 0 {
			c.source += ` AND +e.kind` + c.list(anys(q.Kinds))
		}
		c.source += ` AND t.created_at`
		return
	}
	index, conditions := "events_time", ""
	kinds := q.Kinds
	if len(q.Authors) > 0 {
		index = "events_author"
		if len(kinds) == 0 {
			kinds = c.view.store.allKinds() // the index has the kind before the time
		}
		c.sorted = len(q.Authors) == 1 && len(kinds) == 1
		authors := make([]any, len(q.Authors))
		for i := range q.Authors {
			authors[i] = q.Authors[i][:]
		}
		conditions = `e.pubkey` + c.list(authors) + ` AND e.kind` + c.list(anys(kinds)) + ` AND `
	} else if len(kinds) > 0 {
		index = "events_kind"
		c.sorted = len(kinds) == 1
		conditions = `e.kind` + c.list(anys(kinds)) + ` AND `
	} else {
		c.sorted = true
	}
	c.source = `SELECT e.seq, e.created_at, e.id`
	if c.sorted {
		c.source += `, e.expires, e.raw`
	}
	c.source += ` FROM events e INDEXED BY ` + index + ` WHERE ` + conditions + `e.created_at`
}

func anys(list []int) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = v
	}
	return out
}

// list writes a condition on a list, padded to a power of two by repetition so that there are few different statements.
func (c *sqliteCursor) list(values []any) string {
	if len(values) == 1 {
		c.args = append(c.args, values[0])
		return ` = ?`
	}
	text, padded := inList(values)
	c.args = append(c.args, padded...)
	return text
}

func inList(values []any) (string, []any) {
	if len(values) == 0 {
		return ` IN (NULL)`, nil
	}
	n := 1 << bits.Len(uint(len(values)-1))
	for len(values) < n {
		values = append(values, values[len(values)-1])
	}
	return ` IN (?` + strings.Repeat(`,?`, n-1) + `)`, values
}

func (c *sqliteCursor) Next() (*Record, error) {
	for {
		for c.at < len(c.page) {
			r := c.page[c.at]
			c.page[c.at] = nil
			c.at++
			if r != nil && c.query.Matches(r) {
				c.left--
				return r, nil
			}
		}
		if c.over {
			return nil, nil
		}
		if err := c.readPage(); err != nil {
			return nil, fmt.Errorf("reading the sqlite store: %w", err)
		}
	}
}

func (c *sqliteCursor) Close() {}

type sqliteKey struct {
	seq, createdAt int64
	id             []byte
}

// readPage reads the next keys of the window, moves the window, and loads the keys' events.
func (c *sqliteCursor) readPage() error {
	c.page, c.at = c.page[:0], 0
	if c.from < c.since {
		c.over = true
		return nil
	}
	oldest, err := c.windowEnd()
	if err != nil {
		return err
	}
	if c.over {
		return nil
	}
	// A little more than is wanted, and more from page to page where the rest of the filter drops many.
	c.limit = min(pageSize, max(c.wanted()+c.wanted()/4+4, 2*c.limit))
	keys, err := c.readKeys(oldest, c.limit)
	if err != nil {
		return err
	}
	if len(keys) == c.limit {
		last := keys[len(keys)-1]
		c.width = max(1, 2*(c.from-last.createdAt))
		c.from, c.tie = last.createdAt, last.id
	} else {
		c.from, c.tie = oldest-1, nil
		c.width = widen(c.width, len(keys), c.wanted())
		c.over = oldest <= c.since
	}
	return c.load(keys)
}

// wanted is at least 1: the caller may leave out some that match.
func (c *sqliteCursor) wanted() int { return min(pageSize, max(1, c.left)) }

// widen guesses the next window from how many keys the last one had.
func widen(width int64, found, wanted int) int64 {
	factor := int64(64)
	if found > 0 {
		factor = min(64, max(2, int64(2*wanted/found)))
	}
	if width > math.MaxInt64/128 {
		return width
	}
	return width * factor
}

// windowEnd chooses the oldest time of the next page's window.
func (c *sqliteCursor) windowEnd() (int64, error) {
	if c.sorted {
		return c.since, nil
	}
	if c.width == 0 {
		newest, oldest, count, err := c.view.span()
		if err != nil {
			return 0, err
		}
		if count == 0 {
			c.over = true
			return 0, nil
		}
		if c.tie == nil {
			c.from = min(c.from, newest)
		}
		c.since = max(c.since, oldest)
		if c.from < c.since {
			c.over = true
			return 0, nil
		}
		// Wide enough for three times what is wanted if every event matched.
		c.width = max(1, int64(float64(newest-oldest)*float64(3*c.wanted())/float64(count)))
	}
	if c.from-c.since < c.width {
		return c.since, nil
	}
	return c.from - c.width, nil
}

// span returns between which times events lie and about how many there are.
func (v *sqliteView) span() (newest, oldest, count int64, err error) {
	err = v.on.query(`SELECT (SELECT max(created_at) FROM events), (SELECT min(created_at) FROM events), (SELECT max(seq) FROM events)`, nil,
		func(rows *sql.Rows) error {
			var a, b, n sql.NullInt64
			err := rows.Scan(&a, &b, &n)
			newest, oldest, count = a.Int64, b.Int64, n.Int64
			return err
		})
	return
}

func (c *sqliteCursor) readKeys(oldest int64, limit int) ([]sqliteKey, error) {
	text, args := c.keyStatement(oldest, limit)
	keys := make([]sqliteKey, 0, limit)
	err := c.view.on.query(text, args, func(rows *sql.Rows) error {
		var k sqliteKey
		if !c.sorted {
			err := rows.Scan(&k.seq, &k.createdAt, &k.id)
			keys = append(keys, k)
			return err
		}
		var expires int64
		var raw []byte
		if err := rows.Scan(&k.seq, &k.createdAt, &k.id, &expires, &raw); err != nil {
			return err
		}
		r, err := parseRecord(uint64(k.seq), expires, raw)
		c.page = append(c.page, &r)
		keys = append(keys, k)
		return err
	})
	return keys, err
}

func (c *sqliteCursor) keyStatement(oldest int64, limit int) (string, []any) {
	text := c.source + ` BETWEEN ? AND ?`
	args := append(slices.Clone(c.args), oldest, c.from)
	if c.tie != nil {
		text += ` AND (e.created_at < ? OR e.id > ?)`
		args = append(args, c.from, c.tie)
	}
	// Named by place: the first source sorts by t.created_at, which its index gives, the others by e.created_at.
	return text + ` ORDER BY 2 DESC, 3 LIMIT ?`, append(args, limit)
}

// load reads the events of the keys, if they did not come with them, and puts them in the keys' order. One that went in the meantime leaves a gap.
func (c *sqliteCursor) load(keys []sqliteKey) error {
	if len(keys) == 0 || c.sorted {
		return nil
	}
	place := make(map[int64]int, len(keys))
	seqs := make([]any, len(keys))
	for i, k := range keys {
		place[k.seq], seqs[i] = i, k.seq
	}
	c.page = append(c.page, make([]*Record, len(keys))...)
	in, args := inList(seqs)
	return c.view.on.query(`SELECT seq, expires, raw FROM events WHERE seq`+in, args, func(rows *sql.Rows) error {
		r, err := scanRecord(rows)
		if err == nil {
			c.page[place[int64(r.Seq)]] = r
		}
		return err
	})
}

func scanRecord(rows *sql.Rows) (*Record, error) {
	var seq, expires int64
	var raw []byte
	if err := rows.Scan(&seq, &expires, &raw); err != nil {
		return nil, err
	}
	r, err := parseRecord(uint64(seq), expires, raw)
	return &r, err
}

func (v *sqliteView) scanIDs(q *Query, after Position) (Cursor, error) {
	last := Record{CreatedAt: after.CreatedAt, ID: after.ID}
	var found []*Record
	for ids := range slices.Chunk(q.IDs, pageSize) {
		values := make([]any, len(ids))
		for i := range ids {
			values[i] = ids[i][:]
		}
		in, args := inList(values)
		err := v.on.query(`SELECT seq, expires, raw FROM events WHERE id`+in, args, func(rows *sql.Rows) error {
			r, err := scanRecord(rows)
			if err == nil && q.Matches(r) && (!after.valid || last.Before(r)) {
				found = append(found, r)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return newListCursor(found), nil
}
