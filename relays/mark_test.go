package relays

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kballard/go-shellquote"
)

// escaped returns the id that a process which left its group wrote into a file, once it is there.
func escaped(t *testing.T, file string) int {
	t.Helper()
	pid := 0
	eventually(t, "a process has left its group", func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func assertEnded(t *testing.T, pid int) {
	t.Helper()
	if r, ok := readProcess(pid); ok && !r.zombie {
		t.Errorf("process %d, which left its group, still runs", pid)
		if self, err := os.FindProcess(pid); err == nil {
			_ = self.Kill()
		}
	}
}

// launcherTemplate starts a sleeper in a session of its own, an orphan at once, and then becomes
// the relay.
func launcherTemplate(file, mode string) string {
	sleeper := "echo $$ > " + shellquote.Join(file) + "; exec sleep 543"
	script := "(setsid sh -c " + shellquote.Join(sleeper) + " &) ; exec \"$0\" \"$@\""
	return "RELAYS_HELPER=" + mode + " sh -c " + shellquote.Join(script) + " " + shellquote.Join(os.Args[0]) + " --port {port} --db {dir}"
}

func TestNothingThatLeftItsGroupIsLeftRunning(t *testing.T) {
	if _, err := exec.LookPath("setsid"); err != nil {
		t.Skip("there is no setsid here")
	}
	boot := func(t *testing.T, mode string) (*Process, int, error) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "pid")
		d, err := FromTemplate("launcher", launcherTemplate(file, mode))
		if err != nil {
			t.Fatal(err)
		}
		d.ReadyTimeout = Duration(15 * time.Second)
		if mode == "deaf" {
			d.ReadyTimeout = Duration(500 * time.Millisecond)
		}
		p, err := Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()})
		if p != nil {
			t.Cleanup(func() { _ = p.Cleanup() })
		}
		return p, escaped(t, file), err
	}
	ends := map[string]func(*Process){
		"Stop":    func(p *Process) { _ = p.Stop(context.Background()) },
		"Kill":    func(p *Process) { p.Kill(); <-p.Done() },
		"Cleanup": func(p *Process) { _ = p.Cleanup() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, pid, err := boot(t, "good")
			if err != nil {
				t.Fatal(err)
			}
			if r, ok := readProcess(pid); !ok || r.zombie {
				t.Fatal("the orphan does not run: nothing is tested")
			}
			end(p)
			assertEnded(t, pid)
		})
	}
	t.Run("failed start", func(t *testing.T) {
		t.Parallel()
		_, pid, err := boot(t, "deaf")
		if failed := (*StartError)(nil); !errors.As(err, &failed) || failed.Cause != NeverListened {
			t.Errorf("error %v", err)
		}
		assertEnded(t, pid)
	})
	t.Run("daemon", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "pid")
		d, err := FromTemplate("daemon", "ESCAPED="+shellquote.Join(file)+" "+helperTemplate("daemon"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()})
		if failed := (*StartError)(nil); !errors.As(err, &failed) || failed.Cause != EarlyExit || !strings.Contains(err.Error(), "foreground") {
			t.Errorf("error %v", err)
		}
		assertEnded(t, escaped(t, file))
	})
	t.Run("version", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "pid")
		program := filepath.Join(t.TempDir(), "relay")
		script := "#!/bin/sh\n(setsid sh -c " + shellquote.Join("echo $$ > "+shellquote.Join(file)+"; exec sleep 543 >/dev/null 2>&1") + " &)\nwhile ! [ -s " +
			shellquote.Join(file) + " ]; do sleep 0.01; done\necho 1.2.3\n"
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		d := Definition{Name: "x", VersionRule: VersionRule{Command: "{program} --version"}}
		if v := d.Version(t.Context(), program); v != "1.2.3" {
			t.Errorf("version %q", v)
		}
		assertEnded(t, escaped(t, file))
	})
}

func TestSweepLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	bystander := exec.Command(os.Args[0])
	bystander.Env = append(os.Environ(), "RELAYS_HELPER=deaf", newMark())
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = bystander.Process.Kill(); _ = bystander.Wait() }()
	p := startHelper(t, "good", Settings{})
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if r, ok := readProcess(bystander.Process.Pid); !ok || r.zombie {
		t.Error("a process of another boot was killed")
	}
}

// BenchmarkEnd is what an end costs on top, where nothing has escaped.
func BenchmarkEnd(b *testing.B) {
	self, _ := readProcess(os.Getpid())
	for b.Loop() {
		f := &family{mark: newMark(), since: self.started}
		f.end()
	}
}
