package relays

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// commandHelper is every import and sync command of these tests: the test binary with the mode as
// its first word and {dir} as its second.
func commandHelper(mode string) {
	dir := os.Args[2]
	store := filepath.Join(dir, "events")
	switch mode {
	case "do-take": // standard input, or the file named third
		in := os.Stdin
		if len(os.Args) > 3 {
			var err error
			if in, err = os.Open(os.Args[3]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		}
		text, _ := io.ReadAll(in)
		_ = os.WriteFile(store, text, 0o644)
		fmt.Println("took", len(text), "bytes")
	case "do-hang":
		time.Sleep(2 * time.Minute)
	case "do-spin": // busy, and gets nowhere
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		}
	case "do-die":
		_, _ = io.CopyN(io.Discard, os.Stdin, 10)
		fmt.Println("\x1b[31mno room\x1b[0m in " + dir + "/events")
		os.Exit(3)
	case "do-crash":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Minute)
	case "do-flood":
		line := []byte(strings.Repeat("x", 1000) + "\n")
		for {
			_, _ = os.Stdout.Write(line)
		}
	case "do-talk": // says now and then that it is at work
		for {
			fmt.Println("at work")
			time.Sleep(20 * time.Millisecond)
		}
	case "do-spoil":
		_ = os.WriteFile(os.Args[3], []byte("other events"), 0o644)
	case "do-leave": // ends at once, and leaves behind what its group and its parent do not show
		left := exec.Command(os.Args[0])
		left.Env = append(os.Environ(), "RELAYS_HELPER=deaf")
		left.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		left.Stdout = os.Stdout
		if left.Start() == nil {
			_ = os.WriteFile(filepath.Join(dir, "left"), fmt.Append(nil, left.Process.Pid), 0o644)
		}
	case "do-words":
		_ = os.WriteFile(filepath.Join(dir, "words"), []byte(strings.Join(os.Args[1:], "\n")), 0o644)
		fmt.Println("with", os.Args[3])
	}
	os.Exit(0)
}

// commandDefinition is a good relay with the commands given: the words after the program.
func commandDefinition(t *testing.T, imports, syncs string) *Definition {
	t.Helper()
	text := "name = 'mine'\ncommand = '{program} --port {port} --db {dir}'\nready_timeout = '15s'\n[env]\nRELAYS_HELPER = 'good'\n[find]\nenv = ['MINE_BIN']\n"
	for verb, words := range map[string]string{"import": imports, "sync": syncs} {
		if words != "" {
			text += "[" + verb + "]\ncommand = '{program} " + words + "'\nrunning = false\n"
			if verb == "import" && !strings.Contains(words, "{file}") {
				text += "stdin = true\n"
			}
		}
	}
	all, err := parse("mine.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	return &all[0]
}

func prepareHelper(t *testing.T, d *Definition) *Process {
	t.Helper()
	p, err := Prepare(d, os.Args[0], Settings{WorkDir: filepath.Join(t.TempDir(), "a folder")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func someEvents(size int) []byte { return bytes.Repeat([]byte("{\"id\":1}\n"), size/9) }

func TestARelayIsFilledBeforeItsFirstBoot(t *testing.T) {
	t.Parallel()
	want := someEvents(3 << 20)
	for _, test := range []struct {
		name, imports string
		stdin         bool
	}{
		{"by standard input", "do-take {dir}", true},
		{"by a file", "do-take {dir} {file}", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := prepareHelper(t, commandDefinition(t, test.imports, ""))
			if _, err := p.Usage(); err == nil {
				t.Error("a relay that was not booted has used something")
			}
			done, err := p.Import(t.Context(), want, CommandOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if done.Took <= 0 || done.Usage.CPUSeconds <= 0 || test.stdin != (done.Read == int64(len(want))) {
				t.Errorf("%+v", done)
			}
			if len(done.LogTail) != 1 || done.LogTail[0] != fmt.Sprintf("took %d bytes", len(want)) {
				t.Errorf("log %q", done.LogTail)
			}
			if strings.Contains(done.Command, p.root) || !strings.Contains(done.Command, "{dir}") {
				t.Errorf("command %q", done.Command)
			}
			q, err := p.Restart(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = q.Cleanup() })
			if _, err := q.Import(t.Context(), want, CommandOptions{}); err == nil || !strings.Contains(err.Error(), "needs it stopped") {
				t.Errorf("an import beside the running relay: %v", err)
			}
			if err := q.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(filepath.Join(q.Dir(), "events")); err != nil || !bytes.Equal(got, want) {
				t.Errorf("it holds %d bytes of %d: %v", len(got), len(want), err)
			}
			if err := q.Cleanup(); err != nil || exists(q.root) {
				t.Errorf("the folder is still there: %v", err)
			}
		})
	}
}

func TestACommandThatGoesWrongIsToldWithoutPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		imports, want string
		options       CommandOptions
	}{
		{"do-hang {dir}", "its import command made no progress for 300ms and was ended; it had read 0 of", CommandOptions{Stall: 300 * time.Millisecond}},
		{"do-spin {dir}", "made no progress", CommandOptions{Stall: 300 * time.Millisecond}},
		{"do-flood {dir}", "made no progress", CommandOptions{Stall: 300 * time.Millisecond}},
		{"do-talk {dir}", "made no progress", CommandOptions{Stall: 300 * time.Millisecond}},
		{"do-die {dir}", "its import command exited with status 3", CommandOptions{}},
		{"do-crash {dir}", "its import command was killed by signal: killed", CommandOptions{}},
	} {
		t.Run(test.imports+" "+test.want, func(t *testing.T) {
			t.Parallel()
			p := prepareHelper(t, commandDefinition(t, test.imports, ""))
			done, err := p.Import(t.Context(), someEvents(1<<20), test.options)
			var failed *CommandError
			if !errors.As(err, &failed) || !strings.Contains(err.Error(), test.want) || done == nil {
				t.Fatalf("%v, want one with %q", err, test.want)
			}
			for _, line := range append(failed.LogTail, err.Error()) {
				if strings.Contains(line, p.root) || strings.Contains(line, "\x1b") || len(line) > logLineBytes {
					t.Errorf("told %q", line)
				}
			}
			if strings.HasPrefix(test.imports, "do-die") && (len(failed.LogTail) != 1 || failed.LogTail[0] != "no room in {dir}/events") {
				t.Errorf("log %q", failed.LogTail)
			}
			if info, err := os.Stat(filepath.Join(p.root, "import.log")); err == nil && info.Size() > logHeadBytes+logTailBytes+100 {
				t.Errorf("its log has %d bytes", info.Size())
			}
		})
	}
}

// A command may write to the file that it is given: it is its own, and gone afterwards.
func TestAnImportHasAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "do-spoil {dir} {file}", ""))
	events := someEvents(1 << 20)
	if _, err := p.Import(t.Context(), events, CommandOptions{}); err != nil || !bytes.Equal(events, someEvents(1<<20)) {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(filepath.Join(p.root, "*.ndjson")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
}

// TestACommandMovesWithWhatItsFolderHolds, whoever writes there.
func TestACommandMovesWithWhatItsFolderHolds(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "do-hang {dir}", ""))
	c := command{}
	if c.moved(p) {
		t.Error("nothing is there")
	}
	if err := os.WriteFile(filepath.Join(p.Dir(), "events"), make([]byte, 1<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	if !c.moved(p) || c.moved(p) {
		t.Error("what was written once is progress once")
	}
}

func TestACommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "do-hang {dir}", ""))
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := p.Import(ctx, someEvents(100), CommandOptions{}); err == nil || err.Error() != "enough" {
		t.Errorf("%v", err)
	}
	if len(p.helpers) != 0 {
		t.Error("it is still counted as at work")
	}
}

func TestWhatACommandLeavesRunningIsEnded(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "do-leave {dir}", ""))
	if _, err := p.Import(t.Context(), someEvents(100), CommandOptions{}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(p.Dir(), "left"))
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := strconv.Atoi(string(text))
	eventually(t, "what it left behind has ended", func() bool {
		r, ok := readProcess(pid)
		return !ok || r.zombie
	})
}

func TestCleanupEndsACommandAtWork(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "do-hang {dir}", ""))
	ended := make(chan error)
	go func() {
		_, err := p.Import(context.Background(), someEvents(100), CommandOptions{})
		ended <- err
	}()
	eventually(t, "the command is at work", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		for h := range p.helpers {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.running()
		}
		return false
	})
	if _, err := p.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "still works on its data") {
		t.Errorf("restarted: %v", err)
	}
	if err := p.Cleanup(); err != nil || exists(p.root) {
		t.Errorf("its folder is still there: %v", err)
	}
	if err := <-ended; err == nil {
		t.Error("a command that was killed has succeeded")
	}
}

func TestASyncIsToldWhereAndWhichWay(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "", "do-words {dir} {url} --dir {direction}"))
	const address = "ws://127.0.0.1:1/{dir};$(x)"
	done, err := p.Sync(t.Context(), address, Both, CommandOptions{})
	if err != nil {
		t.Fatal(err)
	}
	words, _ := os.ReadFile(filepath.Join(p.Dir(), "words"))
	if want := "do-words\n" + p.Dir() + "\n" + address + "\n--dir\nboth"; string(words) != want {
		t.Errorf("%q, want %q", words, want)
	}
	if len(done.LogTail) != 1 || done.LogTail[0] != "with {url}" {
		t.Errorf("log %q", done.LogTail)
	}
	for _, bad := range []string{"http://127.0.0.1:1", "--config", "ws://", "127.0.0.1:80"} {
		if _, err := p.Sync(t.Context(), bad, Down, CommandOptions{}); err == nil || !strings.Contains(err.Error(), "ws://host:port") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := p.Import(t.Context(), someEvents(10), CommandOptions{}); err == nil || !strings.Contains(err.Error(), "names no import command") {
		t.Errorf("an import without a command: %v", err)
	}
}

func TestTheFolderOfACommandMustBeOne(t *testing.T) {
	t.Parallel()
	p := prepareHelper(t, commandDefinition(t, "do-take {dir}", ""))
	if err := os.RemoveAll(p.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Import(t.Context(), someEvents(10), CommandOptions{}); err == nil || !strings.Contains(err.Error(), "folder is gone") {
		t.Errorf("%v", err)
	}
	if err := os.Symlink(t.TempDir(), p.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Import(t.Context(), someEvents(10), CommandOptions{}); err == nil || !strings.Contains(err.Error(), "no longer a folder") {
		t.Errorf("%v", err)
	}
}
