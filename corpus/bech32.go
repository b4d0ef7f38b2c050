package corpus

import "strings"

// bech32Digits are the 32 digits of BIP-173.
const bech32Digits = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// AppendBech32 appends a BIP-173 string of 5-bit groups with its checksum.
func AppendBech32(dst []byte, prefix string, groups []byte) []byte {
	check := uint32(1)
	absorb := func(v byte) {
		top := check >> 25
		check = check&0x1ffffff<<5 ^ uint32(v)
		for i, g := range [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if top>>i&1 == 1 {
				check ^= g
			}
		}
	}
	for _, c := range []byte(prefix) {
		absorb(c >> 5)
	}
	absorb(0)
	for _, c := range []byte(prefix) {
		absorb(c & 31)
	}
	dst = append(dst, prefix...)
	dst = append(dst, '1')
	for _, g := range groups {
		absorb(g)
		dst = append(dst, bech32Digits[g])
	}
	for range 6 {
		absorb(0)
	}
	check ^= 1
	for i := range 6 {
		dst = append(dst, bech32Digits[check>>(25-5*i)&31])
	}
	return dst
}

// AppendNpub appends a public key as NIP-19 writes it for people.
func AppendNpub(dst []byte, pk PubKey) []byte {
	groups := make([]byte, 0, 52)
	acc, bits := uint32(0), 0
	for _, b := range pk {
		acc, bits = acc<<8|uint32(b), bits+8
		for bits >= 5 {
			bits -= 5
			groups = append(groups, byte(acc>>bits&31))
		}
	}
	groups = append(groups, byte(acc<<(5-bits)&31))
	return AppendBech32(dst, "npub", groups)
}

// ParseNpub decodes a public key as NIP-19 writes it for people, npub1…, in lower case; ok is false
// for anything else, a wrong checksum included.
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
	// There is one spelling of each key: writing it again checks checksum and bits left over.
	if string(AppendNpub(nil, pk)) != text {
		return PubKey{}, false
	}
	return pk, true
}
