package relays

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// CommandOptions say how one of a relay's own commands is run. The zero value of a field is its
// default.
type CommandOptions struct {
	Stall time.Duration // how long it may make no progress; 30 s unless set
	// Moves, where set, is another sign of progress beside what the command reads and writes: any
	// change of its value. What the command prints is none.
	Moves func() int64
	// Progress, where set, is told how many bytes of how many it has read; an import by standard
	// input only.
	Progress func(done, total int64)
}

// CommandResult is what one of a relay's own commands took.
type CommandResult struct {
	Command string        // as it may be published: {dir} and {file} left standing
	Took    time.Duration // from its launch to its end
	Usage   Usage         // of its whole process tree
	Read    int64         // bytes of its standard input, for an import that reads there
	LogTail []string      // the last lines of its log, at most 20, as from Process.LogTail
}

// CommandError is one of a relay's own commands that failed. Error is one sentence without the
// relay's name.
type CommandError struct {
	Verb     Verb
	Detail   string   // "its import command exited with status 3"
	LogTail  []string // the last lines of its log, at most 20
	Shortage string   // what the machine was short of, a Shortage code of results; "" where unknown
}

func (e *CommandError) Error() string { return e.Detail }

// Import has the relay's own import command take events, one JSON event a line, into the relay's
// folder. The command reads them from a file of its own, which only it can spoil. p is as its
// definition wants it: from Prepare, ended, or running. What the command says of its success is not
// believed: whoever wants to know asks the relay.
//
// The error is a *CommandError where the command failed, or made no progress in time; ctx's, after
// which nothing of it runs any more; or says why it could not be begun. What it took is returned
// with any error that comes after its launch.
func (p *Process) Import(ctx context.Context, events []byte, o CommandOptions) (*CommandResult, error) {
	if ok, why := p.def.Can(Import); !ok {
		return nil, errors.New(why)
	}
	c := command{CommandOptions: o, verb: Import, total: int64(len(events))}
	c.native.file = filepath.Join(p.root, "import.ndjson") // beside its folder: no part of what the relay stores
	defer os.Remove(c.native.file)
	if err := writeSynced(c.native.file, events); err != nil {
		return nil, fmt.Errorf("writing the events to import: %w", brief(err))
	}
	if p.def.ImportRule.Stdin {
		in, err := os.Open(c.native.file)
		if err != nil {
			return nil, fmt.Errorf("opening the events to import: %w", brief(err))
		}
		defer in.Close()
		c.in = in
	}
	return p.runCommand(ctx, &c)
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

// Sync has the relay's own sync command exchange events with the relay at a ws:// or wss://
// address. Errors are those of Import.
func (p *Process) Sync(ctx context.Context, address string, direction Direction, o CommandOptions) (*CommandResult, error) {
	if _, err := ParseURL(address); err != nil {
		return nil, errors.New("a relay to sync with is given as ws://host:port or wss://host")
	}
	if ok, why := p.def.Can(Sync); !ok {
		return nil, errors.New(why)
	}
	if !slices.Contains(p.def.Directions(), direction) {
		return nil, fmt.Errorf("its sync command does not go %s", direction)
	}
	return p.runCommand(ctx, &command{CommandOptions: o, verb: Sync, native: nativeBlanks{url: address, direction: string(direction)}})
}

// command is one of the relay's own commands at work.
type command struct {
	CommandOptions
	verb   Verb
	native nativeBlanks
	in     *os.File // its standard input, where it is given one
	total  int64    // bytes of it

	last int64 // sum of all signs of progress but the folder at the last look
	disk Disk  // of the folder then
}

const (
	commandLook     = 200 * time.Millisecond // between two looks at a command's progress
	commandYoung    = time.Second            // for so long it is looked at more often: it may be a short one
	commandFirst    = 20 * time.Millisecond
	commandLogLines = 20
)

func (p *Process) runCommand(ctx context.Context, c *command) (*CommandResult, error) {
	c.Stall = cmp.Or(c.Stall, 30*time.Second)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b := p.blanks()
	b.native = c.native
	words, err := p.def.nativeArgv(c.verb, b)
	if err != nil {
		return nil, err
	}
	helper, err := p.startHelper(c)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = helper.Cleanup()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.helpers, helper)
	}()
	if err := helper.execute(words, b, c.in); err != nil {
		return nil, err
	}
	trouble := c.watch(ctx, helper)
	<-helper.done

	usage, _ := helper.Usage()
	done := &CommandResult{Usage: usage, Took: helper.exited.Sub(helper.began), Read: c.offset(), LogTail: helper.LogTail(commandLogLines)}
	if public, err := p.def.nativeArgv(c.verb, recorded(p.program, p.settings)); err == nil {
		done.Command = publicCommand(public)
	}
	if ctx.Err() != nil {
		return done, context.Cause(ctx)
	}
	if trouble == "" && !helper.cmd.ProcessState.Success() {
		trouble = strings.Replace(helper.status, "killed", "was killed", 1)
	}
	if trouble != "" {
		return done, &CommandError{Verb: c.verb, Detail: fmt.Sprintf("its %s command %s", c.verb, trouble), LogTail: done.LogTail,
			Shortage: cmp.Or(helper.shortage, helper.look.Short())}
	}
	return done, nil
}

// startHelper makes the process that is to work on p's folder. Cleaning p up cleans it up as well.
func (p *Process) startHelper(c *command) (*Process, error) {
	info, err := os.Lstat(p.dir)
	switch {
	case err != nil:
		return nil, errors.New("its data folder is gone")
	case !info.IsDir():
		return nil, errors.New("its data folder is no longer a folder")
	}
	helper := newProcess(p.def, p.program, p.settings, p.root)
	helper.port, helper.logName = p.port, string(c.verb)+".log"
	for _, h := range []hidden{{c.native.file, "{file}"}, {c.native.url, "{url}"}} {
		if h.path != "" {
			helper.hidden = append([]hidden{h}, helper.hidden...)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.def.NeedsStop(c.verb) && p.running():
		return nil, fmt.Errorf("its %s command needs it stopped", c.verb)
	case p.def.NeedsRun(c.verb) && !p.running():
		return nil, fmt.Errorf("its %s command needs it running", c.verb)
	}
	if p.helpers == nil {
		p.helpers = map[*Process]bool{}
	}
	p.helpers[helper] = true
	return helper, nil
}

// watch returns when the command has ended, or has been ended for the trouble that is returned.
func (c *command) watch(ctx context.Context, helper *Process) (trouble string) {
	moved := time.Now()
	for {
		wait := commandLook
		if time.Since(helper.began) < commandYoung {
			wait = commandFirst
		}
		select {
		case <-helper.done:
			return ""
		case <-ctx.Done():
			helper.Kill()
			return "was ended"
		case <-time.After(wait):
		}
		if c.moved(helper) {
			moved = time.Now()
		}
		if c.Progress != nil && c.in != nil {
			c.Progress(c.offset(), c.total)
		}
		if time.Since(moved) > c.Stall {
			helper.Kill()
			trouble = fmt.Sprintf("made no progress for %v and was ended", c.Stall)
			if c.in != nil {
				trouble += fmt.Sprintf("; it had read %d of %d bytes", c.offset(), c.total)
			}
			return trouble
		}
	}
}

// moved says whether the command has made progress since the last look.
func (c *command) moved(helper *Process) bool {
	usage, _ := helper.Usage()
	now := c.offset() + int64(usage.ReadBytes) + int64(usage.WriteBytes)
	if c.Moves != nil {
		now += c.Moves()
	}
	if now != c.last {
		c.last = now
		return true
	}
	disk, _ := helper.Disk() // which grows also where no child of the command's writes it
	moved := disk != c.disk
	c.disk = disk
	return moved
}

// offset is how far the command has read its standard input: it shares the place in the file with
// us.
func (c *command) offset() int64 {
	if c.in == nil {
		return 0
	}
	at, _ := c.in.Seek(0, io.SeekCurrent)
	return at
}
