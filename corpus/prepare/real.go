package prepare

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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
	return fmt.Sprintf(`no real corpus: %v
Any one of these helps:
  file     put a copy of %s
           at %s
  variable set $%s to a file of events
  network  try again with access to it
--corpus FILE takes any other dump.`, withoutURL(e.Err), e.URL, e.CachePath, RealDumpVariable)
}

// withoutURL leaves out the address, which has been named already.
func withoutURL(err error) error {
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err
	}
	return err
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
	client  *http.Client
}

// realDump is the dump of real events that amethyst's tests use, at one commit for ever.
func realDump() realFile {
	return realFile{
		name:    "nostr_vitor_startup_data.json.gz",
		url:     "https://raw.githubusercontent.com/vitorpamplona/amethyst/10149d7150bc4ee93d3da5e3708802a99e9e1ff9/quartz/src/commonTest/resources/nostr_vitor_startup_data.json.gz",
		blob:    "4d1fc04e5b43e2cd166240a81ae271dd28d0043b",
		maxSize: 512 << 20,
		stall:   30 * time.Second,
		alarm:   afterFunc,
		tries:   3,
		pause:   time.Second,
		client:  downloadClient(),
	}
}

// RealDump returns the path of the dump of real events, for File: the file that $RELAYBENCH_REAL
// names, or else the copy in cacheDir, or else a copy downloaded to there. The latter two are
// checked against the git blob id of the content. The error is a *RealDumpError where there is
// neither a copy nor a way to get one.
func RealDump(ctx context.Context, cacheDir string, p corpus.Progress) (path string, err error) {
	if path := os.Getenv(RealDumpVariable); path != "" {
		return path, checkGiven(path)
	}
	return realDump().get(ctx, cacheDir, p)
}

// checkGiven makes sure that the file exists and can be read.
func checkGiven(path string) error {
	f, _, err := corpus.OpenRegular(path)
	if err != nil {
		return fmt.Errorf("$%s names a file that cannot be read: %w", RealDumpVariable, err)
	}
	return f.Close()
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
	if d.matches(path) == nil {
		return path, nil
	}
	if err := d.fetch(ctx, path, p); err != nil {
		if ctx.Err() != nil {
			return "", fmt.Errorf("downloading the real dump: %w", context.Cause(ctx))
		}
		return "", &RealDumpError{CachePath: path, URL: d.url, Err: err}
	}
	return path, nil
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
