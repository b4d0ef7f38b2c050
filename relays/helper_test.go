package relays

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/kballard/go-shellquote"
)

// The test binary is also every relay of these tests: RELAYS_HELPER says how it behaves.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "hermit" { // it has no environment to say so
		hermit(os.Args[2], os.Args[3], os.Args[4:])
		return
	}
	kill = killUnlessSpared
	if mode := os.Getenv("RELAYS_HELPER"); mode != "" {
		if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "do-") {
			mode = os.Args[1]
			commandHelper(mode)
			return
		}
		helper(mode)
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each process under the race detector waits a second before its end
	os.Exit(m.Run())
}

func helper(mode string) {
	port, dir := flagValue("--port"), flagValue("--db")
	serve := func(answer func(ctx context.Context, c *websocket.Conn, sub string)) {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			fmt.Println("bind:", err)
			os.Exit(1)
		}
		go serveOn(l, answer)
	}
	term := make(chan os.Signal, 1)
	switch mode {
	case "good", "thief":
		signal.Notify(term, syscall.SIGTERM)
		fmt.Println("listening, data in", dir)
		serve(eose)
		<-term
		os.Exit(0)
	case "settles": // keeps its data where it is started
		_ = os.WriteFile("settled", nil, 0o644)
		serve(eose)
	case "chatty": // what a client must put up with before the EOSE
		serve(func(ctx context.Context, c *websocket.Conn, sub string) {
			say(ctx, c, "AUTH", "challenge")
			say(ctx, c, "NOTICE", "welcome")
			say(ctx, c, "EOSE", "somebody else's")
			eose(ctx, c, sub)
		})
	case "refuses":
		serve(func(ctx context.Context, c *websocket.Conn, sub string) {
			say(ctx, c, "CLOSED", sub, "auth-required: members only")
		})
	case "binary": // everything in frames that NIP-01 does not know
		serve(func(ctx context.Context, c *websocket.Conn, sub string) {
			_ = c.Write(ctx, websocket.MessageBinary, []byte(`["EOSE","`+sub+`"]`))
		})
	case "oversized":
		serve(func(ctx context.Context, c *websocket.Conn, sub string) {
			_ = c.Write(ctx, websocket.MessageText, make([]byte, 4<<20+1))
		})
	case "notices":
		serve(func(ctx context.Context, c *websocket.Conn, sub string) { say(ctx, c, "NOTICE", "try again later") })
	case "late": // not ready for a while, and says so
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			os.Exit(1)
		}
		soon := time.Now().Add(refusalTime + 500*time.Millisecond)
		go serveHTTP(l, func(w http.ResponseWriter, r *http.Request) {
			if time.Now().Before(soon) {
				http.Error(w, "starting", http.StatusServiceUnavailable)
				return
			}
			converse(w, r, eose)
		})
	case "forbids", "redirects", "broken":
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			os.Exit(1)
		}
		go serveHTTP(l, func(w http.ResponseWriter, r *http.Request) {
			switch mode {
			case "forbids":
				http.Error(w, "members only", http.StatusForbidden)
			case "redirects":
				http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
			case "broken":
				w.Header().Set("Upgrade", "websocket")
				w.Header().Set("Connection", "Upgrade")
				w.Header().Set("Sec-WebSocket-Accept", "wrong")
				w.WriteHeader(http.StatusSwitchingProtocols)
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			}
		})
	case "mute":
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			os.Exit(1)
		}
		_ = l
	case "deaf":
	case "exit3":
		for i := range 30 {
			fmt.Println("line", i)
		}
		fmt.Println("\x1b[31mcannot open\x1b[0m\a the \x1b]0;title\x07store")
		os.Exit(3)
	case "exit0":
		os.Exit(0)
	case "killed":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		serve(eose)
	case "family": // a grandchild that nobody tells to stop
		grandchild := exec.Command(os.Args[0])
		grandchild.Env = append(os.Environ(), "RELAYS_HELPER=deaf")
		if err := grandchild.Start(); err != nil {
			os.Exit(1)
		}
		_ = os.WriteFile(filepath.Join(dir, "grandchild"), fmt.Append(nil, grandchild.Process.Pid), 0o644)
		serve(eose)
	case "tidy": // closes its store for a while on SIGTERM
		signal.Notify(term, syscall.SIGTERM)
		serve(eose)
		<-term
		time.Sleep(300 * time.Millisecond)
		_ = os.WriteFile(filepath.Join(dir, "clean"), nil, 0o644)
		os.Exit(0)
	case "floods":
		serve(eose)
		line := []byte(strings.Repeat("x", 1000) + "\n")
		for {
			_, _ = os.Stdout.Write(line)
		}
	case "daemon": // leaves its group, its session and its parent behind, as daemons do
		serves := exec.Command(os.Args[0], os.Args[1:]...)
		serves.Env = append(os.Environ(), "RELAYS_HELPER=deaf")
		serves.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := serves.Start(); err != nil {
			os.Exit(1)
		}
		_ = os.WriteFile(os.Getenv("ESCAPED"), fmt.Append(nil, serves.Process.Pid), 0o644)
		os.Exit(0)
	case "hides": // leaves a process behind that has nothing in common with it any more
		args := []string{"hermit", "parent", os.Getenv("ESCAPED")}
		if os.Getenv("HOLDS") != "" {
			args = append(args, filepath.Join(dir, "held"))
		}
		if err := hermitCommand(args...).Run(); err != nil {
			os.Exit(1)
		}
		signal.Notify(term, syscall.SIGTERM)
		serve(eose)
		<-term
		os.Exit(0)
	case "litters": // leaves processes behind that end by themselves
		for n := range 20 {
			if err := hermitCommand("hermit", "brief parent", filepath.Join(os.Getenv("ESCAPED"), fmt.Sprint(n))).Run(); err != nil {
				os.Exit(1)
			}
		}
		serve(eose)
	case "stores":
		signal.Notify(term, syscall.SIGTERM)
		_ = os.MkdirAll(filepath.Join(dir, "sealed"), 0o755)
		_ = os.WriteFile(filepath.Join(dir, "sealed", "events"), make([]byte, 1<<20), 0o644)
		_ = os.Link(filepath.Join(dir, "sealed", "events"), filepath.Join(dir, "again"))
		if f, err := os.Create(filepath.Join(dir, "map")); err == nil {
			_ = f.Truncate(1 << 30)
			f.Close()
		}
		_ = os.Chmod(filepath.Join(dir, "sealed"), 0o500)
		serve(eose)
		<-term
		os.Exit(0)
	case "burner": // its child burns CPU and ends; it says so by a file
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "RELAYS_HELPER=burn")
		serve(eose)
		_ = child.Run()
		_ = os.WriteFile(filepath.Join(dir, "burnt"), nil, 0o644)
	case "burn":
		var use syscall.Rusage
		for use.Utime.Nano() < int64(400*time.Millisecond) {
			for range 1_000_000 {
			}
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use)
		}
		os.Exit(0)
	case "harness": // a relaybench that starts a relay and then hangs
		d, err := FromTemplate("victim", "RELAYS_HELPER=good "+shellquote.Join(os.Args[0])+" --port {port} --db {dir}")
		if err != nil {
			os.Exit(1)
		}
		p, err := Start(context.Background(), &d, "", Settings{WorkDir: dir})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(p.cmd.Process.Pid)
	default:
		fmt.Println("unknown mode", mode)
		os.Exit(2)
	}
	time.Sleep(2 * time.Minute) // a helper that is forgotten does not stay for ever
}

// hermitCommand starts the test program without an environment, in a session of its own, away from
// any relay's folder.
func hermitCommand(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env, cmd.Dir, cmd.SysProcAttr = []string{}, "/", &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// hermit is first the parent that ends at once, and then the orphan, which writes down its id and
// keeps the files open that it is given.
func hermit(role, file string, hold []string) {
	switch role {
	case "parent", "brief parent":
		if err := hermitCommand(append([]string{"hermit", strings.Replace(role, "parent", "orphan", 1), file}, hold...)...).Start(); err != nil {
			os.Exit(1)
		}
		return
	}
	for _, path := range hold {
		if _, err := os.Create(path); err != nil {
			os.Exit(1)
		}
	}
	_ = os.WriteFile(file+".new", fmt.Append(nil, os.Getpid()), 0o644)
	_ = os.Rename(file+".new", file)
	if role == "orphan" {
		time.Sleep(2 * time.Minute)
	}
}

// spared are processes that cannot be killed, as those of another user cannot.
var spared sync.Map

func killUnlessSpared(pid int, sig syscall.Signal) error {
	if _, ok := spared.Load(pid); ok {
		return syscall.EPERM
	}
	return syscall.Kill(pid, sig)
}

func flagValue(name string) string {
	for i, arg := range os.Args {
		if arg == name && i+1 < len(os.Args) {
			return os.Args[i+1]
		}
	}
	return ""
}

func serveOn(l net.Listener, answer func(context.Context, *websocket.Conn, string)) {
	serveHTTP(l, func(w http.ResponseWriter, r *http.Request) { converse(w, r, answer) })
}

func serveHTTP(l net.Listener, handler http.HandlerFunc) { _ = http.Serve(l, handler) }

func converse(w http.ResponseWriter, r *http.Request, answer func(context.Context, *websocket.Conn, string)) {
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	for {
		_, frame, err := c.Read(r.Context())
		if err != nil {
			return
		}
		var message []any
		if json.Unmarshal(frame, &message) == nil && len(message) > 1 && message[0] == "REQ" {
			answer(r.Context(), c, fmt.Sprint(message[1]))
		}
	}
}

func say(ctx context.Context, c *websocket.Conn, message ...any) {
	frame, _ := json.Marshal(message)
	_ = c.Write(ctx, websocket.MessageText, frame)
}

func eose(ctx context.Context, c *websocket.Conn, sub string) { say(ctx, c, "EOSE", sub) }

// helperTemplate is the --relay command of a helper.
func helperTemplate(mode string) string {
	return "RELAYS_HELPER=" + mode + " " + shellquote.Join(os.Args[0]) + " --port {port} --db {dir}"
}

func helperDefinition(t *testing.T, mode string) *Definition {
	t.Helper()
	d, err := FromTemplate(mode, helperTemplate(mode))
	if err != nil {
		t.Fatal(err)
	}
	d.ReadyTimeout = Duration(15 * time.Second)
	return &d
}

// startHelper boots a helper below a folder with a space in its name, and sees to it that nothing
// of it outlives the test.
func startHelper(t *testing.T, mode string, s Settings) *Process {
	t.Helper()
	s.WorkDir = cmp.Or(s.WorkDir, filepath.Join(t.TempDir(), "a folder"))
	p, err := Start(t.Context(), helperDefinition(t, mode), "", s)
	if err != nil {
		t.Fatalf("starting %s: %v", mode, err)
	}
	t.Cleanup(func() {
		if err := p.Cleanup(); err != nil {
			t.Error(err)
		}
		assertGone(t, p)
	})
	return p
}

func assertGone(t *testing.T, p *Process) {
	t.Helper()
	if groupAlive(p.cmd.Process.Pid) {
		t.Errorf("%s: its process group %d still has members", p.Name(), p.cmd.Process.Pid)
	}
	if _, err := os.Stat(p.root); err == nil && !p.settings.KeepData {
		t.Errorf("%s: its folder is still there", p.Name())
	}
}

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if condition() {
			return
		}
	}
	t.Fatalf("never came about: %s", what)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func usageOf(t *testing.T, p *Process) Usage {
	t.Helper()
	u, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return u
}
