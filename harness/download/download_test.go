package download_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/harness/download"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/relays/wire"
)

func TestRelaysThatShareEventsGiveEachOnce(t *testing.T) {
	t.Parallel()
	events := genuine()
	third := len(events) / 3
	urls := []string{
		serve(t, events[:2*third], reference.Options{}),
		serve(t, events[third:], reference.Options{MaxLimit: 70}),
		serve(t, slices.Concat(events[:third/2], events[2*third:]), reference.Options{MaxSubscriptions: 1}),
	}
	done, err := download.Run(context.Background(), t.TempDir(), quick(urls...))
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
	all := int64(0)
	for _, r := range done.Relays {
		all += r.New
		if r.Outcome != download.All || r.Refused() > 0 || r.Truncated > 0 {
			t.Errorf("%+v", r)
		}
	}
	if all != int64(len(events)) || done.Events != all {
		t.Errorf("%d events are said to be new, and %d to be kept, of %d", all, done.Events, len(events))
	}
}

func TestALimitIsOfAllRelaysTogether(t *testing.T) {
	t.Parallel()
	events := genuine()
	const limit = 150
	old, new := events[:len(events)/2], events[len(events)/2-100:]
	for _, urls := range [][]string{
		{serve(t, events, reference.Options{})},
		{serve(t, old, reference.Options{}), serve(t, new, reference.Options{MaxLimit: 60})},
	} {
		cache := t.TempDir()
		o := quick(urls...)
		o.Limit = limit
		done, err := download.Run(context.Background(), cache, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range done.Relays {
			if r.Outcome != download.Enough {
				t.Errorf("%+v", r)
			}
		}
		if len(urls) == 1 && done.Events >= int64(len(events)) { // of two, the one with the older events may be ahead
			t.Errorf("all %d events came, where %d are wanted", done.Events, limit)
		}
		c, err := prepare.File(context.Background(), done.File, prepare.Options{Limit: limit, Source: done.Source}, cache, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var got []corpus.Event
		for i := range c.Len() {
			e, err := corpus.ParseEvent(c.Raw(i))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, e)
		}
		sameEvents(t, got, newestOf(events, limit))
		if source := c.Manifest().Source; source != done.Source || !strings.HasPrefix(source, "download from "+urls[0]) ||
			!strings.HasSuffix(source, ": the newest 150 events until 2026-06-01 00:00:00") {
			t.Errorf("source %q", source)
		}
	}
}

func TestTimeBoundsAreKept(t *testing.T) {
	t.Parallel()
	events := genuine()
	from, to := events[100].CreatedAt, events[200].CreatedAt
	o := quick(serve(t, events, reference.Options{}))
	o.Since, o.Until = &from, &to
	done, err := download.Run(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), slices.DeleteFunc(slices.Clone(events), func(e corpus.Event) bool { return e.CreatedAt < from || e.CreatedAt > to }))
}

func TestAForgedEventKeepsNoRealOneOut(t *testing.T) {
	t.Parallel()
	events := genuine()[:300]
	forged := slices.Clone(events)
	for i := range forged {
		if i%2 == 0 {
			forged[i].Content += " (altered)"
		}
		if i%5 == 0 {
			forged[i].Sig[5] ^= 1
		}
	}
	liar, honest := serve(t, forged, reference.Options{}), serve(t, events, reference.Options{})
	// The honest relay is there only when the liar has sent all it has.
	lied := make(chan struct{})
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-lied
		if r.Header.Get("Upgrade") != "" {
			passOn(w, r, honest)
		}
	}))
	defer late.Close()
	var said notes
	o := quick(liar, "ws"+strings.TrimPrefix(late.URL, "http"))
	o.Note, o.Stall = said.add, 20*time.Second
	open := sync.OnceFunc(func() { close(lied) })
	defer open()
	o.Watch = func(s download.Status) {
		if s.Relays[0].Outcome != download.Pending {
			open()
		}
	}
	done, err := download.Run(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
	if r := done.Relays[0]; r.BadID != 150 || r.BadSignature != 30 || !strings.Contains(said.String(), "180 events that are forged") {
		t.Errorf("%+v\n%s", r, &said)
	}
}

func TestWhatIsNoCorpusEventIsLeftOut(t *testing.T) {
	t.Parallel()
	key := corpus.SecretKey{}
	key, err := corpus.NewSecretKey([32]byte{31: 9})
	if err != nil {
		t.Fatal(err)
	}
	var events []corpus.Event
	for i := range 60 {
		e := corpus.Event{CreatedAt: int64(baseTime - 100 - i), Kind: 1, Tags: []corpus.Tag{}, Content: fmt.Sprint("note ", i)}
		switch i % 3 {
		case 1:
			e.Kind, e.Tags = corpus.KindDeletion, []corpus.Tag{{"k", "1"}}
		case 2:
			e.Content = strings.Repeat("long ", 300)
		}
		if err := key.Sign(&e, [32]byte{}); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	o := quick(serve(t, events, reference.Options{}))
	o.Prepare.MaxEventBytes, o.Limit = 1000, 15
	done, err := download.Run(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r := done.Relays[0]; done.Events != 20 || r.LeftOut != 40 {
		t.Errorf("%d events, %+v", done.Events, r)
	}
	o = quick(o.URLs...)
	o.Prepare.KeepDeletions = true
	if done, err = download.Run(context.Background(), t.TempDir(), o); err != nil || done.Events != 60 {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestARelayThatFailsDoesNotEndTheOthers(t *testing.T) {
	t.Parallel()
	events := genuine()
	deaf, gone := serve(t, nil, reference.Options{}, "half-open"), "ws://127.0.0.1:1"
	var said notes
	cache := t.TempDir()
	o := quick(deaf, serve(t, events, reference.Options{}), gone)
	o.Stall, o.Attempts, o.Note = 2*time.Second, 1, said.add
	done, err := download.Run(context.Background(), cache, o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
	if failed := done.Failures(); len(failed) != 2 || failed[0].URL != deaf || failed[1].URL != gone {
		t.Errorf("%+v", failed)
	}
	for _, line := range []string{deaf + " is given up after 0 events: connecting to ", gone + " is given up after 0 events: connecting to ", "nothing listens there"} {
		if !strings.Contains(said.String(), line) {
			t.Errorf("%q is not said in:\n%s", line, &said)
		}
	}
	if !strings.Contains(done.Source, gone+" (in part)") {
		t.Errorf("source %q", done.Source)
	}
}

func TestWhereNoRelayAnswersEachReasonIsGiven(t *testing.T) {
	t.Parallel()
	o := quick("ws://127.0.0.1:1", "ws://127.0.0.1:2")
	o.Attempts = 1
	_, err := download.Run(context.Background(), t.TempDir(), o)
	if err == nil || strings.Count(err.Error(), "nothing listens there") != 2 {
		t.Errorf("%v", err)
	}
}

func TestAFinishedDownloadIsUsedAgainUnlessAskedForAnew(t *testing.T) {
	t.Parallel()
	events := genuine()[:300]
	store := referencetest.Filled(t, events[:200])
	o := quick(referencetest.Serve(t, reference.Options{Store: store}))
	cache := t.TempDir()
	first, err := download.Run(context.Background(), cache, o)
	if err != nil || first.Reused || first.Events != 200 {
		t.Fatalf("%+v, %v", first, err)
	}
	// The relay is gone, and nobody misses it.
	again, err := download.Run(context.Background(), cache, o)
	if err != nil || !again.Reused || again.Events != 200 || again.File != first.File || again.Source != first.Source || again.Finished != first.Finished {
		t.Errorf("%+v, %v", again, err)
	}
	o.Limit = 10
	if other, err := download.Run(context.Background(), cache, o); err != nil || other.Reused || other.File == first.File {
		t.Errorf("%+v, %v", other, err)
	}
	o.Limit, o.Fresh = 0, true
	if fresh, err := download.Run(context.Background(), cache, o); err != nil || fresh.Reused {
		t.Errorf("%+v, %v", fresh, err)
	}
	// What was cut short on the disk is not taken for a download.
	o.Fresh = false
	if err := os.Truncate(first.File, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := download.Run(context.Background(), cache, o); !errors.Is(err, download.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

func TestAnEmptyDownloadIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	url := referencetest.Holding(t, nil, reference.Options{})
	o := quick(url)
	cache := t.TempDir()
	if first, err := download.Run(context.Background(), cache, o); err != nil || first.Events != 0 {
		t.Fatalf("%+v, %v", first, err)
	}
	conn, err := wire.Dial(t.Context(), url, wire.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Abort()
	conn.WatchUseful(time.Minute)
	for _, e := range genuine()[:20] {
		if err := conn.SendEvent(e.AppendJSON(nil)); err != nil {
			t.Fatal(err)
		}
		if frame, _, err := conn.Read(); err != nil || !bytes.Contains(frame, []byte("true")) {
			t.Fatalf("%s, %v", frame, err)
		}
	}
	if again, err := download.Run(context.Background(), cache, o); err != nil || again.Reused || again.Events != 20 {
		t.Errorf("%+v, %v", again, err)
	}
}

func TestWhatIsLeftOfADownloadIsNotTrusted(t *testing.T) {
	t.Parallel()
	url := serve(t, genuine()[:100], reference.Options{})
	for name, damage := range map[string]func(dir string) error{
		"no JSON": func(dir string) error { return os.WriteFile(filepath.Join(dir, "checkpoint.json"), []byte("{"), 0o644) },
		"of something else": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "checkpoint.json"), []byte(`{"format":"x"}`), 0o644)
		},
		"fewer bytes":          func(dir string) error { return os.Truncate(filepath.Join(dir, "events.ndjson"), 10) },
		"other bytes":          func(dir string) error { return overwrite(filepath.Join(dir, "events.ndjson"), 0) },
		"a byte in the middle": func(dir string) error { return overwrite(filepath.Join(dir, "events.ndjson"), 20) },
	} {
		cache := t.TempDir()
		o := quick(url)
		o.MaxBytes = 20_000 // so that it does not finish
		if _, err := download.Run(context.Background(), cache, o); err == nil || !strings.Contains(err.Error(), "20000 bytes") {
			t.Fatal(err)
		}
		dirs, _ := filepath.Glob(filepath.Join(cache, "downloads", "*", "events.ndjson"))
		if len(dirs) != 1 {
			t.Fatal(dirs)
		}
		if err := damage(filepath.Dir(dirs[0])); err != nil {
			t.Fatal(err)
		}
		if _, err := download.Run(context.Background(), cache, o); !errors.Is(err, download.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
		o.Fresh, o.MaxBytes = true, 0
		if done, err := download.Run(context.Background(), cache, o); err != nil || done.Events != 100 {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
	}
}

func overwrite(name string, at int64) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("zz"), at)
	return errors.Join(err, f.Close())
}

func TestADownloadThatReachesItsSizeGoesOnWhenMoreIsAllowed(t *testing.T) {
	t.Parallel()
	events := genuine()
	cache := t.TempDir()
	o := quick(serve(t, events, reference.Options{}))
	o.MaxBytes = 200_000
	if _, err := download.Run(context.Background(), cache, o); err == nil || !strings.Contains(err.Error(), "reached 200000 bytes") || !strings.Contains(err.Error(), "the same command goes on") {
		t.Fatal(err)
	}
	o.MaxBytes = 0
	done, err := download.Run(context.Background(), cache, o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
}

func TestAnInterruptedDownloadSaysHowItGoesOn(t *testing.T) {
	t.Parallel()
	events := genuine()
	cache := t.TempDir()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	o := quick(serve(t, events, reference.Options{MaxLimit: 50}))
	o.Interval = 50 * time.Millisecond
	o.Watch = func(s download.Status) {
		if s.Events >= 100 {
			cancel(errStop)
		}
	}
	_, err := download.Run(ctx, cache, o)
	if !errors.Is(err, errStop) || !strings.Contains(err.Error(), "events of the download are kept, and the same command goes on from there") {
		t.Fatal(err)
	}
	var said notes
	o.Watch, o.Note, o.Interval = nil, said.add, -1
	done, err := download.Run(context.Background(), cache, o)
	if err != nil {
		t.Fatal(err)
	}
	sameEvents(t, read(t, done.File), events)
	if !strings.Contains(said.String(), "going on with the download") {
		t.Errorf("%s", &said)
	}
}

func TestTheStatusTellsHowFarEachRelayIs(t *testing.T) {
	t.Parallel()
	events := genuine()
	o := quick(serve(t, events, reference.Options{MaxLimit: 100}))
	o.Interval = 60 * time.Millisecond
	var all []download.Status
	o.Watch = func(s download.Status) { all = append(all, s) }
	if _, err := download.Run(context.Background(), t.TempDir(), o); err != nil {
		t.Fatal(err)
	}
	last := all[len(all)-1]
	if last.Events != int64(len(events)) || last.Bytes == 0 || len(last.Relays) != 1 || last.Relays[0].Outcome != download.All {
		t.Errorf("%+v", last)
	}
	for i := 1; i < len(all); i++ {
		if all[i].Events < all[i-1].Events || all[i].Relays[0].Next > all[i-1].Relays[0].Next || all[i].Relays[0].Received < all[i-1].Relays[0].Received {
			t.Errorf("%+v after %+v", all[i], all[i-1])
		}
	}
}
