package download_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/harness/download"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
)

// finishAfterKills starts the download and kills it, again and again at moments drawn at random,
// and lets it end at last.
func finishAfterKills(t *testing.T, c child, kills int) (killed int) {
	t.Helper()
	for range kills {
		cmd, _ := c.start(t)
		// From before its first page to when it may have ended.
		timer := time.AfterFunc(time.Duration(rand.IntN(400))*time.Millisecond, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			return killed
		}
		if cmd.ProcessState.Exited() {
			t.Fatalf("it ended by itself: %v", cmd.ProcessState)
		}
		killed++
	}
	cmd, said := c.start(t)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return killed
}

func eventsOf(t *testing.T, cache string) (file string, text []byte) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(cache, "downloads", "*", "events.ndjson"))
	if len(files) != 1 {
		t.Fatalf("%d downloads", len(files))
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return files[0], text
}

// prepared is the corpus of a download, as a file.
func prepared(t *testing.T, file, cache string, limit int) []byte {
	t.Helper()
	c, err := prepare.File(context.Background(), file, prepare.Options{Limit: limit}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := os.ReadFile(filepath.Join(c.Dir(), corpus.EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestADownloadKilledAtAnyMomentLosesAndRepeatsNothing kills real processes with SIGKILL.
func TestADownloadKilledAtAnyMomentLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	events := genuine()
	half := len(events) / 2
	for _, c := range []struct {
		name  string
		limit int
		want  []corpus.Event
		urls  []string
	}{
		{"one relay", 0, events, []string{serve(t, events, reference.Options{MaxLimit: 25})}},
		{"three relays that share events", 0, events, []string{
			serve(t, events[:half+50], reference.Options{MaxLimit: 25}), serve(t, events[half-50:], reference.Options{MaxLimit: 30}), serve(t, events[50:half+50], reference.Options{MaxLimit: 20}, "closed-midway")}},
		{"the newest of two", 200, newestOf(events, 200), []string{
			serve(t, events, reference.Options{MaxLimit: 25}), serve(t, events[half:], reference.Options{MaxLimit: 18})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			told := child{Cache: t.TempDir(), URLs: c.urls, Limit: c.limit, Interval: 30 * time.Millisecond}
			killed := finishAfterKills(t, told, 6)
			file, text := eventsOf(t, told.Cache)
			got := read(t, file)
			if c.limit > 0 {
				got = newestOf(got, c.limit)
			}
			sameEvents(t, got, c.want)

			o := quick(c.urls...)
			o.Limit = c.limit
			cache := t.TempDir()
			done, err := download.Run(context.Background(), cache, o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(prepared(t, file, cache, c.limit), prepared(t, done.File, cache, c.limit)) {
				t.Error("the corpus is not the one that comes without a kill")
			}
			if len(c.urls) == 1 {
				if _, whole := eventsOf(t, cache); !bytes.Equal(text, whole) {
					t.Error("the file is not the one that comes without a kill")
				}
			}
			t.Logf("killed %d times", killed)
		})
	}
}

func TestAFullDiskIsSaidAndTheDownloadGoesOn(t *testing.T) {
	t.Parallel()
	events := genuine()
	told := child{Cache: t.TempDir(), URLs: []string{serve(t, events, reference.Options{MaxLimit: 50})}, Interval: -1, SmallDisk: 200_000}
	cmd, said := told.start(t)
	if err := cmd.Wait(); err == nil || !cmd.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, said)
	}
	if text := said.String(); !strings.Contains(text, "storing a download in "+told.Cache) || !strings.Contains(text, "make room, and give the same command again") || strings.Count(text, "\n") != 1 {
		t.Errorf("it says: %s", text)
	}
	told.SmallDisk = 0
	cmd, said = told.start(t)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	file, _ := eventsOf(t, told.Cache)
	sameEvents(t, read(t, file), events)
}

// TestRelaysAreReachedOverTLS lets a process of its own trust the relay's certificate, by the
// variable that crypto/x509 reads.
func TestRelaysAreReachedOverTLS(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SSL_CERT_FILE is not read on this system")
	}
	web := httptest.NewTLSServer(nil)
	defer web.Close()
	events := genuine()[:200]
	url := referencetest.ServeTLS(t, reference.Options{Store: referencetest.Filled(t, events), MaxLimit: 80}, &tls.Config{Certificates: web.TLS.Certificates})
	told := child{Cache: t.TempDir(), URLs: []string{url}, Interval: -1}

	cmd, said := told.start(t)
	if err := cmd.Wait(); err == nil || !strings.Contains(said.String(), "certificate") {
		t.Errorf("an unknown certificate: %v: %s", err, said)
	}
	trusted := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(trusted, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, said = told.start(t, "SSL_CERT_FILE="+trusted)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	file, _ := eventsOf(t, told.Cache)
	sameEvents(t, read(t, file), events)
}
