package download_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
	"relaybench/harness/download"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
)

// childMode makes the test program one that downloads, so that it can be killed.
const childMode = "RELAYBENCH_TEST_DOWNLOAD"

// child is what it is to do.
type child struct {
	Cache     string
	URLs      []string
	Limit     int
	Interval  time.Duration
	SmallDisk uint64 // the longest file that can be written
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childMode); text != "" {
		os.Exit(downloadAsTold(text))
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // else each process under the race detector waits a second before its end
	os.Exit(m.Run())
}

func downloadAsTold(text string) int {
	var c child
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	if c.SmallDisk > 0 {
		signal.Ignore(syscall.SIGXFSZ)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: c.SmallDisk, Max: c.SmallDisk}); err != nil {
			panic(err)
		}
	}
	o := quick(c.URLs...)
	o.Limit, o.Interval = c.Limit, c.Interval
	done, err := download.Run(context.Background(), c.Cache, o)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(done.Events, "events")
	return 0
}

// start starts a child.
func (c child) start(t *testing.T, env ...string) (cmd *exec.Cmd, said *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd, said = exec.Command(self), new(bytes.Buffer)
	cmd.Env = append(append(os.Environ(), childMode+"="+string(text)), env...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, said
}

// quick gives up soon what never comes.
func quick(urls ...string) download.Options {
	return download.Options{URLs: urls, Until: corpus.Int64(baseTime), Interval: -1, Stall: 5 * time.Second, Attempts: 4, Backoff: time.Millisecond, Confirm: 100 * time.Millisecond}
}

const baseTime = 1_780_272_000

// genuine are events with real ids and signatures, oldest first, none of which replaces another.
var genuine = sync.OnceValue(func() []corpus.Event {
	var events []corpus.Event
	err := synthetic.Spec{Events: 400, Seed: 7, BaseTime: baseTime}.Generate(context.Background(), nil, func(e *corpus.Event) error {
		if !corpus.IsReplaceable(e.Kind) && !corpus.IsAddressable(e.Kind) && !corpus.IsEphemeral(e.Kind) && e.Kind != corpus.KindDeletion {
			events = append(events, *e)
		}
		return nil
	})
	if err != nil {
		panic(err)
	}
	return events
})

// texts are the genuine events as JSON.
var texts = sync.OnceValue(func() map[corpus.ID]string {
	known := map[corpus.ID]string{}
	for _, e := range genuine() {
		known[e.ID] = string(e.AppendJSON(nil))
	}
	return known
})

// serve is a reference relay that holds the events.
func serve(t *testing.T, events []corpus.Event, o reference.Options, faults ...string) (url string) {
	t.Helper()
	return referencetest.Holding(t, events, o, faults...)
}

// read returns the events of a download, and demands that they are genuine and each there once.
func read(t *testing.T, file string) []corpus.Event {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var events []corpus.Event
	known := map[corpus.ID]bool{}
	for line := range bytes.Lines(text) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		e, err := corpus.ParseEvent(line)
		if err == nil && texts()[e.ID] != string(line) { // what is as it was made need not be verified once more
			err = e.Verify()
		}
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if known[e.ID] {
			t.Errorf("%v is there twice", e.ID)
		}
		known[e.ID] = true
		events = append(events, e)
	}
	return events
}

// sameEvents compares two sets by id.
func sameEvents(t *testing.T, got, want []corpus.Event) {
	t.Helper()
	ids := map[corpus.ID]bool{}
	for i := range got {
		ids[got[i].ID] = true
	}
	missing := 0
	for i := range want {
		if !ids[want[i].ID] {
			missing++
		}
		delete(ids, want[i].ID)
	}
	if missing > 0 || len(ids) > 0 {
		t.Errorf("%d events came, where %d should: %d are missing, %d do not belong", len(got), len(want), missing, len(ids))
	}
}

// newestOf returns the newest n events in corpus order.
func newestOf(events []corpus.Event, n int) []corpus.Event {
	sorted := slices.Clone(events)
	slices.SortFunc(sorted, func(a, b corpus.Event) int {
		if a.CreatedAt != b.CreatedAt {
			return int(a.CreatedAt - b.CreatedAt)
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return sorted[max(0, len(sorted)-n):]
}

// notes collects what people are told.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, line)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.lines, "\n")
}

var errStop = errors.New("interrupted")
