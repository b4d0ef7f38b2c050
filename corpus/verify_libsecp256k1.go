//go:build libsecp256k1

package corpus

/*
#cgo pkg-config: libsecp256k1
#include <secp256k1.h>
#include <secp256k1_extrakeys.h>
#include <secp256k1_schnorrsig.h>

static int relaybench_verify(const secp256k1_context *ctx, const unsigned char *pk, const unsigned char *id, const unsigned char *sig) {
	secp256k1_xonly_pubkey key;
	return secp256k1_xonly_pubkey_parse(ctx, &key, pk) && secp256k1_schnorrsig_verify(ctx, sig, id, 32, &key);
}
*/
import "C"

import "unsafe"

// Verifier names the library that checks signatures in this build.
const Verifier = "libsecp256k1 (C)"

// secpContext is never changed after creation, so that all goroutines may share it.
var secpContext = C.secp256k1_context_create(C.SECP256K1_CONTEXT_VERIFY)

func verifySignature(pk *PubKey, id *ID, sig *Signature) bool {
	return C.relaybench_verify(secpContext, (*C.uchar)(unsafe.Pointer(&pk[0])), (*C.uchar)(unsafe.Pointer(&id[0])), (*C.uchar)(unsafe.Pointer(&sig[0]))) == 1
}
