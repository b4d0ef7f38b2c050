package relays

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/kballard/go-shellquote"
	"golang.org/x/sys/unix"
)

// hide boots a relay that leaves a hermit behind, and returns the hermit's id. holding has it keep
// a file of the relay's folder open.
func hide(t *testing.T, holding bool) (*Process, int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pid")
	template := "ESCAPED=" + shellquote.Join(file) + " " + helperTemplate("hides")
	if holding {
		template = "HOLDS=1 " + template
	}
	d, err := FromTemplate("hides", template)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Cleanup() })
	pid := escaped(t, file)
	r, ok := readProcess(pid)
	if !ok || r.zombie {
		t.Fatal("the hermit does not run: nothing is tested")
	}
	if bytes.Contains(environmentOf(pid), []byte(p.family.mark)) || r.pgid == p.family.group { // its parents may have been seen, on a slow machine
		t.Fatal("the hermit can be told by its environment or its group: nothing is tested")
	}
	return p, pid
}

func runs(pid int) bool {
	r, ok := readProcess(pid)
	return ok && !r.zombie
}

// The tests of hermits are not parallel: with other relays about, one without a trace may be
// anybody's.

func TestADaemonWithoutATraceIsEndedWithItsRelay(t *testing.T) {
	for name, end := range map[string]func(*Process) error{
		"Stop":    func(p *Process) error { return p.Stop(context.Background()) },
		"Kill":    func(p *Process) error { p.Kill(); <-p.Done(); return nil },
		"Cleanup": (*Process).Cleanup,
		"crash": func(p *Process) error {
			_ = syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL)
			<-p.Done()
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, pid := hide(t, false)
			if err := end(p); err != nil {
				t.Error(err)
			}
			if r, ok := readProcess(pid); ok {
				t.Errorf("the hermit is still there, as a zombie: %v", r.zombie)
			}
		})
	}
}

func TestADaemonBelongsToTheRelayWhoseFilesItHolds(t *testing.T) {
	a, ofA := hide(t, true)
	b, ofB := hide(t, true)
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if runs(ofA) || !runs(ofB) {
		t.Errorf("after the first relay's end: its hermit runs: %v, the other's: %v", runs(ofA), runs(ofB))
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if runs(ofB) {
		t.Error("the second relay's hermit runs on")
	}
}

func TestADaemonOfNobodyKnowsWhomEndsWithTheLastRelay(t *testing.T) {
	a, ofA := hide(t, false)
	b, ofB := hide(t, false)
	if err := a.Stop(t.Context()); err != nil { // which was there when either hermit began
		t.Error(err)
	}
	if !runs(ofB) {
		t.Error("a process that may be of a relay that runs was ended")
	}
	if err := b.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if runs(ofA) || runs(ofB) {
		t.Errorf("left running: %v, %v", runs(ofA), runs(ofB))
	}
	// Two that end at once must not each leave it to the other.
	for range 5 {
		a, ofA := hide(t, false)
		b, ofB := hide(t, false)
		a.Kill()
		b.Kill()
		<-a.Done()
		<-b.Done()
		if runs(ofA) || runs(ofB) {
			t.Errorf("left running: %v, %v", runs(ofA), runs(ofB))
		}
	}
}

func TestADaemonThatIsOlderThanARelayIsNotOfIt(t *testing.T) {
	a, ofA := hide(t, false)
	b := startHelper(t, "good", Settings{})
	r, _ := readProcess(ofA)
	session, err := unix.Getsid(0)
	if err != nil {
		t.Fatal(err)
	}
	if r.started >= b.family.since {
		t.Fatalf("the hermit is not older: %d, %d", r.started, b.family.since)
	}
	kin.Lock()
	ours, _ := a.family.owns(r, session)
	theirs, _ := b.family.owns(r, session)
	kin.Unlock()
	if !ours || theirs {
		t.Errorf("the relay that left it owns it: %v, the younger one: %v", ours, theirs)
	}
}

// What other code of this program launches is neither killed nor waited for.
func TestChildrenThatWereLaunchedOtherwiseAreLeftAlone(t *testing.T) {
	p, _ := hide(t, false)
	stays := exec.Command(os.Args[0])
	stays.Env = append(os.Environ(), "RELAYS_HELPER=deaf")
	ends := exec.Command(os.Args[0])
	ends.Env = append(os.Environ(), "RELAYS_HELPER=exit3")
	for _, cmd := range []*exec.Cmd{stays, ends} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a child has ended and waits to be reaped", func() bool {
		r, ok := readProcess(ends.Process.Pid)
		return ok && r.zombie
	})
	p.family.reap()
	if err := p.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	var status *exec.ExitError
	if err := ends.Wait(); !errors.As(err, &status) || status.ExitCode() != 3 {
		t.Errorf("its end was taken from who waits for it: %v", err)
	}
	if !runs(stays.Process.Pid) {
		t.Error("it was killed")
	}
	_ = stays.Process.Kill()
	_ = stays.Wait()
}

func TestOrphansThatEndAreReapedWhileTheRelayRuns(t *testing.T) {
	dir := t.TempDir()
	d, err := FromTemplate("litters", "ESCAPED="+shellquote.Join(dir)+" "+helperTemplate("litters"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Cleanup()
	for n := range 20 {
		pid := escaped(t, filepath.Join(dir, fmt.Sprint(n)))
		eventually(t, "an orphan that ended is reaped", func() bool {
			_, there := readProcess(pid)
			return !there
		})
	}
}

func TestWhatCannotBeEndedIsNamed(t *testing.T) {
	for name, end := range map[string]func(*Process) error{
		"Stop":    func(p *Process) error { return p.Stop(context.Background()) },
		"Cleanup": (*Process).Cleanup,
		"KillAll": func(*Process) error { return KillAll() },
	} {
		t.Run(name, func(t *testing.T) {
			p, pid := hide(t, false)
			spared.Store(pid, true)
			err := end(p)
			spared.Delete(pid)
			defer func() { // it is nobody's any more
				_ = syscall.Kill(pid, syscall.SIGKILL)
				_, _ = syscall.Wait4(pid, nil, 0, nil)
			}()
			var left *LeftoverError
			if !errors.As(err, &left) || len(left.Processes) != 1 || left.Processes[0].PID != pid || !strings.HasPrefix(filepath.Base(os.Args[0]), left.Processes[0].Command) {
				t.Fatalf("%#v", err)
			}
			if want := fmt.Sprintf("could not be ended, and run on: process %d (%s)", pid, left.Processes[0].Command); left.Error() != want {
				t.Errorf("says %q", left.Error())
			}
			if err := p.Cleanup(); err != nil {
				t.Errorf("told twice: %v", err)
			}
		})
	}
}
