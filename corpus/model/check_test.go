package model

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"relaybench/corpus"
)

// Ten notes by one author, two for each created_at, ids 1 to 10; a superseded and a current
// profile, 11 and 12; and one note that is not offered, 13. Newest first, lowest id first: 9 10 7 8
// 5 6 3 4 1 2.
func checkedModel(t *testing.T) *Model {
	var events []corpus.Event
	for n := range 10 {
		events = append(events, corpus.Event{ID: corpus.ID{byte(n + 1)}, PubKey: corpus.PubKey{1}, Kind: 1, CreatedAt: 1000 + int64(n/2)})
	}
	events = append(events,
		corpus.Event{ID: corpus.ID{11}, PubKey: corpus.PubKey{1}, Kind: 0, CreatedAt: 900}, corpus.Event{ID: corpus.ID{12}, PubKey: corpus.PubKey{1}, Kind: 0, CreatedAt: 901},
		corpus.Event{ID: corpus.ID{13}, PubKey: corpus.PubKey{1}, Kind: 1, CreatedAt: 902})
	_, m := modelOf(t, events, func(i int) bool { return i != 2 })
	return m
}

func TestCheckNamesWhatIsWrong(t *testing.T) {
	m := checkedModel(t)
	notes := corpus.Filter{Kinds: []int{1}}
	limited := func(n int) corpus.Filter { return corpus.Filter{Kinds: []int{1}, Limit: corpus.Int(n)} }
	for name, c := range map[string]struct {
		filter corpus.Filter
		got    []byte // first bytes of ids
		want   string
	}{
		"all of it":                       {notes, []byte{9, 10, 7, 8, 5, 6, 3, 4, 1, 2}, "ok 10/10"},
		"nothing where there is nothing":  {corpus.Filter{Kinds: []int{7}}, nil, "ok 0/0"},
		"an event missing":                {notes, []byte{9, 10, 7, 5, 6, 3, 4, 1, 2}, "9/10 missing 8"},
		"nothing":                         {limited(2), nil, "0/2 missing 9 10"},
		"superseded":                      {corpus.Filter{Kinds: []int{0}}, []byte{12, 11}, "2/1 extra 11:superseded"},
		"superseded instead of current":   {corpus.Filter{Kinds: []int{0}}, []byte{11}, "1/1 missing 12 extra 11:superseded"},
		"not offered":                     {corpus.Filter{Until: corpus.Int64(902)}, []byte{13, 12}, "2/1 extra 13:not offered"},
		"unknown":                         {corpus.Filter{Kinds: []int{0}}, []byte{99, 12}, "2/1 extra 99:not in the corpus"},
		"no match":                        {corpus.Filter{Kinds: []int{0}}, []byte{9, 12}, "2/1 extra 9:does not match the filter"},
		"outside since":                   {corpus.Filter{Since: corpus.Int64(1004)}, []byte{9, 10, 7}, "3/2 extra 7:does not match the filter"},
		"outside until":                   {corpus.Filter{Until: corpus.Int64(902)}, []byte{2, 12}, "2/1 extra 2:does not match the filter"},
		"twice":                           {limited(2), []byte{9, 10, 9}, "3/2 twice 9"},
		"oldest first":                    {limited(3), []byte{7, 9, 10}, "3/3 order 9"},
		"tie order":                       {limited(2), []byte{10, 9}, "ok 2/2 ties 9"},
		"the limit":                       {limited(4), []byte{9, 10, 7, 8}, "ok 4/4"},
		"a tie at the limit, either one":  {limited(3), []byte{9, 10, 8}, "ok 3/3"},
		"more than the limit":             {limited(2), []byte{9, 10, 7}, "3/2 extra 7:beyond the limit"},
		"both of a tie at the limit":      {limited(3), []byte{9, 10, 7, 8}, "4/3 extra 8:beyond the limit"},
		"older ones instead of newer":     {limited(3), []byte{9, 5, 6}, "3/3 missing 10 7 extra 5:beyond the limit 6:beyond the limit"},
		"limit zero":                      {limited(0), nil, "ok 0/0"},
		"something under limit zero":      {limited(0), []byte{9}, "1/0 extra 9:beyond the limit"},
		"a cap":                           {limited(9), []byte{9, 10, 7, 8}, "capped 4/9 missing 5 6 3 4 1"},
		"a cap, no limit":                 {notes, []byte{9, 10, 7, 8}, "capped 4/10 missing 5 6 3 4 1 2"},
		"a cap through a tie":             {notes, []byte{9, 10, 8}, "capped 3/10 missing 7 5 6 3 4 1 2"},
		"a hole is no cap":                {notes, []byte{9, 10, 5, 6}, "4/10 missing 7 8 3 4 1 2"},
		"a cap with an event of its own":  {notes, []byte{99, 9, 10}, "3/10 missing 7 8 5 6 3 4 1 2 extra 99:not in the corpus"},
		"a cap out of order":              {notes, []byte{7, 9, 10, 8}, "4/10 missing 5 6 3 4 1 2 order 9"},
		"a cap with an event twice":       {notes, []byte{9, 10, 7, 8, 9}, "5/10 missing 5 6 3 4 1 2 twice 9"},
		"a cap on by ids":                 {corpus.Filter{IDs: []corpus.ID{{9}, {7}}}, []byte{9}, "capped 1/2 missing 7"},
		"ids of which some are not there": {corpus.Filter{IDs: []corpus.ID{{9}, {99}, {11}}}, []byte{9}, "ok 1/1"},
	} {
		t.Run(name, func(t *testing.T) {
			ids := make([]corpus.ID, len(c.got))
			for i, b := range c.got {
				ids[i] = corpus.ID{b}
			}
			v := m.Check(&c.filter, ids)
			if got := resultText(v); got != c.want {
				t.Errorf("got  %s\nwant %s\n%+v", got, c.want, v)
			}
		})
	}
}

func resultText(v CheckResult) string {
	var b strings.Builder
	if v.OK() {
		b.WriteString("ok ")
	}
	if v.Capped {
		b.WriteString("capped ")
	}
	fmt.Fprintf(&b, "%d/%d", v.Got, v.Want)
	for i, d := range v.Missing {
		fmt.Fprintf(&b, "%s %d", [2]string{"", " missing"}[min(1, max(0, 1-i))], d.ID[0])
	}
	for i, d := range v.Extra {
		fmt.Fprintf(&b, "%s %d:%s", [2]string{"", " extra"}[min(1, max(0, 1-i))], d.ID[0], d.Reason)
	}
	for _, list := range []struct {
		name string
		ids  []corpus.ID
	}{{"order", v.Misordered}, {"twice", v.Duplicate}, {"ties", v.TieOrder}} {
		for _, id := range list.ids {
			fmt.Fprintf(&b, " %s %d", list.name, id[0])
		}
	}
	return b.String()
}

func TestCheckAllowsAnyAmbiguousVersionButOnlyOne(t *testing.T) {
	author := corpus.PubKey{1}
	_, m := modelOf(t, []corpus.Event{
		{ID: corpus.ID{9}, PubKey: author, CreatedAt: 0, Kind: 1, Tags: []corpus.Tag{{"t", "x"}}},
		{ID: corpus.ID{1}, PubKey: author, CreatedAt: 1, Tags: []corpus.Tag{{"t", "x"}}}, {ID: corpus.ID{2}, PubKey: author, CreatedAt: 2}, {ID: corpus.ID{3}, PubKey: author, CreatedAt: 3},
		{ID: corpus.ID{4}, PubKey: author, CreatedAt: 4, Kind: 5, Tags: []corpus.Tag{{"e", corpus.ID{3}.String()}}},
	}, nil)
	profiles := corpus.Filter{Kinds: []int{0}}
	for _, c := range []struct {
		got  []corpus.ID
		want string
	}{
		{nil, "ok 0/1"}, {[]corpus.ID{{1}}, "ok 1/1"}, {[]corpus.ID{{2}}, "ok 1/1"},
		{[]corpus.ID{{2}, {1}}, "2/1 extra 1:superseded"}, {[]corpus.ID{{3}}, "1/1 extra 3:deleted"},
	} {
		v := m.Check(&profiles, c.got)
		if got := resultText(v); got != c.want || v.Optional != 2 {
			t.Errorf("%v: got %s, %d optional; want %s, 2", c.got, got, v.Optional, c.want)
		}
	}
	// A version that stands in the place of what a relay without it would send: that is wanted all
	// the same.
	tagged := corpus.Filter{Tags: []corpus.TagFilter{{Name: 't', Values: []string{"x"}}}, Limit: corpus.Int(1)}
	for _, got := range []corpus.ID{{1}, {9}} {
		if v := m.Check(&tagged, []corpus.ID{got}); resultText(v) != "ok 1/1" {
			t.Errorf("%v: %+v", got, v)
		}
	}
}

// Whatever is done to a right answer of a model without ambiguity, unless it is still right, must
// be found.
func TestCheckFindsEveryMutation(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(9, 10))
	for range 600 {
		var events []corpus.Event
		for range 1 + r.IntN(20) {
			events = append(events, corpus.Event{ID: corpus.ID{byte(r.IntN(256)), byte(r.IntN(256)), byte(len(events))}, PubKey: corpus.PubKey{byte(r.IntN(3))}, Kind: r.IntN(2), CreatedAt: int64(r.IntN(6))})
		}
		c, m := modelOf(t, events, nil)
		f := randomFilter(r, events)
		var answer []corpus.ID
		for _, i := range m.Query(&f) {
			answer = append(answer, c.Entry(i).ID)
		}
		if v := m.Check(&f, answer); !v.OK() || v.Want != len(answer) || len(v.TieOrder) > 0 || v.Optional > 0 {
			t.Fatalf("a right answer: %+v", v)
		}
		changed := slices.Clone(answer)
		if at := r.IntN(len(answer) + 1); r.IntN(2) == 0 || at == len(answer) {
			changed = slices.Insert(changed, at, c.Entry(r.IntN(c.Len())).ID)
		} else {
			changed = slices.Delete(changed, at, at+1)
		}
		v := m.Check(&f, changed)
		if v.OK() {
			t.Fatalf("%s: %v passes for %v: %+v", f.AppendJSON(nil), changed, answer, v)
		}
		if v.Capped && !(len(changed) > 0 && len(changed) < len(answer)) {
			t.Fatalf("%v passes for a capped %v", changed, answer)
		}
	}
}
