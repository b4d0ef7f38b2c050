package prepare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"relaybench/corpus"
)

// stages counts the stages that a build reports.
type stages struct {
	mu    sync.Mutex
	count map[string]int
}

func (s *stages) report(stage string, _, _ int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil {
		s.count = map[string]int{}
	}
	s.count[stage]++
}

func TestCacheKnowsFilesByContentAndOptions(t *testing.T) {
	t.Parallel()
	cache := t.TempDir()
	ctx := context.Background()
	text := ndjson(texts(someEvents(30)...)...)
	first, err := File(ctx, fileOf(t, text), Options{}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()

	other := filepath.Join(t.TempDir(), "other name")
	if err := os.WriteFile(other, text, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path   string
		o      Options
		cached bool
	}{
		"the same under another name": {other, Options{}, true},
		"the defaults spelt out":      {other, Options{MaxEventBytes: 65536, MaxTags: 2000}, true},
		"a limit":                     {other, Options{Limit: 1000}, false},
		"a size":                      {other, Options{MaxEventBytes: 65537}, false},
		"a number of tags":            {other, Options{MaxTags: 1999}, false},
		"control characters":          {other, Options{KeepControlCharacters: true}, false},
		"deletions":                   {other, Options{KeepDeletions: true}, false},
		"one byte more":               {fileOf(t, append(text, '\n')), Options{}, false},
	} {
		var s stages
		got, err := File(ctx, c.path, c.o, cache, s.report)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if cached := s.count["prepare"] == 0; cached != c.cached || cached != (got.Dir() == first.Dir()) {
			t.Errorf("%s: from the cache: %v, in %s; the first is in %s", name, cached, got.Dir(), first.Dir())
		}
		if got.Manifest().File != filepath.Base(c.path) {
			t.Errorf("%s: manifest names %s", name, got.Manifest().File)
		}
		got.Close()
	}
}

func TestDamagedEntryIsBuiltAnew(t *testing.T) {
	t.Parallel()
	events := someEvents(30)
	path, cache := fileOf(t, ndjson(texts(events...)...)), t.TempDir()
	for name, damage := range map[string]func(dir string) error{
		"events cut":     func(dir string) error { return os.Truncate(filepath.Join(dir, corpus.EventsFile), 1000) },
		"a byte flipped": func(dir string) error { return rewrite(dir, corpus.EventsFile, "日", "月") },
		"no checksum":    func(dir string) error { return rewrite(dir, corpus.ManifestFile, `"checksum"`, `"former"`) },
		"of another file": func(dir string) error {
			return rewrite(dir, corpus.ManifestFile, `"fileSha256": "`, `"fileSha256": "0`)
		},
		"other options":  func(dir string) error { return rewrite(dir, corpus.ManifestFile, `"maxTags": 2000`, `"maxTags": 2001`) },
		"events gone":    func(dir string) error { return os.Remove(filepath.Join(dir, corpus.EventsFile)) },
		"manifest gone":  func(dir string) error { return os.Remove(filepath.Join(dir, corpus.ManifestFile)) },
		"manifest cut":   func(dir string) error { return os.Truncate(filepath.Join(dir, corpus.ManifestFile), 50) },
		"a file instead": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o666)) },
		"nothing in it":  func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777)) },
		"nothing amiss":  func(dir string) error { return nil },
		"killed builder's": func(dir string) error {
			return os.Mkdir(filepath.Join(cache, ".building-"+filepath.Base(dir)+"-123"), 0o777)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for round := range 2 {
				c, err := File(context.Background(), path, Options{}, cache, nil)
				if err != nil {
					t.Fatal(err)
				}
				checkHolds(t, c, events)
				dir := c.Dir()
				c.Close()
				if round == 0 {
					if err := damage(dir); err != nil {
						t.Fatal(err)
					}
					if name == "killed builder's" {
						os.RemoveAll(dir)
					}
				}
			}
			checkNothingLeft(t, cache)
		})
	}
}

// rewrite changes the first old in a file to new.
func rewrite(dir, name, old, new string) error {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(old)) {
		return fmt.Errorf("%q is not in %s", old, name)
	}
	return os.WriteFile(filepath.Join(dir, name), bytes.Replace(text, []byte(old), []byte(new), 1), 0o666)
}

// TestLockIsHeldByOneAtATime goes for the moment at which a lock's file is removed.
func TestLockIsHeldByOneAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "lock")
	var holders, most atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 8 {
				unlock, err := Lock(context.Background(), name, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n > most.Load() {
					most.Store(n)
				}
				runtime.Gosched()
				holders.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
	if most.Load() != 1 {
		t.Errorf("%d held the lock at once", most.Load())
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
}

func TestConcurrentBuildersShareOneBuild(t *testing.T) {
	t.Parallel()
	events := someEvents(150)
	path, cache := fileOf(t, ndjson(texts(events...)...)), t.TempDir()
	var built atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			var s stages
			c, err := File(context.Background(), path, Options{}, cache, s.report)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if s.count["prepare"] > 0 {
				built.Add(1)
			}
			checkHolds(t, c, events)
		})
	}
	wg.Wait()
	if built.Load() != 1 {
		t.Errorf("built %d times", built.Load())
	}
	checkNothingLeft(t, cache)
}

func TestWaitingForAnotherBuilderCanBeCancelled(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(context.Background(), name, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if _, err := Lock(ctx, name, func(string, int64, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	unlock()
	if unlock, err = Lock(context.Background(), name, nil); err != nil {
		t.Fatal(err)
	}
	unlock()
}

func TestCacheFolderThatCannotBeWrittenIsNamed(t *testing.T) {
	inTheWay := fileOf(t, []byte("x"))
	path := fileOf(t, ndjson(texts(someEvents(2)...)...))
	_, err := File(context.Background(), path, Options{}, filepath.Join(inTheWay, "cache"), nil)
	if err == nil || !strings.Contains(err.Error(), inTheWay) {
		t.Errorf("error %v does not name %s", err, inTheWay)
	}
}

// TestFullDiskLeavesNothing runs itself as a process that may not write files over 64 KiB, which
// fails as a full disk does.
func TestFullDiskLeavesNothing(t *testing.T) {
	t.Parallel()
	const variable = "RELAYBENCH_TEST_SMALL_DISK"
	if cache := os.Getenv(variable); cache != "" {
		signal.Ignore(syscall.SIGXFSZ)
		limit := syscall.Rlimit{Cur: 64 << 10, Max: 64 << 10}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		_, err := File(context.Background(), os.Getenv(variable+"_DUMP"), Options{}, cache, nil)
		if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "writing the prepared corpus") {
			t.Errorf("error %v", err)
		}
		return
	}
	cache := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), variable+"="+cache, variable+"_DUMP="+fileOf(t, ndjson(texts(someEvents(200)...)...)))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	checkNothingLeft(t, cache)
}

func TestFullDiskIsExplained(t *testing.T) {
	err := buildEntry(t.TempDir(), "key", func(string) error { return syscall.ENOSPC })
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
		t.Errorf("error %v", err)
	}
}

func TestEntryThatCannotBeOpenedIsLeftAlone(t *testing.T) {
	path, cache := fileOf(t, ndjson(texts(someEvents(2)...)...)), t.TempDir()
	c, err := File(context.Background(), path, Options{}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	// A link to itself fails to open for everybody, the superuser included.
	manifest := filepath.Join(c.Dir(), corpus.ManifestFile)
	if err := errors.Join(os.Remove(manifest), os.Symlink(manifest, manifest)); err != nil {
		t.Fatal(err)
	}
	if _, err := File(context.Background(), path, Options{}, cache, nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v, want %v", err, syscall.ELOOP)
	}
	if _, err := os.Stat(filepath.Join(c.Dir(), corpus.EventsFile)); err != nil {
		t.Error(err)
	}
}
