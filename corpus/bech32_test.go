package corpus

import (
	"strings"
	"testing"
)

func TestAppendNpubMatchesNIP19(t *testing.T) {
	for _, c := range []struct{ hex, npub string }{
		// The two keys that NIP-19 gives as examples.
		{"3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d", "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"},
		{"7e7e9c42a91bfef19fa929e5fda1b72e0ebc1a4c1141673e2794234d86addf4e", "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg"},
	} {
		pk, ok := ParsePubKey(c.hex)
		if !ok {
			t.Fatalf("bad key %s in the test", c.hex)
		}
		if got := string(AppendNpub(nil, pk)); got != c.npub {
			t.Errorf("npub of %s is %s, want %s", c.hex, got, c.npub)
		}
	}
}

func TestNpubsAreReadWithTheirChecksum(t *testing.T) {
	const known, digits = "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6", "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d"
	pk, ok := ParseNpub(known)
	if !ok || pk.String() != digits {
		t.Fatalf("%v %v", pk, ok)
	}
	for i := range known {
		other := "q"
		if known[i:i+1] == other {
			other = "p"
		}
		if _, ok := ParseNpub(known[:i] + other + known[i+1:]); ok {
			t.Errorf("another character at %d was not noticed", i)
		}
	}
	for _, text := range []string{"", "npub1", digits, strings.ToUpper(known), known[:len(known)-1], known + "q", "nsec1" + known[5:]} {
		if _, ok := ParseNpub(text); ok {
			t.Errorf("%q was taken", text)
		}
	}
}

func FuzzParseNpub(f *testing.F) {
	f.Add("npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6")
	f.Fuzz(func(t *testing.T, text string) {
		if pk, ok := ParseNpub(text); ok && string(AppendNpub(nil, pk)) != text {
			t.Errorf("%q was read as %v", text, pk)
		}
	})
}
