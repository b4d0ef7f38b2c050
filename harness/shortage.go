package harness

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/results"
)

// shortage is what the machine was short of while a relay, or a pair, had its trial. It holds until
// the trial ends, whatever is free again by then.
type shortage struct {
	mu   sync.Mutex
	look *machine.Lookout // nil between trials, and where a relay's machine may be another
	code string
	last time.Time // when all was looked at
}

// begin starts a trial of relays.
func (s *shortage) begin(dir string, of ...Target) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look, s.code, s.last = machine.System{}.Lookout(dir), "", time.Time{}
	if slices.ContainsFunc(of, func(c Target) bool { return c.Definition.External() }) {
		s.look = nil
	}
}

// end ends a trial: what is found out from here on was not measured in it.
func (s *shortage) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look, s.code = nil, ""
}

// note takes what an error says of the machine.
func (s *shortage) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = cmp.Or(s.code, relays.Shortage(err))
}

// freshLook is how old a look may be: a scenario records its figures all at once, and each look
// writes a file.
const freshLook = 100 * time.Millisecond

// found returns what the machine was or is short of in this trial: one of results' Shortage codes,
// "" for nothing.
func (s *shortage) found() string {
	return s.seen(func(l *machine.Lookout) string {
		if time.Since(s.last) < freshLook {
			return ""
		}
		defer func() { s.last = time.Now() }()
		return l.Short()
	})
}

// lookAtDisk looks at the disk alone, in which a relay may make room again when it ends.
func (s *shortage) lookAtDisk() { s.seen((*machine.Lookout).Full) }

func (s *shortage) seen(look func(*machine.Lookout) string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.code == "" && s.look != nil {
		s.code = look(s.look)
	}
	return s.code
}

// recordFailure says how a relay's trial ended that did not end well: by the machine where that was
// short of something.
func (s *shortage) recordFailure(relay *results.Relay, outcome results.Outcome, err error) {
	s.note(err)
	relay.Outcome, relay.Reason, relay.Shortage = outcome, err.Error(), s.found()
	if relay.Shortage != "" {
		relay.Outcome = results.OutcomeUnmeasured
	}
	relay.LogTail = logTail(err, mostLines)
}
