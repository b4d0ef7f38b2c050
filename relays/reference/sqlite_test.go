package reference

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"relaybench/corpus"
)

// Whatever a filter asks for, SQLite must seek in the index that the statement names, and sort only
// what several authors, kinds or tags match.
func TestSQLiteSeeksInAnIndexForEveryFilter(t *testing.T) {
	s := openTestStore(t, "sqlite", t.TempDir(), DurabilityNone).(*sqliteStore)
	tag := func(values ...string) []corpus.TagFilter { return []corpus.TagFilter{{Name: 't', Values: values}} }
	one, two := []corpus.PubKey{{1}}, []corpus.PubKey{{1}, {2}}
	for name, test := range map[string]struct {
		filter corpus.Filter
		index  string
		sorts  bool
	}{
		"everything":       {corpus.Filter{}, "events_by_time (created_at>? AND created_at<?)", false},
		"ids":              {corpus.Filter{IDs: []corpus.ID{{1}, {2}}}, "events_by_id (id=?)", true},
		"one kind":         {corpus.Filter{Kinds: []int{1}}, "events_by_kind (kind=? AND created_at>? AND created_at<?)", false},
		"kinds":            {corpus.Filter{Kinds: []int{1, 6}}, "events_by_kind (kind=? AND created_at>? AND created_at<?)", true},
		"one author":       {corpus.Filter{Authors: one}, "events_by_author (pubkey=? AND created_at>? AND created_at<?)", false},
		"authors":          {corpus.Filter{Authors: two}, "events_by_author (pubkey=? AND created_at>? AND created_at<?)", true},
		"an author's kind": {corpus.Filter{Authors: one, Kinds: []int{1}}, "events_by_author_and_kind (pubkey=? AND kind=? AND created_at>? AND created_at<?)", false},
		"authors' kinds":   {corpus.Filter{Authors: two, Kinds: []int{1, 6}}, "events_by_author_and_kind (pubkey=? AND kind=? AND created_at>? AND created_at<?)", true},
		"one tag":          {corpus.Filter{Tags: tag("a"), Kinds: []int{1, 7}, Authors: two}, "tags USING PRIMARY KEY (tag=? AND created_at>? AND created_at<?)", false},
		"tags":             {corpus.Filter{Tags: tag("a", "b"), Kinds: []int{1, 7}}, "tags USING PRIMARY KEY (tag=? AND created_at>? AND created_at<?)", true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &sqliteCursor{query: NewQuery(&test.filter, 0)}
			c.plan()
			var plan []string
			err := s.read.query("EXPLAIN QUERY PLAN "+sqlitePage(c.text), append(slices.Clip(c.args), 0, 9, 9, []byte{}, 100), func(rows *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := rows.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			})
			all := strings.Join(plan, "\n")
			if err != nil || !strings.Contains(all, test.index) || strings.Contains(strings.ReplaceAll(strings.ReplaceAll(all, "SCAN json_each", ""), "SCAN found", ""), "SCAN") {
				t.Errorf("%v, plan:\n%s\nwant: %s", err, all, test.index)
			}
			if sorts := strings.Contains(all, "FOR ORDER BY"); sorts != test.sorts {
				t.Errorf("sorts: %t, want %t:\n%s", sorts, test.sorts, all)
			}
		})
	}
}

// More matches than are sorted at once, years apart, with one from a distant future.
func TestSQLiteFindsManyMatchesInWindows(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 8))
	var events []corpus.Event
	at := int64(1_500_000_000)
	for i := range 6 * fewMatches {
		if at += int64(random.IntN(4) / 3); i%500 == 0 {
			at += 40_000_000
		}
		events = append(events, fake(random.IntN(9), []int{1, 7}[random.IntN(2)], at, fmt.Sprint(i), corpus.Tag{"t", []string{"a", "b", "c"}[random.IntN(3)]}, corpus.Tag{"t", "a"}))
	}
	events = append(events, fake(1, 1, 9_000_000_000, "x"))
	random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	plain, s := NewMemory(), openTestStore(t, "sqlite", t.TempDir(), DurabilityNone)
	var seqs [2]uint64
	admitAll(t, plain, &seqs[0], events)
	admitAll(t, s, &seqs[1], events)
	for name, f := range map[string]corpus.Filter{
		"kinds":   {Kinds: []int{1, 7}},
		"authors": {Authors: []corpus.PubKey{events[0].PubKey, events[1].PubKey, events[2].PubKey, {7}}},
		"tags":    {Tags: []corpus.TagFilter{{Name: 't', Values: []string{"a", "b"}}}},
		"both":    {Kinds: []int{1, 7}, Authors: []corpus.PubKey{events[3].PubKey, events[4].PubKey}, Tags: []corpus.TagFilter{{Name: 't', Values: []string{"b", "c"}}}},
	} {
		for _, limit := range []int{1, 30, 700, 1 << 30} {
			if f.Limit = corpus.Int(limit); limit == 700 {
				f.Until = corpus.Int64(at - 10)
			}
			if got, want := ask(t, s, f), ask(t, plain, f); !slices.Equal(got, want) {
				t.Errorf("%s up to %d: %d events, want %d", name, limit, len(got), len(want))
			}
		}
	}
}

func TestAStoreInAnEarlierFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	db, err := bolt.Open(dir+"/events.bolt", 0o644, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("segments")); return err }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	old := openStatements(dir+"/events.sqlite", 1)
	if _, err := old.exec(`CREATE TABLE segments (key INTEGER PRIMARY KEY, value BLOB NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	if err := old.db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"bolt", "sqlite"} {
		if _, err := OpenStore(kind, dir, DurabilityNone); err == nil || !strings.Contains(err.Error(), "export it with that") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A full disk is said in one sentence, nothing of the group is kept, and the store serves on.
func TestAFullDiskIsOneSentence(t *testing.T) {
	s := openTestStore(t, "sqlite", t.TempDir(), DurabilityNone).(*sqliteStore)
	limit := func(pages int) {
		if err := s.write.query(fmt.Sprintf(`PRAGMA max_page_count(%d)`, pages), nil, func(*sql.Rows) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	limit(1) // as many as there are
	insert := func(content string) error {
		return s.Update(func(tx Tx) error {
			e := fake(1, 1, 1000, content)
			r := NewRecord(&e)
			r.Seq = s.LastSeq() + 1
			tx.Insert(&r)
			return nil
		})
	}
	if err := insert(strings.Repeat("much ", 10_000)); err == nil || !strings.Contains(err.Error(), "full") || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "rollback") {
		t.Fatalf("%v", err)
	}
	limit(1 << 30)
	if err := insert("a little"); err != nil || s.LastSeq() != 1 || len(ask(t, s, corpus.Filter{})) != 1 {
		t.Errorf("%v; %d events", err, len(ask(t, s, corpus.Filter{})))
	}
}
