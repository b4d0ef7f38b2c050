package negentropy

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"relaybench/relays/wire"
)

// randomList is a message that lists so many ids nobody has.
func randomList(n int) []byte {
	r := rand.New(rand.NewPCG(9, uint64(n)))
	message := appendVarint([]byte{Version, 0, 0, modeIDList}, uint64(n))
	for range n {
		id := randomID(r)
		message = append(message, id[:]...)
	}
	return message
}

func TestWhoBeganNIP77AndBreaksItIsTold(t *testing.T) {
	ours := sealed(t, makeItems(rand.New(rand.NewPCG(1, 1)), 100, 10))
	hexed := func(message ...byte) string { return string(AppendHex(nil, message)) }
	answer := func(digits string) func(*websocket.Conn, string, int) {
		return func(ws *websocket.Conn, sub string, _ int) { say(ws, `["NEG-MSG",%q,"%s"]`, sub, digits) }
	}
	differs := hexed(append([]byte{Version, 0, 0, modeFingerprint}, make([]byte, FingerprintSize)...)...)
	noise := make([]byte, 5000)
	for i := range noise {
		noise[i] = byte(7 * i)
	}
	many := hexed(randomList(100)...)
	quiet := Options{FirstAnswer: 4 * time.Second}               // in which what came has been read on any machine
	patient := Options{FirstAnswer: time.Hour, Stall: time.Hour} // what is told was not waited for
	for _, test := range []struct {
		name   string
		answer func(ws *websocket.Conn, sub string, n int)
		o      Options
		want   ProtocolError // without the cause
		is     func(error) bool
	}{
		{"no digits of sixteen", answer("hello, world"), patient, ProtocolError{Code: NotHex, Answer: 1}, as[*FormatError]},
		{"an odd number of digits", answer("610"), patient, ProtocolError{Code: NotHex, Answer: 1}, as[*FormatError]},
		{"nothing", answer(""), patient, ProtocolError{Code: Malformed, Answer: 1}, as[*FormatError]},
		{"random bytes", answer(hexed(noise...)), patient, ProtocolError{Code: Malformed, Answer: 1}, as[*FormatError]},
		{"random bytes after a version", answer(hexed(append([]byte{Version}, noise[1:]...)...)), patient, ProtocolError{Code: Malformed, Answer: 1}, as[*FormatError]},
		{"a fingerprint cut short", answer(differs[:len(differs)-2]), patient, ProtocolError{Code: Malformed, Answer: 1}, as[*FormatError]},
		{"version 0", answer("60"), patient, ProtocolError{Code: WrongVersion, Answer: 1}, as[*FormatError]},
		{"2^40 ids", answer(hexed(appendVarint([]byte{Version, 0, 0, modeIDList}, 1<<40)...)), patient,
			ProtocolError{Code: CountTooLarge, Answer: 1, Count: 1 << 40, Limit: 0}, as[*FormatError]},
		{"2^40 ids, and some of them", answer(hexed(append(appendVarint([]byte{Version, 0, 0, modeIDList}, 1<<40), make([]byte, 3*IDSize)...)...)), patient,
			ProtocolError{Code: CountTooLarge, Answer: 1, Count: 1 << 40, Limit: 3}, as[*FormatError]},
		{"a message of 32 MB", answer(strings.Repeat("61", 16<<20)), patient,
			ProtocolError{Code: Oversized, Answer: 1, Count: uint64(32<<20 + len(`["NEG-MSG","neg123456",""]`)), Limit: MinReadLimit}, func(err error) bool { return errors.Is(err, wire.ErrTooLarge) }},
		{"fingerprints without end", answer(differs), patient, ProtocolError{Code: Endless, Answer: maxIdle, Count: maxIdle, Limit: DefaultMaxRounds}, nil},
		{"more rounds than are allowed", answer(differs), Options{MaxRounds: 7}, ProtocolError{Code: Endless, Answer: 7, Count: 7, Limit: 7}, nil},
		{"more ids than were to be taken", answer(many), Options{MaxNeed: 30}, ProtocolError{Code: UnexpectedIDs, Answer: 1, Count: 100, Limit: 30}, nil},
		{"silence after one answer", func(ws *websocket.Conn, sub string, n int) {
			if n == 0 {
				answer(differs)(ws, sub, n)
			}
		}, Options{FirstAnswer: time.Hour, Stall: 300 * time.Millisecond}, ProtocolError{Code: Silent, Answer: 2}, func(err error) bool { return errors.Is(err, wire.ErrStalled) }},
		{"NEG-MSG in binary frames", func(ws *websocket.Conn, sub string, _ int) {
			ws.Write(context.Background(), websocket.MessageBinary, []byte(`["NEG-MSG","`+sub+`","61"]`))
		}, quiet, ProtocolError{Code: Malformed, Answer: 1}, as[*wire.StallError]},
		{"NEG-MSG with an array of bytes", func(ws *websocket.Conn, sub string, _ int) { say(ws, `["NEG-MSG",%q,[97,0]]`, sub) }, quiet,
			ProtocolError{Code: Malformed, Answer: 1}, as[*wire.StallError]},
		{"NEG-MSG under another id", func(ws *websocket.Conn, _ string, _ int) { say(ws, `["NEG-MSG","another","61"]`) }, quiet,
			ProtocolError{Code: WrongSubscription, Answer: 1, Count: 1}, func(err error) bool { return errors.Is(err, wire.ErrStalled) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, startRelay(t, scripted(test.answer)))
			_, err := Reconcile(t.Context(), conn, []byte(`{}`), ours, test.o)
			var broken *ProtocolError
			if !errors.As(err, &broken) {
				t.Fatalf("%v", err)
			}
			if test.is != nil && !test.is(err) || test.is == nil && broken.Err != nil {
				t.Errorf("the cause is %#v", broken.Err)
			}
			if test.is == nil || broken.Code == Oversized {
				t.Log(err)
			}
			bare := *broken
			bare.Err = nil
			if bare != test.want || as[*UnsupportedError](err) || as[*RelayError](err) || !strings.Contains(err.Error(), "breaks NIP-77") {
				t.Errorf("%v: %+v, want %+v", err, bare, test.want)
			}
		})
	}
}

func as[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// A probe asks for an event that nobody has: whoever names one breaks NIP-77, whoever refuses does
// not, and a relay without NIP-77 neither.
func TestAProbeTellsABreachFromARefusalFromARelayWithoutNIP77(t *testing.T) {
	const six = 6 << 20 / (2 * IDSize) // MB, in digits
	for _, test := range []struct {
		name, frame string
		is          func(error) bool
		code        Code
	}{
		{"a list of 6 MB", `["NEG-MSG",%q,"` + string(AppendHex(nil, randomList(six))) + `"]`, as[*ProtocolError], UnexpectedIDs},
		{"one id", `["NEG-MSG",%q,"` + string(AppendHex(nil, randomList(1))) + `"]`, as[*ProtocolError], UnexpectedIDs},
		{"blocked", `["NEG-ERR",%q,"blocked: not today"]`, as[*RelayError], ""},
		{"no reason", `["NEG-ERR",%q]`, as[*RelayError], ""},
		{"unsupported", `["NEG-ERR",%q,"unsupported"]`, as[*UnsupportedError], ""},
		{"CLOSED", `["CLOSED",%q,"unknown message"]`, as[*UnsupportedError], ""},
		{"the truth", `["NEG-MSG",%q,"61"]`, func(err error) bool { return err == nil }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := startRelay(t, scripted(func(ws *websocket.Conn, sub string, n int) { say(ws, test.frame, sub) }))
			conn, err := wire.Dial(t.Context(), url, wire.Options{ReadLimit: 16 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Abort()
			err = Probe(t.Context(), conn, time.Minute)
			if !test.is(err) {
				t.Fatalf("%v", err)
			}
			kinds := 0
			for _, is := range []bool{as[*ProtocolError](err), as[*RelayError](err), as[*UnsupportedError](err)} {
				if is {
					kinds++
				}
			}
			var broken *ProtocolError
			if errors.As(err, &broken) && broken.Code != test.code || kinds > 1 {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestAProbeForStoredEventsWantsEachNamed, and nothing else.
func TestAProbeForStoredEventsWantsEachNamed(t *testing.T) {
	stored := []ID{{0: 1}, {0: 2}}
	list := func(ids ...ID) string {
		payload := append([]byte{Version, 0, 0, modeIDList}, byte(len(ids)))
		for _, id := range ids {
			payload = append(payload, id[:]...)
		}
		return string(AppendHex(nil, payload))
	}
	for name, test := range map[string]struct {
		answer string
		code   Code
		count  uint64
	}{
		"both": {list(stored...), "", 0}, "identical": {"61", Unnamed, 2}, "one": {list(stored[1]), Unnamed, 1},
		"one more": {list(stored[0], stored[1], ID{0: 3}), UnexpectedIDs, 3}, "another": {list(stored[0], ID{0: 3}), UnexpectedIDs, 2},
	} {
		t.Run(name, func(t *testing.T) {
			conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, sub string, n int) { say(ws, `["NEG-MSG",%q,"%s"]`, sub, test.answer) })))
			err := Probe(t.Context(), conn, time.Minute, stored...)
			var broken *ProtocolError
			if errors.As(err, &broken) != (test.code != "") || test.code == "" && err != nil || broken != nil && (broken.Code != test.code || broken.Count != test.count) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestARefusalAfterAnswersSaysHowMany(t *testing.T) {
	differs := AppendHex(nil, append([]byte{Version, 0, 0, modeFingerprint}, make([]byte, FingerprintSize)...))
	conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, sub string, n int) {
		if n < 2 {
			say(ws, `["NEG-MSG",%q,"%s"]`, sub, differs)
			return
		}
		say(ws, `["NEG-ERR",%q,"unsupported"]`, sub) // no longer a sign that it does not speak NIP-77
	})))
	ours := sealed(t, makeItems(rand.New(rand.NewPCG(1, 1)), 100, 10))
	var refused *RelayError
	if _, err := Reconcile(t.Context(), conn, []byte(`{}`), ours, Options{}); !errors.As(err, &refused) || refused.Answers != 2 || refused.Reason != "unsupported" {
		t.Errorf("%#v", err)
	}
}

func TestIDsOfNoEventThatWasPublishedAreCounted(t *testing.T) {
	ours := makeItems(rand.New(rand.NewPCG(1, 1)), 100, 10)
	theirs := makeItems(rand.New(rand.NewPCG(2, 2)), 40, 10)
	made := makeItems(rand.New(rand.NewPCG(3, 3)), 7, 10)
	published := map[ID]bool{}
	for _, i := range slices.Concat(ours, theirs) {
		published[i.id] = true
	}
	relay := &testRelay{set: sealed(t, slices.Concat(ours[:60], theirs, made)), frameLimit: 5000}
	conn := dial(t, startRelay(t, relay.serve))
	for _, reconcile := range []func(context.Context, *wire.Conn, []byte, Storage, Options) (Result, error){Reconcile, ReconcileSplit} {
		r, err := reconcile(t.Context(), conn, []byte(`{}`), sealed(t, ours), Options{Known: func(id *ID) bool { return published[*id] }})
		if err != nil {
			t.Fatal(err)
		}
		if r.Need != 47 || r.Unexpected != 7 || len(r.UnexpectedExamples) != maxExamples {
			t.Errorf("%d ids to need, %d foreign, %d of them as examples", r.Need, r.Unexpected, len(r.UnexpectedExamples))
		}
		for _, id := range r.UnexpectedExamples {
			if published[id] || !slices.ContainsFunc(made, func(i item) bool { return i.id == id }) {
				t.Errorf("%x is not foreign", id)
			}
		}
	}
	// Where the relay has the ranges split, the parts are summed.
	relay.max, relay.tellMax = 30, ",30"
	r, err := ReconcileSplit(t.Context(), conn, []byte(`{}`), sealed(t, ours), Options{Known: func(id *ID) bool { return published[*id] }})
	if err != nil || r.Refused == 0 || r.Need != 47 || r.Unexpected != 7 || len(r.UnexpectedExamples) != maxExamples {
		t.Errorf("%+v, %v", r, err)
	}
}
