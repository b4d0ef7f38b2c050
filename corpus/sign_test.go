package corpus

import (
	"encoding/hex"
	"errors"
	"testing"

	"github.com/nbd-wtf/go-nostr"
)

// The vectors that BIP-340 publishes for 32-byte messages. Those with a secret key are also signed.
var bip340 = []struct {
	secret, public, aux, message, signature string
	valid                                   bool
}{
	{"0000000000000000000000000000000000000000000000000000000000000003", "f9308a019258c31049344f85f89d5229b531c845836f99b08601f113bce036f9", "0000000000000000000000000000000000000000000000000000000000000000", "0000000000000000000000000000000000000000000000000000000000000000", "e907831f80848d1069a5371b402410364bdf1c5f8307b0084c55f1ce2dca821525f66a4a85ea8b71e482a74f382d2ce5ebeee8fdb2172f477df4900d310536c0", true},
	{"b7e151628aed2a6abf7158809cf4f3c762e7160f38b4da56a784d9045190cfef", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "0000000000000000000000000000000000000000000000000000000000000001", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "6896bd60eeae296db48a229ff71dfe071bde413e6d43f917dc8dcf8c78de33418906d11ac976abccb20b091292bff4ea897efcb639ea871cfa95f6de339e4b0a", true},
	{"c90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74020bbea63b14e5c9", "dd308afec5777e13121fa72b9cc1b7cc0139715309b086c960e18fd969774eb8", "c87aa53824b4d7ae2eb035a2b5bbbccc080e76cdc6d1692c4b0b62d798e6d906", "7e2d58d8b3bcdf1abadec7829054f90dda9805aab56c77333024b9d0a508b75c", "5831aaeed7b44bb74e5eab94ba9d4294c49bcf2a60728d8b4c200f50dd313c1bab745879a5ad954a72c45a91c3a51d3c7adea98d82f8481e0e1e03674a6f3fb7", true},
	{"0b432b2677937381aef05bb02a66ecd012773062cf3fa2549e44f58ed2401710", "25d1dff95105f5253c4022f628a996ad3a0d95fbf21d468a1b33f8c160d8f517", "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "7eb0509757e246f19449885651611cb965ecc1a187dd51b64fda1edc9637d5ec97582b9cb13db3933705b32ba982af5af25fd78881ebb32771fc5922efc66ea3", true},
	{"", "d69c3509bb99e412e68b0fe8544e72837dfa30746d8be2aa65975f29d22dc7b9", "", "4df3c3f68fcc83b27e9d42c90431a72499f17875c81a599b566c9889b9696703", "00000000000000000000003b78ce563f89a0ed9414f5aa28ad0d96d6795f9c6376afb1548af603b3eb45c9f8207dee1060cb71c04e80f593060b07d28308d7f4", true},
	// public key not on the curve
	{"", "eefdea4cdb677750a420fee807eacf21eb9898ae79b9768766e4faa04a2d4a34", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e17776969e89b4c5564d00349106b8497785dd7d1d713a8ae82b32fa79d5f7fc407d39b", false},
	// R has an odd y
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "fff97bd5755eeea420453a14355235d382f6472f8568a18b2f057a14602975563cc27944640ac607cd107ae10923d9ef7a73c643e166be5ebeafa34b1ac553e2", false},
	// message negated
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "1fa62e331edbc21c394792d2ab1100a7b432b013df3f6ff4f99fcb33e0e1515f28890b3edb6e7189b630448b515ce4f8622a954cfe545735aaea5134fccdb2bd", false},
	// s negated
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e177769961764b3aa9b2ffcb6ef947b6887a226e8d7c93e00c5ed0c1834ff0d0c2e6da6", false},
	// the point at infinity, with x taken as 0 and as 1
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "0000000000000000000000000000000000000000000000000000000000000000123dda8328af9c23a94c1feecfd123ba4fb73476f0d594dcb65c6425bd186051", false},
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "00000000000000000000000000000000000000000000000000000000000000017615fbaf5ae28864013c099742deadb4dba87f11ac6754f93780d5a1837cf197", false},
	// r is no x coordinate on the curve
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "4a298dacae57395a15d0795ddbfd1dcb564da82b0f269bc70a74f8220429ba1d69e89b4c5564d00349106b8497785dd7d1d713a8ae82b32fa79d5f7fc407d39b", false},
	// r is the field size; s is the curve order
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc2f69e89b4c5564d00349106b8497785dd7d1d713a8ae82b32fa79d5f7fc407d39b", false},
	{"", "dff1d77f2a671c5f36183726db2341be58feae1da2deced843240f7b502ba659", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e177769fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141", false},
	// public key over the field size
	{"", "fffffffffffffffffffffffffffffffffffffffffffffffffffffffefffffc30", "", "243f6a8885a308d313198a2e03707344a4093822299f31d0082efa98ec4e6c89", "6cff5c3ba86c69ea4b7376f31a9bcb4f74c1976089b2d9963da2e5543e17776969e89b4c5564d00349106b8497785dd7d1d713a8ae82b32fa79d5f7fc407d39b", false},
}

func TestSignaturesAgreeWithTheVectorsOfBIP340(t *testing.T) {
	t.Log("checked by", Verifier)
	for i, v := range bip340 {
		pk, _ := ParsePubKey(v.public)
		id, _ := ParseID(v.message)
		var sig Signature
		if _, err := hex.Decode(sig[:], []byte(v.signature)); err != nil {
			t.Fatal(err)
		}
		if got := verifySignature(&pk, &id, &sig); got != v.valid {
			t.Errorf("vector %d verifies: %v, want %v", i, got, v.valid)
		}
		if v.secret == "" {
			continue
		}
		secret, _ := ParseID(v.secret)
		aux, _ := ParseID(v.aux)
		key, err := NewSecretKey(secret)
		if err != nil {
			t.Fatal(err)
		}
		got, err := key.signID(&id, aux)
		if err != nil || got != sig || key.PubKey != pk {
			t.Errorf("vector %d: signed %s as %s, %v", i, got, key.PubKey, err)
		}
	}
}

func TestVerifyTellsForgeriesApart(t *testing.T) {
	key, err := NewSecretKey([32]byte{31: 7})
	if err != nil {
		t.Fatal(err)
	}
	e := Event{CreatedAt: 1700000000, Kind: 1, Tags: []Tag{{"t", "a\"b"}, {}}, Content: "line\nline \x01 😀 <>&"}
	if err := key.Sign(&e, [32]byte{1}); err != nil {
		t.Fatal(err)
	}
	if err := e.Verify(); err != nil {
		t.Fatal(err)
	}
	again := e
	if err := key.Sign(&again, [32]byte{1}); err != nil || again.Sig != e.Sig {
		t.Error("signing is not deterministic")
	}

	var other nostr.Event
	if err := other.UnmarshalJSON(e.AppendJSON(nil)); err != nil {
		t.Fatal(err)
	}
	if ok, err := other.CheckSignature(); !ok || err != nil || !other.CheckID() {
		t.Errorf("another library refuses it: %v", err)
	}

	changed := e
	changed.Content += "."
	if err := changed.Verify(); !errors.Is(err, ErrBadID) {
		t.Errorf("changed content: %v", err)
	}
	changed.ID = changed.Hash()
	if err := changed.Verify(); !errors.Is(err, ErrBadSignature) {
		t.Errorf("changed content and id: %v", err)
	}
	if err := (&Event{}).Verify(); !errors.Is(err, ErrBadID) {
		t.Errorf("empty event: %v", err)
	}
}

func TestNewSecretKeyRefusesWhatIsNoScalar(t *testing.T) {
	order, _ := ParseID("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141")
	for _, b := range [][32]byte{{}, order} {
		if _, err := NewSecretKey(b); err == nil {
			t.Errorf("%x is accepted", b)
		}
	}
}
