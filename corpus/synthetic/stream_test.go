package synthetic

import (
	"encoding/hex"
	"testing"
)

func TestRandStreamIsTheSpecifiedChaCha8(t *testing.T) {
	r := newRandStream([32]byte([]byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ123456")))
	for i, want := range []uint64{0xb773b6063d4616a5, 0x1160af22a66abc3c} {
		if got := r.chacha.Uint64(); got != want {
			t.Errorf("word %d is %#x, want %#x", i, got, want)
		}
	}
}

func TestRandStreamChoicesStayInRange(t *testing.T) {
	r := newRandStream([32]byte{7})
	for range 10_000 {
		if n := r.below(3); n < 0 || n > 2 {
			t.Fatalf("below(3) gave %d", n)
		}
		if n := r.between(-2, 2); n < -2 || n > 2 {
			t.Fatalf("between(-2, 2) gave %d", n)
		}
		if r.below(1) != 0 {
			t.Fatal("below(1) is not 0")
		}
		if r.chance(0) || !r.chance(100) {
			t.Fatal("chance(0) came, or chance(100) did not")
		}
	}
}

func TestRandStreamRestartsAsNew(t *testing.T) {
	var long, short [11]byte
	r := newRandStream([32]byte{1})
	r.below(5)
	r.restart([32]byte{2})
	r.fill(long[:])
	newRandStream([32]byte{2}).fill(short[:5])
	if string(long[:5]) != string(short[:5]) {
		t.Errorf("restarted stream gives %x, a new one %x", long[:5], short[:5])
	}
}

func TestDeriveTellsPurposesAndIndexesApart(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, purpose := range []string{"key", "aux", "aux\x00", ""} {
		for index := range 300 {
			name := hex.EncodeToString([]byte(purpose)) + " " + string(rune('0'+index))
			d := derive([32]byte{9}, purpose, index)
			if other, twice := seen[d]; twice {
				t.Fatalf("%s and %s derive the same seed", name, other)
			}
			seen[d] = name
		}
	}
}

func TestWeightTablesAddUpToAHundred(t *testing.T) {
	for name, sum := range map[string]int{
		"socialForms": sumWeights(socialForms),
		"hourWeights": sumWeights(hourWeights),
		"noteLengths": sumWeights(noteLengths),
		"languages":   sumWeights(languages),
		"reactions":   sumWeights(reactions),
		"zapAmounts":  sumWeights(zapAmounts),
		"zapComments": sumWeights(zapComments),
		"relayUses":   sumWeights(relayUses),
	} {
		if sum != 100 {
			t.Errorf("%s adds up to %d", name, sum)
		}
	}
}

func sumWeights[T any](table []weighted[T]) (sum int) {
	for _, row := range table {
		sum += row.weight
	}
	return sum
}
