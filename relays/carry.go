package relays

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Carry says how one of a relay's own commands is carried out. The zero value of a field is its default.
type Carry struct {
	Stall time.Duration // how long it may make no progress; 30 s unless set
	// Moves, where set, is another sign of progress beside what the command reads and writes: any
	// change of its value. What the command prints is none.
	Moves func() int64
	// Progress, where set, is told how many bytes of how many it has read; an import by standard input only.
	Progress func(done, total int64)
}

// Carried is what one of a relay's own commands took.
type Carried struct {
	Command string        // as it may be published: {dir} and {file} left standing
	Took    time.Duration // from its launch to its end
	Usage   Usage         // of its whole process tree
	Read    int64         // bytes of its standard input, for an import that reads there
	Written int64         // bytes that an export gave
	LogTail []string      // the last lines of its log, at most 20, as from Process.LogTail
}

// CommandError is one of a relay's own commands that did not do what it is for. Error is one sentence without the relay's name; LogTail holds the
// last lines of its log, at most 20.
type CommandError struct {
	Verb    Verb
	Detail  string // "its import command exited with status 3"
	LogTail []string
	// Shortage is what the machine was short of, one of measure's Shortage codes; "" where nothing
	// is known.
	Shortage string
}

func (e *CommandError) Error() string { return e.Detail }

// DefaultExportBytes bounds what an export may write where its caller sets no bound.
const DefaultExportBytes = 64 << 30

// Import has the relay's own import command take events, one JSON event a line, into the relay's
// folder. The command reads them from a file of its own, which only it can spoil. p is as its
// definition wants it: from Prepare, ended, or running. What the command says of its success is not
// believed: whoever wants to know asks the relay.
//
// The error is a *CommandError where the command failed, or made no progress in time; ctx's, after
// which nothing of it runs any more; or says why it could not be begun. What it took is returned
// with any error that comes after its launch.
func (p *Process) Import(ctx context.Context, events []byte, c Carry) (*Carried, error) {
	run := carrying{Carry: c, verb: Import, total: int64(len(events))}
	if p.root != "" { // beside its folder, where it is no part of what the relay stores
		run.native.file = filepath.Join(p.root, "import.ndjson")
		defer os.Remove(run.native.file)
		if err := writeSynced(run.native.file, events); err != nil {
			return nil, fmt.Errorf("writing the events to import: %w", brief(err))
		}
	}
	if p.def.ImportRule.Stdin {
		in, err := os.Open(run.native.file)
		if err != nil {
			return nil, fmt.Errorf("opening the events to import: %w", brief(err))
		}
		defer in.Close()
		run.in = in
	}
	return p.carry(ctx, &run)
}

// writeSynced writes a file that is not to be changed, and waits for the disk: what is written
// later would be written while the command is measured.
func writeSynced(path string, text []byte) error {
	_ = os.Remove(path)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o444)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// Export has the relay's own export command write all its events to out, one JSON event a line, and ends it where it writes more than most bytes
// (DefaultExportBytes for 0). The lines are as the relay wrote them: nothing about them is to be trusted. Errors are those of Import, or out's.
func (p *Process) Export(ctx context.Context, out io.Writer, most int64, c Carry) (*Carried, error) {
	run := carrying{Carry: c, verb: Export, most: either(most, DefaultExportBytes), out: out}
	byFile := strings.Contains(p.def.ExportRule.Command, "{file}")
	if byFile {
		if p.root != "" {
			run.native.file = filepath.Join(p.root, "export.ndjson") // beside its folder, where it is no part of what the relay stores
			_ = os.Remove(run.native.file)
		}
		run.out = nil
	}
	done, err := p.carry(ctx, &run)
	if err == nil && byFile {
		done.Written, err = copyFile(out, run.native.file, run.most)
		_ = os.Remove(run.native.file)
	}
	return done, err
}

// copyFile copies a file that a relay wrote, and follows no link out of its folder.
func copyFile(out io.Writer, path string, most int64) (int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return 0, &CommandError{Verb: Export, Detail: "its export command left no file that can be read"}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return 0, fmt.Errorf("reading what it exported: %w", brief(err))
	case !info.Mode().IsRegular():
		return 0, &CommandError{Verb: Export, Detail: "its export command left something else than a file"}
	case info.Size() > most:
		return 0, tooMuch(most)
	}
	return io.Copy(out, io.LimitReader(f, most))
}

func tooMuch(most int64) error {
	return &CommandError{Verb: Export, Detail: fmt.Sprintf("its export command wrote more than %d bytes", most)}
}

// Sync has the relay's own sync command exchange events with the relay at a ws:// or wss:// address. Errors are those of Import.
func (p *Process) Sync(ctx context.Context, address string, direction Direction, c Carry) (*Carried, error) {
	if u, err := url.Parse(address); err != nil || (u.Scheme != "ws" && u.Scheme != "wss") || u.Host == "" {
		return nil, errors.New("a relay to sync with is given as ws://host:port or wss://host")
	}
	able := false
	for _, d := range p.def.Directions() {
		able = able || d == direction
	}
	if p.def.SyncRule.Command != "" && !able {
		return nil, fmt.Errorf("its sync command does not go %s", direction)
	}
	return p.carry(ctx, &carrying{Carry: c, verb: Sync, native: nativeBlanks{url: address, direction: string(direction)}})
}

// carrying is one command on its way.
type carrying struct {
	Carry
	verb   Verb
	native nativeBlanks
	in     *os.File // its standard input, where it is given one
	total  int64    // bytes of it
	out    io.Writer
	most   int64

	written atomic.Int64
	last    int64 // sum of all other signs of progress at the last look
	disk    Disk  // of the folder then
}

const (
	carryLook     = 200 * time.Millisecond // between two looks at a command's progress
	carryFirst    = 20 * time.Millisecond  // while it is young: a short one would else never be seen, nor the memory it takes
	carryLogLines = 20
)

// carry runs a command on the relay's folder and waits for its end.
func (p *Process) carry(ctx context.Context, run *carrying) (*Carried, error) {
	run.Stall = either(run.Stall, 30*time.Second)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := p.blanks()
	b.native = run.native
	words, err := p.nativeWords(run.verb, b)
	if err != nil {
		return nil, err
	}
	guest, err := p.invite(run)
	if err != nil {
		return nil, err
	}
	defer p.dismiss(guest)
	finished := func() error { return nil }
	var out *os.File
	if run.out != nil {
		if out, finished, err = run.collect(guest); err != nil {
			return nil, err
		}
	}
	err = guest.execute(words, b, run.in, out)
	if out != nil {
		out.Close()
	}
	if err != nil {
		_ = finished()
		return nil, err
	}
	trouble := run.watch(ctx, guest)
	<-guest.done
	collected := finished()

	usage, _ := guest.Usage()
	done := &Carried{Usage: usage, Took: guest.exited.Sub(guest.began), Written: run.written.Load(), LogTail: guest.LogTail(carryLogLines)}
	if public, err := p.nativeWords(run.verb, recorded(p.program, p.settings)); err == nil {
		done.Command = publicCommand(public)
	}
	if run.in != nil {
		done.Read = run.offset()
	}
	switch {
	case ctx.Err() != nil:
		return done, context.Cause(ctx)
	case collected != nil:
		return done, collected
	case trouble == "":
		trouble = guest.failure()
	}
	if trouble != "" {
		return done, &CommandError{Verb: run.verb, Detail: fmt.Sprintf("its %s command %s", run.verb, trouble), LogTail: done.LogTail,
			Shortage: either(guest.shortage, guest.look.Short())}
	}
	return done, nil
}

// nativeWords returns the words to execute, of a relay that has such a command.
func (p *Process) nativeWords(v Verb, b blanks) ([]string, error) {
	if ok, why := p.def.Can(v); !ok {
		return nil, errors.New(why)
	}
	return p.def.nativeArgv(v, b)
}

// invite makes the process that is to work on p's folder, which goes with p's.
func (p *Process) invite(run *carrying) (*Process, error) {
	info, err := os.Lstat(p.dir)
	switch {
	case err != nil:
		return nil, errors.New("its data folder is gone")
	case !info.IsDir():
		return nil, errors.New("its data folder is no longer a folder")
	}
	guest := newProcess(p.def, p.program, p.settings, p.root)
	guest.port, guest.logName = p.port, string(run.verb)+".log"
	for _, h := range []hidden{{run.native.file, "{file}"}, {run.native.url, "{url}"}} {
		if h.path != "" {
			guest.hidden = append([]hidden{h}, guest.hidden...)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch r := p.def.rule(run.verb).running; {
	case r == MustStop && p.running():
		return nil, fmt.Errorf("its %s command needs it stopped", run.verb)
	case r == MustRun && !p.running():
		return nil, fmt.Errorf("its %s command needs it running", run.verb)
	}
	if p.guests == nil {
		p.guests = map[*Process]bool{}
	}
	p.guests[guest] = true
	return guest, nil
}

// dismiss sees to it that nothing of a command runs any more.
func (p *Process) dismiss(guest *Process) {
	_ = guest.Cleanup()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.guests, guest)
}

// collect gives the command an output whose bytes go to run.out. finished waits for the last of them.
func (run *carrying) collect(guest *Process) (out *os.File, finished func() error, err error) {
	read, out, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("opening a pipe: %w", err)
	}
	widenPipe(out)
	ended := make(chan error, 1)
	go func() {
		buf := make([]byte, 256<<10)
		for {
			n, err := read.Read(buf)
			if n > 0 {
				var failed error
				if run.written.Add(int64(n)) > run.most {
					failed = tooMuch(run.most)
				} else {
					_, failed = run.out.Write(buf[:n])
				}
				if failed != nil {
					guest.Kill()
					ended <- failed
					return
				}
			}
			if err != nil {
				ended <- nil
				return
			}
		}
	}()
	return out, func() error {
		_ = read.SetReadDeadline(time.Now().Add(time.Second)) // only who left the group, and was not found, still holds it
		defer read.Close()
		return <-ended
	}, nil
}

// watch returns when the command has ended, or has been ended for the trouble that is returned.
func (run *carrying) watch(ctx context.Context, guest *Process) (trouble string) {
	tick := time.NewTicker(carryFirst)
	defer tick.Stop()
	young := true
	moved := time.Now()
	for {
		select {
		case <-guest.done:
			return ""
		case <-ctx.Done():
			guest.Kill()
			return "was ended"
		case <-tick.C:
		}
		if young && time.Since(guest.began) > 5*carryLook {
			young = false
			tick.Reset(carryLook)
		}
		if run.moved(guest) {
			moved = time.Now()
		}
		if run.Progress != nil && run.in != nil {
			run.Progress(run.offset(), run.total)
		}
		if time.Since(moved) > run.Stall {
			guest.Kill()
			return fmt.Sprintf("made no progress for %v and was ended", run.Stall) + run.howFar()
		}
	}
}

// moved says whether the command has made progress since the last look.
func (run *carrying) moved(guest *Process) bool {
	usage, _ := guest.Usage()
	now := run.offset() + run.written.Load() + int64(usage.ReadBytes) + int64(usage.WriteBytes)
	if run.Moves != nil {
		now += run.Moves()
	}
	if now != run.last {
		run.last = now
		return true
	}
	disk, _ := guest.Disk() // which grows also where no child of the command's writes it
	moved := disk != run.disk
	run.disk = disk
	return moved
}

// offset is how far the command has read its standard input: it shares the place in the file with us.
func (run *carrying) offset() int64 {
	if run.in == nil {
		return 0
	}
	at, err := run.in.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0
	}
	return at
}

func (run *carrying) howFar() string {
	if run.in == nil {
		return ""
	}
	return fmt.Sprintf("; it had read %d of %d bytes", run.offset(), run.total)
}

// failure says how a command ended that did not end well.
func (p *Process) failure() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch state := p.cmd.ProcessState; {
	case state != nil && state.Success():
		return ""
	case state != nil && state.ExitCode() < 0:
		return "was " + p.status
	}
	return p.status
}
