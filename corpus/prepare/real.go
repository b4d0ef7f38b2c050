package prepare

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"relaybench/corpus"
)

// RealDumpVariable is the environment variable that names a file to take for the real dump.
const RealDumpVariable = "RELAYBENCH_REAL"

// RealDumpError says what can be done where there is no real dump. Err is why the download failed.
type RealDumpError struct {
	CachePath string // where a copy obtained otherwise is looked for
	URL       string
	Err       error
}

func (e *RealDumpError) Error() string {
	why := e.Err
	if request := (*url.Error)(nil); errors.As(why, &request) {
		why = request.Err // without the address, which is named below
	}
	return fmt.Sprintf(`no real corpus: %v
Any one of these helps:
  file     put a copy of %s
           at %s
  variable set $%s to a file of events
  network  try again with access to it
--corpus FILE takes any other dump.`, why, e.URL, e.CachePath, RealDumpVariable)
}

func (e *RealDumpError) Unwrap() error { return e.Err }

// realFile is a file that is fetched once and known by its git blob id.
type realFile struct {
	name    string // in the cache
	url     string
	blob    string // git's id of the content: sha1 over "blob <size>\0" and the bytes
	maxSize int64
	stall   time.Duration // longest wait for the next byte
	alarm   func(d time.Duration, ring func()) alarm
	tries   int
	pause   time.Duration // between tries
}

// alarm is a timer that calls a function once it has run down.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

func afterFunc(d time.Duration, ring func()) alarm { return time.AfterFunc(d, ring) }

// realDump is the dump of real events that amethyst's tests use, at one commit for ever.
var realDump = realFile{
	name:    "nostr_vitor_startup_data.json.gz",
	url:     "https://raw.githubusercontent.com/vitorpamplona/amethyst/10149d7150bc4ee93d3da5e3708802a99e9e1ff9/quartz/src/commonTest/resources/nostr_vitor_startup_data.json.gz",
	blob:    "4d1fc04e5b43e2cd166240a81ae271dd28d0043b",
	maxSize: 512 << 20,
	stall:   30 * time.Second,
	alarm:   afterFunc,
	tries:   3,
	pause:   time.Second,
}

// RealDump returns the path of the dump of real events, for File: the file that $RELAYBENCH_REAL
// names, or else the copy in cacheDir, or else a copy downloaded to there. The latter two are
// checked against the git blob id of the content. The error is a *RealDumpError where there is
// neither a copy nor a way to get one.
func RealDump(ctx context.Context, cacheDir string, p corpus.Progress) (path string, err error) {
	path = os.Getenv(RealDumpVariable)
	if path == "" {
		return realDump.get(ctx, cacheDir, p)
	}
	f, _, err := corpus.OpenRegular(path)
	if err != nil {
		return "", fmt.Errorf("$%s names a file that cannot be read: %w", RealDumpVariable, err)
	}
	return path, f.Close()
}

// get returns the path of the file in the cache, downloaded unless it is there and right.
func (d realFile) get(ctx context.Context, cacheDir string, p corpus.Progress) (string, error) {
	path := filepath.Join(cacheDir, "real", d.name)
	if d.matches(path) == nil {
		return path, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return "", fmt.Errorf("creating the cache of the real dump: %w", explainPermission(err))
	}
	unlock, err := Lock(ctx, path+".lock", p)
	if err != nil {
		return "", err
	}
	defer unlock()
	if d.matches(path) == nil { // somebody else has fetched it meanwhile
		return path, nil
	}
	for try := 1; ; try++ {
		again, err := d.fetch(ctx, path, p)
		switch {
		case err == nil:
			return path, nil
		case ctx.Err() != nil:
			return "", fmt.Errorf("downloading the real dump: %w", context.Cause(ctx))
		case !again || try == d.tries:
			return "", &RealDumpError{CachePath: path, URL: d.url, Err: err}
		}
		select {
		case <-time.After(d.pause):
		case <-ctx.Done():
		}
	}
}

var errWrongContent = errors.New("its content is not what it should be")

// matches compares a file with the git blob id. The error is errWrongContent, or that of reading.
func (d realFile) matches(path string) error {
	f, info, err := corpus.OpenRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	digest := sha1.New()
	fmt.Fprintf(digest, "blob %d\x00", info.Size())
	if _, err := io.Copy(digest, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != d.blob {
		return fmt.Errorf("%w: git blob %s of %d bytes, not %s", errWrongContent, got, info.Size(), d.blob)
	}
	return nil
}

var (
	errStalled  = errors.New("the server sent nothing for too long")
	errOversize = errors.New("the server sends more than the dump can be")
)

// fetch downloads to path, by way of a file beside it that is removed unless it becomes path. again
// says of an error that another try may not meet it.
func (d realFile) fetch(ctx context.Context, path string, p corpus.Progress) (again bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := d.alarm(d.stall, func() { cancel(fmt.Errorf("%w (%v)", errStalled, d.stall)) })
	defer watchdog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("User-Agent", "relaybench")
	req.Header.Set("Accept-Encoding", "identity") // the bytes as stored, so that sizes mean what they say
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var op *net.OpError
		var dns *net.DNSError
		offline := errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" // which a second try does not heal
		return !offline, cmp.Or(context.Cause(ctx), err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode != http.StatusOK:
		return resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests, fmt.Errorf("the server answered %s", resp.Status)
	case resp.ContentLength > d.maxSize:
		return false, fmt.Errorf("%w: %d bytes, over %d", errOversize, resp.ContentLength, d.maxSize)
	}
	f, err := os.Create(path + ".part") // under the lock of path: nobody else's
	if err != nil {
		return false, fmt.Errorf("creating the download's file: %w", explainPermission(err))
	}
	defer os.Remove(f.Name()) // which it no longer has once it is installed
	defer f.Close()
	buf := make([]byte, 64<<10)
	for done := int64(0); err != io.EOF; {
		var n int
		if n, err = resp.Body.Read(buf); n > 0 {
			done += int64(n)
			watchdog.Reset(d.stall)
			p.Report("download", done, max(0, resp.ContentLength))
		}
		if err != nil && err != io.EOF {
			return true, fmt.Errorf("after %d bytes: %w", done, cmp.Or(context.Cause(ctx), err))
		}
		if done > d.maxSize {
			return false, fmt.Errorf("%w: over %d bytes", errOversize, d.maxSize)
		}
		if _, err := f.Write(buf[:n]); err != nil {
			return false, fmt.Errorf("storing the download: %w", err)
		}
	}
	if err := d.matches(f.Name()); err != nil {
		return true, err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return false, fmt.Errorf("installing the download: %w", err)
	}
	return false, nil
}
