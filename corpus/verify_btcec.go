//go:build !libsecp256k1

package corpus

import "github.com/btcsuite/btcd/btcec/v2/schnorr"

// Verifier names the library that checks signatures in this build.
const Verifier = "btcec (pure Go)"

func verifySignature(pk *PubKey, id *ID, sig *Signature) bool {
	key, err := schnorr.ParsePubKey(pk[:])
	if err != nil {
		return false
	}
	s, err := schnorr.ParseSignature(sig[:])
	if err != nil {
		return false
	}
	return s.Verify(id[:], key)
}
