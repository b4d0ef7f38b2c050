package prepare

import (
	"bytes"
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// dumpServer serves content over HTTP, by way of handler, and counts requests.
type dumpServer struct {
	*httptest.Server
	content []byte
	mu      sync.Mutex
	asked   int
	ring    func()     // lets the client's present alarm run down
	got     chan int64 // what the client says it has received
}

func serveDump(t *testing.T, content []byte, handler func(s *dumpServer, w http.ResponseWriter, r *http.Request)) *dumpServer {
	t.Helper()
	s := &dumpServer{content: content, got: make(chan int64, 1000)}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked++
		s.mu.Unlock()
		handler(s, w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// whole answers as GitHub does.
func whole(s *dumpServer, w http.ResponseWriter, r *http.Request) {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(s.content))
}

// calls returns how many requests came before this one.
func (s *dumpServer) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked - 1
}

// stall sends nothing any more, once the client has received n bytes: all that the client would
// wait for happens, but no time passes.
func (s *dumpServer) stall(r *http.Request, n int64) {
	for got := int64(0); got < n; {
		select {
		case got = <-s.got:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	ring := s.ring
	s.mu.Unlock()
	ring()
	<-r.Context().Done()
}

// received is the client's Progress.
func (s *dumpServer) received(_ string, done, _ int64) { s.got <- done }

// manualAlarm never runs down by itself.
type manualAlarm struct{}

func (manualAlarm) Reset(time.Duration) bool { return true }
func (manualAlarm) Stop() bool               { return true }

func (s *dumpServer) alarm(_ time.Duration, ring func()) alarm {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ring = ring
	return manualAlarm{}
}

// download fetches from the server, however slow it is, unless the server stalls on purpose.
func (s *dumpServer) download() realFile {
	return realFile{
		name: "dump.json.gz", url: s.URL + "/dump", blob: gitBlob(s.content), maxSize: int64(len(s.content)),
		stall: time.Hour, alarm: s.alarm, tries: 3, pause: time.Millisecond,
	}
}

func gitBlob(content []byte) string {
	return fmt.Sprintf("%x", sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(content)), content...)))
}

func randomBytes(n int) []byte {
	out := make([]byte, n)
	random := rand.New(rand.NewPCG(3, 4))
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

func TestGitBlobIDIsGits(t *testing.T) {
	if got := gitBlob([]byte("hello\n")); got != "ce013625030ba8dba906f756967f9e9ca394464a" { // git hash-object
		t.Errorf("got %s", got)
	}
}

func TestDownloadSurvivesWhatServersDo(t *testing.T) {
	t.Parallel()
	content := randomBytes(300_000)
	half := len(content) / 2
	breakOff := func(w http.ResponseWriter, part []byte) {
		w.Header().Set("Content-Length", fmt.Sprint(len(part)+1000))
		w.Write(part)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		handler func(s *dumpServer, w http.ResponseWriter, r *http.Request)
		asked   int
	}{
		"plain": {whole, 1},
		"connection breaks": {func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
			if s.calls() == 0 {
				breakOff(w, s.content[:half])
			}
			whole(s, w, r)
		}, 2},
		"server is busy at first": {func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
			if s.calls() == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
			whole(s, w, r)
		}, 2},
		"server stalls at first": {func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
			if s.calls() == 0 {
				w.Write(s.content[:half])
				w.(http.Flusher).Flush()
				s.stall(r, int64(half))
				return
			}
			whole(s, w, r)
		}, 2},
		"redirected": {func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/dump" {
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
				return
			}
			whole(s, w, r)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := serveDump(t, content, c.handler)
			cache := t.TempDir()
			d := s.download()
			var last int64
			path, err := d.get(context.Background(), cache, func(stage string, done, total int64) {
				last = done
				s.received(stage, done, total)
			})
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, content) || last != int64(len(content)) {
				t.Fatalf("%d bytes, %v; the last progress is %d", len(got), err, last)
			}
			if again, err := d.get(context.Background(), cache, nil); err != nil || again != path || s.asked != c.asked {
				t.Errorf("the cached copy: %s, %v, after %d requests in all", again, err, s.asked)
			}
			if left, _ := filepath.Glob(filepath.Join(cache, "real", "*.part")); left != nil {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestDamagedCopyIsDownloadedAnew(t *testing.T) {
	s := serveDump(t, randomBytes(1000), whole)
	cache, d := t.TempDir(), s.download()
	for range 2 {
		path, err := d.get(context.Background(), cache, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.matches(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 999); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked != 2 {
		t.Errorf("%d requests", s.asked)
	}
}

func TestFailedDownloadNamesTheWaysOut(t *testing.T) {
	content := randomBytes(100_000)
	for name, c := range map[string]struct {
		change   func(d *realFile)
		handler  func(s *dumpServer, w http.ResponseWriter, r *http.Request)
		is       error
		says     string
		requests int
	}{
		"not found":           {handler: func(s *dumpServer, w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, says: "404", requests: 1},
		"wrong content":       {change: func(d *realFile) { d.blob = gitBlob(nil) }, handler: whole, is: errWrongContent, says: gitBlob(content), requests: 3},
		"oversize, announced": {change: func(d *realFile) { d.maxSize-- }, handler: whole, is: errOversize, requests: 1},
		"oversize, not announced": {change: func(d *realFile) { d.maxSize-- }, handler: func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
			w.(http.Flusher).Flush()
			w.Write(s.content)
		}, is: errOversize, requests: 1},
		"stall before the answer": {handler: func(s *dumpServer, w http.ResponseWriter, r *http.Request) { s.stall(r, 0) }, is: errStalled, requests: 3},
		"stall in the middle": {handler: func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(s.content)))
			w.Write(s.content[:5000])
			w.(http.Flusher).Flush()
			s.stall(r, 5000)
		}, is: errStalled, requests: 3},
		"server error": {handler: func(s *dumpServer, w http.ResponseWriter, r *http.Request) { w.WriteHeader(500) }, says: "500", requests: 3},
		"offline":      {change: func(d *realFile) { d.url = "http://127.0.0.1:1/dump" }, handler: whole, requests: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveDump(t, content, c.handler)
			d, cache := s.download(), t.TempDir()
			if c.change != nil {
				c.change(&d)
			}
			_, err := d.get(context.Background(), cache, s.received)
			var typed *RealDumpError
			if !errors.As(err, &typed) {
				t.Fatalf("error %v is no RealDumpError", err)
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v is not %v", err, c.is)
			}
			cached := filepath.Join(cache, "real", d.name)
			for _, s := range []string{c.says, "$RELAYBENCH_REAL", cached, d.url, "network", "--corpus FILE"} {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			s.Close() // waits for the handlers
			if s.asked != c.requests {
				t.Errorf("%d requests, want %d", s.asked, c.requests)
			}
			if _, err := os.Stat(cached); err == nil {
				t.Error("a file is in the cache")
			}
			var left []string
			files, err := os.ReadDir(filepath.Dir(cached))
			for _, f := range files {
				left = append(left, f.Name())
			}
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if n := strings.Count(typed.Error(), d.url); n != 1 {
				t.Errorf("the address is named %d times in\n%v", n, typed)
			}
			for line := range strings.Lines(strings.ReplaceAll(typed.Error(), cached, "")) {
				if len(strings.ReplaceAll(line, d.url, "")) > 180 {
					t.Errorf("a long line: %s", line)
				}
			}
		})
	}
}

func TestDownloadCanBeCancelled(t *testing.T) {
	s := serveDump(t, randomBytes(100_000), func(s *dumpServer, w http.ResponseWriter, r *http.Request) {
		w.Write(s.content[:50_000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	asked := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	_, err := s.download().get(ctx, t.TempDir(), func(string, int64, int64) { cancel(asked) })
	if !errors.Is(err, asked) || strings.Contains(err.Error(), "context") {
		t.Errorf("error %v, want %v", err, asked)
	}
}

// TestSilentServerIsGivenUpByTheClock needs the wait to run down, however long that takes.
func TestSilentServerIsGivenUpByTheClock(t *testing.T) {
	t.Parallel()
	s := serveDump(t, randomBytes(1000), func(s *dumpServer, w http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	d := s.download()
	d.stall, d.alarm = 20*time.Millisecond, afterFunc
	if _, err := d.get(context.Background(), t.TempDir(), nil); !errors.Is(err, errStalled) {
		t.Errorf("error %v, want %v", err, errStalled)
	}
}

func TestGivenDumpComesFirst(t *testing.T) {
	given := fileOf(t, []byte("[]"))
	t.Setenv(RealDumpVariable, given)
	if path, err := RealDump(context.Background(), t.TempDir(), nil); err != nil || path != given {
		t.Errorf("path %s, %v", path, err)
	}
	for _, path := range []string{given + "-absent", t.TempDir()} {
		t.Setenv(RealDumpVariable, path)
		if _, err := RealDump(context.Background(), t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "$RELAYBENCH_REAL") || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v does not name the variable and %s", err, path)
		}
	}
}

// TestRealEventsHaveTheKnownFingerprint prepares the dump of 1,384 real events that continuous
// integration provides. The golden figures were computed by other means than this package.
func TestRealEventsHaveTheKnownFingerprint(t *testing.T) {
	path := os.Getenv(RealDumpVariable)
	if path == "" {
		t.Skip("RELAYBENCH_REAL is not set: no real events to prepare")
	}
	c, err := File(context.Background(), path, Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Manifest().FileSHA256 != realEventsSHA256 {
		t.Skipf("RELAYBENCH_REAL has sha256 %s: another dump than the one whose figures are known", c.Manifest().FileSHA256)
	}
	if got := c.Manifest().Fingerprint; got != realEventsFingerprint {
		t.Errorf("fingerprint %s, want %s", got, realEventsFingerprint)
	}
	if m := c.Manifest(); m.Read != 1384 || m.Events != 1354 || m.Bytes != 1_382_868 {
		t.Errorf("%d read, %d kept, %d bytes", m.Read, m.Events, m.Bytes)
	}
	checkDropped(t, c, map[DropReason]int{DropDeletion: 26, DropTagValue: 4})
}

const (
	realEventsSHA256      = "f17161381555a9c9fa509a63116283dcfc308cee883feb44b11b84592e4d8577"
	realEventsFingerprint = "bf708cc6856c92e36c5885d29ab9187a13efaf392b9e280b1d08b5bbdcc52b29"
)
