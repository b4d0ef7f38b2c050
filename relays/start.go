package relays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"relaybench/relays/machine"
)

// Settings are what one boot needs beyond the definition. The zero value of a field is its default.
type Settings struct {
	WorkDir       string        // each boot gets a fresh folder below it; the system's temporary folder unless set
	MaxEventBytes int           // the corpus's largest event, in bytes; 65,536 unless set
	MaxTags       int           // the corpus's most tags on one event; 2,000 unless set
	KeepData      bool          // Cleanup leaves the folder
	Processors    []int         // logical processors that the relay is kept to (Linux); all unless set
	StopGrace     time.Duration // from the stop signal to SIGKILL; the definition's, or else 10 s, unless set
}

func (s Settings) withDefaults(d *Definition) Settings {
	s.WorkDir = cmp.Or(s.WorkDir, os.TempDir())
	s.MaxEventBytes = cmp.Or(s.MaxEventBytes, 65536)
	s.MaxTags = cmp.Or(s.MaxTags, 2000)
	s.StopGrace = cmp.Or(cmp.Or(s.StopGrace, time.Duration(d.StopTimeout)), 10*time.Second)
	return s
}

func (d *Definition) readyTimeout() time.Duration {
	return cmp.Or(time.Duration(d.ReadyTimeout), 30*time.Second)
}

// Cause says why a relay did not become ready.
type Cause string

// The causes.
const (
	LaunchFailed  Cause = "launch failed"  // the system would not run the program
	Crash         Cause = "crash"          // killed by a signal before it was ready
	EarlyExit     Cause = "early exit"     // exited before it was ready
	NeverListened Cause = "never listened" // nothing accepted connections on its port in time
	NoAnswer      Cause = "no answer"      // it listens, and no REQ was answered with EOSE
	PortTaken     Cause = "port taken"     // another process listens on the port it was given
)

// StartError is a relay that did not become ready. Error is one sentence without the relay's name,
// which is said by whoever tells of it; LogTail holds the last lines of its log, at most 20.
type StartError struct {
	Cause   Cause
	Detail  string // "exited with status 3 before it was ready"
	LogTail []string
	// Shortage is what the machine was short of, one of results' Shortage codes; "" where nothing
	// is known.
	Shortage string
}

func (e *StartError) Error() string { return e.Detail }

func startError(cause Cause, format string, a ...any) *StartError {
	return &StartError{Cause: cause, Detail: fmt.Sprintf(format, a...)}
}

const startLogLines = 20

// attempts is how often a boot is tried when another process takes the port between its choice and
// its use.
const attempts = 3

// Start launches a relay in a fresh folder on a free loopback port and waits until it has answered
// a REQ with EOSE, or connects to one that already runs. program is what Resolve returned; "" has
// Start resolve it in the environment. Errors do not name the relay. A relay that does not become
// ready is a *StartError; nothing of it is left running, nor on disk unless KeepData is set. The
// caller owes the process a Stop or Kill, and a Cleanup.
func Start(ctx context.Context, d *Definition, program string, s Settings) (*Process, error) {
	if d.External() {
		return connect(ctx, d, s)
	}
	s = s.withDefaults(d)
	return retry(func() (*Process, error) {
		p, err := newFolder(d, program, s)
		if err != nil {
			return nil, err
		}
		if err := p.boot(ctx); err != nil {
			return nil, errors.Join(err, p.Cleanup())
		}
		return p, nil
	})
}

// Prepare makes a relay's fresh folder with its configuration and boots nothing: for a relay that
// is filled by its own import command before it serves. Import works on such a process, and Restart
// boots it. A relay that runs already is not asked whether it is ready. The caller owes it a
// Cleanup.
func Prepare(d *Definition, program string, s Settings) (*Process, error) {
	s = s.withDefaults(d)
	if d.External() {
		p := newProcess(d, "", s, "")
		p.dir, p.url = "", d.URL
		return p, nil
	}
	p, err := newFolder(d, program, s)
	if err != nil {
		return nil, err
	}
	remember(p)
	if p.port, err = machine.FreePort(); err == nil { // configurations name one, whether anything listens on it or not
		err = p.render(p.blanks())
	}
	if err != nil {
		return nil, errors.Join(err, p.Cleanup())
	}
	return p, nil
}

// Fresh prepares the same relay in another folder, with the settings of its launch.
func (p *Process) Fresh() (*Process, error) { return Prepare(p.def, p.program, p.settings) }

// newFolder makes the folder of one boot. program is found where it is not given.
func newFolder(d *Definition, program string, s Settings) (*Process, error) {
	if program == "" {
		var err error
		if program, err = d.resolve(os.Getenv); err != nil {
			return nil, err
		}
	}
	work, err := filepath.Abs(s.WorkDir)
	if err == nil {
		err = os.MkdirAll(work, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("creating the work folder: %w", brief(err))
	}
	root, err := os.MkdirTemp(work, d.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("creating its folder: %w", brief(err))
	}
	return newProcess(d, program, s, root), nil
}

// Restart boots the relay over the data that p left, on a new port: again, or for the first time
// where p comes from Prepare. Neither p nor a command of its own may be running. The folder now
// belongs to the process that is returned; when the boot fails, it stays with p.
func (p *Process) Restart(ctx context.Context) (*Process, error) {
	if p.External() {
		return nil, ErrExternal
	}
	p.mu.Lock()
	running, helpers := p.running(), len(p.helpers)
	p.mu.Unlock()
	switch {
	case running:
		return nil, errors.New("restarted while it still runs")
	case helpers > 0:
		return nil, errors.New("restarted while a command of its own still works on its data")
	}
	return retry(func() (*Process, error) {
		q := newProcess(p.def, p.program, p.settings, p.root)
		if err := q.boot(ctx); err != nil {
			forget(q)
			return nil, err
		}
		forget(p)
		return q, nil
	})
}

func retry(boot func() (*Process, error)) (p *Process, err error) {
	for range attempts {
		p, err = boot()
		var failed *StartError
		if !errors.As(err, &failed) || failed.Cause != PortTaken {
			break
		}
	}
	return p, err
}

// boot launches the child and waits until it is ready. On any error nothing of it runs any more.
func (p *Process) boot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	remember(p)
	var err error
	if p.port, err = machine.FreePort(); err != nil {
		return err
	}
	if portPicked != nil {
		portPicked(p.port)
	}
	b := p.blanks()
	if err := p.render(b); err != nil {
		return err
	}
	words, err := p.def.argv(b)
	if err == nil {
		err = p.execute(words, b, nil)
	}
	if err != nil {
		return err
	}
	if err := p.awaitReady(ctx); err != nil {
		p.Kill()
		<-p.done
		var failed *StartError
		if errors.As(err, &failed) {
			failed.Detail = p.Public(failed.Detail)
			failed.LogTail = p.LogTail(startLogLines)
			failed.Shortage = cmp.Or(p.shortage, p.look.Short())
		}
		return err
	}
	return nil
}

// portPicked, where a test sets it, runs between the choice of a port and its use.
var portPicked func(port int)
