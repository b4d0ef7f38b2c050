package prepare

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"relaybench/corpus"
)

var (
	errStalled  = errors.New("the server sent nothing for too long")
	errOversize = errors.New("the server sends more than the dump can be")
)

// passing is a failure that another try may not meet.
type passing struct{ error }

func (e passing) Unwrap() error { return e.error }

func downloadClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true // the bytes as stored, so that sizes mean what they say
	t.DialContext = (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	return &http.Client{Transport: t}
}

// alarm is a timer that calls a function once it has run down.
type alarm interface {
	Reset(d time.Duration) bool
	Stop() bool
}

func afterFunc(d time.Duration, ring func()) alarm { return time.AfterFunc(d, ring) }

// fetch downloads to path, by way of a file beside it that is removed unless it becomes path.
func (d realFile) fetch(ctx context.Context, path string, p corpus.Progress) error {
	for try := 1; ; try++ {
		err := d.fetchOnce(ctx, path, p)
		if ctx.Err() != nil || try == d.tries || !errors.As(err, new(passing)) {
			return err
		}
		select {
		case <-time.After(d.pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (d realFile) fetchOnce(ctx context.Context, path string, p corpus.Progress) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := d.alarm(d.stall, func() { cancel(fmt.Errorf("%w (%v)", errStalled, d.stall)) })
	defer watchdog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "relaybench")
	resp, err := d.client.Do(req)
	switch {
	case isOffline(err):
		return err
	case err != nil:
		return passing{cause(ctx, err)}
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode >= 500, resp.StatusCode == http.StatusTooManyRequests:
		return passing{fmt.Errorf("the server answered %s", resp.Status)}
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the server answered %s", resp.Status)
	case resp.ContentLength > d.maxSize:
		return fmt.Errorf("%w: %d bytes, over %d", errOversize, resp.ContentLength, d.maxSize)
	}
	f, err := os.Create(path + ".part") // under the lock of path: nobody else's
	if err != nil {
		return fmt.Errorf("creating the download's file: %w", explainPermission(err))
	}
	defer os.Remove(f.Name()) // which it no longer has once it is installed
	defer f.Close()
	from := &watched{Reader: io.LimitReader(resp.Body, d.maxSize+1), after: func(done int64) {
		watchdog.Reset(d.stall)
		p.Report("download", done, max(0, resp.ContentLength))
	}}
	switch _, err := io.Copy(f, from); {
	case from.err != nil:
		return passing{fmt.Errorf("after %d bytes: %w", from.done, cause(ctx, from.err))}
	case err != nil:
		return fmt.Errorf("storing the download: %w", err)
	case from.done > d.maxSize:
		return fmt.Errorf("%w: over %d bytes", errOversize, d.maxSize)
	}
	if err := d.matches(f.Name()); err != nil {
		return passing{err}
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("installing the download: %w", err)
	}
	return nil
}

// watched tells how much has been read, and keeps what reading failed by.
type watched struct {
	io.Reader
	done  int64
	after func(done int64)
	err   error
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.done += int64(n)
		w.after(w.done)
	}
	if err != nil && err != io.EOF {
		w.err = err
	}
	return n, err
}

// isOffline knows failures to reach the server at all, which a second try does not heal.
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
