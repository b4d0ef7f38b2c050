package reference

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"relaybench/corpus"
)

// stores opens one store of every kind that keeps events.
func stores(t testing.TB) map[string]Store {
	all := map[string]Store{}
	for _, kind := range []string{"memory", "bolt", "sqlite"} {
		all[kind] = openTestStore(t, kind, t.TempDir(), DurabilityNone)
	}
	return all
}

func openTestStore(t testing.TB, kind, dir string, d Durability) Store {
	t.Helper()
	s, err := OpenStore(kind, dir, d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("closing %s: %v", kind, err)
		}
	})
	return s
}

// testKey makes a signer from a small number.
func testKey(n int) corpus.SecretKey {
	key, err := corpus.NewSecretKey([32]byte{30: byte(n >> 8), 31: byte(n + 1)})
	if err != nil {
		panic(err)
	}
	return key
}

func sign(key corpus.SecretKey, e corpus.Event) corpus.Event {
	if err := key.Sign(&e, [32]byte{}); err != nil {
		panic(err)
	}
	return e
}

// fake makes an event that only a relay without verification takes, which is all that stores need.
func fake(author, kind int, at int64, content string, tags ...corpus.Tag) corpus.Event {
	e := corpus.Event{PubKey: corpus.PubKey{0: byte(author), 9: byte(author)}, Kind: kind, CreatedAt: at, Content: content, Tags: tags}
	e.ID = e.Hash()
	return e
}

// admitAll offers events to a store in groups, as the committer does, and returns the verdicts.
func admitAll(t testing.TB, s Store, seq *uint64, events []corpus.Event) (verdicts []decision) {
	t.Helper()
	for group := range slices.Chunk(events, 7) {
		err := s.Update(func(tx Tx) error {
			for i := range group {
				r := NewRecord(&group[i])
				*seq++
				r.Seq = *seq
				verdicts = append(verdicts, rules{}.admit(tx, &group[i], &r))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return verdicts
}

// ask runs filters through the answer that sessions use, in small steps.
func ask(t testing.TB, s Store, filters ...corpus.Filter) (ids []corpus.ID) {
	t.Helper()
	var queries []*Query
	for i := range filters {
		queries = append(queries, NewQuery(&filters[i], 0))
	}
	a := newResultStream(queries, 1<<62, 0)
	for step := 3; !a.done; step *= 3 {
		n := 0
		if err := a.step(s, func(r *Record) bool { ids = append(ids, r.ID); n++; return n < step }); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// randomEvents draws from few authors, kinds, times and tags, so that everything collides with
// everything.
func randomEvents(random *rand.Rand, n int) []corpus.Event {
	var events []corpus.Event
	kinds := []int{0, 1, 1, 1, 3, 5, 5, 7, 10002, 30023, 30023, 1059, 62}
	for range n {
		kind := kinds[random.IntN(len(kinds))]
		author := random.IntN(6)
		at := int64(1000 + random.IntN(60))
		var tags []corpus.Tag
		pk := func(a int) string { return corpus.PubKey{0: byte(a), 9: byte(a)}.String() }
		for range random.IntN(4) {
			switch random.IntN(5) {
			case 0:
				tags = append(tags, corpus.Tag{"p", pk(random.IntN(6))})
			case 1:
				tags = append(tags, corpus.Tag{"t", []string{"a", `q"\` + "\n", "ü"}[random.IntN(3)], "more"})
			case 2:
				tags = append(tags, corpus.Tag{"d", fmt.Sprint(random.IntN(2))})
			case 3:
				tags = append(tags, corpus.Tag{"T"}, corpus.Tag{}, corpus.Tag{"word", "a"})
			case 4:
				if len(events) > 0 {
					tags = append(tags, corpus.Tag{"e", events[random.IntN(len(events))].ID.String()})
				}
			}
		}
		switch kind {
		case corpus.KindDeletion:
			if random.IntN(2) == 0 && len(events) > 0 {
				target := events[random.IntN(len(events))]
				author = int(target.PubKey[0])
				tags = append(tags, corpus.Tag{"e", target.ID.String()})
			} else {
				a := []int{0, 3, 10002, 30023}[random.IntN(4)]
				tags = append(tags, corpus.Tag{"a", fmt.Sprintf("%d:%s:%d", a, pk(author), random.IntN(2))})
			}
		case corpus.KindVanish:
			if random.IntN(8) > 0 {
				continue
			}
			at = 1000 + int64(len(events)/20) // never twice in a second
			tags = append(tags, corpus.Tag{"relay", "ALL_RELAYS"})
		}
		events = append(events, fake(author, kind, at, fmt.Sprint(random.IntN(1000)), tags...))
	}
	return events
}

func randomFilter(random *rand.Rand, events []corpus.Event) (f corpus.Filter) {
	pick := func() *corpus.Event { return &events[random.IntN(len(events))] }
	if random.IntN(8) == 0 {
		f.IDs = []corpus.ID{}
		for range random.IntN(9) {
			f.IDs = append(f.IDs, pick().ID)
		}
	}
	if random.IntN(3) == 0 {
		for range 1 + random.IntN(4) {
			f.Authors = append(f.Authors, pick().PubKey)
		}
	}
	if random.IntN(3) == 0 {
		for range 1 + random.IntN(4) {
			f.Kinds = append(f.Kinds, pick().Kind)
		}
	}
	for _, name := range []byte("ptTde") {
		if random.IntN(7) == 0 {
			tf := corpus.TagFilter{Name: name}
			for range 1 + random.IntN(4) {
				for _, t := range pick().Tags {
					tf.Values = append(tf.Values, t.Value())
				}
			}
			tf.Values = append(tf.Values, "a")
			f.Tags = append(f.Tags, tf)
		}
	}
	if random.IntN(3) == 0 {
		f.Since = corpus.Int64(int64(990 + random.IntN(80)))
	}
	if random.IntN(3) == 0 {
		f.Until = corpus.Int64(int64(990 + random.IntN(80)))
	}
	if random.IntN(2) == 0 {
		f.Limit = corpus.Int(random.IntN(20))
	}
	return f
}

// plainAnswer is what NIP-01 says, written without any cleverness.
func plainAnswer(held []corpus.Event, filters []corpus.Filter) (ids []corpus.ID) {
	newestFirst := func(a, b corpus.Event) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), strings.Compare(a.ID.String(), b.ID.String()))
	}
	var union []corpus.Event
	for _, f := range filters {
		var matching []corpus.Event
		for _, e := range held {
			if f.Matches(&e) {
				matching = append(matching, e)
			}
		}
		slices.SortFunc(matching, newestFirst)
		if f.Limit != nil {
			matching = matching[:min(len(matching), *f.Limit)]
		}
		union = append(union, matching...)
	}
	slices.SortFunc(union, newestFirst)
	for _, e := range union {
		ids = append(ids, e.ID)
	}
	return slices.Compact(ids)
}

func TestStoresAnswerAlike(t *testing.T) {
	for seed := range uint64(2) {
		random := rand.New(rand.NewPCG(seed, 1))
		events := randomEvents(random, 400)
		var wantVerdicts []decision
		var held []corpus.Event
		var filters [][]corpus.Filter
		for range 80 {
			var some []corpus.Filter
			for range 1 + random.IntN(3) {
				some = append(some, randomFilter(random, events))
			}
			filters = append(filters, some)
		}
		opened := stores(t)
		for _, kind := range []string{"memory", "bolt", "sqlite"} {
			s := opened[kind]
			var seq uint64
			verdicts := admitAll(t, s, &seq, events)
			if kind == "memory" {
				wantVerdicts = verdicts
				for _, r := range s.(*Memory).sorted {
					e, err := corpus.ParseEvent(r.Raw)
					if err == nil || strings.Contains(err.Error(), "signature") {
						held = append(held, e)
					}
				}
				if len(held) < 50 || len(held) == len(events) {
					t.Fatalf("seed %d: %d of %d events held: the test tests little", seed, len(held), len(events))
				}
			}
			for i := range events {
				if verdicts[i] != wantVerdicts[i] {
					t.Fatalf("seed %d, %s: event %d got %v, in memory %v", seed, kind, i, verdicts[i], wantVerdicts[i])
				}
			}
			for _, some := range filters {
				if got, want := ask(t, s, some...), plainAnswer(held, some); !slices.Equal(got, want) {
					var text []byte
					for _, f := range some {
						text = f.AppendJSON(append(text, ' '))
					}
					t.Fatalf("seed %d, %s:%s\ngot  %d %v\nwant %d %v", seed, kind, text, len(got), got, len(want), want)
				}
			}
		}
	}
}

// What is held in the end must not depend on the order of arrival (but for two requests to vanish
// in one second, of which the first stays).
func TestHeldEventsDoNotDependOnTheOrderOfArrival(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 2))
		events := randomEvents(random, 120)
		var want []corpus.ID
		for round := range 4 {
			s := NewMemory()
			var seq uint64
			admitAll(t, s, &seq, events)
			got := ask(t, s, corpus.Filter{})
			if round == 0 {
				want = got
			} else if !slices.Equal(got, want) {
				t.Errorf("seed %d: %d events held, in another order %d", seed, len(want), len(got))
				break
			}
			random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		}
	}
}

func TestStoredEventsSurviveReopening(t *testing.T) {
	events := randomEvents(rand.New(rand.NewPCG(3, 3)), 300)
	for _, kind := range []string{"bolt", "sqlite"} {
		for _, d := range Durabilities {
			t.Run(fmt.Sprint(kind, " ", d), func(t *testing.T) {
				dir := t.TempDir()
				s := openTestStore(t, kind, dir, d)
				var seq uint64
				verdicts := admitAll(t, s, &seq, events[:200])
				want := ask(t, s, corpus.Filter{})
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openTestStore(t, kind, dir, d)
				if got := ask(t, s, corpus.Filter{}); !slices.Equal(got, want) {
					t.Errorf("%d events after reopening, %d before", len(got), len(want))
				}
				if s.LastSeq() > seq || s.LastSeq() == 0 {
					t.Errorf("LastSeq is %d after %d events", s.LastSeq(), seq)
				}
				// Deletions are remembered too, and numbering goes on.
				seq = s.LastSeq()
				again := admitAll(t, s, &seq, events[:200])
				for i, v := range again {
					if v == stored {
						t.Errorf("event %d, first answered %v, is stored anew", i, verdicts[i])
					}
				}
				admitAll(t, s, &seq, events[200:])
			})
		}
	}
}

func TestAFailedGroupLeavesNothing(t *testing.T) {
	for kind, s := range stores(t) {
		if kind == "memory" {
			continue // its changes cannot fail
		}
		e := fake(1, 1, 1000, "x", corpus.Tag{"t", "a"})
		err := s.Update(func(tx Tx) error {
			r := NewRecord(&e)
			r.Seq = 1
			tx.Insert(&r)
			tx.SetNote([]byte("note"), []byte("value"))
			return fmt.Errorf("no")
		})
		if err == nil || !strings.Contains(err.Error(), "no") {
			t.Errorf("%s: error %v", kind, err)
		}
		if got := ask(t, s, corpus.Filter{}); len(got) != 0 {
			t.Errorf("%s: %d events of a failed group", kind, len(got))
		}
		err = s.Update(func(tx Tx) error {
			if note := tx.Note([]byte("note")); note != nil {
				t.Errorf("%s: note %q of a failed group", kind, note)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Beside a writer, readers see everything that was stored before they began.
func TestReadersAreNotDisturbedByAWriter(t *testing.T) {
	for _, kind := range []string{"bolt", "sqlite"} {
		t.Run(kind, func(t *testing.T) {
			d := openTestStore(t, kind, t.TempDir(), DurabilityNone)
			var stored atomic.Int64
			var ended atomic.Bool
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					for !ended.Load() {
						least := int(stored.Load())
						got := ask(t, d, corpus.Filter{Kinds: []int{1}, Authors: []corpus.PubKey{{0: 1, 9: 1}, {0: 2, 9: 2}}})
						if len(got) < least {
							t.Errorf("%d events of at least %d", len(got), least)
							return
						}
					}
				})
			}
			var seq uint64
			for i := range 60 {
				var group []corpus.Event
				for k := range 10 {
					group = append(group, fake(1+k%2, 1, int64(10*i+k), "x", corpus.Tag{"t", fmt.Sprint(k)}))
				}
				group = append(group, fake(3, 0, int64(i), "replaced by the next"))
				admitAll(t, d, &seq, group)
				stored.Add(10)
			}
			ended.Store(true)
			all.Wait()
		})
	}
}

func TestRemovingWhatIsNotThereRemovesNothingElse(t *testing.T) {
	for kind, s := range stores(t) {
		var seq uint64
		events := []corpus.Event{fake(1, 1, 1, "a"), fake(1, 1, 2, "b")}
		admitAll(t, s, &seq, events[:1])
		err := s.Update(func(tx Tx) error {
			tx.Remove(&Record{Seq: 1, CreatedAt: 2, ID: events[1].ID})
			tx.Remove(&Record{Seq: 9, CreatedAt: 1, ID: corpus.ID{9}})
			return nil
		})
		if got := ask(t, s, corpus.Filter{}); err != nil || len(got) != 1 {
			t.Errorf("%s: %d events are left, %v", kind, len(got), err)
		}
	}
}
