package prepare

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"

	"github.com/klauspost/compress/zstd"
)

func TestEveryFormAndCompressionGivesTheSameCorpus(t *testing.T) {
	t.Parallel()
	events := someEvents(40)
	parts := texts(events...)
	forms := map[string][]byte{
		"lines":                    ndjson(parts...),
		"lines without last break": bytes.TrimSpace(ndjson(parts...)),
		"lines with CRLF and BOM":  append([]byte("\xef\xbb\xbf"), bytes.ReplaceAll(ndjson(parts...), []byte("\n"), []byte("\r\n\r\n"))...),
		"objects without space":    bytes.Join(parts, nil),
		"objects spread out":       spreadOut(t, parts),
		"array":                    jsonArray(parts...),
		"array without space":      slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]")),
	}
	for form, text := range forms {
		compressions := map[string][]byte{"plain": text}
		if form == "array" {
			compressions["gzip"] = gzipped(t, text)
			compressions["gzip in two members"] = append(gzipped(t, text[:1000]), gzipped(t, text[1000:])...)
			compressions["gzip in gzip"] = gzipped(t, gzipped(t, text))
			compressions["gzip in zstd in gzip"] = gzipped(t, zstandard(t, gzipped(t, text)))
			compressions["zstd"] = zstandard(t, text)
			compressions["zstd behind a skippable frame"] = append([]byte{0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstandard(t, text)...)
		}
		for compression, content := range compressions {
			t.Run(form+"/"+compression, func(t *testing.T) {
				c := build(t, content, Options{})
				checkHolds(t, c, events)
				checkDropped(t, c, nil)
			})
		}
	}
}

func TestZstdWindowsUpToTheLimitAreRead(t *testing.T) {
	events := someEvents(5)
	content := zstandard(t, ndjson(texts(events...)...), zstd.WithWindowSize(maxZstdWindow))
	checkHolds(t, build(t, content, Options{}), events)
}

// spreadOut puts each event's fields on lines of their own, in another order.
func spreadOut(t *testing.T, parts [][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	for _, p := range parts {
		i := bytes.LastIndex(p, []byte(`,"sig":"`))
		out.WriteString("{\n  " + string(p[i+1:len(p)-1]) + ",\n  \"seen\" : [\n    { \"at\" : 1.5e3 }\n  ],\n  " + string(p[1:i]) + "\n}\n")
	}
	return out.Bytes()
}

func TestEveryDropReasonIsCountedUnderTheFirstThatApplies(t *testing.T) {
	t.Parallel()
	good := someEvents(1)[0]
	edit := func(e corpus.Event, old, new string) []byte {
		text := e.AppendJSON(nil)
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return bytes.Replace(text, []byte(old), []byte(new), 1)
	}
	event := func(kind int, content string, tags ...corpus.Tag) corpus.Event {
		return signed(corpus.Event{CreatedAt: 1_700_000_000, Kind: kind, Tags: tags, Content: content})
	}
	text := func(kind int, content string, tags ...corpus.Tag) []byte {
		e := event(kind, content, tags...)
		return e.AppendJSON(nil)
	}
	unsigned := func(content string, digits int) []byte {
		e := event(1, content)
		return edit(e, e.Sig.String(), e.Sig.String()[:digits])
	}
	many := func(n int) []corpus.Tag { return slices.Repeat([]corpus.Tag{{"t", "x"}}, n) }
	long := strings.Repeat("x", MaxTagValueBytes+1)
	broken := good
	broken.Sig[3] ^= 1
	forged := good
	forged.ID[0] ^= 1
	// The canonical form decides on the size: escapes and spaces of the source do not count.
	exact := event(1, "")
	exact = event(1, strings.Repeat("é", (2000-len(exact.AppendJSON(nil)))/2))
	limit := len(exact.AppendJSON(nil))
	escaped := bytes.ReplaceAll(exact.AppendJSON(nil), []byte("é"), []byte(`\u00e9`))

	cases := []struct {
		name string
		text []byte
		want DropReason
	}{
		{"no JSON", []byte("hello"), DropUnparseable},
		{"a number", []byte("1"), DropUnparseable},
		{"an object of another kind", []byte(`{"a":1}`), DropUnparseable},
		{"a relay's message", []byte(`["EOSE","s"]`), DropUnparseable},
		{"text behind the event", append(text(1, "then text"), " x"...), DropUnparseable},
		{"upper-case digits", bytes.ToUpper(good.AppendJSON(nil)), DropUnparseable},
		{"kind over 65535", edit(good, `"kind":1,`, `"kind":65536,`), DropUnparseable},
		{"negative time", edit(good, `"created_at":1`, `"created_at":-1`), DropUnparseable},
		{"invalid UTF-8", edit(good, "日本", "\xff"), DropUnparseable},
		{"nesting bomb that closes", []byte(`{"x":` + strings.Repeat(`{"x":[`, 1<<17) + strings.Repeat("]}", 1<<17) + "}"), DropUnparseable},
		{"nesting bomb", []byte(`{"x":` + strings.Repeat("[", 1<<20)), DropUnparseable},
		{"no sig", edit(good, `,"sig":"`+good.Sig.String()+`"`, ""), DropNoSignature},
		{"empty sig", unsigned("empty", 0), DropNoSignature},
		{"short sig", unsigned("short", 126), DropNoSignature},
		{"deletion", text(5, ""), DropDeletion},
		{"ephemeral, first", text(20000, ""), DropEphemeral},
		{"ephemeral, last", text(29999, ""), DropEphemeral},
		{"too many tags", text(1, "", many(11)...), DropTooManyTags},
		{"long tag value", text(1, "", corpus.Tag{"description", long}), DropTagValue},
		{"long tag name", text(1, "", corpus.Tag{long}), DropTagValue},
		{"control character", text(1, "a \x01 b"), DropControlCharacter},
		{"control character, and of a kind that is dropped", text(20000, "\x00"), DropEphemeral},
		{"too large", text(1, strings.Repeat("é", len(exact.Content)/2+1)), DropTooLarge},
		{"bad id", forged.AppendJSON(nil), DropBadID},
		{"bad signature", broken.AppendJSON(nil), DropBadSignature},
		{"bad key", func() []byte {
			e := event(1, "bad key")
			e.PubKey = corpus.PubKey(bytes.Repeat([]byte{0xff}, 32))
			e.ID = e.Hash()
			return e.AppendJSON(nil)
		}(), DropBadSignature},
		{"deletion with too many tags", text(5, "", many(11)...), DropDeletion},
		{"too many tags and forged", edit(event(1, "f", many(11)...), `"content":"f"`, `"content":"g"`), DropTooManyTags},

		{"the most tags", text(1, "", many(10)...), Kept},
		{"the longest tag value", text(1, "", corpus.Tag{"d", long[1:]}), Kept},
		{"the largest", exact.AppendJSON(nil), Kept},
		{"the largest, escaped", escaped, DropDuplicate},
		{"regular kind beside ephemeral", text(19999, ""), Kept},
		{"unknown fields", append([]byte(`{"seen":[{"a":[null,true,-1.5e9]}],`), text(1, "unknown")[1:]...), Kept},
	}
	o := Options{MaxTags: 10, MaxEventBytes: limit}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			anchor := text(2, "keeps the corpus from being empty")
			if c.want == DropDuplicate {
				anchor = exact.AppendJSON(nil)
			}
			got := build(t, ndjson(anchor, c.text, text(3, "stands behind it")), o)
			want := map[DropReason]int{}
			if c.want != Kept {
				want[c.want] = 1
			}
			checkDropped(t, got, want)
		})
	}
	t.Run("all at once", func(t *testing.T) {
		want := map[DropReason]int{}
		var all [][]byte
		for _, c := range cases {
			all = append(all, c.text)
			want[c.want]++
		}
		delete(want, Kept)
		checkDropped(t, build(t, ndjson(all...), o), want)
	})
}

func TestRepeatedEventsKeepTheFirstGoodOne(t *testing.T) {
	t.Parallel()
	events := someEvents(3)
	forged, again := events[0], events[0]
	forged.Sig[0] ^= 1
	if err := testSigner(0).Sign(&again, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	unsigned := bytes.Replace(events[0].AppendJSON(nil), []byte(events[0].Sig.String()), nil, 1)
	all := append(texts(forged, events[0], again, events[1], events[0], events[2], forged, events[1]), unsigned)
	c := build(t, ndjson(all...), Options{})
	checkHolds(t, c, events)
	// The second forged text is a repeated text; the first must not shut out the good event.
	checkDropped(t, c, map[DropReason]int{DropBadSignature: 1, DropDuplicate: 4, DropNoSignature: 1})
}

func TestLimitKeepsTheNewest(t *testing.T) {
	t.Parallel()
	events := someEvents(100)
	all, err := corpus.FromEvents(events)
	if err != nil {
		t.Fatal(err)
	}
	var newest []corpus.Event
	for i := 70; i < 100; i++ {
		e, err := all.Event(i)
		if err != nil {
			t.Fatal(err)
		}
		newest = append(newest, e)
	}
	text := ndjson(texts(append(events, events...)...)...)
	c := build(t, text, Options{Limit: 30})
	checkHolds(t, c, newest)
	if c.Manifest().OverLimit != 70 {
		t.Errorf("%d over the limit, want 70", c.Manifest().OverLimit)
	}
	checkDropped(t, c, map[DropReason]int{DropDuplicate: 100})
	checkHolds(t, build(t, text, Options{Limit: 100}), events)
	checkHolds(t, build(t, text, Options{Limit: 1000}), events)
}

func TestDeletionsAreKeptOnRequest(t *testing.T) {
	events := append(someEvents(2), signed(corpus.Event{CreatedAt: 9, Kind: 5, Tags: []corpus.Tag{}}))
	checkHolds(t, build(t, ndjson(texts(events...)...), Options{KeepDeletions: true}), events)
}

func TestOrderOfInputAndNumberOfCoresDoNotMatter(t *testing.T) {
	events := someEvents(60)
	c := build(t, ndjson(texts(events...)...), Options{})
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	random := rand.New(rand.NewPCG(1, 2))
	for _, cores := range []int{1, 2, 7} {
		runtime.GOMAXPROCS(cores)
		random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
		if again := build(t, jsonArray(texts(events...)...), Options{}); !bytes.Equal(again.Text(), c.Text()) {
			t.Errorf("another corpus with %d cores", cores)
		}
	}
}

func TestTextOverTheLimitOfMemoryIsOneUnparseableEvent(t *testing.T) {
	t.Parallel()
	events := someEvents(3)
	p := texts(events...)
	huge := []byte(`{"content":"` + strings.Repeat("a", maxEventText) + `"}`)
	c := build(t, zstandard(t, ndjson(p[0], huge, p[1], p[2])), Options{})
	checkHolds(t, c, events)
	checkDropped(t, c, map[DropReason]int{DropUnparseable: 1})
}

func TestOneMistakeCostsOneEvent(t *testing.T) {
	t.Parallel()
	events := someEvents(4)
	p := texts(events...)
	cut := p[0][:len(p[0])-200] // ends in the content
	headless := p[0][:90]       // ends between quotes
	for name, c := range map[string]struct {
		text    []byte
		dropped int
	}{
		"line cut in a string":         {ndjson(p[1], cut, p[2], p[3]), 1},
		"first line cut in a string":   {ndjson(cut, p[1], p[2], p[3]), 1},
		"first line cut between":       {ndjson([]byte(`{"id":`), p[1], p[2], p[3]), 1},
		"line cut between":             {ndjson(p[1], headless, p[2], p[3]), 1},
		"rubbish among lines":          {ndjson(p[1], []byte("}{"), p[2], []byte("]"), p[3], []byte{0, 1, 2}), 4},
		"two events on one line":       {ndjson(p[1], slices.Concat(p[2], []byte(" "), p[3])), 0},
		"rubbish among objects":        {slices.Concat(p[1], []byte("x"), p[2], []byte("\n,\n"), p[3]), 1},
		"broken object among objects":  {slices.Concat(p[1], []byte("\n{\"a\":\n"), p[2], []byte("\n"), p[3]), 1},
		"last but one broken":          {slices.Concat(p[1], p[2], []byte("\n{\"a\":\n"), p[3]), 1},
		"unended string among objects": {slices.Concat(p[1], p[2], []byte("\n{\"a\n"), p[3]), 1},
		"odd elements of an array":     {jsonArray(p[1], []byte("null"), p[2], []byte(`"a,]"`), []byte("[[],{}]"), p[3], []byte("-1e5")), 4},
	} {
		t.Run(name, func(t *testing.T) {
			got := build(t, c.text, Options{})
			checkHolds(t, got, events[1:])
			checkDropped(t, got, map[DropReason]int{DropUnparseable: c.dropped})
		})
	}
}

func TestSourcesThatCannotBeUsedSaySoWithNameAndPlace(t *testing.T) {
	t.Parallel()
	p := texts(someEvents(20)...)
	lines, array := ndjson(p...), jsonArray(p...)
	packed, zpacked := gzipped(t, lines), zstandard(t, lines)
	nested := lines
	for range maxNested + 1 {
		nested = gzipped(t, nested)
	}
	broken := bytes.Clone(packed)
	broken[len(broken)/2] ^= 0x55
	for name, c := range map[string]struct {
		content []byte
		is      error
		says    []string
	}{
		"no bytes":                    {nil, ErrEmpty, nil},
		"only white space":            {[]byte(" \n\t\r\n"), ErrEmpty, nil},
		"compressed nothing":          {gzipped(t, nil), ErrEmpty, nil},
		"empty array":                 {[]byte(" [ ] \n"), ErrEmpty, nil},
		"all dropped":                 {[]byte("\na\nb\n"), ErrAllDropped, []string{"2 unparseable", "line 2: no JSON object"}},
		"last line cut":               {lines[:len(lines)-40], ErrTruncated, []string{"event 20"}},
		"last object cut":             {append(bytes.Join(p[:5], nil), p[6][:100]...), ErrTruncated, []string{"event 6"}},
		"array cut in an event":       {array[:len(array)-40], ErrTruncated, []string{"event 20"}},
		"array cut between events":    {slices.Concat([]byte("["), p[0], []byte(",")), ErrTruncated, nil},
		"array without end":           {slices.Concat([]byte("["), p[0]), ErrTruncated, nil},
		"array of nothing, no end":    {[]byte("["), ErrTruncated, nil},
		"array behind others, no end": {slices.Concat(array, []byte("\n["), p[0], []byte(",\n"), p[1], []byte("\n")), ErrTruncated, []string{"event 22", "begins in line 24"}},
		"list of an object, no end":   {slices.Concat([]byte("{\"events\":["), p[0], []byte(",\n"), p[1], []byte("]\n")), ErrTruncated, []string{"begins in line 1"}},
		"gzip cut":                    {packed[:len(packed)-100], ErrTruncated, []string{"byte"}},
		"gzip in gzip, cut":           {gzipped(t, packed[:len(packed)-100]), ErrTruncated, []string{"byte"}},
		"xz in gzip":                  {gzipped(t, []byte("\xfd7zXZ\x00\x00\x04")), nil, []string{"xz"}},
		"gzip without end":            {nested, nil, []string{"too many times"}},
		"gzip cut in its trailer":     {packed[:len(packed)-3], ErrTruncated, nil},
		"gzip cut in its header":      {packed[:7], ErrTruncated, nil},
		"gzip and a little more":      {append(bytes.Clone(packed), "abc"...), errBehindGzip, []string{"followed by"}},
		"gzip and the text again":     {append(bytes.Clone(packed), lines...), errBehindGzip, []string{"followed by"}},
		"gzip and half a member":      {append(bytes.Clone(packed), packed[:5]...), ErrTruncated, nil},
		"gzip and a member's start":   {append(bytes.Clone(packed), packed[0]), ErrTruncated, nil},
		"zstd and the text again":     {append(bytes.Clone(zpacked), lines...), zstd.ErrMagicMismatch, []string{"followed by"}},
		"UTF-16 with a mark":          {utf16Of(lines, binary.LittleEndian, "\ufeff"), nil, []string{"UTF-16", "UTF-8"}},
		"UTF-16, big-endian":          {utf16Of(array, binary.BigEndian, "\ufeff"), nil, []string{"UTF-16", "UTF-8"}},
		"UTF-16 without a mark":       {utf16Of(lines, binary.LittleEndian, ""), nil, []string{"UTF-16LE", "UTF-8"}},
		"UTF-16, big-endian, no mark": {utf16Of(lines, binary.BigEndian, ""), nil, []string{"UTF-16BE", "UTF-8"}},
		"UTF-16 in gzip":              {gzipped(t, utf16Of(lines, binary.LittleEndian, "\ufeff")), nil, []string{"UTF-16", "UTF-8"}},
		"UTF-32":                      {[]byte("\xff\xfe\x00\x00{\x00\x00\x00"), nil, []string{"UTF-32", "UTF-8"}},
		"xz":                          {[]byte("\xfd7zXZ\x00\x00\x04"), nil, []string{"xz"}},
		"a database":                  {[]byte("SQLite format 3\x00\x10\x00"), nil, []string{"SQLite", "export"}},
		"gzip broken":                 {broken, nil, []string{"event"}},
		"zstd cut":                    {zpacked[:len(zpacked)-100], ErrTruncated, nil},
		"zstd of a huge window":       {[]byte{0x28, 0xb5, 0x2f, 0xfd, 0, 0xa0, 1, 0, 0}, zstd.ErrWindowSizeExceeded, []string{"--long=27"}},
	} {
		t.Run(name, func(t *testing.T) {
			cache := t.TempDir()
			path := fileOf(t, c.content)
			_, err := File(context.Background(), path, Options{}, cache, nil)
			if err == nil {
				t.Fatal("no error")
			}
			if c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %q is not %q", err, c.is)
			}
			for _, s := range append(c.says, path) {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			checkNothingLeft(t, cache)
		})
	}
}

// utf16Of encodes text behind a mark.
func utf16Of(text []byte, order binary.AppendByteOrder, mark string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(mark + string(text))) {
		out = order.AppendUint16(out, unit)
	}
	return out
}

func TestFilesThatAreNoneAreRefused(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, says string }{
		{dir, "is a folder"}, {pipe, "is not a regular file"}, {link, "is not a regular file"}, {"/dev/zero", "is not a regular file"},
		{os.DevNull, "is not a regular file"}, {filepath.Join(dir, "absent"), ""},
	} {
		cache := t.TempDir()
		_, err := File(context.Background(), c.path, Options{}, cache, nil)
		if err == nil || !strings.Contains(err.Error(), c.path) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("error %v does not say %q of %s", err, c.says, c.path)
		}
		checkNothingLeft(t, cache)
	}
}

func TestPreparedCorpusMadeOfPipesIsDamaged(t *testing.T) {
	for _, name := range []string{corpus.EventsFile, corpus.ManifestFile} {
		c := build(t, ndjson(texts(someEvents(2)...)...), Options{})
		path := filepath.Join(c.Dir(), name)
		if err := errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o666)); err != nil {
			t.Fatal(err)
		}
		if _, err := corpus.Open(c.Dir()); !errors.Is(err, corpus.ErrDamaged) || !strings.Contains(err.Error(), path) {
			t.Errorf("error %v does not call %s damaged", err, path)
		}
	}
}

func TestOptionsOutOfRangeAreRefused(t *testing.T) {
	path := fileOf(t, ndjson(texts(someEvents(1)...)...))
	for _, o := range []Options{{MaxEventBytes: -1}, {MaxEventBytes: maxEventText + 1}, {MaxTags: -1}, {Limit: -1}} {
		if _, err := File(context.Background(), path, o, t.TempDir(), nil); err == nil {
			t.Errorf("%+v is accepted by File", o)
		}
		if _, err := Synthetic(context.Background(), synthetic.Spec{Events: 10, BaseTime: 1_780_272_000}, o, t.TempDir(), nil); err == nil {
			t.Errorf("%+v is accepted by Synthetic", o)
		}
	}
}

func TestCancellingStopsAndLeavesNothing(t *testing.T) {
	path := fileOf(t, ndjson(texts(someEvents(200)...)...))
	for _, stage := range []string{"hash", "prepare", "write"} {
		t.Run(stage, func(t *testing.T) {
			asked := errors.New("interrupted")
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			cache := t.TempDir()
			before := runtime.NumGoroutine()
			c, err := File(ctx, path, Options{}, cache, func(s string, done, total int64) {
				if s == stage {
					cancel(asked)
				}
			})
			// In the last stage the corpus may be complete before anybody looks.
			if err == nil && stage == "write" {
				c.Close()
			} else if !errors.Is(err, asked) || strings.Contains(err.Error(), "context") {
				t.Errorf("error %v, want %v", err, asked)
			}
			checkNothingLeft(t, cache)
			after := runtime.NumGoroutine()
			for until := time.Now().Add(20 * time.Second); after > before && time.Now().Before(until); after = runtime.NumGoroutine() {
				runtime.Gosched() // those that are told to end do so when they come to run
			}
			if after > before {
				t.Errorf("%d goroutines before, %d after", before, after)
			}
		})
	}
}

func TestGeneratingCanBeCancelled(t *testing.T) {
	t.Parallel()
	asked := errors.New("interrupted")
	for _, stage := range []string{"at once", "generate"} {
		ctx, cancel := context.WithCancelCause(context.Background())
		if stage == "at once" {
			cancel(asked)
		}
		cache := t.TempDir()
		_, err := Synthetic(ctx, synthetic.Spec{Events: 100, Seed: 1, BaseTime: 1_780_272_000}, Options{}, cache, func(s string, _, _ int64) {
			if s == stage {
				cancel(asked)
			}
		})
		if !errors.Is(err, asked) || strings.Contains(err.Error(), "context") {
			t.Errorf("%s: error %v, want %v", stage, err, asked)
		}
		checkNothingLeft(t, cache)
		cancel(nil)
	}
}

func TestSyntheticCorpusIsPreparedAndCached(t *testing.T) {
	t.Parallel()
	ctx, cache, spec := context.Background(), t.TempDir(), synthetic.Spec{Events: 120, Seed: 7, BaseTime: 1_780_272_000}
	c, err := Synthetic(ctx, spec, Options{}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkHolds(t, c, generated(t, spec))
	if m := c.Manifest(); m.Generator != synthetic.Name || m.GeneratorVersion != synthetic.Version || synthetic.Spec(*m.Spec) != spec {
		t.Errorf("manifest %+v does not say how it was made", m)
	}
	if err := corpus.Verify(ctx, c.Dir(), nil); err != nil {
		t.Error(err)
	}
	again, err := Synthetic(ctx, spec, Options{}, cache, func(stage string, _, _ int64) { t.Errorf("stage %s of a cached corpus", stage) })
	if err != nil {
		t.Fatal(err)
	}
	again.Close()
	newest, err := Synthetic(ctx, spec, Options{Limit: 40}, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	if newest.Len() != 40 || !bytes.HasSuffix(c.Text(), newest.Text()) {
		t.Errorf("limit 40 gives %d events that are not the newest", newest.Len())
	}
}

func TestManifestNamesNoFolder(t *testing.T) {
	path := fileOf(t, ndjson(texts(someEvents(2)...)...))
	c, err := File(context.Background(), path, Options{}, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	text, err := os.ReadFile(filepath.Join(c.Dir(), corpus.ManifestFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(path), filepath.Dir(c.Dir()), os.TempDir()} {
		if bytes.Contains(text, []byte(dir)) {
			t.Errorf("the manifest holds %s:\n%s", dir, text)
		}
	}
	if !bytes.Contains(text, []byte(`"file": "dump"`)) {
		t.Errorf("the manifest does not name the file:\n%s", text)
	}
}
