package reference

import (
	"bytes"
	"slices"
	"strings"
)

// misanswer is subscription.run's part after the wait for a slot, done wrong as asked for.
func (f *Faults) misanswer(s *subscription, a *resultStream) {
	out := s.session.out
	if f.garbage {
		for range garbage {
			out.text(f.nextGarbage())
		}
	}
	if f.early {
		s.goLive()
	}
	if f.extra {
		out.text(s.head, nullEvents()[0]) // with its bracket
	}
	for !a.done && !s.cancelled.Load() {
		if out.waitRoom(roomBytes, s.cancelled.Load) != nil {
			s.stop()
			return
		}
		var b batch
		if err := s.session.relay.reading(func(store Store) error { return a.read(store, &b) }); err != nil {
			s.fail("error: " + err.Error())
			return
		}
		events := slices.Collect(b.each)
		if f.backwards {
			slices.Reverse(events)
		}
		cut := f.cut && len(events) > 1
		if cut {
			events = events[:len(events)/2]
		}
		for _, raw := range events {
			if f.altered {
				raw = alter(raw)
			}
			out.text(s.head, raw, closeBracket)
		}
		if cut {
			s.fail("error: that is enough")
			return
		}
		out.flush()
	}
	if !f.early && !s.goLive() {
		s.fail("error: more live events came than the relay holds back while it answers")
	}
}

// alter changes an event's content. Unescaped, its key stands nowhere else in canonical JSON.
func alter(raw []byte) []byte {
	const key = `"content":"`
	return bytes.Replace(raw, []byte(key), []byte(key+"altered: "), 1)
}

// garbage is what is no message of the protocol.
var garbage = [][]byte{
	{},
	[]byte("good morning"),
	[]byte("\xff\xfe\x00\x01 \x1b[31mred"),
	[]byte(`["EVENT","`),
	[]byte(`{"EVENT":["OK"]}`),
	[]byte(`[]`),
	[]byte(`]]]]{{{{`),
	[]byte(strings.Repeat("[", 10_000)),
	[]byte(`["OK","not an id",true,""]`),
	[]byte(`["EVENT","nobody's",{"id":17}]`),
}

func (f *Faults) nextGarbage() []byte {
	return garbage[f.noise.Add(1)%uint64(len(garbage))]
}
