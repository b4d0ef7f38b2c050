package relays

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"relaybench/relays/machine"
	"relaybench/results"
)

func TestStartIsReadyWhenTheChildAnswers(t *testing.T) {
	for _, mode := range []string{"good", "chatty"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			p := startHelper(t, mode, Settings{})
			if refusal, err := probe(t.Context(), p.URL(), 10*time.Second); refusal != "" || err != nil {
				t.Errorf("probing a ready relay: %q, %v", refusal, err)
			}
			if err := p.Err(); err != nil {
				t.Errorf("Err of a running relay: %v", err)
			}
			if !strings.Contains(p.Dir(), " ") || !exists(p.Dir()) {
				t.Errorf("folder %q", p.Dir())
			}
		})
	}
}

func TestStartTellsFailuresApart(t *testing.T) {
	cases := []struct {
		mode, command string
		ready         time.Duration
		cause         Cause
		detail        []string
		lastLine      string
	}{
		{mode: "deaf", ready: 400 * time.Millisecond, cause: NeverListened, detail: []string{"nothing listened", "400ms"}},
		{mode: "mute", ready: 4 * time.Second, cause: NoAnswer, detail: []string{"listens but did not answer"}},
		{mode: "notices", ready: 4 * time.Second, cause: NoAnswer, detail: []string{"no EOSE", "try again later"}},
		{mode: "binary", ready: 4 * time.Second, cause: NoAnswer, detail: []string{"1 frame of EOSE", "binary"}},
		{mode: "oversized", cause: NoAnswer, detail: []string{"over the read limit"}},
		{mode: "refuses", cause: NoAnswer, detail: []string{"refuses REQ", "auth-required: members only"}},
		{mode: "exit3", cause: EarlyExit, detail: []string{"exited with status 3"}, lastLine: "cannot open the store"},
		{mode: "exit0", cause: EarlyExit, detail: []string{"exited with status 0", "foreground"}},
		{mode: "forbids", cause: NoAnswer, detail: []string{"refuses the WebSocket handshake", "HTTP status 403"}},
		{mode: "redirects", cause: NoAnswer, detail: []string{"refuses the WebSocket handshake", "HTTP status 302"}},
		{mode: "broken", cause: NoAnswer, detail: []string{"broken WebSocket handshake: the Sec-WebSocket-Accept"}},
		{mode: "killed", cause: Crash, detail: []string{"crashed", "killed by signal: killed"}},
		{mode: "segv", command: "sh -c 'kill -SEGV $$' {port}", cause: Crash, detail: []string{"segmentation"}},
		{mode: "background", command: "sh -c 'sleep 100 & exit 0' {port}", cause: EarlyExit, detail: []string{"foreground"}},
	}
	for _, c := range cases {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			work := t.TempDir()
			d, err := FromTemplate(c.mode, cmp.Or(c.command, helperTemplate(c.mode)))
			if err != nil {
				t.Fatal(err)
			}
			d.ReadyTimeout = Duration(cmp.Or(c.ready, 15*time.Second))
			p, err := Start(t.Context(), &d, "", Settings{WorkDir: work})
			if p != nil {
				t.Fatal("a process was returned")
			}
			var failed *StartError
			if !errors.As(err, &failed) {
				t.Fatalf("error %v (%T)", err, err)
			}
			if failed.Cause != c.cause {
				t.Errorf("cause %q: %v", failed.Cause, err)
			}
			if strings.Contains(err.Error(), "relay "+c.mode) {
				t.Errorf("the name, which whoever tells of it says, is in %q", err)
			}
			for _, part := range c.detail {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in %q", part, err)
				}
			}
			if c.lastLine != "" {
				if n := len(failed.LogTail); n != 20 || failed.LogTail[n-1] != c.lastLine {
					t.Errorf("log tail %q", failed.LogTail)
				}
			}
			if left, _ := os.ReadDir(work); len(left) != 0 {
				t.Errorf("left in the work folder: %v", left)
			}
		})
	}
}

// Who meets a limit of the shell is ended by a signal that says so.
func TestStartTellsWhatTheMachineIsShortOf(t *testing.T) {
	for _, c := range []struct{ command, want string }{
		{"sh -c 'ulimit -f 1; exec dd if=/dev/zero of=big bs=1024 count=4096' {port}", results.ShortageFileSize},
		{"sh -c 'ulimit -S -t 1; exec sh -c \"while :; do :; done\"' {port}", results.ShortageCPUTime},
		{"sh -c 'exit 3' {port}", ""},
	} {
		d, err := FromTemplate("short", c.command)
		if err != nil {
			t.Fatal(err)
		}
		var failed *StartError
		if _, err = Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()}); !errors.As(err, &failed) || failed.Shortage != c.want || Shortage(err) != c.want {
			t.Errorf("%s: %v, want it short of %q", c.command, err, c.want)
		}
	}
}

func TestStartTellsAThiefOfThePort(t *testing.T) {
	thieves := 0
	portPicked = func(port int) {
		thieves++
		thief := exec.Command(os.Args[0], "--port", strconv.Itoa(port))
		thief.Env = append(os.Environ(), "RELAYS_HELPER=thief")
		if err := thief.Start(); err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = thief.Process.Kill(); _ = thief.Wait() })
		eventually(t, "the thief listens", func() bool { return machine.ListeningHost(port) != "" })
	}
	defer func() { portPicked = nil }()
	for _, mode := range []string{"deaf", "good"} { // the second cannot bind and exits
		thieves = 0
		_, err := Start(t.Context(), helperDefinition(t, mode), "", Settings{WorkDir: t.TempDir()})
		var failed *StartError
		if !errors.As(err, &failed) || failed.Cause != PortTaken {
			t.Fatalf("%s: %v", mode, err)
		}
		if thieves != attempts {
			t.Errorf("%s: %d attempts, want %d", mode, thieves, attempts)
		}
	}
	// A thief that comes once is outlived.
	portPicked = func(port int) {
		if thieves++; thieves == 1 {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
			if err != nil {
				t.Error(err)
				return
			}
			go serveOn(l, eose)
			t.Cleanup(func() { l.Close() })
		}
	}
	thieves = 0
	_ = startHelper(t, "good", Settings{})
	if thieves != 2 {
		t.Errorf("%d boots", thieves)
	}
}

func TestStartEndsWithItsContext(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Start(ctx, helperDefinition(t, "deaf"), "", Settings{WorkDir: work})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	if left, _ := os.ReadDir(work); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestAnExternalRelayIsOnlyConnectedTo(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go serveOn(l, eose)
	d, err := FromTemplate("live", "ws://user:pass@"+l.Addr().String()+"/?token=secret")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), &d, "", Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Disk(); !errors.Is(err, ErrExternal) || !p.External() {
		t.Errorf("Disk: %v", err)
	}
	if _, err := p.Restart(t.Context()); !errors.Is(err, ErrExternal) {
		t.Errorf("Restart: %v", err)
	}
	if _, err := p.Usage(); !errors.Is(err, ErrExternal) {
		t.Errorf("Usage: %v", err)
	}
	p.Kill()
	if err := errors.Join(p.Stop(t.Context()), p.Cleanup(), p.Err()); err != nil {
		t.Error(err)
	}
	if r := p.Describe(); r.URL != "ws://"+l.Addr().String()+"/" || len(r.Notes) == 0 || r.Command != "" {
		t.Errorf("described as %+v", r)
	}
	l.Close()
	d.ReadyTimeout = Duration(time.Second)
	if _, err := Start(t.Context(), &d, "", Settings{}); err == nil || strings.Contains(err.Error(), "pass") || strings.Count(err.Error(), "ws://") != 1 || strings.Contains(err.Error(), "connecting") {
		t.Errorf("connecting to nothing: %v", err)
	}
}

func TestARelayThatIsNotReadyAtOnceIsAwaited(t *testing.T) {
	t.Parallel()
	startHelper(t, "late", Settings{})
}
