package prepare

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"relaybench/corpus"
)

// packed are files in a tar archive, in the order of their names' appearance.
func packed(t testing.TB, format tar.Format, entries ...any) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for i := 0; i < len(entries); i += 2 {
		h := &tar.Header{Name: entries[i].(string), Mode: 0o644, Format: format}
		var content []byte
		switch e := entries[i+1].(type) {
		case []byte:
			h.Typeflag, h.Size, content = tar.TypeReg, int64(len(e)), e
		case byte:
			h.Typeflag, h.Linkname = e, "elsewhere"
		}
		if strings.HasSuffix(h.Name, "/") {
			h.Typeflag, h.Linkname = tar.TypeDir, ""
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestEveryPartOfATarArchiveIsRead(t *testing.T) {
	t.Parallel()
	events := someEvents(60)
	p := texts(events...)
	long := strings.Repeat("a-folder-with-a-name/", 20) + "part.ndjson"
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatPAX, tar.FormatGNU} {
		name := long
		if format == tar.FormatUSTAR {
			name = "d/part-3"
		}
		// The forms differ, one part ends without a line break, one is compressed, and one is
		// empty.
		archive := packed(t, format, "d/", byte(0), "d/part-1.ndjson", ndjson(p[:20]...), "d/part-2", bytes.TrimSpace(ndjson(p[20:25]...)), name, jsonArray(p[25:40]...),
			"none", []byte{}, "../part-4.gz", gzipped(t, ndjson(p[40:50]...)), "part-5", zstandard(t, gzipped(t, ndjson(p[50:]...))))
		for compression, content := range map[string][]byte{"plain": archive, "gzip": gzipped(t, archive), "gzip in gzip": gzipped(t, gzipped(t, archive)), "zstd": zstandard(t, archive)} {
			t.Run(fmt.Sprint(format, " ", compression), func(t *testing.T) {
				c := build(t, content, Options{})
				checkHolds(t, c, events)
				checkDropped(t, c, nil)
			})
		}
	}
}

func TestManySmallPartsAreOneCorpus(t *testing.T) {
	t.Parallel()
	events := someEvents(200)
	var entries []any
	for i, text := range texts(events...) {
		entries = append(entries, fmt.Sprint(i), append(text, '\n'))
	}
	checkHolds(t, build(t, packed(t, tar.FormatGNU, entries...), Options{}), events)
}

func TestAnUnparseableTextOfAnArchiveIsNamed(t *testing.T) {
	events := someEvents(3)
	p := texts(events...)
	c := build(t, packed(t, tar.FormatGNU, "one", ndjson(p[0], p[1]), "two\x1b", ndjson(p[2], []byte("hello"))), Options{})
	checkHolds(t, c, events)
	first := c.Manifest().FirstUnparseable
	if first == nil || *first != (corpus.Failure{Part: "two\x1b", Line: 2, Why: "no JSON object"}) || first.String() != `"two\x1b", line 2: no JSON object` {
		t.Errorf("%+v", first)
	}
}

func TestArchivesThatCannotBeReadWholeAreRefused(t *testing.T) {
	t.Parallel()
	p := texts(someEvents(20)...)
	good := packed(t, tar.FormatGNU, "part-1", ndjson(p[:10]...), "part-2", ndjson(p[10:]...))
	size := 512 + (len(ndjson(p[:10]...))+511)/512*512 // of the first entry
	huge := func(size uint64) []byte {                 // an entry that says that it is so large
		head := bytes.Clone(good[:512])
		copy(head[124:136], make([]byte, 12))
		head[124] = 0x80
		binary.BigEndian.PutUint64(head[128:136], size)
		copy(head[148:156], "        ")
		sum := 0
		for _, c := range head {
			sum += int(c)
		}
		copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
		return append(head, ndjson(p...)...)
	}
	sparse := bytes.Clone(good)
	sparse[156] = tar.TypeGNUSparse
	copy(sparse[148:156], "        ")
	sum := 0
	for _, c := range sparse[:512] {
		sum += int(c)
	}
	copy(sparse[148:156], fmt.Sprintf("%06o\x00 ", sum))
	broken := bytes.Clone(good)
	broken[size+10] ^= 1
	for name, c := range map[string]struct {
		content []byte
		is      error
		says    []string
	}{
		"cut in a part":            {good[:1500], ErrTruncated, []string{`"part-1"`, "line", "ends inside this file"}},
		"cut behind a part":        {good[:size], ErrTruncated, []string{"no end", `"part-1"`}},
		"cut in a header":          {good[:size+100], ErrTruncated, []string{`behind entry "part-1"`}},
		"cut and compressed":       {gzipped(t, good[:size]), ErrTruncated, []string{"no end"}},
		"gzip cut":                 {gzipped(t, good)[:2000], ErrTruncated, nil},
		"a damaged header":         {broken, tar.ErrHeader, []string{`behind entry "part-1"`}},
		"two archives":             {append(bytes.Clone(good), good...), nil, []string{"second archive"}},
		"a link":                   {packed(t, tar.FormatGNU, "one", ndjson(p...), "two", byte(tar.TypeSymlink)), nil, []string{`"two"`, "a link"}},
		"a hard link":              {packed(t, tar.FormatGNU, "one", ndjson(p...), "two", byte(tar.TypeLink)), nil, []string{`"two"`, "a link"}},
		"a device":                 {packed(t, tar.FormatGNU, "one", byte(tar.TypeBlock)), nil, []string{`"one"`, "a device"}},
		"a pipe":                   {packed(t, tar.FormatGNU, "one\n\x1b[31m", byte(tar.TypeFifo)), nil, []string{`"one\n\x1b[31m"`, "a pipe"}},
		"a sparse file":            {sparse, nil, []string{`"part-1"`, "sparse"}},
		"a huge size":              {huge(1 << 62), ErrTruncated, []string{"ends inside this file"}},
		"an impossible size":       {huge(1<<63 + 5), nil, []string{"damaged"}},
		"a tar archive in it":      {packed(t, tar.FormatGNU, "in.tar", good), nil, []string{`"in.tar"`, "within a tar archive"}},
		"a zip archive in it":      {packed(t, tar.FormatGNU, "in.zip", []byte("PK\x03\x04 and so on")), nil, []string{`"in.zip"`, "zip archive"}},
		"an array without its end": {packed(t, tar.FormatGNU, "one", []byte("["), "two", ndjson(p...)), ErrTruncated, []string{`"one"`, "no end"}},
		"folders alone":            {packed(t, tar.FormatGNU, "a/", byte(0), "a/b/", byte(0)), ErrEmpty, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cache, path := t.TempDir(), fileOf(t, c.content)
			_, err := File(context.Background(), path, Options{}, cache, nil)
			if err == nil || c.is != nil && !errors.Is(err, c.is) {
				t.Fatalf("error %v is not %v", err, c.is)
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

// FuzzArchive reads anything as an archive: it must end, and say so where it reads less than the
// library finds.
func FuzzArchive(f *testing.F) {
	p := texts(someEvents(4)...)
	good := packed(f, tar.FormatPAX, "one", ndjson(p[:2]...), strings.Repeat("n", 200), ndjson(p[2:]...))
	f.Add(good)
	f.Add(good[:2000])
	f.Add(packed(f, tar.FormatGNU, "a/", byte(0), "l", byte(tar.TypeSymlink)))
	f.Add(append(slices.Clone(good), good...))
	f.Fuzz(func(t *testing.T, content []byte) {
		texts, err := NewTexts(bytes.NewReader(content), "fuzz")
		if err != nil {
			return
		}
		defer texts.Close()
		for n := 0; ; n++ {
			if n > len(content) {
				t.Fatal("more texts than bytes")
			}
			if _, _, err = texts.Next(nil); err != nil {
				break
			}
		}
		if !isTar(content[:min(len(content), tarBlock)]) || err != io.EOF {
			return
		}
		for r := tar.NewReader(bytes.NewReader(content)); ; {
			h, err := r.Next()
			if err == io.EOF {
				return
			}
			if err != nil || h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeXGlobalHeader {
				t.Fatalf("%v, %+v: and yet it was read to its end", err, h)
			}
		}
	})
}
