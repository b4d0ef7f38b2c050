package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

// The test binary is the relay when this is set, so that tests can kill a real process.
const asRelay = "REFRELAY_TEST_AS_RELAY"

func TestMain(m *testing.M) {
	if os.Getenv(asRelay) != "" {
		main()
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each process under the race detector waits a second before its end
	os.Exit(m.Run())
}

// process is a relay in a process of its own.
type process struct {
	cmd  *exec.Cmd
	url  string
	line string
}

func start(t *testing.T, args ...string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = append(os.Environ(), asRelay+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the relay said %q: %v", line, err)
	}
	_, rest, _ := strings.Cut(line, "listening on ")
	return &process{cmd: cmd, url: strings.Fields(rest)[0], line: line}
}

func (p *process) dial(t *testing.T) *wire.Conn {
	t.Helper()
	conn, err := wire.Dial(context.Background(), p.url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn.WatchUseful(time.Minute)
	t.Cleanup(conn.Abort)
	return conn
}

// ids asks for everything.
func (p *process) ids(t *testing.T) map[[32]byte]bool {
	t.Helper()
	conn := p.dial(t)
	conn.Send([]byte(`["REQ","all",{}]`))
	ids := map[[32]byte]bool{}
	for {
		frame, _, err := conn.Read()
		if err != nil {
			t.Fatal(err)
		}
		var m wire.Message
		switch wire.Parse(frame, &m); m.Type {
		case wire.Event:
			ids[m.ID] = true
		case wire.EOSE:
			return ids
		}
	}
}

func event(i int) []byte {
	e := corpus.Event{PubKey: corpus.PubKey{1, byte(i % 50)}, CreatedAt: int64(1000 + i*7919%5000), Kind: 1, Content: strings.Repeat(fmt.Sprint(i), 40),
		Tags: []corpus.Tag{{"t", fmt.Sprint(i % 7)}, {"p", corpus.PubKey{2, byte(i % 9)}.String()}}}
	e.ID = e.Hash()
	return e.AppendJSON(nil)
}

// What was answered with OK before kill -9 must be there when the store is opened again.
func TestAcknowledgedEventsSurviveAKill(t *testing.T) {
	for _, store := range []string{"bolt", "sqlite"} {
		for _, durability := range []string{"commit", "batch", "none"} {
			t.Run(store+" "+durability, func(t *testing.T) {
				dir := t.TempDir()
				args := []string{"--store", store, "--dir", dir, "--durability", durability, "--no-verify"}
				p := start(t, args...)
				var mu sync.Mutex
				acknowledged := map[[32]byte]bool{}
				var publishing sync.WaitGroup
				conns := []*wire.Conn{p.dial(t), p.dial(t), p.dial(t)} // before the first can bring the end about
				for c, conn := range conns {
					publishing.Go(func() {
						for i := c; i < 200_000; i += len(conns) {
							if conn.SendEvent(event(i)) != nil {
								return
							}
						}
					})
					publishing.Go(func() {
						for {
							frame, _, err := conn.Read()
							if err != nil {
								return
							}
							var m wire.Message
							if wire.Parse(frame, &m); m.Type == wire.OK && m.Accepted {
								mu.Lock()
								acknowledged[m.ID] = true
								if len(acknowledged) == 1500 {
									p.cmd.Process.Kill()
								}
								mu.Unlock()
							}
						}
					})
				}
				publishing.Wait()
				p.cmd.Wait()
				if len(acknowledged) < 1500 {
					t.Fatalf("only %d events acknowledged", len(acknowledged))
				}
				p = start(t, args...)
				stored := p.ids(t)
				for id := range acknowledged {
					if !stored[id] {
						t.Fatalf("acknowledged event %x is missing; %d acknowledged, %d stored", id, len(acknowledged), len(stored))
					}
				}
			})
		}
	}
}

func TestSIGTERMStopsGracefully(t *testing.T) {
	for _, store := range []string{"memory", "bolt", "sqlite", "null"} {
		t.Run(store, func(t *testing.T) {
			dir := t.TempDir()
			p := start(t, "--store", store, "--dir", dir, "--no-verify")
			conn := p.dial(t)
			for i := range 500 {
				conn.SendEvent(event(i))
			}
			if _, _, err := conn.Read(); err != nil {
				t.Fatal(err)
			}
			p.cmd.Process.Signal(syscall.SIGTERM)
			answered := 1
			for {
				frame, _, err := conn.Read()
				if err != nil {
					break
				}
				if bytes.Contains(frame, []byte(`true`)) {
					answered++
				}
			}
			if err := p.cmd.Wait(); err != nil {
				t.Errorf("the relay ended with %v", err)
			}
			if store == "sqlite" {
				if _, err := os.Stat(dir + "/events.sqlite-wal"); err == nil {
					t.Error("the write-ahead log was left behind")
				}
			}
			if store == "bolt" || store == "sqlite" {
				p = start(t, "--store", store, "--dir", dir)
				if n := len(p.ids(t)); n != answered {
					t.Errorf("%d events stored, %d answered", n, answered)
				}
			}
		})
	}
}

func TestUsage(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	file := t.TempDir() + "/file"
	os.WriteFile(file, nil, 0o600)
	for _, test := range []struct {
		name, args, want string
		code             int
	}{
		{"help", "--help", "--durability", 0},
		{"version", "--version", "refrelay 1", 0},
		{"unknown flag", "--frobnicate", "unknown flag: --frobnicate", 2},
		{"argument", "serve", `unexpected argument "serve"`, 2},
		{"help of a verb", "import --help", "refrelay import [FILE…] [flags]", 0},
		{"verbs in the help", "--help", "Write a store's events to standard output", 0},
		{"unknown flag of a verb", "export --frobnicate", "refrelay export: unknown flag: --frobnicate", 2},
		{"import without a directory", "import", "--store bolt needs --dir", 2},
		{"import into memory", "import --store memory", `--store "memory" is none of bolt, sqlite`, 2},
		{"import of nothing there", "import --dir " + file + ".store " + file + ".missing", "no such file", 1},
		{"bad limit of an import", "import --dir x --max-event-bytes 0", "give a number from 1", 2},
		{"export of nothing there", "export --dir " + file + ".missing", "no store to export", 1},
		{"export to a file", "export --dir x y", `unexpected argument "y"`, 2},
		{"sync without an address", "sync --dir x", "give the other relay's address", 2},
		{"sync with what is no relay", "sync --dir x http://127.0.0.1", "ws://host:port or wss://host", 2},
		{"sync sideways", "sync --dir x --direction left ws://127.0.0.1:1", `--direction "left" is none of down, up, both`, 2},
		{"sync of nothing at a time", "sync --dir x --batch 0 ws://127.0.0.1:1", "must be above 0", 2},
		{"unknown store", "--store paper", `--store "paper"`, 2},
		{"unknown durability", "--durability some", `--durability "some"`, 2},
		{"no directory", "--store bolt", "--store bolt needs --dir", 2},
		{"bad address", "--listen here", `--listen "here"`, 2},
		{"port that there is none of", "--listen 127.0.0.1:99999", "there is no port 99999", 2},
		{"bad limit", "--max-message-bytes 3", "--max-message-bytes 3", 2},
		{"faults are for tests", "--help", "for tests only", 0},
		{"unknown fault", "--fault lie", `--fault "lie" is none of ack-without-store:RATE`, 2},
		{"fault without its argument", "--fault drop-results", `"drop-results" needs an argument: drop-results:RATE`, 2},
		{"fault with an argument too many", "--fault wrong-order:1", "wrong-order takes no argument", 2},
		{"fault given twice", "--fault slow-ok:1 --fault slow-ok:2", "slow-ok is given twice", 2},
		{"rate of more than all", "--fault ack-without-store:1.5", `"ack-without-store:1.5": give RATE as`, 2},
		{"rate that is no number", "--fault drop-results:NaN", "give RATE as", 2},
		{"throttle without its unit", "--fault notice-throttle:5", "as in 100/s", 2},
		{"slowness that is none", "--fault slow-ok:0", "give MS as", 2},
		{"death before the first event", "--fault die-after:0", "give N as", 2},
		{"pending of nothing", "--fault kill-pending:0", "give MB as", 2},
		{"fault of the null store", "--store null --fault wrong-order", "--store null", 2},
		{"negative delay", "--delay -1s", "--delay -1s", 2},
		{"port in use", "--listen " + taken.Addr().String(), "address already in use", 1},
		{"directory is a file", "--listen 127.0.0.1:0 --store bolt --dir " + file, "directory", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			var out bytes.Buffer
			code := run(ctx, nil, &out, &out, strings.Fields(test.args))
			if code != test.code || !strings.Contains(out.String(), test.want) {
				t.Errorf("code %d, want %d; output %q, want %q in it", code, test.code, out.String(), test.want)
			}
		})
	}
}

func TestTheLineSaysWhereAndHow(t *testing.T) {
	p := start(t, "--store", "bolt", "--dir", t.TempDir(), "--durability", "batch")
	for _, want := range []string{"listening on ws://127.0.0.1:", "store bolt", "durability batch", corpus.Verifier} {
		if !strings.Contains(p.line, want) {
			t.Errorf("%q is not in %q", want, p.line)
		}
	}
}
