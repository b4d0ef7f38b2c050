// Package corpus holds Nostr events: their form, and one fingerprinted file of them, prepared and
// opened. How such a file is made is in prepare and synthetic, what a relay makes of it in model.
package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"unsafe"

	"relaybench/corpus/scan"
)

// ID is an event's id, the sha256 of its serialization (NIP-01), in binary.
type ID [32]byte

// PubKey is an author's x-only secp256k1 public key (BIP-340), in binary.
type PubKey [32]byte

// Signature is a BIP-340 signature over an event's id, in binary.
type Signature [64]byte

// String returns the 64 lower-case hexadecimal digits that the wire uses.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// String returns the 64 lower-case hexadecimal digits that the wire uses.
func (pk PubKey) String() string { return hex.EncodeToString(pk[:]) }

// String returns the 128 lower-case hexadecimal digits that the wire uses.
func (s Signature) String() string { return hex.EncodeToString(s[:]) }

// ParseID decodes 64 lower-case hexadecimal digits; ok is false for anything else.
func ParseID[T ~string | ~[]byte](digits T) (id ID, ok bool) {
	return id, decodeHex(id[:], digits)
}

// ParsePubKey decodes 64 lower-case hexadecimal digits; ok is false for anything else.
func ParsePubKey[T ~string | ~[]byte](digits T) (pk PubKey, ok bool) {
	return pk, decodeHex(pk[:], digits)
}

// Tag is one tag of an event: its name, then its values.
type Tag []string

// Name returns the tag's first element, or "" for an empty tag.
func (t Tag) Name() string {
	if len(t) == 0 {
		return ""
	}
	return t[0]
}

// Value returns the tag's second element, or "" where there is none.
func (t Tag) Value() string {
	if len(t) < 2 {
		return ""
	}
	return t[1]
}

// Event is a signed Nostr event (NIP-01). CreatedAt is in Unix seconds.
type Event struct {
	ID        ID
	PubKey    PubKey
	CreatedAt int64
	Kind      int
	Tags      []Tag
	Content   string
	Sig       Signature
}

// Kinds that other kinds' handling depends on.
const (
	KindDeletion = 5  // NIP-09
	KindVanish   = 62 // NIP-62
)

// IsReplaceable reports whether only the newest event of this kind and author is kept (NIP-01).
func IsReplaceable(kind int) bool {
	return kind == 0 || kind == 3 || 10000 <= kind && kind < 20000
}

// IsEphemeral reports whether events of this kind are passed on and never stored (NIP-01).
func IsEphemeral(kind int) bool { return 20000 <= kind && kind < 30000 }

// IsAddressable reports whether the newest event of kind, author and d tag is kept alone (NIP-01).
func IsAddressable(kind int) bool { return 30000 <= kind && kind < 40000 }

// D returns the value of the first d tag, "" where there is none, which addresses alike (NIP-01).
func (e *Event) D() string {
	for _, t := range e.Tags {
		if len(t) > 0 && t[0] == "d" {
			return t.Value()
		}
	}
	return ""
}

// Expiration returns the NIP-40 expiry in Unix seconds; ok is false where none can be read.
func (e *Event) Expiration() (at int64, ok bool) {
	for _, t := range e.Tags {
		if len(t) > 1 && t[0] == "expiration" {
			at, err := strconv.ParseInt(t[1], 10, 64)
			return at, err == nil
		}
	}
	return 0, false
}

// AppendJSON appends the event as canonical JSON: NIP-01's order and escapes, no spaces.
func (e *Event) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"id":"`...)
	dst = hex.AppendEncode(dst, e.ID[:])
	dst = e.appendFields(dst, `","pubkey":"`, `","created_at":`, `,"kind":`, `,"tags":`, `,"content":`)
	dst = append(dst, `,"sig":"`...)
	dst = hex.AppendEncode(dst, e.Sig[:])
	return append(dst, `"}`...)
}

// AppendSerialization appends the array whose sha256 is the event's id (NIP-01).
func (e *Event) AppendSerialization(dst []byte) []byte {
	return append(e.appendFields(dst, `[0,"`, `",`, `,`, `,`, `,`), ']')
}

// appendFields appends what an id is the hash of, each field behind what stands before it.
func (e *Event) appendFields(dst []byte, pubKey, createdAt, kind, tags, content string) []byte {
	dst = append(dst, pubKey...)
	dst = hex.AppendEncode(dst, e.PubKey[:])
	dst = append(dst, createdAt...)
	dst = strconv.AppendInt(dst, e.CreatedAt, 10)
	dst = append(dst, kind...)
	dst = strconv.AppendInt(dst, int64(e.Kind), 10)
	dst = append(dst, tags...)
	dst = appendList(dst, e.Tags, func(dst []byte, t Tag) []byte { return appendList(dst, t, AppendString) })
	dst = append(dst, content...)
	return AppendString(dst, e.Content)
}

// Hash computes the id that the event's other fields demand (NIP-01).
func (e *Event) Hash() ID { return sha256.Sum256(e.AppendSerialization(nil)) }

// CheckID reports whether the event's id is the hash of its other fields.
func (e *Event) CheckID() bool { return e.Hash() == e.ID }

// AppendString appends s as a JSON string with NIP-01's escapes. NIP-01 lists seven characters to
// escape and wants the rest verbatim; other control characters are escaped as \u00xx all the same,
// as JSON demands and as relays hash them.
func AppendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	text := unsafe.Slice(unsafe.StringData(s), len(s)) // only read
	for i := 0; i < len(s); i++ {
		if i, _ = scan.Plain(text, i); i == len(text) {
			break
		}
		c := text[i]
		dst = append(dst, s[start:i]...)
		start = i + 1
		if at := strings.IndexByte("\"\\\n\r\t\b\f", c); at >= 0 {
			dst = append(dst, '\\', `"\nrtbf`[at])
		} else {
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// decodeHex fills dst from exactly 2·len(dst) lower-case hexadecimal digits.
func decodeHex[T ~string | ~[]byte](dst []byte, digits T) bool {
	if len(digits) != 2*len(dst) {
		return false
	}
	for i := range dst {
		hi, lo := nibbles[digits[2*i]], nibbles[digits[2*i+1]]
		if hi|lo > 15 {
			return false
		}
		dst[i] = hi<<4 | lo
	}
	return true
}

// nibbles maps a lower-case hexadecimal digit to its value and every other byte to 255.
var nibbles = func() (t [256]byte) {
	for i := range t {
		t[i] = 255
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = c - '0'
	}
	for c := byte('a'); c <= 'f'; c++ {
		t[c] = c - 'a' + 10
	}
	return t
}()
