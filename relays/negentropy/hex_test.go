package negentropy

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestHexIsThatOfTheStandardLibrary(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for length := range 70 {
		raw := make([]byte, length)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		text := AppendHex([]byte("head "), raw)
		if want := "head " + hex.EncodeToString(raw); string(text) != want {
			t.Fatalf("%x is written %q", raw, text)
		}
		for _, digits := range []string{string(text[5:]), strings.ToUpper(string(text[5:]))} {
			back, err := DecodeHex([]byte("head "), []byte(digits))
			if err != nil || string(back) != "head "+string(raw) {
				t.Fatalf("%q is read as %q, %v", digits, back, err)
			}
		}
	}
	for b := range 256 {
		if got := AppendHex(nil, []byte{byte(b), 0, byte(b), 255}); string(got) != hex.EncodeToString([]byte{byte(b), 0, byte(b), 255}) {
			t.Fatalf("%d is written %q", b, got)
		}
	}
}

func TestHexErrorsNameTheOffset(t *testing.T) {
	clean := strings.Repeat("0a", 10)
	for at := range len(clean) {
		for c := range 256 {
			text := []byte(clean)
			text[at] = byte(c)
			_, want := hex.DecodeString(string(text))
			dst := []byte("kept")
			got, err := DecodeHex(dst, text)
			if (err != nil) != (want != nil) {
				t.Fatalf("%q: %v, want %v", text, err, want)
			}
			var place *FormatError
			if err != nil && (!errors.As(err, &place) || place.Offset != at || string(got) != "kept") {
				t.Fatalf("%q: error %v, result %q", text, err, got)
			}
		}
	}
	_, err := DecodeHex(nil, []byte("abc"))
	var place *FormatError
	if !errors.As(err, &place) || place.Offset != 3 {
		t.Fatalf("odd number of digits: %v", err)
	}
}

func FuzzHex(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("61000002"))
	f.Add([]byte("6100000200ABCDEFabcdef0123456789"))
	f.Add([]byte("61000002:0abcdef"))
	f.Add([]byte("6100\xff0020"))
	f.Fuzz(func(t *testing.T, text []byte) {
		want, wrong := hex.DecodeString(string(text))
		got, err := DecodeHex(nil, text)
		if (err != nil) != (wrong != nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%q: %x %v, want %x %v", text, got, err, want, wrong)
		}
		if again := AppendHex(nil, text); string(again) != hex.EncodeToString(text) {
			t.Fatalf("%x is written %q", text, again)
		}
	})
}

func BenchmarkHex(b *testing.B) {
	raw := make([]byte, 500_000)
	for i := range raw {
		raw[i] = byte(i * 7)
	}
	text := AppendHex(nil, raw)
	b.Run("append", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		dst := make([]byte, 0, len(text))
		for b.Loop() {
			dst = AppendHex(dst[:0], raw)
		}
	})
	b.Run("append/standard", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		dst := make([]byte, 0, len(text))
		for b.Loop() {
			dst = hex.AppendEncode(dst[:0], raw)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		b.ReportAllocs()
		dst := make([]byte, 0, len(raw))
		for b.Loop() {
			dst, _ = DecodeHex(dst[:0], text)
		}
	})
	b.Run("decode/standard", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		dst := make([]byte, len(raw))
		for b.Loop() {
			hex.Decode(dst, text)
		}
	})
}
