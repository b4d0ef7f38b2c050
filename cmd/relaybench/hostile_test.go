package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/corpus/scan"
)

// hostileMode makes the test program a relay that misbehaves: real processes and real sockets, so
// that what is tested is what a user would meet.
const hostileMode = "RELAYBENCH_TEST_RELAY"

// programMode makes the test program relaybench itself.
const programMode = "RELAYBENCH_TEST_PROGRAM"

// portsMode makes relaybench hold all local ports but a few.
const portsMode = "RELAYBENCH_TEST_PORTS"

func holdPorts() {
	var held []net.Listener
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			break
		}
		held = append(held, l)
	}
	heldPorts = held
}

var heldPorts []net.Listener // so that none is collected

// What the tests of this package share: the reference relay, built once, and the corpora.
var refrelayProgram, corpusCache string

func TestMain(m *testing.M) {
	if mode := os.Getenv(hostileMode); mode != "" {
		os.Exit(hostileRelay(mode, os.Args[1]))
	}
	if os.Getenv(programMode) != "" {
		if os.Getenv(portsMode) != "" {
			holdPorts()
		}
		main()
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each process under the race detector waits a second before its end
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == fmt.Sprint(runtime.GOMAXPROCS(0)) { // what go test sets by default
		flag.Set("test.parallel", fmt.Sprint(2*runtime.GOMAXPROCS(0))) // most of what happens here is waiting
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "relaybench-test-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		refrelayProgram, corpusCache = filepath.Join(dir, "refrelay"), filepath.Join(dir, "cache")
		build := exec.Command("go", "build", "-o", refrelayProgram, "relaybench/cmd/refrelay")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building the reference relay: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// hostile returns the --relay argument for a relay that misbehaves.
func hostile(t *testing.T, name, mode string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("--relay=%s=%s=%s '%s' {port}", name, hostileMode, mode, self)
}

var memoryEaten [][]byte

// hostileRelay serves on the port until it is stopped. Before it misbehaves it is a relay that
// answers, so that it becomes ready.
func hostileRelay(mode, port string) int {
	if mode == "exits" {
		fmt.Fprintln(os.Stderr, "cannot open the database: \x1b[31mno such table\x1b[0m")
		return 3
	}
	if mode == "deaf" {
		time.Sleep(time.Hour)
	}
	if mode == "stubborn" {
		signal.Ignore(syscall.SIGTERM)
	}
	if strings.HasPrefix(mode, "neg-") {
		return negLiar(mode, port)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var events atomic.Int64
	err = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		conn.SetReadLimit(1 << 20)
		ctx := context.Background()
		say := func(format string, args ...any) {
			conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, format, args...))
		}
		for {
			if mode == "mute" {
				time.Sleep(time.Hour)
			}
			_, frame, err := conn.Read(ctx)
			if err != nil {
				return
			}
			parts, err := scan.Elements(frame)
			if err != nil || len(parts) < 2 {
				continue
			}
			switch string(parts[0]) {
			case `"REQ"`:
				if mode == "vanishes" && events.Load() > 0 {
					say(`["EVENT",%s,{"id":"%064x"}]`, parts[1], 1)
					syscall.Kill(os.Getpid(), syscall.SIGKILL)
				}
				if mode == "garbage" && events.Load() > 0 {
					say("[\"EVENT\",%s,{\"id\":\"\x01\"}", parts[1])
					say("]]]]{{{{ \x1b[2J")
				}
				for mode == "endless" && events.Load() > 0 {
					if conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `["EVENT",%s,{"id":"%064x"}]`, parts[1], events.Add(1))) != nil {
						return
					}
				}
				for mode == "chatters" && events.Load() > 0 {
					if conn.Write(ctx, websocket.MessageText, []byte(`["NOTICE","one moment"]`)) != nil {
						return
					}
					time.Sleep(50 * time.Millisecond)
				}
				say(`["EOSE",%s]`, parts[1])
			case `"EVENT"`:
				e, err := corpus.ParseEvent(parts[1])
				if err != nil {
					continue
				}
				switch n := events.Add(1); {
				case mode == "dies" && n == 150:
					fmt.Fprintln(os.Stderr, "about to be killed")
					syscall.Kill(os.Getpid(), syscall.SIGKILL)
				case mode == "eats" && n == 150:
					for block := []byte(nil); ; memoryEaten = append(memoryEaten, block) {
						block = make([]byte, 1<<20)
						for i := range block {
							block[i] = 1
						}
					}
				case mode == "refuses":
					say(`["OK","%s",false,"blocked: \u001b[31mnobody \u202ewrites here"]`, e.ID)
					continue
				case mode == "stops" && n > 150:
					time.Sleep(time.Hour) // reads no more
				case mode == "hangsup" && n%100 == 0:
					conn.Close(websocket.StatusPolicyViolation, "that was \x1b[5menough")
					return
				}
				say(`["OK","%s",true,""]`, e.ID)
			}
		}
	}))
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// relaybench runs the program with the reference relay in reach, a cache that the tests share and
// nothing of this machine's relays.
func relaybench(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return relaybenchWith(t, nil, args...)
}

// relaybenchWith is relaybench with some variables of its environment set.
func relaybenchWith(t *testing.T, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return relaybenchContext(t, t.Context(), env, args...)
}

// relaybenchContext is relaybenchWith, and interrupts the program as Ctrl-C does when ctx ends. The
// program is a process of its own, so that tests can run side by side: in one process the end of
// one run would end the other's relays.
func relaybenchContext(t *testing.T, ctx context.Context, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, ctx, env, args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code = cmd.ProcessState.ExitCode(); strings.Contains(errOut.String(), "DATA RACE") || code < 0 {
		t.Errorf("relaybench %q: %v\n%s", args, cmd.ProcessState, errOut.String())
	}
	return code, out.String(), errOut.String()
}

// program is what relaybenchContext runs.
func program(t *testing.T, ctx context.Context, env []string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Env = append(os.Environ(), programMode+"=1", "REFRELAY_BIN="+refrelayProgram, "PATH=/usr/bin:/bin", "RELAYBENCH_CACHE="+corpusCache)
	cmd.Env = append(cmd.Env, env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	return cmd
}

// honest is the --relay argument for a relay that does all as it should, and waits for no disk: on
// a machine whose disk is busy it must not seem to stall beside relays whose deadlines are short.
// withHonest leaves the others out.
func honest() string { return "--relay=honest=" + refrelayCommand("") }

var withHonest = []string{"SKIP_REF=1"}

// withoutSQLite leaves one form of the reference relay out, where a second relay would prove
// nothing.
var withoutSQLite = []string{"SKIP_REF_SQLITE=1"}
