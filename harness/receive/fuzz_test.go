package receive

import (
	"fmt"
	"testing"
)

// FuzzForgery looks for a frame that keeps a real event out, whether it comes before, together with
// or after it, or that brings anything but the real event where everything is verified.
func FuzzForgery(f *testing.F) {
	e := signed(f, 1)[0]
	text := e.AppendJSON(nil)
	truth := frame(text)
	forged := e
	forged.Content = "forged"
	lie := forged.AppendJSON(nil)
	f.Add(frame(lie))
	f.Add(truth)
	f.Add(frame(text[:len(text)-2]))
	f.Add(fmt.Appendf(nil, `["EVENT","s",%s,%s]`, lie, text))
	f.Add(fmt.Appendf(nil, `["EVENT","s",%s,%s]`, text, lie))
	f.Add(fmt.Appendf(nil, `["EVENT","s",{"id":"%v","event":%s}]`, e.ID, text))
	f.Add(fmt.Appendf(nil, `["EVENT","s",{"id":"%v","id":"%s"}]`, e.ID, idB))
	f.Add(fmt.Appendf(nil, `["EVENT","s",{"content":"","id":"%v"}]`, e.ID))
	f.Fuzz(func(t *testing.T, other []byte) {
		for _, checks := range []Checks{Parallel, Inline} {
			var got collected
			p := New(t.Context(), Options{Checks: checks}, got.take)
			liar, honest := p.Feeder(), p.Feeder()
			for _, step := range []struct {
				from  *Feeder
				frame []byte
			}{{liar, other}, {honest, truth}, {liar, other}, {honest, truth}} {
				if _, err := feedFrame(step.from, step.frame); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if len(got.events) != 1 || got.events[0].ID != e.ID || got.events[0].Parsed.Content != e.Content {
				t.Fatalf("%v: beside %q came %d events", checks, other, len(got.events))
			}
			if s := p.Stats(); s.Events != s.Delivered+s.Duplicates+s.Refused() {
				t.Fatalf("%v: beside %q something is not accounted for: %+v", checks, other, s.Counts)
			}
		}
	})
}
