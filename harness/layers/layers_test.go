package layers

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
)

func testStock(t *testing.T, n int, seed uint64, signed bool) *stock {
	t.Helper()
	s, err := newStock(t.Context(), n, seed, signed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStockIsTheSameForTheSameSeed(t *testing.T) {
	for _, signed := range []bool{false, true} {
		a, b, other := testStock(t, 50, 1, signed), testStock(t, 50, 1, signed), testStock(t, 50, 2, signed)
		same, differs := true, false
		for i := range a.items {
			x, y, z := a.event(&a.items[i]), b.event(&b.items[i]), other.event(&other.items[i])
			same = same && bytes.Equal(x.AppendJSON(nil), y.AppendJSON(nil))
			differs = differs || x.ID != z.ID
		}
		if !same || !differs {
			t.Errorf("signed %v: the same seed gives the same events: %v, another gives others: %v", signed, same, differs)
		}
	}
}

func TestSignedStockVerifies(t *testing.T) {
	s := testStock(t, 20, 1, true)
	for i := range s.items {
		e := s.event(&s.items[i])
		if err := e.Verify(); err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

func TestUnsignedStockIsWellFormed(t *testing.T) {
	s := testStock(t, 20, 1, false)
	for i := range s.items {
		e := s.event(&s.items[i])
		if _, err := corpus.ParseEvent(e.AppendJSON(nil)); err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

func TestMeasureFindsTheDifferenceInEachLayer(t *testing.T) {
	o := Options{Sizes: []int{10, 13, 3000}, Repeat: 3, Seed: 1, Stall: 5 * time.Second}
	var sizes []Size
	if err := Measure(t.Context(), o, func(s Size) error { sizes = append(sizes, s); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(sizes) != len(o.Sizes) {
		t.Fatalf("%d sizes, want %d", len(sizes), len(o.Sizes))
	}
	for _, s := range sizes {
		if len(s.Rows) != 2 || s.Rows[0].Layer != InMemory || s.Rows[1].Layer != Loopback {
			t.Fatalf("%d items: rows %+v", s.Items, s.Rows)
		}
		step := s.Items / 5
		if s.Shared != s.Items-step {
			t.Errorf("%d items: %d shared", s.Items, s.Shared)
		}
		for _, r := range s.Rows {
			if r.Problem != "" || !r.PeerSeen || !r.Differing.Exact || !r.Identical.Exact {
				t.Errorf("%d items, %s: %+v", s.Items, r.Layer, r)
			}
			for _, c := range []Cost{r.Differing.Cold, r.Differing.Warm} {
				if c.Have != step || c.Need != step || c.Rounds == 0 || c.BytesUp == 0 || c.BytesDown == 0 {
					t.Errorf("%d items, %s: %+v", s.Items, r.Layer, c)
				}
				if sum := c.Engine + c.Coding + c.PeerEngine + c.PeerCoding + c.Rest; sum != c.Total || c.Rest < 0 {
					t.Errorf("%d items, %s: the parts are %v of %v: %+v", s.Items, r.Layer, sum, c.Total, c)
				}
			}
			if c := r.Identical.Warm; c.Have != 0 || c.Need != 0 {
				t.Errorf("%d items, %s, identical: %+v", s.Items, r.Layer, c)
			}
			if len(r.Differing.Times) != o.Repeat {
				t.Errorf("%d times", len(r.Differing.Times))
			}
		}
		// The same messages in both layers, but for their limits: hexadecimal digits double them.
		if a, b := s.Rows[0].Differing.Warm, s.Rows[1].Differing.Warm; a.Rounds != b.Rounds || b.BytesDown < 2*a.BytesDown || b.BytesUp < 2*a.BytesUp {
			t.Errorf("%d items: in memory %+v, over the wire %+v", s.Items, a, b)
		}
	}
}

func TestAPeerThatLacksAnItemIsNotExact(t *testing.T) {
	s := testStock(t, 500, 1, false)
	lacking, err := setOf(append(s.items[s.step:300:300], s.items[301:]...))
	if err != nil {
		t.Fatal(err)
	}
	url, stop, err := (&peer{storage: lacking}).listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	conn, err := wire.Dial(t.Context(), url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	o := &Options{Repeat: 1, Stall: 5 * time.Second}
	row, err := o.both(t.Context(), s, o.overWire(t.Context(), conn, func(*Cost) {}))
	if err != nil {
		t.Fatal(err)
	}
	if row.Differing.Exact || row.Identical.Exact || !row.Failed || row.Problem == "" || row.Differing.Warm.Have != s.step+1 {
		t.Errorf("%+v", row)
	}
}

func TestPeerHangsUpOnWhatItCannotAnswer(t *testing.T) {
	for name, frame := range map[string]string{
		"no JSON":        `nonsense`,
		"no array":       `{"NEG-OPEN":1}`,
		"another verb":   `["REQ","a",{}]`,
		"too short":      `["NEG-OPEN"]`,
		"no digits":      `["NEG-OPEN","a",{},"6z"]`,
		"no message":     `["NEG-OPEN","a",{},""]`,
		"broken message": `["NEG-MSG","a","61ffffffffffffffffffffffff"]`,
	} {
		t.Run(name, func(t *testing.T) {
			url, stop, err := (&peer{storage: testStock(t, 10, 1, false).theirs}).listen(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			conn, err := wire.Dial(t.Context(), url, wire.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Abort()
			conn.WatchUseful(5 * time.Second)
			if err := conn.Send([]byte(frame)); err != nil {
				t.Fatal(err)
			}
			answer, _, err := conn.Read()
			if err == nil || strings.Contains(err.Error(), wire.ErrStalled.Error()) {
				t.Errorf("answer %q, error %v", answer, err)
			}
		})
	}
}

func TestTallyTellsSetsApart(t *testing.T) {
	a, b := negentropy.ID{1}, negentropy.ID{2}
	var n, m int
	var x, y negentropy.Sum
	tally(&n, &x)([]negentropy.ID{a, b})
	tally(&m, &y)([]negentropy.ID{b})
	if n == m || x == y {
		t.Error("two sets have one sum")
	}
	if tally(&m, &y)([]negentropy.ID{a}); n != m || x != y {
		t.Error("the order counts")
	}
}
