package scan

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestValidUTF8AgreesWithTheStandardLibrary(t *testing.T) {
	// Every sequence of three bytes that begins with a lead byte of three, with what may follow it
	// in the same word.
	for lead := 0xe0; lead <= 0xef; lead++ {
		for second := 0x70; second <= 0xcf; second++ {
			for _, third := range []int{0x00, 0x7f, 0x80, 0xbf, 0xc0} {
				for _, rest := range []string{"", "12345678", "語のx12", "\xed\xa0\x80..", "\xe0\x80\x80..", "é12345"} {
					checkUTF8(t, "abc"+string([]byte{byte(lead), byte(second), byte(third)})+rest)
					checkUTF8(t, string([]byte{byte(lead), byte(second), byte(third)})+rest)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 3))
	parts := []string{"a", "ascii text of some length", "é", "語", "日本", "ส", "😀", "\xff", "\xc0\xaf", "\xed\xbf\xbf", "\xe6\x97", "\xf4\x90\x80\x80", "\x80"}
	for range 100_000 {
		var text strings.Builder
		for range r.IntN(8) {
			text.WriteString(parts[r.IntN(len(parts))])
		}
		checkUTF8(t, text.String())
	}
}

func checkUTF8(t *testing.T, text string) {
	t.Helper()
	if got, want := validUTF8([]byte(text)), utf8.ValidString(text); got != want {
		t.Fatalf("%q: %v, want %v", text, got, want)
	}
}

func FuzzValidUTF8(f *testing.F) {
	f.Add("日本語 text \xff")
	f.Fuzz(func(t *testing.T, text string) { checkUTF8(t, text) })
}
