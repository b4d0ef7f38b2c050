package reference

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
)

// lines is a stream of events, one a line.
func lines(events []corpus.Event) []byte {
	var text []byte
	for i := range events {
		text = append(events[i].AppendJSON(text), '\n')
	}
	return text
}

// importAll imports a stream in small groups.
func importAll(t *testing.T, s Store, text []byte, o ImportOptions) Imported {
	t.Helper()
	texts, err := prepare.NewTexts(bytes.NewReader(text), "test")
	if err != nil {
		t.Fatal(err)
	}
	im := NewImporter(s, o)
	im.group = 300
	if err := im.Run(t.Context(), texts.Next); err != nil {
		t.Fatal(err)
	}
	return im.Total()
}

// exportAll returns the events of a store as they are exported.
func exportAll(t *testing.T, s Store, o ExportOptions) (text []byte, ids []corpus.ID) {
	t.Helper()
	var out bytes.Buffer
	n, err := Export(t.Context(), s, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out.Bytes()) {
		e, err := corpus.ParseEvent(bytes.TrimSuffix(line, []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, e.ID)
	}
	if n != int64(len(ids)) {
		t.Errorf("%d events said, %d written", n, len(ids))
	}
	return out.Bytes(), ids
}

func TestAnImportHoldsWhatPublishingHolds(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 9))
		events := randomEvents(random, 1500)
		plain, seq := NewMemory(), uint64(0)
		verdicts := admitAll(t, plain, &seq, events)
		for name, s := range stores(t) {
			n := importAll(t, s, lines(events), ImportOptions{NoVerify: true, Now: func() time.Time { return time.Unix(0, 0) }})
			count := func(want decision) (n int64) {
				for _, v := range verdicts {
					if v == want {
						n++
					}
				}
				return n
			}
			if n.Read != int64(len(events)) || n.Stored != count(stored) || n.Duplicates != count(duplicate) || n.Superseded != count(replaced) ||
				n.Deleted != count(deleted) || n.Vanished != count(vanished) || n.Broken+n.Invalid+n.Expired > 0 {
				t.Errorf("%s: %+v", name, n)
			}
			want := ask(t, plain, corpus.Filter{})
			if got := ask(t, s, corpus.Filter{}); !slices.Equal(got, want) {
				t.Errorf("seed %d, %s: %d events held, want %d", seed, name, len(got), len(want))
			}
			newest, ids := exportAll(t, s, ExportOptions{NewestFirst: true})
			if !slices.Equal(ids, want) {
				t.Errorf("%s: exported %d events, want %d", name, len(ids), len(want))
			}
			oldest, ids := exportAll(t, s, ExportOptions{})
			slices.Reverse(ids)
			if !slices.Equal(ids, want) || len(oldest) != len(newest) {
				t.Errorf("%s: from the oldest on, %d events, want %d", name, len(ids), len(want))
			}
			if again := importAll(t, s, oldest, ImportOptions{NoVerify: true, Now: func() time.Time { return time.Unix(0, 0) }}); again.Duplicates != int64(len(want)) {
				t.Errorf("%s: of what it exported itself: %+v", name, again)
			}
		}
	}
}

func TestAnImportCountsWhatItCannotTake(t *testing.T) {
	key := testKey(1)
	good := note(key, 100, "good")
	badSig, badID := note(key, 101, "sig"), note(key, 102, "id")
	badSig.Sig[0] ^= 1
	badID.Content = "another"
	long := note(key, 103, strings.Repeat("x", 3000))
	gone := note(key, 104, "gone", corpus.Tag{"expiration", "150"})
	guarded := note(key, 105, "guarded", corpus.Tag{"-"})
	passing := kindOf(key, 20001, 106)
	text := lines([]corpus.Event{good, badSig, badID, long, gone, guarded, passing, good})
	text = append(text, "no JSON\n{\"id\":1}\n\n   \n[]\n"...)
	s := NewMemory()
	n := importAll(t, s, text, ImportOptions{MaxEventBytes: 2000, Now: func() time.Time { return time.Unix(200, 0) }})
	if want := (Imported{Read: 10, Stored: 1, Duplicates: 1, Invalid: 3, Expired: 1, Protected: 1, Ephemeral: 1, Broken: 2}); n != want {
		t.Errorf("%+v\nwant %+v", n, want)
	}
	if got := ask(t, s, corpus.Filter{}); len(got) != 1 || got[0] != good.ID {
		t.Errorf("held: %v", got)
	}
}

func TestAnExportKeepsToItsBoundsAndLeavesOutWhatHasExpired(t *testing.T) {
	key := testKey(1)
	events := []corpus.Event{note(key, 100, "a"), note(key, 200, "b"), note(key, 300, "c", corpus.Tag{"expiration", "5000"}), note(key, 400, "d")}
	for name, s := range stores(t) {
		importAll(t, s, lines(events), ImportOptions{Now: func() time.Time { return time.Unix(0, 0) }})
		since, until := int64(200), int64(300)
		for _, now := range []int64{0, 5000} {
			_, ids := exportAll(t, s, ExportOptions{Since: &since, Until: &until, Now: now})
			if want := map[int64]int{0: 2, 5000: 1}[now]; len(ids) != want || ids[0] != events[1].ID {
				t.Errorf("%s at %d: %v", name, now, ids)
			}
		}
	}
}

func TestAnInterruptedImportKeepsWhatItCounted(t *testing.T) {
	events := randomEvents(rand.New(rand.NewPCG(1, 1)), 2000)
	for name, s := range stores(t) {
		ctx, cancel := context.WithCancelCause(t.Context())
		texts, err := prepare.NewTexts(bytes.NewReader(lines(events)), "test")
		if err != nil {
			t.Fatal(err)
		}
		im := NewImporter(s, ImportOptions{NoVerify: true, Progress: func(n Imported) {
			if n.Read > 400 {
				cancel(errors.New("enough"))
			}
		}})
		im.group = 300
		if err := im.Run(ctx, texts.Next); err == nil || err.Error() != "enough" {
			t.Errorf("%s: %v", name, err)
		}
		n := im.Total()
		plain, seq := NewMemory(), uint64(0)
		admitAll(t, plain, &seq, events[:n.Read])
		if n.Read >= int64(len(events)) || !slices.Equal(ask(t, s, corpus.Filter{}), ask(t, plain, corpus.Filter{})) {
			t.Errorf("%s: after %d events it holds something else than those", name, n.Read)
		}
	}
}

func TestAnImportDoesNotWaitForAStreamThatSaysNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	read, write := io.Pipe()
	defer write.Close()
	reading := make(chan struct{})
	go func() {
		_, _ = write.Write([]byte(`{"id":"`))
		close(reading)
	}()
	texts, err := prepare.NewTexts(io.MultiReader(strings.NewReader("{\"id\":1}\n{\"id\":1}\n"), read), "test")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-reading
		cancel(errors.New("enough"))
	}()
	if err := NewImporter(NewMemory(), ImportOptions{}).Run(ctx, texts.Next); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}

func TestAStreamThatBreaksOffIsImportedUpToThere(t *testing.T) {
	text := lines([]corpus.Event{note(testKey(1), 1, "a"), note(testKey(1), 2, "b")})
	s := NewMemory()
	texts, err := prepare.NewTexts(bytes.NewReader(text[:len(text)-10]), "test")
	if err != nil {
		t.Fatal(err)
	}
	im := NewImporter(s, ImportOptions{})
	if err := im.Run(t.Context(), texts.Next); !errors.Is(err, prepare.ErrTruncated) || im.Total().Stored != 1 {
		t.Errorf("%+v, %v", im.Total(), err)
	}
}

func TestAFolderHasOneWriter(t *testing.T) {
	for _, kind := range []string{"bolt", "sqlite"} {
		dir := t.TempDir()
		s, err := OpenStore(kind, dir, DurabilityNone)
		if err != nil {
			t.Fatal(err)
		}
		if other, err := OpenStore(kind, dir, DurabilityNone); err == nil || !strings.Contains(err.Error(), "another process has it open") {
			if err == nil {
				other.Close()
			}
			t.Errorf("%s: opened twice: %v", kind, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = OpenStore(kind, dir, DurabilityNone); err != nil {
			t.Fatalf("%s: after it was closed: %v", kind, err)
		}
		s.Close()
	}
}
