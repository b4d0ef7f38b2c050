package preflight

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"relaybench/corpus"
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
func controlCharacters(a *asking) (found, error) {
	err := a.roundTrip(a.event(1, a.recent(0), "all: "+string(controls)+"."))
	if err == nil {
		return found{counts: counts{controlAccepted: float64(len(controls))}}, nil
	}
	short := (*shortfall)(nil)
	if !errors.As(err, &short) && !errors.Is(err, errSilent) {
		return found{}, err // an answer that did not come may be what becomes of such an event
	}
	// What becomes of every event says nothing of these characters.
	if err := a.roundTrip(a.event(1, a.recent(1), "nothing unusual")); errors.As(err, &short) && short.cause != results.CauseUnnamed {
		return found{}, leaveOpen(results.CausePlain, nil, nil)
	} else if err != nil && !errors.As(err, &short) {
		return found{}, err
	}
	how, reason, err := a.controlsAlone()
	if err != nil {
		return found{}, err
	}
	seen, said := counts{}, texts{"reason": reason}
	for _, way := range []string{controlAccepted, controlRefused, controlAltered, controlLost, controlUnanswered} {
		chars := slices.DeleteFunc(slices.Clone(controls), func(c rune) bool { return how[c] != way })
		if len(chars) > 0 {
			seen[way], said[way] = float64(len(chars)), runs(chars)
		}
	}
	if seen[controlAccepted] == float64(len(controls)) {
		return found{counts: seen}, nil
	}
	return found{}, fail(results.CauseCharacters, seen, said)
}

// runs names characters, and shortens what follows each other: U+0001–U+0003.
func runs(chars []rune) string {
	var short []string
	for i := 0; i < len(chars); {
		n := 1
		for i+n < len(chars) && chars[i+n] == chars[i]+rune(n) {
			n++
		}
		name := fmt.Sprintf("U+%04X", chars[i])
		if n > 1 {
			name += fmt.Sprintf("–U+%04X", chars[i+n-1])
		}
		short = append(short, name)
		i += n
	}
	return strings.Join(short, ", ")
}

// controlsAlone publishes an event for each character, and reads the accepted ones back.
func (a *asking) controlsAlone() (how map[rune]string, reason string, err error) {
	const patience = 3 // ends of connections and silences, before the rest counts as unanswered too
	how = make(map[rune]string)
	events := make(map[rune]*corpus.Event)
	var s *session
	failures := 0
	for i, c := range controls {
		if failures == patience {
			how[c] = controlUnanswered
			continue
		}
		if s == nil {
			if s, err = a.dial(); err != nil {
				return nil, "", err
			}
		}
		e := a.event(1, a.recent(i), "between a"+string(c)+"b")
		got, err := s.publish(e)
		switch {
		case a.ctx.Err() != nil:
			return nil, "", err
		case err != nil:
			how[c], s = controlUnanswered, nil
			failures++
		case !got.accepted:
			if speaksOfRate(got.reason) {
				return nil, "", &refusedError{e, got}
			}
			how[c], reason = controlRefused, got.reason
		default:
			how[c], events[c] = controlLost, e // until it comes back
		}
	}
	if s, err = a.dial(); err != nil {
		return nil, "", err
	}
	if failures > 0 { // silence says something of the characters only where other events are answered
		if err := s.store(a.event(1, a.recent(60), "nothing unusual")); err != nil {
			return nil, "", err
		}
	}
	if len(events) == 0 {
		return how, reason, nil
	}
	var want []corpus.ID
	for _, c := range controls {
		if e := events[c]; e != nil {
			want = append(want, e.ID)
		}
	}
	r, err := s.poll(exactly(want), limited(corpus.Filter{IDs: want}, 50))
	if err != nil {
		return nil, "", err
	}
	if r.closed {
		return nil, "", leaveOpen(results.CauseClosed, nil, texts{"reason": r.reason})
	}
	for c, e := range events {
		if i := slices.Index(r.ids, e.ID); i >= 0 && i < len(r.texts) {
			how[c] = controlAccepted
			if same(e, r.texts[i]) != nil {
				how[c] = controlAltered
			}
		}
	}
	return how, reason, nil
}
