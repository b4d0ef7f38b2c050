package harness

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/negentropy"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Fault says that an error of a pair is this relay's, and not its peer's, where it does not say
// whose it is already.
func (b *Boot) Fault(err error) error {
	if known := (*faultError)(nil); errors.As(err, &known) {
		return err
	}
	return &faultError{place: b.place, error: err}
}

// faultError is an error of one relay of a trial.
type faultError struct {
	place   int
	unready bool // it did not start, or could not be given what it needs
	died    bool // and said this last
	log     []string
	error
}

func (e *faultError) Unwrap() error { return e.error }

// explain says why a scenario failed: by the end of a relay, where one has ended, else by the error
// that the harness saw.
func (r *Runner) explain(ctx context.Context, cast Cast, doing string, err error, boots ...*Boot) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var running []*relays.Process
	for _, b := range boots {
		if !b.stopped {
			running = append(running, b.Relay)
		}
	}
	dead := awaitEnd(ctx, running...)
	for _, b := range boots {
		if b.Relay != dead || dead.Err() == nil {
			continue
		}
		died := fmt.Errorf("died in %s: %w", doing, dead.Err())
		if cast != Single {
			died = fmt.Errorf("%s %w", dead.Name(), died)
		}
		return &faultError{place: b.place, died: true, log: dead.LogTail(mostLines), error: died}
	}
	if errors.Is(err, wire.ErrStalled) {
		return &stallError{r.Options.Stall, " in " + doing, err}
	}
	return fmt.Errorf("failed in %s: %w", doing, err)
}

// A stallError says for how long nothing moved, and where.
type stallError struct {
	time  time.Duration
	where string
	error
}

func (s *stallError) Error() string {
	return fmt.Sprintf("made no progress for %v%s: %v", s.time, s.where, s.error)
}
func (s *stallError) Unwrap() error { return s.error }

// A process closes its sockets before it can be reaped.
const (
	reapTime = time.Second      // from a failure to the end that explains it
	endTime  = 30 * time.Second // the same where nothing listens any more: a busy machine takes its time
)

// awaitEnd gives relays of which one failed the moment that they need to have ended, and returns
// the first that has, nil where none does. There are two at most.
func awaitEnd(ctx context.Context, all ...*relays.Process) *relays.Process {
	if len(all) == 0 {
		return nil
	}
	ended := func(wait time.Duration) *relays.Process {
		select {
		case <-all[0].Done():
			return all[0]
		case <-all[len(all)-1].Done():
			return all[len(all)-1]
		case <-time.After(wait):
		case <-ctx.Done():
		}
		return nil
	}
	if dead := ended(reapTime); dead != nil {
		return dead
	}
	for _, p := range all {
		soon, cancel := context.WithTimeout(ctx, reapTime)
		conn, err := wire.Dial(soon, p.URL(), wire.Options{})
		cancel()
		if err == nil {
			conn.Abort()
		} else if !p.External() && errors.Is(err, syscall.ECONNREFUSED) {
			return ended(endTime)
		}
	}
	return nil
}

// How many lines of the log of a relay that failed are kept.
const (
	mostLines   = 20
	mostOfASync = 5 // there are many of them
)

// logTail is the end of the log of the relay or the command that failed.
func logTail(err error, most int) []string {
	var log []string
	var fault *faultError
	var start *relays.StartError
	var command *relays.CommandError
	switch {
	case errors.As(err, &command):
		log = command.LogTail
	case errors.As(err, &start):
		log = start.LogTail
	case errors.As(err, &fault):
		log = fault.log
	}
	return log[max(0, len(log)-most):]
}

// Breach is the finding on a relay that began NIP-77 and broke it, where that is what an error
// says; else nil.
func Breach(err error) *results.Finding {
	var broken *negentropy.ProtocolError
	if !errors.As(err, &broken) {
		return nil
	}
	return &results.Finding{Code: results.CodeNIP77, Verdict: results.Failed, Cause: results.CauseBreaks, Texts: map[string]string{"error": broken.Error(), "code": string(broken.Code)}}
}

// incomplete records that a scenario did not come to its end, and who is to blame: the one relay
// that there is, the sink unless its source is at fault, and of a pair nobody unless one is.
func (r *Runner) incomplete(t *scheduled, d Description, err error) {
	r.short.note(err)
	describe(r.Recorder, d)
	fault := &faultError{}
	if t.cast == Pair {
		fault.place = -1 // nobody's, unless it says so
	}
	errors.As(err, &fault)
	blamed, at, most := fault.place, 0, mostLines
	switch t.cast {
	case Pair:
		at = max(blamed, 0) // the other one failed nothing
	case Ordered:
		most = mostOfASync
	}
	text := err.Error()
	if s := (*stallError)(nil); errors.As(err, &s) { // the finding stands under the scenario
		text = (&stallError{time: s.time, error: s.error}).Error()
	}
	f := results.Finding{Code: results.CodeCompletes, Texts: map[string]string{"error": text}, BearsOn: results.BearsOn(results.CodeCompletes, d.Key, d.Labels)}
	for _, line := range logTail(err, most) {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceLog, Text: line})
	}
	if unanswered := (*load.UnansweredError)(nil); errors.As(err, &unanswered) {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceQuestion, Text: unanswered.Filter})
	}
	for i := range f.BearsOn {
		if t.cast == Ordered {
			f.BearsOn[i].Role = [2]results.Role{results.AsRelay, results.AsPeer}[blamed]
		}
	}
	all := []results.Finding{f}
	if broken := Breach(err); broken != nil {
		broken.BearsOn = results.BearsOn(results.CodeNIP77, d.Key, d.Labels)
		all = append(all, *broken)
	}
	for _, f := range all {
		f.Scenario, f.Labels, f.Verdict = d.Key, d.Labels, results.Failed
		f.Relay = t.name(at)
		if len(t.relays) > 1 {
			f.Peer = t.name(1 - at)
		}
		if blamed >= 0 {
			f.Blames = t.name(blamed)
		}
		if b := t.boots[at]; b != nil {
			b.public(&f)
		}
		r.Recorder.AddFinding(f)
		if t.cast == Ordered && blamed == 1 && (fault.unready || fault.died) && f.Code == results.CodeCompletes {
			f.Relay, f.Peer, f.Code = f.Blames, "", results.CodeServesSource
			r.Recorder.AddFinding(f)
		}
	}
}
