package reference

import (
	"context"
	"strings"
	"testing"

	"relaybench/corpus"
)

// Whatever a filter asks for, SQLite must seek in the index that the statement names: never scan a table.
func TestSQLiteSeeksInAnIndexForEveryFilter(t *testing.T) {
	s := openTestStore(t, "sqlite", t.TempDir(), DurabilityNone).(*SQLite)
	s.kinds = []int{0, 1, 7}
	authors := []corpus.PubKey{{1}, {2}, {3}}
	tags := []corpus.TagFilter{{Name: 't', Values: []string{"a", "b"}}}
	for name, test := range map[string]struct {
		filter corpus.Filter
		index  string
	}{
		"everything":       {corpus.Filter{}, "USING INDEX events_time (created_at>? AND created_at<?)"},
		"one kind":         {corpus.Filter{Kinds: []int{1}}, "USING INDEX events_kind (kind=? AND created_at>? AND created_at<?)"},
		"kinds":            {corpus.Filter{Kinds: []int{1, 6, 7}}, "USING INDEX events_kind (kind=? AND created_at>? AND created_at<?)"},
		"authors":          {corpus.Filter{Authors: authors}, "USING INDEX events_author (pubkey=? AND kind=? AND created_at>? AND created_at<?)"},
		"authors by kinds": {corpus.Filter{Authors: authors, Kinds: []int{1, 6}}, "USING INDEX events_author (pubkey=? AND kind=? AND created_at>? AND created_at<?)"},
		"one tag":          {corpus.Filter{Tags: []corpus.TagFilter{{Name: 't', Values: []string{"a"}}}}, "USING PRIMARY KEY (hash=? AND created_at>? AND created_at<?)"},
		"tags":             {corpus.Filter{Tags: tags, Kinds: []int{1, 7}, Authors: authors}, "USING PRIMARY KEY (hash=? AND created_at>? AND created_at<?)"},
	} {
		for _, tie := range [][]byte{nil, make([]byte, 32)} {
			t.Run(name, func(t *testing.T) {
				c := &sqliteCursor{view: &sqliteView{s, s.read}, query: NewQuery(&test.filter, 0), from: 1000, tie: tie}
				c.plan()
				text, args := c.keyStatement(0, 100)
				rows, err := s.writer.QueryContext(context.Background(), "EXPLAIN QUERY PLAN "+text, args...)
				if err != nil {
					t.Fatal(err)
				}
				defer rows.Close()
				var plan []string
				for rows.Next() {
					var id, parent, unused int
					var detail string
					if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
						t.Fatal(err)
					}
					plan = append(plan, detail)
				}
				all := strings.Join(plan, "\n")
				if !strings.Contains(all, test.index) || strings.Contains(all, "SCAN") {
					t.Errorf("%s\nplan:\n%s\nwant: %s", text, all, test.index)
				}
				if sorts := strings.Contains(all, "TEMP B-TREE FOR ORDER BY"); sorts && c.sorted {
					t.Errorf("%s\nsorts what its index has in order:\n%s", text, all)
				}
			})
		}
	}
}
