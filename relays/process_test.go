package relays

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/kballard/go-shellquote"
)

func TestStopEndsTheWholeGroup(t *testing.T) {
	t.Run("grandchild", func(t *testing.T) {
		t.Parallel()
		p := startHelper(t, "family", Settings{})
		text, err := os.ReadFile(filepath.Join(p.Dir(), "grandchild"))
		if err != nil {
			t.Fatal(err)
		}
		pid, _ := strconv.Atoi(string(text))
		if _, ok := readProcess(pid); !ok {
			t.Fatal("the grandchild does not run")
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if r, ok := readProcess(pid); ok && !r.zombie {
			t.Errorf("the grandchild %d still runs", pid)
		}
		if err := p.Err(); err != nil {
			t.Errorf("Err after Stop: %v", err)
		}
		if err := p.Stop(t.Context()); err != nil {
			t.Errorf("second Stop: %v", err)
		}
	})
	t.Run("ignores SIGTERM", func(t *testing.T) {
		t.Parallel()
		p := startHelper(t, "stubborn", Settings{StopGrace: 200 * time.Millisecond})
		told := time.Now()
		err := p.Stop(t.Context())
		var forced *StopError
		if !errors.As(err, &forced) || *forced != (StopError{Signal: "SIGTERM", Grace: 200 * time.Millisecond}) || !errors.Is(err, ErrForced) ||
			err.Error() != "did not end within 200ms of SIGTERM: it had to be killed" {
			t.Errorf("Stop: %v", err)
		}
		if took := time.Since(told); took < 200*time.Millisecond {
			t.Errorf("killed after %v already", took)
		}
		<-p.Done()
		if p.status != "killed by signal: killed" {
			t.Errorf("status %q", p.status)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		t.Parallel()
		p := startHelper(t, "stubborn", Settings{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var forced *StopError
		if err := p.Stop(ctx); !errors.As(err, &forced) || *forced != (StopError{"SIGTERM", 10 * time.Second, true}) || !errors.Is(err, ErrForced) {
			t.Errorf("Stop: %v", err)
		}
	})
	t.Run("the definition's own grace and signal", func(t *testing.T) {
		t.Parallel()
		d := helperDefinition(t, "stubborn")
		d.StopTimeout, d.StopSignal = Duration(100*time.Millisecond), "SIGINT"
		for _, c := range []struct{ settings, want time.Duration }{{0, 100 * time.Millisecond}, {150 * time.Millisecond, 150 * time.Millisecond}} {
			p, err := Start(t.Context(), d, "", Settings{WorkDir: t.TempDir(), StopGrace: c.settings})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Cleanup()
			var forced *StopError
			if err := p.Stop(t.Context()); err != nil && (!errors.As(err, &forced) || *forced != (StopError{Signal: "SIGINT", Grace: c.want})) {
				t.Errorf("Stop: %v", err)
			}
		}
	})
	t.Run("the launcher ends before the relay", func(t *testing.T) {
		t.Parallel()
		d, err := FromTemplate("launcher", `sh -c 'RELAYS_HELPER=tidy "$0" "$@" & wait' `+strings.TrimPrefix(helperTemplate("x"), "RELAYS_HELPER=x "))
		if err != nil {
			t.Fatal(err)
		}
		p, err := Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir(), StopGrace: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Cleanup()
		if err := p.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		if !exists(filepath.Join(p.Dir(), "clean")) {
			t.Error("the relay was not given the time to close its store")
		}
	})
}

func TestErrSaysHowARelayEnded(t *testing.T) {
	t.Parallel()
	p := startHelper(t, "good", Settings{})
	if err := syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if err := p.Err(); err == nil || err.Error() != "killed by signal: killed" {
		t.Errorf("Err: %v", err)
	}
	if tail := p.LogTail(5); len(tail) != 1 || tail[0] != "listening, data in {dir}" {
		t.Errorf("log tail %q", tail)
	}
	if u := usageOf(t, p); u.CPUSeconds <= 0 && u.PeakRSS == 0 {
		t.Errorf("usage of an ended relay: %+v", u)
	}
}

func TestRestartKeepsTheData(t *testing.T) {
	t.Parallel()
	p := startHelper(t, "good", Settings{})
	if _, err := p.Restart(t.Context()); err == nil {
		t.Error("restarted while running")
	}
	if err := os.WriteFile(filepath.Join(p.Dir(), "events"), []byte("kept"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	<-p.Done()
	q, err := p.Restart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cleanup(); err != nil {
		t.Error(err)
	}
	if !exists(filepath.Join(q.Dir(), "events")) {
		t.Error("the data is gone")
	}
	if err := q.Cleanup(); err != nil {
		t.Error(err)
	}
	assertGone(t, q)
}

func TestATemplateWithoutDirRunsInItsFolder(t *testing.T) {
	for _, test := range []struct {
		arguments string
		inside    bool
	}{{" --port {port}", true}, {" --port {port} --db {dir}", false}} {
		t.Chdir(t.TempDir())
		d, err := FromTemplate("mine", "RELAYS_HELPER=settles "+shellquote.Join(os.Args[0])+test.arguments)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		_, err = os.Stat(filepath.Join(p.Dir(), "settled"))
		_, errHere := os.Stat("settled")
		if inside := err == nil && errHere != nil; inside != test.inside {
			t.Errorf("%q: data in the relay's own folder: %t, want %t", test.arguments, inside, test.inside)
		}
		p.Kill()
		if err := p.Cleanup(); err != nil {
			t.Error(err)
		}
	}
}

func TestKillAllLeavesNothing(t *testing.T) {
	// Not parallel: it ends the relays of every test.
	work := t.TempDir()
	var all []*Process
	for range 3 {
		p, err := Start(t.Context(), helperDefinition(t, "stubborn"), "", Settings{WorkDir: work})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	KillAll()
	for _, p := range all {
		assertGone(t, p)
	}
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRelaysDieWithRelaybench(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no parent-death signal on " + runtime.GOOS)
	}
	t.Parallel()
	harness := exec.Command(os.Args[0], "--db", t.TempDir())
	harness.Env = append(os.Environ(), "RELAYS_HELPER=harness")
	out, err := harness.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := harness.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(line)
	}
	if r, ok := readProcess(pid); !ok || r.zombie {
		t.Fatal("the relay does not run")
	}
	_ = harness.Process.Kill()
	_ = harness.Wait()
	eventually(t, "the relay ends after its harness was killed", func() bool {
		r, ok := readProcess(pid)
		return !ok || r.zombie
	})
}

func TestAnEndlessLogIsBounded(t *testing.T) {
	t.Parallel()
	p := startHelper(t, "floods", Settings{KeepData: true})
	eventually(t, "the log is flooded", func() bool {
		p.log.mu.Lock()
		defer p.log.mu.Unlock()
		return p.log.total > logHeadBytes+4*logTailBytes
	})
	p.Kill()
	<-p.Done()
	info, err := os.Stat(p.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(logHeadBytes + logTailBytes + 100); info.Size() > limit || info.Size() < logHeadBytes {
		t.Errorf("the log file has %d bytes, limit %d", info.Size(), limit)
	}
	tail := p.LogTail(20)
	if len(tail) != 20 {
		t.Fatalf("%d lines", len(tail))
	}
	for _, line := range tail {
		if len(line) > logLineBytes {
			t.Errorf("a line of %d bytes", len(line))
		}
	}
	f, err := os.Open(p.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, _ := io.ReadAll(f)
	if !strings.Contains(string(text), "bytes left out]") {
		t.Error("the file does not say that something was left out")
	}
	if err := removeAll(p.root); err != nil {
		t.Error(err)
	}
}

func TestDiskCountsWhatTheRelayStored(t *testing.T) {
	t.Parallel()
	d := helperDefinition(t, "stores")
	d.Files = map[string]string{"conf/relay.conf": strings.Repeat("port {port}\n", 10000)}
	p, err := Start(t.Context(), d, "", Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	disk, err := p.Disk()
	if err != nil {
		t.Fatal(err)
	}
	// One file of 1 MiB with two names, a sparse file of 1 GiB; neither the configuration nor the
	// log.
	if disk.Apparent != 1<<20+1<<30 {
		t.Errorf("apparent %d", disk.Apparent)
	}
	if disk.Allocated < 1<<20 || disk.Allocated > 2<<20 {
		t.Errorf("allocated %d", disk.Allocated)
	}
	if text, err := os.ReadFile(filepath.Join(p.Dir(), "conf", "relay.conf")); err != nil || !strings.HasPrefix(string(text), "port "+strconv.Itoa(p.port)) {
		t.Errorf("rendered file: %v", err)
	}
	if err := p.Cleanup(); err != nil { // a folder in it is read-only
		t.Error(err)
	}
	assertGone(t, p)
}

func TestUsageNeverFalls(t *testing.T) {
	t.Parallel()
	p := startHelper(t, "burner", Settings{})
	if u := usageOf(t, p); u.RSS == 0 || u.OpenFiles == 0 || u.PeakRSS < u.RSS {
		t.Errorf("usage %+v", u)
	}
	var before float64
	burnt := filepath.Join(p.Dir(), "burnt")
	eventually(t, "the child has burnt its CPU time", func() bool {
		done := exists(burnt)
		now := usageOf(t, p).CPUSeconds
		if now < before {
			t.Errorf("CPU seconds fell from %v to %v", before, now)
		}
		before = now
		return done
	})
	if before < 0.39 {
		t.Errorf("%v CPU seconds, of which a child that ended burnt 0.4", before)
	}
	if runtime.GOOS == "linux" && usageOf(t, p).ContextSwitches == 0 {
		t.Error("no context switches")
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if after := usageOf(t, p); after.CPUSeconds < before || after.RSS != 0 || after.PeakRSS == 0 {
		t.Errorf("after the end: %+v", after)
	}
}

func FuzzCleanLine(f *testing.F) {
	for _, s := range []string{"plain", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07rest", "\x1b]0;never ends", "\x1b", "\x1b[", "\xff\xfe", "日本語 \u202e rtl", "a\tb\r", strings.Repeat("é", 400)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		out := cleanLine(line, logLineBytes)
		if len(out) > logLineBytes {
			t.Errorf("%d bytes", len(out))
		}
		for _, r := range out {
			if !unicode.IsGraphic(r) {
				t.Errorf("%U in %q", r, out)
			}
		}
	})
}

func TestAPeakIsOfWhatWasSeenSinceItBegan(t *testing.T) {
	m := &member{reading: reading{pid: 1, rss: 50}}
	early, late := new(Peak), new(Peak)
	tree := &tree{members: map[int]*member{1: m, 2: {reading: reading{pid: 2, rss: 5}}}, peaks: []*Peak{early}}
	tree.sum()
	m.rss, tree.peaks = 10, []*Peak{early, late}
	tree.sum()
	if early.most != 55 || late.most != 15 || tree.last.PeakRSS != 55 {
		t.Errorf("%d, %d, %+v", early.most, late.most, tree.last)
	}
	if new(Peak).Bytes() != 0 {
		t.Error("of a relay that was not launched here nothing is known")
	}
}
