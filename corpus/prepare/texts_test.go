package prepare

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

func TestTextsReadsAnyStream(t *testing.T) {
	const lines = "{\"a\":1}\n\n{\"a\":2}\r\nnot JSON\n{\"a\":3}"
	want := []string{`{"a":1}`, `{"a":2}`, "not JSON", `{"a":3}`}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write([]byte(lines))
	_ = w.Close()
	encoder, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, stream := range map[string][]byte{
		"plain": []byte(lines), "gzip": zipped.Bytes(), "zstd": encoder.EncodeAll([]byte(lines), nil),
	} {
		texts, err := NewTexts(bytes.NewReader(stream), name)
		if err != nil {
			t.Fatal(name, err)
		}
		var got []string
		for {
			text, whole, err := texts.Next(nil)
			if err == io.EOF {
				break
			}
			if err != nil || !whole {
				t.Fatal(name, whole, err)
			}
			got = append(got, strings.TrimSpace(string(text)))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%s: %q", name, got)
		}
		if err := texts.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

func TestTextsSaysWhereAStreamBreaksOff(t *testing.T) {
	texts, err := NewTexts(strings.NewReader("{\"a\":1}\n{\"a\":"), "standard input")
	if err != nil {
		t.Fatal(err)
	}
	defer texts.Close()
	if _, _, err := texts.Next(nil); err != nil {
		t.Fatal(err)
	}
	var where *SourceError
	if _, _, err := texts.Next(nil); !errors.Is(err, ErrTruncated) || !errors.As(err, &where) || where.File != "standard input" || where.Event != 2 {
		t.Errorf("%v", err)
	}
	empty, err := NewTexts(strings.NewReader(""), "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := empty.Next(nil); err != io.EOF {
		t.Errorf("an empty stream: %v", err)
	}
	if _, err := NewTexts(strings.NewReader("BZh9 and so on"), "x"); err == nil || !strings.Contains(err.Error(), "bzip2") {
		t.Errorf("bzip2: %v", err)
	}
}
