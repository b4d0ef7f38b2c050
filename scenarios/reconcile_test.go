package scenarios

import (
	"bytes"
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

func reconciledSets(t *testing.T, n int, seed uint64, signed bool) *reconcileSets {
	t.Helper()
	s, err := newReconcileSets(t.Context(), n, seed, signed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestReconciledSetsAreTheSameForTheSameSeed(t *testing.T) {
	for _, signed := range []bool{false, true} {
		a, b, other := reconciledSets(t, 50, 1, signed), reconciledSets(t, 50, 1, signed), reconciledSets(t, 50, 2, signed)
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

func TestSignedSetsVerify(t *testing.T) {
	s := reconciledSets(t, 20, 1, true)
	for i := range s.items {
		e := s.event(&s.items[i])
		if err := e.Verify(); err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

func TestUnsignedSetsAreWellFormed(t *testing.T) {
	s := reconciledSets(t, 20, 1, false)
	for i := range s.items {
		e := s.event(&s.items[i])
		if _, err := corpus.ParseEvent(e.AppendJSON(nil)); err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

// layered are the layers that need no relay, measured.
func layered(t *testing.T, all ...harness.Scenario) *meeting {
	t.Helper()
	return meet(t, nil, harness.Options{Stall: 5 * time.Second}, func(ctx context.Context, r *harness.Runner) error {
		r.Scenarios = all
		return r.Run(ctx)
	})
}

func TestReconcilingFindsTheDifferenceInEachLayer(t *testing.T) {
	t.Parallel()
	o := ReconcileOptions{Sizes: []int{10, 13, 3000}, Repeat: 3}
	m := layered(t, Reconciles(o)...)
	for _, n := range o.Sizes {
		size, step := strconv.Itoa(n), float64(n/5)
		value := func(layer, phase, metric string, more ...string) float64 {
			t.Helper()
			return m.value(t, "", "reconcile.harness", metric, append([]string{results.LabelSize, size, results.LabelLayer, layer, results.LabelPhase, phase}, more...)...)
		}
		for _, layer := range []string{"in memory", "loopback"} {
			for phase, want := range map[string]float64{"differing": step, "identical": 0} {
				if have, need := value(layer, phase, "have"), value(layer, phase, "need"); have != want || need != want {
					t.Errorf("%d items, %s, %s: have %v, need %v, want %v", n, layer, phase, have, need, want)
				}
				if value(layer, phase, "rounds") == 0 || value(layer, phase, "up") == 0 || value(layer, phase, "cold") == 0 {
					t.Errorf("%d items, %s, %s: nothing went to and fro", n, layer, phase)
				}
				sum := value(layer, phase, "engine", results.LabelRole, "harness") + value(layer, phase, "engine", results.LabelRole, "peer")
				if layer == "loopback" {
					sum += value(layer, phase, "coding", results.LabelRole, "harness") + value(layer, phase, "coding", results.LabelRole, "peer") + value(layer, phase, "rest")
				}
				equals(t, size+" items, "+layer+", "+phase+": the parts", sum, value(layer, phase, "warm"))
				time := m.figure(t, "", "reconcile.harness", "warm", results.LabelSize, size, results.LabelLayer, layer, results.LabelPhase, phase)
				if h, err := results.DecodeHistogram(time.Histogram); err != nil || h.Count() != int64(o.Repeat) || time.Samples != h.Count() {
					t.Errorf("%d items, %s, %s: %d samples, %v", n, layer, phase, time.Samples, err)
				}
			}
		}
		// The same messages in both layers, but for their limits: hexadecimal digits double them.
		for metric, factor := range map[string]float64{"rounds": 1, "up": 2, "down": 2} {
			if a, b := value("in memory", "differing", metric), value("loopback", "differing", metric); b < factor*a || factor == 1 && a != b {
				t.Errorf("%d items, %s: in memory %v, over the wire %v", n, metric, a, b)
			}
		}
	}
	if text := m.trouble(); text != "" {
		t.Error(text)
	}
}

// lacking reconciles with a peer that lacks an item.
type lacking struct{ *reconcile }

func (l *lacking) Run(ctx context.Context, t *harness.Trial) error {
	s, err := l.made(ctx, t)
	if err != nil {
		return err
	}
	theirs, err := setOf(append(s.items[s.step:300:300], s.items[301:]...))
	if err != nil {
		return err
	}
	return l.layer(ctx, t, nil, s, reconcileInMemory(theirs))
}

func TestAPeerThatLacksAnItemIsNotExact(t *testing.T) {
	t.Parallel()
	o := ReconcileOptions{Sizes: []int{500}, Repeat: 1}
	m := layered(t, &lacking{Reconciles(o)[0].(*reconcile)})
	for phase, want := range map[string]float64{"differing": 101, "identical": 1} {
		if have := m.value(t, "", "reconcile.harness", "have", results.LabelPhase, phase); have != want {
			t.Errorf("%s: have %v, want %v", phase, have, want)
		}
		f := m.figure(t, "", "reconcile.harness", "warm", results.LabelPhase, phase)
		if barring := m.Barring(f); len(barring) != 1 || barring[0].Code != results.CodeDifference || barring[0].Counts["must have"] != want-1 {
			t.Errorf("%s: barred by %v", phase, barring)
		}
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
			url, stop, err := (&reconcilePeer{storage: reconciledSets(t, 10, 1, false).theirs}).listen(t.Context())
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

func TestCountsTellIDsApart(t *testing.T) {
	a, b := negentropy.ID{1}, negentropy.ID{2}
	var x, y idCount
	x.add([]negentropy.ID{a, b})
	y.add([]negentropy.ID{b})
	if x == y {
		t.Error("two sets have one sum")
	}
	if y.add([]negentropy.ID{a}); x != y {
		t.Error("the order counts")
	}
}
