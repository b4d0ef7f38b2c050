package prepare

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// splitAll returns the texts that the splitter finds, and the error that ended it, nil for the
// regular end.
func splitAll(t testing.TB, r io.Reader) (texts []string, err error) {
	t.Helper()
	s := newSplitter(r)
	for {
		text, whole, err := s.next([]byte("kept:"))
		if err == io.EOF {
			return texts, nil
		}
		if err != nil {
			return texts, err
		}
		if !bytes.HasPrefix(text, []byte("kept:")) || whole == (len(text) == 5) {
			t.Fatalf("text %.80q, whole: %v", text, whole)
		}
		texts = append(texts, strings.TrimSpace(string(text[5:])))
	}
}

func TestSplitterReadsByteByByteTheSame(t *testing.T) {
	parts := texts(someEvents(20)...)
	for name, text := range map[string][]byte{
		"lines": ndjson(parts...), "objects": bytes.Join(parts, []byte(" ")), "array": jsonArray(parts...),
	} {
		whole, err := splitAll(t, bytes.NewReader(text))
		if err != nil || len(whole) != 20 {
			t.Fatalf("%s: %d texts, %v", name, len(whole), err)
		}
		single, err := splitAll(t, iotest.OneByteReader(bytes.NewReader(text)))
		if err != nil || strings.Join(single, "\n") != strings.Join(whole, "\n") {
			t.Errorf("%s: %d texts byte by byte, %v", name, len(single), err)
		}
	}
}

func TestSplitterPassesOnReadErrors(t *testing.T) {
	failure := errors.New("disk gone")
	for _, start := range []string{"", `{"a":1}` + "\n", `{"a":1}{"a"`, `[{"a":1}`, `[{"a":1},`, `[{"a":`, "\n\n"} {
		_, err := splitAll(t, io.MultiReader(strings.NewReader(start), iotest.ErrReader(failure)))
		if !errors.Is(err, failure) {
			t.Errorf("after %q: error %v, want %v", start, err, failure)
		}
	}
}

func TestSplitterPassesOverTextsThatAreTooLong(t *testing.T) {
	small := `{"a":1}`
	long := `{"a":"` + strings.Repeat("x", 2<<20) + `"}` // longer than the buffer, too
	brackets := `{"a":"` + strings.Repeat(`\"}{`, 300) + `"}`
	for name, text := range map[string]string{
		"lines":                     strings.Join([]string{small, long, small, brackets, small}, "\n"),
		"objects":                   small + long + small + brackets + small,
		"array":                     "[" + strings.Join([]string{small, long, small, brackets, small}, ",") + "]",
		"the first of lines":        strings.Join([]string{brackets, small, small, long, small}, "\n"),
		"the first of long objects": long + small + small + brackets + small,
		"rubbish among lines":       strings.Join([]string{small, strings.Repeat("x", 2<<20), small, small, strings.Repeat("y", 2<<20)}, "\n"),
		"rubbish among objects":     small + small + strings.Repeat("x", 2<<20) + small + strings.Repeat("y", 2<<20),
	} {
		s := newSplitter(strings.NewReader(text))
		s.limit = 1000
		var good, long int
		for {
			out, whole, err := s.next(nil)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if whole && strings.TrimSpace(string(out)) == small {
				good++
			} else if !whole && len(out) == 0 {
				long++
			}
		}
		if good != 3 || long != 2 || s.events != 5 || s.offset != int64(len(text)) {
			t.Errorf("%s: %d good, %d too long, of %d, in %d of %d bytes", name, good, long, s.events, s.offset, len(text))
		}
	}
}

// valuesOf are the texts that a sequence of objects and arrays holds, by encoding/json; ok is false
// where text is anything else.
func valuesOf(text []byte) (values []string, ok bool) {
	if bytes.Count(text, []byte("{"))+bytes.Count(text, []byte("["))+bytes.Count(text, []byte(" ")) > 50 || bytes.Contains(text, []byte(`"events"`)) {
		return nil, false // nested too deep for anybody, or a wrapper
	}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var value json.RawMessage
		if err := d.Decode(&value); err == io.EOF {
			return values, true
		} else if err != nil || value[0] != '{' && value[0] != '[' {
			return nil, false
		}
		if value[0] == '{' || bytes.TrimLeft(value[1:], " \t\r\n")[0] == '"' {
			values = append(values, string(value))
			continue
		}
		var elements []json.RawMessage
		if json.Unmarshal(value, &elements) != nil {
			return nil, false
		}
		for _, element := range elements {
			values = append(values, string(element))
		}
	}
}

// FuzzSplitter feeds it anything: it must end, and split any sequence of objects and arrays as
// encoding/json does.
func FuzzSplitter(f *testing.F) {
	parts := texts(someEvents(2)...)
	for _, seed := range [][]byte{
		ndjson(parts...), bytes.Join(parts, nil), jsonArray(parts...),
		[]byte("{\"a\":\n{\n}}\n{\"b\":\"\\\"}{\"} x {}"), []byte(`["a",{}]`), []byte("[[],{},1,\"]\"]"), []byte("{\"a\n{}\n{}"), []byte("\xef\xbb\xbf{}"),
		[]byte("}{"), []byte("[}"), []byte("[1 2]"), []byte("[1,]"), []byte("[] []"), []byte("{]}"), []byte("\"\\"), {0},
		[]byte("{}[{},\n[]]\n\n[\n{\n\"a\":\n[\n]\n}\n]{\"events\":[{}],\"b\":1}"), []byte("\x1e{}\n\x1e{\"events\": [ {} , 1]}"), []byte("{\"events\":[],\n{}"),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := splitAll(t, bytes.NewReader(text))
		if len(found) > len(text) {
			t.Fatalf("%d texts in %d bytes", len(found), len(text))
		}
		want, ok := valuesOf(text)
		if ok && (err != nil || !slices.Equal(found, want)) {
			t.Fatalf("%q and error %v, not %q", found, err, want)
		}
		single, errSingle := splitAll(t, iotest.OneByteReader(bytes.NewReader(text)))
		if !slices.Equal(single, found) || (err == nil) != (errSingle == nil) {
			t.Fatalf("byte by byte %q and error %v, not %q and %v", single, errSingle, found, err)
		}
	})
}
