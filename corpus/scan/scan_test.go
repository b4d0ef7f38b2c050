package scan

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzElements(f *testing.F) {
	for _, text := range []string{`[]`, ` ["EVENT" , {"a":[1,-0.5E-7]}, null,true] `, `["\ud800"]`, `[01]`, `[1.]`, `[-]`, `[tru]`, `[1]]`, `[[[]]]`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		spans, err := Elements(text)
		var want []json.RawMessage
		wantErr := json.Unmarshal(text, &want)
		isArray := wantErr == nil && want != nil && utf8.Valid(text)
		if err == nil && !isArray {
			t.Fatalf("accepted %q: %v", text, wantErr)
		}
		if err != nil {
			if isArray && !strings.Contains(err.Error(), "nested deeper") {
				t.Fatalf("%v in %q", err, text)
			}
			return
		}
		if len(spans) != len(want) {
			t.Fatalf("%d elements, want %d", len(spans), len(want))
		}
		for i := range spans {
			if !bytes.Equal(spans[i], want[i]) {
				t.Fatalf("element %d is %q, want %q", i, spans[i], want[i])
			}
		}
	})
}

func FuzzString(f *testing.F) {
	for _, text := range []string{`""`, `"a\u00e9\ud83d\ude00"`, `"\ud83d\ud83d\ude00"`, `"\ud83dx"`, `"\`, `"\u12`, "\"\xff\"", `"\/"`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := String(text)
		var want *string
		ok := json.Unmarshal(text, &want) == nil && want != nil && utf8.Valid(text)
		if ok != (err == nil) || ok && got != *want {
			t.Fatalf("%q read as %q, %v; want %v", text, got, err, want)
		}
	})
}

// TestPlainFindsTheFirstOfEightBytes looks for every byte at every place of a word.
func TestPlainFindsTheFirstOfEightBytes(t *testing.T) {
	for at := range 8 {
		for _, others := range []byte{' ', 'a', 0x21, 0x23, 0x5b, 0x5d, 0x7f, 0x80, 0xa2, 0xdc, 0xff} {
			for c := range 256 {
				text := bytes.Repeat([]byte{others}, 8)
				text[at] = byte(c)
				want := 8
				if c < ' ' || c == '"' || c == '\\' {
					want = at
				}
				if got, high := Plain(text, 0); got != want || (high&highBits != 0) != (others >= 0x80 || c >= 0x80) && got == 8 {
					t.Fatalf("%q: %d, %x", text, got, high)
				}
			}
		}
	}
}
