package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kballard/go-shellquote"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/relays"
	"relaybench/relays/reference"
)

// Relay is a scripted relay as a test has it.
type Relay struct {
	*Counts
	URL        string             // of Serve
	Definition *relays.Definition // of External
	Command    string             // of External: for --relay NAME=COMMAND; has no own commands
}

// Serve serves the script in this process until the test ends.
func Serve(t testing.TB, s Script) *Relay {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	r := &Relay{URL: "ws://" + l.Addr().String(), Counts: new(Counts)}
	ctx, cancel := context.WithCancel(context.Background())
	ended, dir := make(chan struct{}), t.TempDir()
	go func() {
		defer close(ended)
		serve(ctx, l, s, dir, r.Counts, func() { panic("DieAt needs a process of its own") })
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return r
}

// variable names the file that tells the program its script.
const variable = "RELAYBENCH_SCRIPTED"

// boot is what such a file holds.
type boot struct {
	Script Script
	Counts string // path
}

// program is where the scripted relay is built, in a folder that Run made.
var program struct {
	folder string
	build  sync.Once
	err    error
}

// Run runs the tests of a package that uses External: it is for its TestMain.
func Run(m *testing.M) int {
	program.folder = must(os.MkdirTemp("", "scripted-"))
	defer os.RemoveAll(program.folder)
	return m.Run()
}

// built builds the relay as a program, once. It goes without the race detector, which would take
// more of the machine than all that is tested: Serve has the same code under it.
func built(t testing.TB) string {
	t.Helper()
	path := filepath.Join(program.folder, "scripted")
	program.build.Do(func() {
		if program.folder == "" {
			program.err = errors.New("the package has no TestMain that calls scripted.Run")
			return
		}
		out, err := exec.Command("go", "build", "-o", path, "relaybench/relays/scripted/program").CombinedOutput()
		if err != nil {
			program.err = fmt.Errorf("building the scripted relay: %w\n%s", err, out)
		}
	})
	if program.err != nil {
		t.Fatal(program.err)
	}
	return path
}

// External is the script as a program that relaybench launches. The package's TestMain must call
// Run.
func External(t testing.TB, name string, s Script) *Relay {
	t.Helper()
	dir := t.TempDir()
	file, counts := filepath.Join(dir, "script.json"), filepath.Join(dir, "counts")
	check(os.WriteFile(file, must(json.Marshal(boot{s, counts})), 0o600))
	r := &Relay{Counts: mapCounts(counts)}
	r.Command = shellquote.Join(variable+"="+file, built(t)) + " serve --port {port} --db {dir}"
	d := must(relays.FromTemplate(name, r.Command))
	if s.Import != nil {
		d.ImportRule = relays.NativeRule{Command: "{program} import {file} --db {dir}", Running: relays.MustStop}
	}
	if s.SyncWith != nil {
		d.SyncRule = relays.NativeRule{Command: "{program} sync {url} {direction} --db {dir}", Running: relays.MustStop}
	}
	r.Definition = &d
	return r
}

// longest is how long a process stays that everybody has forgotten.
const longest = 10 * time.Minute

// Main is the program that External has launched. It carries out `serve --port PORT --db DIR`,
// `import FILE --db DIR` or `sync URL DIRECTION --db DIR`, and returns the exit status.
func Main(args []string) int {
	began := time.Now()
	time.AfterFunc(longest, func() { os.Exit(1) })
	var b boot
	check(json.Unmarshal(must(os.ReadFile(os.Getenv(variable))), &b))
	s, counts, dir := &b.Script, mapCounts(b.Counts), args[len(args)-1]
	own := map[string]*Command{"import": s.Import, "sync": s.SyncWith}[args[0]]
	for own != nil && own.TalkEvery > 0 {
		fmt.Println("at work")
		time.Sleep(own.TalkEvery)
	}
	if args[0] == "serve" {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
		defer stop()
		serve(ctx, must(net.Listen("tcp", "127.0.0.1:"+args[2])), *s, dir, counts, func() {
			check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
			select {}
		})
		return 0
	}
	store, command, done := openStore(s, dir), s.Import, &counts.Imports
	if args[0] == "import" {
		f := must(os.Open(args[1]))
		defer f.Close()
		texts := must(prepare.NewTexts(f, args[1]))
		check(reference.NewImporter(store, reference.ImportOptions{}).Run(context.Background(), texts.Next))
	} else {
		command, done = s.SyncWith, &counts.Syncs
		way := relays.Direction(args[2])
		must(reference.Sync(context.Background(), store, args[1], reference.SyncOptions{Down: way != relays.Up, Up: way != relays.Down}))
	}
	u := newLoad(&Script{CPUPerMessage: command.CPU, WritePerMessage: command.Writes, Memory: command.Memory}, dir)
	u.use()
	defer u.end()
	lose(store, command.LoseEvery, counts)
	check(store.Close())
	pause(context.Background(), command.Takes-time.Since(began))
	done.add()
	return command.Exit
}

// Notes makes a corpus of n genuine notes (kind 1), a second apart, of which a relay that keeps to
// the protocol keeps all.
func Notes(t testing.TB, n int) *corpus.Corpus {
	t.Helper()
	key := must(corpus.NewSecretKey([32]byte{31: 1}))
	events := make([]corpus.Event, n)
	for i := range events {
		events[i] = corpus.Event{Kind: 1, CreatedAt: 1_780_000_000 + int64(i), Tags: []corpus.Tag{}, Content: fmt.Sprint("note ", i)}
		check(key.Sign(&events[i], [32]byte{}))
	}
	c := must(corpus.FromEvents(events))
	t.Cleanup(func() { c.Close() })
	return c
}
