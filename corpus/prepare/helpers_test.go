package prepare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"

	"github.com/klauspost/compress/zstd"
	"github.com/klauspost/pgzip"
)

// testSigner returns the n-th of a row of keys.
func testSigner(n uint64) corpus.SecretKey {
	var secret [32]byte
	binary.BigEndian.PutUint64(secret[24:], n+1)
	key, err := corpus.NewSecretKey(secret)
	if err != nil {
		panic(err)
	}
	return key
}

// signed completes an event with key, id and signature.
func signed(e corpus.Event) corpus.Event {
	if err := testSigner(0).Sign(&e, [32]byte{}); err != nil {
		panic(err)
	}
	return e
}

// someEvents returns n different good events, at most 200, not in corpus order, with several in one
// second and text that needs escapes.
func someEvents(n int) []corpus.Event { return slices.Clone(goodEvents()[:n]) }

// goodEvents are made once: signing is what takes time in these tests.
var goodEvents = sync.OnceValue(func() []corpus.Event {
	events := make([]corpus.Event, 200)
	corpus.InParallel(len(events), func(i int) {
		events[i] = signed(corpus.Event{
			CreatedAt: 1_700_000_000 + int64(i*7919%601)/3, Kind: 1,
			Tags:    []corpus.Tag{{"t", "a\nb"}, {"n", fmt.Sprint(i)}},
			Content: "{[\"\\ }] \u2028 \b 日本 🎉 " + strings.Repeat("x", i%50),
		})
	})
	return events
})

func texts(events ...corpus.Event) [][]byte {
	out := make([][]byte, len(events))
	for i := range events {
		out[i] = events[i].AppendJSON(nil)
	}
	return out
}

func ndjson(parts ...[]byte) []byte { return append(bytes.Join(parts, []byte{'\n'}), '\n') }

func jsonArray(parts ...[]byte) []byte {
	return slices.Concat([]byte(" [\n"), bytes.Join(parts, []byte(" ,\n ")), []byte("\n]\n"))
}

func gzipped(t testing.TB, text []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := pgzip.NewWriter(&buf)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func zstandard(t testing.TB, text []byte, o ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, o...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(text, nil)
}

// fileOf writes content to a new file.
func fileOf(t testing.TB, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "dump")
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// build prepares content in a new cache.
func build(t testing.TB, content []byte, o Options) *corpus.Corpus {
	t.Helper()
	c, err := File(context.Background(), fileOf(t, content), o, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// checkHolds compares the corpus with the events that it should consist of.
func checkHolds(t testing.TB, c *corpus.Corpus, want []corpus.Event) {
	t.Helper()
	expected, err := corpus.FromEvents(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(c.Text(), expected.Text()) {
		t.Fatalf("corpus of %d events:\n%.2000s\nwant %d:\n%.2000s", c.Len(), c.Text(), expected.Len(), expected.Text())
	}
	if c.Manifest().Fingerprint != fingerprintOf(c) || c.Manifest().Events != len(want) {
		t.Fatalf("manifest %+v does not describe its %d events", c.Manifest(), len(want))
	}
}

// fingerprintOf computes the fingerprint as its definition says.
func fingerprintOf(c *corpus.Corpus) string {
	var ids strings.Builder
	for i := range c.Len() {
		ids.WriteString(c.Entry(i).ID.String())
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(ids.String())))
}

// checkDropped compares the counts of the reasons that occurred.
func checkDropped(t testing.TB, c *corpus.Corpus, want map[DropReason]int) {
	t.Helper()
	got := c.Manifest().Dropped
	if len(got) != len(DropReasons()) {
		t.Errorf("%d reasons in the manifest, want all %d", len(got), len(DropReasons()))
	}
	sum := 0
	for _, r := range DropReasons() {
		if got[r.String()] != want[r] {
			t.Errorf("dropped as %s: %d, want %d", r, got[r.String()], want[r])
		}
		sum += got[r.String()]
	}
	if m := c.Manifest(); m.Read != m.Events+m.OverLimit+sum {
		t.Errorf("%d read, but %d kept, %d over the limit, %d dropped", m.Read, m.Events, m.OverLimit, sum)
	}
}

// checkNothingLeft fails if the cache holds anything but entries.
func checkNothingLeft(t testing.TB, cache string) {
	t.Helper()
	found, err := os.ReadDir(cache)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, f := range found {
		if strings.HasPrefix(f.Name(), ".") || !f.IsDir() {
			t.Errorf("%s is left in the cache", f.Name())
		}
	}
}

// generated returns the events of a synthetic corpus.
func generated(t testing.TB, s synthetic.Spec) (events []corpus.Event) {
	t.Helper()
	err := s.Generate(context.Background(), nil, func(e *corpus.Event) error {
		events = append(events, *e)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return events
}
