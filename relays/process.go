package relays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"relaybench/relays/machine"
	"relaybench/results"
)

// ErrExternal is returned for what cannot be had of a relay that was not launched here.
var ErrExternal = errors.New("the relay was not launched by relaybench")

// ErrForced is what errors.Is finds in a *StopError.
var ErrForced = errors.New("it had to be killed")

// StopError is a relay that was told to end and had to be killed. What it stored may not be all on
// disk; nothing of it runs any more.
type StopError struct {
	Signal string        // that it was sent: "SIGTERM"
	Grace  time.Duration // that it was to be given, Settings.StopGrace
	// Interrupted says that the context ended before the grace: that it did not end by itself is
	// not held against it.
	Interrupted bool
}

func (e *StopError) Error() string {
	if e.Interrupted {
		return fmt.Sprintf("was given no more time to end: %v", ErrForced)
	}
	return fmt.Sprintf("did not end within %s of %s: %v", e.Grace, e.Signal, ErrForced)
}

// Is says that the error is an ErrForced.
func (e *StopError) Is(target error) bool { return target == ErrForced }

// EndError is a relay that ended though nobody told it to.
type EndError struct {
	Status   string // "exited with status 3", "killed by signal: killed"
	Shortage string // what the machine was short of, a Shortage code of results; "" for nothing
}

func (e *EndError) Error() string { return e.Status }

// Shortage names what the machine was short of where an error comes from that: one of results'
// Shortage codes, else "".
func Shortage(err error) string {
	start, end, command := (*StartError)(nil), (*EndError)(nil), (*CommandError)(nil)
	switch {
	case errors.As(err, &start) && start.Shortage != "":
		return start.Shortage
	case errors.As(err, &end) && end.Shortage != "":
		return end.Shortage
	case errors.As(err, &command) && command.Shortage != "":
		return command.Shortage
	}
	return machine.Shortage(err)
}

// Process is a relay that runs, or has run. Its methods are safe for concurrent use.
type Process struct {
	def      *Definition
	program  string
	settings Settings
	root     string // everything of this boot
	dir      string // {dir}, below root
	port     int
	url      string
	family   *family
	hidden   []hidden // what Public leaves out
	logName  string

	cmd  *exec.Cmd // the child; its pid is also its process group's id
	log  *boundedLog
	tree *tree
	done chan struct{}
	look *machine.Lookout // since the launch

	mu       sync.Mutex
	helpers  map[*Process]bool // commands of its own that work on its folder now
	launched bool
	began    time.Time // of the child
	exited   time.Time // when the child itself had ended
	ended    bool      // the whole group is gone, its id may belong to someone else
	stopping bool      // Stop or Kill was called
	grace    time.Time // until when the group may take to end after its leader
	status   string
	shortage string // of the machine, when the child ended by itself
	err      error
	left     []Survivor // could not be ended, and was not told yet
}

func newProcess(d *Definition, program string, s Settings, root string) *Process {
	p := &Process{def: d, program: program, settings: s, root: root, family: &family{mark: newMark(), root: root}, logName: "relay.log", done: make(chan struct{})}
	work := ""
	if root != "" {
		p.dir, work = filepath.Join(root, "data"), filepath.Dir(root)
	}
	p.hidden = hiddenPaths(p.dir, root, work)
	return p
}

// Definition returns what the relay was launched from. It must not be changed.
func (p *Process) Definition() *Definition { return p.def }

// Program returns the path of the program file, "" for a relay that was not launched here.
func (p *Process) Program() string { return p.program }

// running says whether the child runs. It needs p.mu.
func (p *Process) running() bool { return p.launched && !p.hasEnded() }

// Name returns the relay's name.
func (p *Process) Name() string { return p.def.Name }

// URL returns the relay's WebSocket address.
func (p *Process) URL() string { return p.url }

// Dir returns the relay's own folder, which {dir} stands for; "" for a relay that was not launched
// here.
func (p *Process) Dir() string { return p.dir }

// LogPath returns the file that holds the relay's output: its beginning while it runs, the end as
// well once it has ended.
func (p *Process) LogPath() string { return filepath.Join(p.root, p.logName) }

// External says whether the relay was connected to rather than launched.
func (p *Process) External() bool { return p.def.External() }

// Done is closed when the relay has ended, whoever ended it; never for a relay that was not
// launched here.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err returns nil while the relay runs and after it was stopped or killed here, and otherwise how
// it ended: "exited with status 3", "killed by signal: killed".
func (p *Process) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Describe returns how the relay goes into the record; the outcome is the caller's to fill in.
func (p *Process) Describe() results.Relay {
	return p.def.Describe(context.Background(), p.program, p.settings)
}

// LogTail returns the last n lines of the relay's output, without escape sequences, at most 500
// bytes each. Paths of this machine are replaced, as by Public.
func (p *Process) LogTail(n int) []string {
	if p.log == nil {
		return nil
	}
	lines := p.log.tail(n)
	for i, line := range lines {
		lines[i] = p.Public(line)
	}
	return lines
}

func (p *Process) blanks() blanks {
	return blanks{port: fmt.Sprint(p.port), dir: p.dir, program: p.program, settings: p.settings}
}

func (p *Process) render(b blanks) error {
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return fmt.Errorf("creating its folder: %w", brief(err))
	}
	return p.def.prepare(b)
}

// execute starts the child, which reads in where that is set. What it writes goes to the log.
func (p *Process) execute(words []string, b blanks, in *os.File) error {
	log, all, err := openLog(p.LogPath())
	if err != nil {
		return fmt.Errorf("opening its log: %w", brief(err))
	}
	defer all.Close()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(p.def.environ(os.Environ(), b), p.family.mark)
	cmd.Stdout, cmd.Stderr = all, all
	if in != nil {
		cmd.Stdin = in
	}
	if !p.def.Template || !p.def.usesDir() {
		// What a relay writes to paths of its own choice lands in its folder, where it is measured
		// and removed. A template that says where {dir} belongs stays where it was typed, so that
		// relative paths in it mean what the person sees.
		cmd.Dir = p.dir
	}
	cmd.SysProcAttr = childAttributes()

	// The lock is held over the fork, so that KillAll either sees the child or comes before it.
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopping {
		log.finish(0)
		return context.Canceled
	}
	p.began, p.look = time.Now(), machine.System{}.Lookout(p.root)
	if err := p.family.start(cmd, p.settings.Processors); err != nil {
		log.finish(0)
		failed := startError(LaunchFailed, "%s cannot be run: %v", filepath.Base(words[0]), err)
		if path := (*fs.PathError)(nil); errors.As(err, &path) {
			failed = startError(LaunchFailed, "%s cannot be run: %v", filepath.Base(words[0]), path.Err) // the path is named
		}
		failed.Shortage = machine.Shortage(err)
		return failed
	}
	p.cmd, p.log, p.launched = cmd, log, true
	p.tree = p.family.watch()
	go p.wait()
	return nil
}

// wait reaps the child, sees to it that its whole group is gone, and what has left it as well, and
// then announces the end.
func (p *Process) wait() {
	pgid := p.cmd.Process.Pid
	awaitExit(p.cmd)
	p.mu.Lock()
	p.exited = time.Now()
	p.mu.Unlock()
	p.tree.final()
	// A launcher script may end at once on the stop signal while the relay it launched still closes
	// its store.
	for {
		p.mu.Lock()
		patient := p.stopping && time.Now().Before(p.grace)
		p.mu.Unlock()
		if !patient || !groupAlive(pgid) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	// What else is in the group goes too. From here on nothing is sent to it any more: once its
	// leader is reaped and its members are gone, its id may be another's.
	p.mu.Lock()
	_ = syscall.Kill(-pgid, syscall.SIGKILL)
	p.ended = true
	p.mu.Unlock()
	_ = p.cmd.Wait()
	for range 200 {
		if !groupAlive(pgid) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.tree.close(p.cmd.ProcessState)
	left := p.family.end()
	p.log.finish(time.Second)
	p.mu.Lock()
	byItself, shortage := !p.stopping, ""
	p.mu.Unlock()
	if byItself {
		shortage = p.look.Ended(p.cmd.ProcessState)
	}

	p.mu.Lock()
	p.left, p.status = left, ending(p.cmd.ProcessState)
	if !p.stopping {
		p.shortage, p.err = shortage, &EndError{p.status, shortage}
	}
	p.mu.Unlock()
	close(p.done)
}

func ending(state *os.ProcessState) string {
	if w, ok := state.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return "killed by signal: " + w.Signal().String()
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}

// end sends a signal to the whole group, unless that is gone and its id may have been given away,
// and has it left alone until then.
func (p *Process) end(sig syscall.Signal, grace time.Time) (launched bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.stopping, p.grace = true, grace
		if p.launched {
			_ = syscall.Kill(-p.cmd.Process.Pid, sig)
		}
	}
	return p.launched
}

// Stop ends the relay: the definition's stop signal to its whole group, SIGKILL after the stop
// timeout or when ctx ends, and returns when nothing of it runs any more. Having had to kill is a
// *StopError; a process that could not be ended at all a *LeftoverError, told once, here or by
// Cleanup. A relay that has ended, or was not launched here, is left as it is.
func (p *Process) Stop(ctx context.Context) error {
	grace := p.settings.StopGrace
	if p.External() || !p.end(stopSignals[p.def.StopSignal], time.Now().Add(grace)) {
		return nil
	}
	forced := &StopError{Signal: cmp.Or(p.def.StopSignal, "SIGTERM"), Grace: grace}
	select {
	case <-p.done:
		return p.leftovers()
	case <-time.After(grace):
	case <-ctx.Done():
		forced.Interrupted = true
	}
	p.Kill()
	<-p.done
	if left := p.leftovers(); left != nil {
		return errors.Join(forced, left)
	}
	return forced
}

// leftovers tells once what could not be ended of a process that has ended.
func (p *Process) leftovers() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left
	if p.left = nil; len(left) == 0 {
		return nil
	}
	return &LeftoverError{left}
}

// Kill sends SIGKILL to the relay's whole group and does not wait; Done tells when it is gone.
// Nothing happens to a relay that was not launched here.
func (p *Process) Kill() { p.end(syscall.SIGKILL, time.Time{}) }

// Cleanup removes the relay's folder, killing the relay and its own commands first if they still
// run. KeepData keeps the folder. What could not be ended, of it or of its commands, is a
// *LeftoverError.
func (p *Process) Cleanup() error {
	if p.External() {
		return nil
	}
	p.Kill()
	p.mu.Lock()
	launched := p.launched
	helpers := slices.Collect(maps.Keys(p.helpers))
	p.mu.Unlock()
	var left error
	if launched {
		<-p.done
		left = p.leftovers()
	}
	for _, h := range helpers {
		left = errors.Join(left, h.Cleanup())
	}
	if !forget(p) || p.settings.KeepData {
		return left
	}
	if err := removeAll(p.root); err != nil {
		left = errors.Join(left, fmt.Errorf("removing its folder: %w", brief(err)))
	}
	return left
}

// removeAll removes a folder even where a relay took away its own permission to write.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // before the walk reads it
		}
		return nil
	})
	return os.RemoveAll(dir)
}
