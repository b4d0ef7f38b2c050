package negentropy

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestBlockedRangesAreSplit(t *testing.T) {
	shift := func(items []item, by uint64) []item {
		items = slices.Clone(items)
		for i := range items {
			items[i].time += by
		}
		return items
	}
	for _, s := range scenarios(41, 2000) {
		if s.name == "one second" || s.name == "one second, ids alike" || s.name == veryAlike {
			continue
		}
		for _, filter := range []string{`{}`, `{"kinds":[1],"since":1600000000,"until":1800000000}`} {
			t.Run(s.name+filter, func(t *testing.T) {
				relay := &testRelay{set: sealed(t, s.theirs), max: 300, tellMax: `,300`}
				var x exchange
				r, err := ReconcileSplit(t.Context(), dial(t, startRelay(t, relay.serve)), []byte(filter), sealed(t, s.ours), collect(&x))
				if err != nil {
					t.Fatal(err)
				}
				checkExchange(t, sorted(x), s)
				if r.Have != len(x.have) || r.Need != len(x.need) {
					t.Errorf("%+v", r)
				}
				if int64(2*r.Refused+1) != relay.opened.Load() || (r.Refused == 0) != (len(s.theirs) <= 300) {
					t.Errorf("%+v after %d NEG-OPENs", r, relay.opened.Load())
				}
			})
		}
	}
	t.Run("far in the future, and nothing here", func(t *testing.T) {
		items := shift(makeItems(rand.New(rand.NewPCG(2, 2)), 500, 400), math.MaxInt32)
		var x exchange
		relay := &testRelay{set: sealed(t, items), max: 100}
		r, err := ReconcileSplit(t.Context(), dial(t, startRelay(t, relay.serve)), []byte(`{}`), sealed(t, nil), collect(&x))
		if err != nil {
			t.Fatal(err)
		}
		checkExchange(t, sorted(x), scenario{"", nil, items})
		t.Logf("%d refused", r.Refused)
	})
}

func TestASecondThatIsBlockedIsAnError(t *testing.T) {
	items := makeItems(rand.New(rand.NewPCG(2, 2)), 500, 1)
	for name, ours := range map[string][]item{"all of it here": items, "nothing here": nil} {
		t.Run(name, func(t *testing.T) {
			relay := &testRelay{set: sealed(t, items), max: 100, tellMax: `,100`}
			_, err := ReconcileSplit(t.Context(), dial(t, startRelay(t, relay.serve)), []byte(`{}`), sealed(t, ours), Options{})
			var refused *RelayError
			if !errors.As(err, &refused) || refused.Max != 100 {
				t.Fatal(err)
			}
			t.Log(err)
			if n := relay.opened.Load(); n > 200 {
				t.Errorf("%d NEG-OPENs", n)
			}
		})
	}
}

// TestRefusalsWithoutEndComeToAnEnd is about relays that refuse all ranges that are wider than a
// second: there are billions of seconds.
func TestRefusalsWithoutEndComeToAnEnd(t *testing.T) {
	items := makeItems(rand.New(rand.NewPCG(2, 2)), 500, 400)
	for _, test := range []struct {
		name string
		set  []item // of the relay
		most int64  // NEG-OPENs
		o    Options
		says string
	}{
		{"nothing in any of them", nil, maxFruitless + maxDepth, Options{}, "came to nothing"},
		{"something in each of them", items, 100 + maxDepth, Options{MaxRounds: 100}, "no end after"},
	} {
		t.Run(test.name, func(t *testing.T) {
			relay := &testRelay{set: sealed(t, test.set), widest: 1}
			filter := []byte(`{"since":1700000000,"until":1701000000}`)
			r, err := ReconcileSplit(t.Context(), dial(t, startRelay(t, relay.serve)), filter, sealed(t, nil), test.o)
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%+v, %v", r, err)
			}
			if n := relay.opened.Load(); n > test.most {
				t.Errorf("%d NEG-OPENs", n)
			}
		})
	}
}

func TestWhatIsNoMatterOfSizeIsNotSplit(t *testing.T) {
	relay := &testRelay{set: sealed(t, nil), closing: func(_ int, send func(string, ...any)) bool {
		send(`["NEG-ERR",%q,"auth-required: log in"]`)
		return true
	}}
	r, err := ReconcileSplit(t.Context(), dial(t, startRelay(t, relay.serve)), []byte(`{}`), sealed(t, nil), Options{})
	var refused *RelayError
	if !errors.As(err, &refused) || refused.Prefix() != "auth-required" || relay.opened.Load() != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTimesOfFiltersAreRead(t *testing.T) {
	tests := []struct {
		filter string
		want   seconds
		bad    bool
	}{
		{`{"since":5,"until":9}`, seconds{5, 9, false}, false},
		{`{"since":-5,"until":null}`, seconds{0, 0, true}, false},
		{`{"until":18000000000000000}`, seconds{0, latest, true}, false},
		{`{"since":"5"}`, seconds{}, true},
		{`{"until":5.5}`, seconds{}, true},
	}
	for _, test := range tests {
		r, err := (&splitter{s: new(Set)}).readTimes([]byte(test.filter))
		if test.want.until == 0 {
			test.want.until = r.until
		}
		if (err != nil) != test.bad || err == nil && fmt.Sprint(r) != fmt.Sprint(test.want) {
			t.Errorf("%s: %v, %v", test.filter, r, err)
		}
	}
}
