package corpus

import (
	"errors"
	"fmt"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
)

// ErrBadID and ErrBadSignature tell apart the two ways in which a well-formed event can be forged.
var (
	ErrBadID        = errors.New("id is not the hash of the event")
	ErrBadSignature = errors.New("signature does not verify")
)

// Verify checks that the event's id is its hash (NIP-01) and that its signature is valid (BIP-340).
// The error is ErrBadID or ErrBadSignature. Verifier names the library that does the work.
func (e *Event) Verify() error {
	if !e.CheckID() {
		return ErrBadID
	}
	if !e.CheckSignature() {
		return ErrBadSignature
	}
	return nil
}

// CheckSignature reports whether the signature over the event's id is valid (BIP-340).
func (e *Event) CheckSignature() bool { return verifySignature(&e.PubKey, &e.ID, &e.Sig) }

// SecretKey signs events.
type SecretKey struct {
	key    *btcec.PrivateKey
	PubKey PubKey
}

// NewSecretKey makes a key of 32 big-endian bytes; it fails for what is no scalar of the group.
func NewSecretKey(b [32]byte) (SecretKey, error) {
	var scalar btcec.ModNScalar
	if overflow := scalar.SetBytes(&b); overflow != 0 || scalar.IsZero() {
		return SecretKey{}, errors.New("secret key out of range")
	}
	key, pub := btcec.PrivKeyFromBytes(b[:])
	k := SecretKey{key: key}
	copy(k.PubKey[:], schnorr.SerializePubKey(pub))
	return k, nil
}

// Sign fills in the event's public key, id and signature. aux is BIP-340's auxiliary randomness:
// the same event, key and aux give the same signature on every machine.
func (k SecretKey) Sign(e *Event, aux [32]byte) error {
	e.PubKey = k.PubKey
	e.ID = e.Hash()
	sig, err := k.signID(&e.ID, aux)
	if err != nil {
		return fmt.Errorf("signing an event: %w", err)
	}
	e.Sig = sig
	return nil
}

func (k SecretKey) signID(id *ID, aux [32]byte) (sig Signature, err error) {
	s, err := schnorr.Sign(k.key, id[:], schnorr.CustomNonce(aux), schnorr.FastSign())
	if err != nil {
		return sig, err
	}
	copy(sig[:], s.Serialize())
	return sig, nil
}
