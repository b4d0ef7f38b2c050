package preflight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/results"
)

// controls are the control characters for which NIP-01 has no escape of its own. It wants them
// verbatim, JSON forbids that below U+0020, and implementations hash either form.
var controls = func() (all []rune) {
	for c := rune(0); c < 0x20; c++ {
		if !strings.ContainsRune("\b\t\n\f\r", c) {
			all = append(all, c)
		}
	}
	return append(all, 0x7f)
}()

// The ways in which a relay takes a control character, as counts and texts of the finding name
// them.
const (
	controlAccepted   = "accepted" // and returned as it was sent
	controlRefused    = "refused"
	controlAltered    = "altered"
	controlLost       = "lost"       // acknowledged and not returned, or in a frame that is no JSON
	controlUnanswered = "unanswered" // no OK, or the end of the connection
)

// controlCharacters: which control characters a relay takes, each of them alone where it does not
// take all at once.
func controlCharacters(c *checker) {
	c.seen.Counts = counts{controlAccepted: float64(len(controls))}
	err := try(func() { c.roundTrip(c.event(1, c.recent(0), "all: "+string(controls)+".")) })
	if err == nil {
		return
	}
	if failure(err) == nil && !errors.Is(err, client.ErrSilent) {
		must(err) // an answer that did not come may be what becomes of such an event
	}
	// What becomes of every event says nothing of these characters.
	err = try(func() { c.roundTrip(c.event(1, c.recent(1), "nothing unusual")) })
	if short := failure(err); short == nil {
		must(err)
	} else if short.Cause != results.CauseUnnamed {
		must(leaveOpen(results.CausePlain, nil))
	}
	how, reason := c.controlsAlone()
	seen, said := counts{}, texts{"reason": reason}
	of := make(map[string][]rune)
	for _, r := range controls {
		of[how[r]] = append(of[how[r]], r)
	}
	for way, chars := range of {
		seen[way], said[way] = float64(len(chars)), runs(chars)
	}
	if len(of[controlAccepted]) != len(controls) {
		must(fail(results.CauseCharacters, seen, said))
	}
}

// runs names characters, and shortens what follows each other: U+0001–U+0003.
func runs(chars []rune) string {
	var short []string
	for i, n := 0, 0; i < len(chars); i += n {
		for n = 1; i+n < len(chars) && chars[i+n] == chars[i]+rune(n); n++ {
		}
		name := fmt.Sprintf("U+%04X", chars[i])
		if n > 1 {
			name += fmt.Sprintf("–U+%04X", chars[i+n-1])
		}
		short = append(short, name)
	}
	return strings.Join(short, ", ")
}

// controlsAlone publishes an event for each character, and reads the accepted ones back.
func (c *checker) controlsAlone() (how map[rune]string, reason string) {
	const patience = 3 // ends of connections and silences, before the rest counts as unanswered too
	how = make(map[rune]string)
	events := make(map[rune]*corpus.Event)
	var want []corpus.ID // of them
	var s *session
	failures := 0
	for i, r := range controls {
		if failures == patience {
			how[r] = controlUnanswered
			continue
		}
		if s == nil {
			s = c.dial()
		}
		e := c.event(1, c.recent(i), "between a"+string(r)+"b")
		got, err := s.publish(e)
		switch {
		case c.ctx.Err() != nil:
			must(context.Cause(c.ctx))
		case err != nil:
			how[r], s = controlUnanswered, nil
			failures++
		case !got.accepted:
			if speaksOfRate(got.reason) {
				must(needed(e, got))
			}
			how[r], reason = controlRefused, got.reason
		default:
			how[r], events[r] = controlLost, e // until it comes back
			want = append(want, e.ID)
		}
	}
	s = c.dial()
	if failures > 0 { // silence says something of the characters only where other events are answered
		s.store(c.event(1, c.recent(60), "nothing unusual"))
	}
	if len(events) == 0 {
		return how, reason
	}
	answer := s.read(exactly(want), limited(corpus.Filter{IDs: want}, 50))
	for r, e := range events {
		if text := answer.text(e.ID); text != nil && same(e, text) != nil {
			how[r] = controlAltered
		} else if text != nil {
			how[r] = controlAccepted
		}
	}
	return how, reason
}
