package synthetic

import (
	"slices"

	"relaybench/corpus"
)

// appendInvoice appends what looks like a Lightning invoice (BOLT-11) made at a Unix second over an
// amount in satoshis: prefix, timestamp, payment hash, description hash and checksum are well
// formed, the hashes and the signature random.
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
	return corpus.AppendBech32(dst, "lnbc"+sats+"0n", groups) // a satoshi is ten nano-bitcoin
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
