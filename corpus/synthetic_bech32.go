package corpus

import "slices"

// bech32Digits are the 32 digits of BIP-173.
const bech32Digits = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// appendBech32 appends a BIP-173 string of 5-bit groups with its checksum.
func appendBech32(dst []byte, prefix string, groups []byte) []byte {
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

// appendNpub appends a public key as NIP-19 writes it for people.
func appendNpub(dst []byte, pk PubKey) []byte {
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
	return appendBech32(dst, "npub", groups)
}

// appendInvoice appends what looks like a Lightning invoice (BOLT-11) made at a Unix second over an amount in satoshis: prefix,
// timestamp, payment hash, description hash and checksum are well formed, the hashes and the signature random.
func appendInvoice(dst []byte, r *randStream, at int64, sats string) []byte {
	groups := make([]byte, 0, 7+2*55+104)
	for shift := 30; shift >= 0; shift -= 5 {
		groups = append(groups, byte(at>>shift&31))
	}
	const paymentHash, descriptionHash = 1, 23
	for _, field := range []byte{paymentHash, descriptionHash} {
		groups = append(groups, field, 1, 20) // 1·32 + 20 = 52 groups follow
		groups = appendGroups(groups, r, 52)
	}
	groups = appendGroups(groups, r, 104)
	return appendBech32(dst, "lnbc"+sats+"0n", groups) // a satoshi is ten nano-bitcoin
}

func appendGroups(groups []byte, r *randStream, n int) []byte {
	start := len(groups)
	groups = slices.Grow(groups, n)[:start+n]
	r.fill(groups[start:])
	for i := range groups[start:] {
		groups[start+i] &= 31
	}
	return groups
}
