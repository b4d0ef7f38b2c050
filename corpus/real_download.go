package corpus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

var (
	errStalled  = errors.New("the server sent nothing for too long")
	errOversize = errors.New("the server sends more than the dump can be")
)

// refusal is an answer that trying again would not change.
type refusal struct{ status string }

func (r *refusal) Error() string { return "the server answered " + r.status }

func downloadClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // the bytes as stored, so that ranges and sizes mean what they say
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	return &http.Client{Transport: t}
}

// alarm is a timer that calls a function once it has run down.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

func afterFunc(d time.Duration, ring func()) alarm { return time.AfterFunc(d, ring) }

// fetch downloads to path, by way of path.part, which stays behind when the connection breaks and is continued the next time.
func (d download) fetch(ctx context.Context, path string, p Progress) error {
	part := path + ".part"
	var err error
	for try := range d.tries {
		if try > 0 {
			select {
			case <-time.After(d.pause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		err = d.fetchOnce(ctx, part, p)
		var refused *refusal
		switch {
		case err == nil:
			if err = d.install(part, path); !errors.Is(err, errWrongContent) {
				return err
			}
		case errors.Is(err, errOversize):
			return errors.Join(err, os.Remove(part))
		case ctx.Err() != nil, errors.As(err, &refused), isDiskError(err), isOffline(err):
			return err
		}
	}
	return err
}

// install makes the complete download the file proper. A wrong one is removed, so that the next try starts anew.
func (d download) install(part, path string) error {
	if err := d.matches(part); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := errors.Join(os.Rename(part, path), syncDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("installing the download: %w", err)
	}
	return nil
}

// fetchOnce continues the partial file with one request.
func (d download) fetchOnce(ctx context.Context, part string, p Progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := d.alarm(d.stall, func() { cancel(fmt.Errorf("%w (%v)", errStalled, d.stall)) })
	defer watchdog.Stop()

	f, err := os.OpenFile(part, os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return fmt.Errorf("creating the download's file: %w", explainPermission(err))
	}
	defer f.Close()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return fmt.Errorf("continuing the download's file: %w", err)
	}
	if have > 0 && d.matches(part) == nil {
		return nil // complete already; only the last step is missing
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "relaybench")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	resp, err := d.client.Do(req)
	if err != nil {
		return cause(ctx, err)
	}
	defer resp.Body.Close()

	switch {
	case resp.StatusCode == http.StatusPartialContent && have > 0 && rangeStart(resp) == have:
	case resp.StatusCode == http.StatusOK:
		have = 0 // the server does not do ranges
	case resp.StatusCode == http.StatusPartialContent, resp.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		err := fmt.Errorf("the server answered %s to a request for the rest", resp.Status)
		return errors.Join(err, f.Truncate(0))
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("the server answered %s", resp.Status)
	default:
		return &refusal{resp.Status}
	}
	if err := f.Truncate(have); err != nil {
		return fmt.Errorf("continuing the download's file: %w", err)
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return fmt.Errorf("continuing the download's file: %w", err)
	}
	total := int64(0)
	if resp.ContentLength >= 0 {
		total = have + resp.ContentLength
	}
	if total > d.maxSize {
		return fmt.Errorf("%w: %d bytes, over %d", errOversize, total, d.maxSize)
	}
	return d.copy(ctx, f, resp.Body, have, total, watchdog, p)
}

// copy moves the body into the file; every byte that arrives gives the watchdog more time.
func (d download) copy(ctx context.Context, f *os.File, body io.Reader, done, total int64, watchdog alarm, p Progress) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			watchdog.Reset(d.stall)
			if done += int64(n); done > d.maxSize {
				return fmt.Errorf("%w: over %d bytes", errOversize, d.maxSize)
			}
			if _, err := f.Write(buf[:n]); err != nil {
				return &diskError{err}
			}
			p.Report("download", done, total)
		}
		if err == io.EOF {
			if err := f.Sync(); err != nil {
				return &diskError{err}
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("after %d bytes: %w", done, cause(ctx, err))
		}
	}
}

// diskError is a failure to write what was received, which the server cannot help.
type diskError struct{ err error }

func (e *diskError) Error() string { return "storing the download: " + e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

func isDiskError(err error) bool {
	var e *diskError
	return errors.As(err, &e)
}

// isOffline knows the failures to reach the server at all, which a second try within seconds does not heal.
func isOffline(err error) bool {
	var op *net.OpError
	var dns *net.DNSError
	return errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial"
}

// cause prefers the reason for which a request was cancelled to the fact that it was.
func cause(ctx context.Context, err error) error {
	if c := context.Cause(ctx); c != nil {
		return c
	}
	return err
}

// rangeStart reads where a partial answer begins, -1 if it does not say.
func rangeStart(resp *http.Response) int64 {
	rest, ok := strings.CutPrefix(resp.Header.Get("Content-Range"), "bytes ")
	first, _, found := strings.Cut(rest, "-")
	start, err := strconv.ParseInt(first, 10, 64)
	if !ok || !found || err != nil {
		return -1
	}
	return start
}
