package receive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/relays/wire"
)

var allChecks = []Checks{Parallel, Inline, Unchecked}

// feedFrame gives a feeder the event that stands in a frame, where one does.
func feedFrame(f *Feeder, frame []byte) (isNew bool, err error) {
	var m wire.Message
	if wire.Parse(frame, &m); m.Type != wire.Event || !m.HasID {
		return false, nil
	}
	return f.Event(m.ID, m.Event, wire.Now())
}

// feed gives frames to one feeder.
func feed(t testing.TB, f *Feeder, frames [][]byte) (fates []bool) {
	t.Helper()
	for _, fr := range frames {
		isNew, err := feedFrame(f, fr)
		if err != nil {
			t.Error(err)
			return fates
		}
		fates = append(fates, isNew)
	}
	return fates
}

func TestEachEventIsHandedOnOnceAndInOrder(t *testing.T) {
	const count = 150
	events := signed(t, count)
	all := frames(events)
	for _, checks := range allChecks {
		t.Run(checks.String(), func(t *testing.T) {
			var got collected
			p := New(t.Context(), Options{Checks: checks}, got.take)
			f := p.Feeder()
			for i, fr := range all {
				feed(t, f, [][]byte{fr})
				feed(t, f, all[max(0, i-30):i+1]) // known, or still on its way
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if len(got.events) != len(events) || len(got.refused) != 0 {
				t.Fatalf("%d events and %d refused, want %d and 0", len(got.events), len(got.refused), len(events))
			}
			for i, e := range got.events {
				if e.ID != events[i].ID || e.Err != nil || e.Arrived <= 0 {
					t.Fatalf("event %d: %+v", i, e)
				}
				if !bytes.Equal(e.Raw, events[i].AppendJSON(nil)) {
					t.Fatalf("event %d: %s", i, e.Raw)
				}
				if checks != Unchecked && e.Parsed.Content != events[i].Content {
					t.Fatalf("event %d: content %q", i, e.Parsed.Content)
				}
			}
			s := p.Stats()
			if s.Delivered != count || s.Events != count+s.Duplicates || s.Delay.Count() != count || s.Refused() != 0 {
				t.Errorf("%+v", s.Counts)
			}
		})
	}
}

func TestSeveralRelaysThatSendTheSameAreHeardOnce(t *testing.T) {
	events := signed(t, 150)
	all := frames(events)
	for _, checks := range allChecks {
		t.Run(checks.String(), func(t *testing.T) {
			var got collected
			p := New(t.Context(), Options{Checks: checks, QueueEvents: 16}, got.take)
			var readers sync.WaitGroup
			for r := range 4 {
				f := p.Feeder()
				own := all[r*25 : r*25+75] // neighbours share 50
				readers.Go(func() { feed(t, f, own) })
			}
			readers.Wait()
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			latest := map[int]int64{}
			seen := map[corpus.ID]int{}
			for _, e := range got.events {
				i := slices.IndexFunc(events, func(x corpus.Event) bool { return x.ID == e.ID })
				if at := events[i].CreatedAt; at < latest[e.Feeder] {
					t.Errorf("feeder %d: event %d came too late", e.Feeder, i)
				} else {
					latest[e.Feeder] = at
				}
				seen[e.ID]++
			}
			if len(seen) != 150 || len(got.events) != 150 {
				t.Errorf("%d ids in %d events, want 150", len(seen), len(got.events))
			}
			if s := p.Stats(); s.Duplicates != 150 || s.Delivered != 150 {
				t.Errorf("%+v", s.Counts)
			}
		})
	}
}

func TestVerdictsNameWhatIsWrong(t *testing.T) {
	events := signed(t, 3)
	good := texts(events)
	badSignature := events[0]
	badSignature.Sig[5] ^= 1
	badID := with(t, good[1], "words words", "other words")
	noEvent := with(t, good[2], `"kind":1`, `"kind":"1"`)
	for _, checks := range []Checks{Parallel, Inline} {
		t.Run(checks.String(), func(t *testing.T) {
			var got collected
			p := New(t.Context(), Options{Checks: checks}, got.take)
			f := p.Feeder()
			fates := feed(t, f, [][]byte{frame(badSignature.AppendJSON(nil)), frame(badID), frame(noEvent), []byte(`["EVENT","s",{"kind":1}]`), []byte(`["EOSE","s"]`), []byte("garbage")})
			if want := []bool{true, true, true, false, false, false}; !slices.Equal(fates, want) {
				t.Errorf("fates %v, want %v", fates, want)
			}
			if err := f.Wait(); err != nil {
				t.Fatal(err)
			}
			if len(got.events) != 0 || len(got.refused) != 3 {
				t.Fatalf("%d events and %d refused, want 0 and 3", len(got.events), len(got.refused))
			}
			for i, want := range []error{corpus.ErrBadSignature, corpus.ErrBadID, ErrMalformed} {
				if !errors.Is(got.refused[i].Err, want) {
					t.Errorf("verdict %d is %v, want %v", i, got.refused[i].Err, want)
				}
			}
			// The real ones that follow are no duplicates of those.
			feed(t, f, frames(events))
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if len(got.events) != 3 {
				t.Errorf("%d events came after their forgeries, want 3", len(got.events))
			}
			c := f.Counts()
			if c.BadSignature != 1 || c.BadID != 1 || c.Malformed != 1 || c.Delivered != 3 || c.Duplicates != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestAForgedEventCannotKeepTheRealOneOut sends forgeries in every position around the real event,
// so close that they are verified together.
func TestAForgedEventCannotKeepTheRealOneOut(t *testing.T) {
	const count = 80
	events := signed(t, count)
	for _, checks := range []Checks{Parallel, Inline} {
		t.Run(checks.String(), func(t *testing.T) {
			var got collected
			p := New(t.Context(), Options{Checks: checks}, got.take)
			liar, honest := p.Feeder(), p.Feeder()
			for _, e := range events {
				forged := e
				forged.Content = "forged"
				lie := frame(forged.AppendJSON(nil))
				spaced := frame(append([]byte(" "), e.AppendJSON(nil)...)) // the same event in other bytes
				feed(t, liar, [][]byte{lie, lie})
				feed(t, honest, [][]byte{frame(e.AppendJSON(nil)), spaced})
				feed(t, liar, [][]byte{lie})
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if len(got.events) != len(events) {
				t.Errorf("%d events, want %d", len(got.events), len(events))
			}
			for _, e := range got.events {
				if e.Parsed.Content == "forged" || e.Feeder != honest.Number {
					t.Errorf("a forged event was handed on: %s", e.Raw)
				}
			}
			if s := p.Stats(); s.Duplicates+s.BadID != 4*count || s.BadID < count {
				t.Errorf("%+v", s.Counts)
			}
		})
	}
}

func TestOtherFormsOfAFrameAreReadInFull(t *testing.T) {
	e := signed(t, 1)[0]
	text := string(e.AppendJSON(nil))
	id := fmt.Sprintf(`"id":"%v",`, e.ID)
	last := "{" + text[1+len(id):len(text)-1] + "," + id[:len(id)-1] + "}"
	for _, c := range []struct{ name, frame string }{
		{"canonical", `["EVENT","s",` + text + `]`},
		{"white space", `[ "EVENT" , "s" , ` + text + ` ] `},
		{"another field order", `["EVENT","s",` + last + `]`},
		{"escapes in the subscription", `["EVENT","\u0073",` + text + `]`},
		{"an element after the event", `["EVENT","s",` + text + `,1]`},
		{"an object after the event", `["EVENT","s",` + text + `,{"id":"` + idB + `"}]`},
	} {
		for _, checks := range allChecks {
			t.Run(c.name+"/"+checks.String(), func(t *testing.T) {
				var got collected
				p := New(t.Context(), Options{Checks: checks}, got.take)
				if isNew, err := feedFrame(p.Feeder(), []byte(c.frame)); err != nil || !isNew {
					t.Fatalf("%v %v", isNew, err)
				}
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				if len(got.events) != 1 || got.events[0].ID != e.ID || got.events[0].Raw[0] != '{' {
					t.Fatalf("%+v", got)
				}
				if raw := string(got.events[0].Raw); raw != text && raw != last {
					t.Errorf("raw bytes %s", raw)
				}
			})
		}
	}
}

func TestWhatIsNoEventIsRefusedByEveryMode(t *testing.T) {
	e := signed(t, 1)[0]
	text := string(e.AppendJSON(nil))
	for _, c := range []struct{ name, frame string }{
		{"cut off", `["EVENT","s",` + text[:len(text)-20] + `}]`},
		{"two ids", `["EVENT","s",` + text[:len(text)-1] + `,"id":"` + idB + `"}]`},
		{"a raw line break in a string", `["EVENT","s",` + string(with(t, []byte(text), "words", "wo\nrds")) + `]`},
	} {
		for _, checks := range allChecks {
			t.Run(c.name+"/"+checks.String(), func(t *testing.T) {
				var got collected
				p := New(t.Context(), Options{Checks: checks}, got.take)
				f := p.Feeder()
				feed(t, f, [][]byte{[]byte(c.frame)})
				if err := p.Close(); err != nil {
					t.Fatal(err)
				}
				if c := f.Counts(); len(got.events) != 0 || c.Events != c.Malformed || c.Delivered != 0 {
					t.Errorf("%d events, %+v", len(got.events), c)
				}
			})
		}
	}
}

func TestAnEventUnderAnotherIdIsRefused(t *testing.T) {
	events := signed(t, 2)
	for _, checks := range []Checks{Parallel, Inline} {
		t.Run(checks.String(), func(t *testing.T) {
			var got collected
			p := New(t.Context(), Options{Checks: checks}, got.take)
			f := p.Feeder()
			for _, raw := range [][]byte{events[0].AppendJSON(nil), []byte("no event")} {
				if isNew, err := f.Event(events[1].ID, raw, wire.Now()); !isNew || err != nil {
					t.Errorf("%v %v", isNew, err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if c := f.Counts(); len(got.events) != 0 || c.Malformed != 2 {
				t.Errorf("%d events, %+v", len(got.events), c)
			}
		})
	}
}

func TestAClaimHidesOnlyTheSameBytes(t *testing.T) {
	p := New(t.Context(), Options{}, func(*Batch) error { return nil })
	id := corpus.ID{1}
	events := []*Event{{Raw: []byte("forged")}, {Raw: []byte("forged")}, {Raw: []byte("real")}}
	for i, want := range []struct{ needless, owner bool }{{false, true}, {true, false}, {false, false}} {
		events[i].ID = id
		if needless := p.claim(events[i]); needless != want.needless || events[i].owner != want.owner {
			t.Errorf("claim %d: %v, owner %v", i, needless, events[i].owner)
		}
	}
	forged, real := events[0], events[2]
	forged.Err = corpus.ErrBadID
	if p.settle(forged) || p.known.Has(Key(&id)) {
		t.Error("a forged event is known")
	}
	if !p.settle(real) || !p.known.Has(Key(&id)) {
		t.Error("the real event is not known")
	}
	if p.settle(real) {
		t.Error("a second real event was the first")
	}
	if len(p.claims) > 0 {
		t.Error("something is still in flight")
	}
}

func TestPipelinesMayShareWhatIsKnown(t *testing.T) {
	events := signed(t, 20)
	known := prepare.NewSeen()
	for _, want := range []int{20, 0} {
		var got collected
		p := New(t.Context(), Options{Known: known}, got.take)
		feed(t, p.Feeder(), frames(events))
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		if len(got.events) != want {
			t.Errorf("%d events, want %d", len(got.events), want)
		}
	}
}

func TestAReaderWaitsForAConsumerThatIsTooFarBehind(t *testing.T) {
	events := signed(t, 120)
	for _, checks := range allChecks {
		t.Run(checks.String(), func(t *testing.T) {
			gate := make(chan struct{})
			count := 0
			p := New(t.Context(), Options{Checks: checks, QueueEvents: 2}, func(b *Batch) error {
				<-gate
				count += len(b.Events)
				return nil
			})
			f := p.Feeder()
			fed := make(chan int, len(events))
			go func() {
				defer close(fed)
				for i, fr := range frames(events) {
					if _, err := feedFrame(f, fr); err != nil {
						t.Error(err)
						return
					}
					fed <- i
				}
			}()
			last := -1
			for quiet := false; !quiet; {
				select {
				case i, more := <-fed:
					if !more {
						t.Fatal("everything was taken while the consumer stood still")
					}
					last = i
				case <-time.After(200 * time.Millisecond): // the reader stands still, or the machine is slow: then the rest comes below
					quiet = true
				}
			}
			if last > 60 {
				t.Errorf("%d events were taken while the consumer stood still", last+1)
			}
			close(gate)
			for range fed {
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if c := f.Counts(); count != len(events) {
				t.Errorf("%d events came, %+v", count, c)
			}
		})
	}
}

func TestThePipelineEndsWithItsContext(t *testing.T) {
	all := frames(signed(t, 100))
	why := errors.New("enough")
	for _, checks := range allChecks {
		t.Run(checks.String(), func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			p := New(ctx, Options{Checks: checks, QueueEvents: 1}, func(*Batch) error {
				cancel(why)
				return nil
			})
			f := p.Feeder()
			var err error
			for i := 0; err == nil && i < len(all); i++ {
				_, err = feedFrame(f, all[i])
			}
			if err == nil {
				err = f.Wait()
			}
			if err != why || p.Close() != why {
				t.Errorf("feeding ended with %v, the pipeline with %v", err, p.Close())
			}
		})
	}
}

func TestTheConsumersErrorComesBack(t *testing.T) {
	all := frames(signed(t, 100))
	full := errors.New("the disk is full")
	for _, checks := range allChecks {
		t.Run(checks.String(), func(t *testing.T) {
			p := New(t.Context(), Options{Checks: checks, QueueEvents: 1}, func(*Batch) error { return full })
			f := p.Feeder()
			var err error
			for i := 0; err == nil && i < len(all); i++ {
				_, err = feedFrame(f, all[i])
			}
			if err == nil {
				err = f.Wait()
			}
			if err != full || p.Close() != full {
				t.Errorf("feeding ended with %v, the pipeline with %v", err, p.Close())
			}
		})
	}
}

func TestAfterCloseNothingIsTaken(t *testing.T) {
	p := New(t.Context(), Options{}, func(*Batch) error { return nil })
	f := p.Feeder()
	for range 2 {
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := feedFrame(f, frames(signed(t, 1))[0]); err != ErrClosed {
		t.Errorf("%v", err)
	}
}

func TestEventsMayBeKeptAndRawMayNot(t *testing.T) {
	events := signed(t, 150)
	var kept []corpus.Event
	p := New(t.Context(), Options{QueueEvents: 8}, func(b *Batch) error {
		for i := range b.Events {
			kept = append(kept, b.Events[i].Parsed)
		}
		return nil
	})
	feed(t, p.Feeder(), frames(events))
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range kept {
		if err := kept[i].Verify(); err != nil || kept[i].ID != events[i].ID {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	if len(kept) != 150 {
		t.Errorf("%d events", len(kept))
	}
}
