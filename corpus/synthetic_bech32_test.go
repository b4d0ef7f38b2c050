package corpus

import (
	"regexp"
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
		if got := string(appendNpub(nil, pk)); got != c.npub {
			t.Errorf("npub of %s is %s, want %s", c.hex, got, c.npub)
		}
	}
}

func TestAppendInvoiceLooksLikeBOLT11(t *testing.T) {
	got := string(appendInvoice(nil, newRandStream([32]byte{3}), 1_780_000_000, "21"))
	if !regexp.MustCompile(`^lnbc210n1[02-9ac-hj-np-z]{7}p[02-9ac-hj-np-z]{54}h[02-9ac-hj-np-z]{54}[02-9ac-hj-np-z]{110}$`).MatchString(got) {
		t.Errorf("invoice is %s", got)
	}
}
