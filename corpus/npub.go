package corpus

import "strings"

// ParseNpub decodes a public key as NIP-19 writes it for people, npub1…, in lower case; ok is false for anything else, a wrong checksum included.
func ParseNpub(text string) (pk PubKey, ok bool) {
	const head, digits, checksum = "npub1", 52, 6
	if len(text) != len(head)+digits+checksum || !strings.HasPrefix(text, head) {
		return pk, false
	}
	acc, bits, n := uint32(0), 0, 0
	for _, c := range []byte(text[len(head) : len(head)+digits]) {
		group := strings.IndexByte(bech32Digits, c)
		if group < 0 {
			return PubKey{}, false
		}
		acc, bits = acc<<5|uint32(group), bits+5
		if bits >= 8 {
			bits -= 8
			pk[n] = byte(acc >> bits)
			n++
		}
	}
	// There is one spelling of each key, so that writing it again checks the checksum and the bits left over.
	if string(appendNpub(nil, pk)) != text {
		return PubKey{}, false
	}
	return pk, true
}
