package receive

import (
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"testing"

	"relaybench/corpus"
)

// number is an id as arbitrary as a hash.
func number(n int) corpus.ID {
	return sha256.Sum256(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func (s *Seen) held() (n int) {
	for i := range s.shards {
		n += len(s.shards[i].young) + len(s.shards[i].old)
	}
	return n
}

// peek looks for an id without making it young.
func (s *Seen) peek(id corpus.ID) bool {
	h := s.shard(&id)
	_, young := h.young[id]
	_, old := h.old[id]
	return young || old
}

func TestSeenKnowsTheLatestAndStaysBounded(t *testing.T) {
	const room = 6400
	s := NewSeen(room)
	for n := range 10 * room {
		if !s.Add(number(n)) {
			t.Fatalf("id %d was known at first sight", n)
		}
		if s.Add(number(n)) {
			t.Fatalf("id %d was new a second time", n)
		}
		if n >= room/2 && !s.peek(number(n-room/2)) { // shards fill unevenly: half is sure
			t.Fatalf("after id %d, id %d was forgotten", n, n-room/2)
		}
	}
	if n := s.held(); n > 2*room {
		t.Errorf("%d ids are held, more than two generations of %d", n, room)
	}
	if s.Has(number(0)) {
		t.Error("the very first id is still known")
	}
}

func TestSeenKeepsWhatIsAskedForAgain(t *testing.T) {
	const room = 6400
	s := NewSeen(room)
	s.Add(number(0))
	for n := 1; n < 20*room; n++ {
		s.Add(number(n))
		if n%(room/4) == 0 && !s.Has(number(0)) {
			t.Fatalf("forgotten after %d ids", n)
		}
	}
}

func TestSeenTellsEachIdNewOnceHoweverManyAsk(t *testing.T) {
	s := NewSeen(10_000)
	var fresh atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for n := range 5000 {
				if s.Add(number(n)) {
					fresh.Add(1)
				}
			}
		})
	}
	all.Wait()
	if fresh.Load() != 5000 {
		t.Errorf("%d were new, want 5000", fresh.Load())
	}
}

func TestAClaimHidesOnlyTheSameBytes(t *testing.T) {
	s := NewSeen(100)
	id := number(1)
	for _, step := range []struct {
		raw  string
		want claim
	}{{"forged", claimed}, {"forged", repeated}, {"real", contested}} {
		if got := s.claim(id, []byte(step.raw)); got != step.want {
			t.Errorf("claiming with %q: %v, want %v", step.raw, got, step.want)
		}
	}
	if s.settle(id, true, false) || s.Has(id) {
		t.Error("a forged event was remembered")
	}
	if !s.settle(id, false, true) || !s.Has(id) {
		t.Error("the real event was not remembered")
	}
	if s.settle(id, false, true) {
		t.Error("a second real event was the first")
	}
	for i := range s.shards {
		if len(s.shards[i].inFlight) > 0 {
			t.Error("something is still in flight")
		}
	}
}
