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

// collect makes options that gather the ids.
func collect(x *exchange) Options {
	*x = exchange{have: []ID{}, need: []ID{}}
	return Options{
		Have: func(ids []ID) { x.have = append(x.have, ids...) },
		Need: func(ids []ID) { x.need = append(x.need, ids...) },
	}
}

func sorted(x exchange) exchange {
	sortedIDs(x.have)
	sortedIDs(x.need)
	return x
}

func TestReconcilesWithARelay(t *testing.T) {
	for _, s := range scenarios(31, 3000) {
		t.Run(s.name, func(t *testing.T) {
			ours := sealed(t, s.ours)
			relay := &testRelay{set: sealed(t, s.theirs), frameLimit: 20_000,
				greeting: []string{`["AUTH","challenge"]`, `["NOTICE","welcome"]`},
				before: []string{`["NOTICE","still here"]`, `["NEG-MSG","another","61"]`, `["NEG-ERR","another","blocked: no"]`, `["CLOSED","another",""]`,
					`["AUTH","again"]`, `["EOSE","%s"]`, `not JSON`, `["NEG-MSG","%s"]`},
			}
			conn := dial(t, startRelay(t, relay.serve))
			for turn := range 2 { // the second time on the same connection
				var x exchange
				before := conn.BytesWritten()
				subscriptions.Store([]uint64{8, 899_999}[turn]) // where a count would grow or begin anew
				r, err := Reconcile(t.Context(), conn, []byte(`{"kinds":[1]}`), ours, collect(&x))
				if err != nil {
					t.Fatal(err)
				}
				checkExchange(t, sorted(x), s)
				written := conn.BytesWritten() - before - int64(len(`["NEG-CLOSE","neg123456"]`)+6)
				if written != r.BytesUp {
					t.Errorf("%d bytes up counted, %d written", r.BytesUp, written)
				}
				if r.Have != len(x.have) || r.Need != len(x.need) || r.Rounds < 1 {
					t.Errorf("%+v", r)
				}
				if r.FirstAnswer <= 0 || r.FirstAnswer > r.Duration || r.Engine <= 0 || r.Coding <= 0 || r.Engine+r.Coding > r.Duration {
					t.Errorf("%+v", r)
				}
			}
			for range 100 {
				if relay.closed.Load() == 2 {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("%d opened, %d closed", relay.opened.Load(), relay.closed.Load())
		})
	}
}

func TestRelaysWithoutNIP77AreRecognised(t *testing.T) {
	quiet := 300 * time.Millisecond
	tests := []struct {
		name   string
		answer func(ws *websocket.Conn, sub string, n int)
		want   UnsupportedError
		first  time.Duration // FirstAnswer; 0 for so long that waiting for it would fail the test
	}{
		{"NOTICE, then silence", func(ws *websocket.Conn, _ string, _ int) { say(ws, `["NOTICE","ERROR: unknown command NEG-OPEN"]`) },
			UnsupportedError{ByNotice, "ERROR: unknown command NEG-OPEN"}, 0},
		{"a NOTICE that says little", func(ws *websocket.Conn, _ string, _ int) { say(ws, `["NOTICE","sorry"]`) }, UnsupportedError{ByNotice, "sorry"}, quiet},
		{"CLOSED", func(ws *websocket.Conn, sub string, _ int) { say(ws, `["CLOSED",%q,"what?"]`, sub) }, UnsupportedError{ByClosed, "what?"}, 0},
		{"CLOSED without a reason", func(ws *websocket.Conn, sub string, _ int) { say(ws, `["CLOSED",%q]`, sub) }, UnsupportedError{ByClosed, ""}, 0},
		{"NEG-ERR", func(ws *websocket.Conn, sub string, _ int) {
			say(ws, `["NEG-ERR",%q,"error: negentropy is disabled"]`, sub)
		},
			UnsupportedError{ByNegErr, "error: negentropy is disabled"}, 0},
		{"silence", func(*websocket.Conn, string, int) {}, UnsupportedError{BySilence, ""}, quiet},
		{"talk of other things", func(ws *websocket.Conn, _ string, _ int) {
			for range 100 {
				time.Sleep(10 * time.Millisecond)
				say(ws, `["EOSE","another"]`)
			}
		}, UnsupportedError{BySilence, ""}, quiet},
		{"close frame", func(ws *websocket.Conn, _ string, _ int) {
			ws.Close(websocket.StatusPolicyViolation, "no such message")
		},
			UnsupportedError{ByDisconnect, "no such message"}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, startRelay(t, scripted(test.answer)))
			first := test.first
			if first == 0 {
				first = time.Hour
			}
			_, err := Reconcile(t.Context(), conn, []byte(`{}`), sealed(t, nil), Options{FirstAnswer: first})
			var unsupported *UnsupportedError
			if !errors.As(err, &unsupported) || *unsupported != test.want || !strings.Contains(err.Error(), "NIP-77") {
				t.Fatalf("%v, want %v", err, &test.want)
			}
		})
	}
	t.Run("probe", func(t *testing.T) {
		conn := dial(t, startRelay(t, scripted(func(*websocket.Conn, string, int) {})))
		var unsupported *UnsupportedError
		if err := Probe(t.Context(), conn, quiet); !errors.As(err, &unsupported) {
			t.Error(err)
		}
		conn = dial(t, startRelay(t, (&testRelay{set: sealed(t, nil)}).serve))
		if err := Probe(t.Context(), conn, 0); err != nil {
			t.Error(err)
		}
	})
}

func TestRefusalsKeepTheirReason(t *testing.T) {
	tests := []struct {
		frame, reason, prefix string
		blocked               bool
		max                   int64
	}{
		{`["NEG-ERR",%q,"blocked: this query is too big",5000]`, "blocked: this query is too big", "blocked", true, 5000},
		{`["NEG-ERR",%q,"blocked: this query is too big","5000"]`, "blocked: this query is too big", "blocked", true, 5000},
		{`["NEG-ERR",%q,"blocked: this query is too big",{"max_records":5000}]`, "blocked: this query is too big", "blocked", true, 5000},
		{`["NEG-ERR",%q,"blocked: too many, max_records: 700"]`, "blocked: too many, max_records: 700", "blocked", true, 700},
		{`["NEG-ERR",%q,"blocked: \u0022no\u0022",[1]]`, `blocked: "no"`, "blocked", true, 0},
		{`["NEG-ERR",%q,"RESULTS_TOO_BIG",9]`, "RESULTS_TOO_BIG", "other", true, 9},
		{`["NEG-ERR",%q,"closed: you took too long"]`, "closed: you took too long", "closed", false, 0},
		{`["NEG-ERR",%q,"error: try later"]`, "error: try later", "error", false, 0},
		{`["NEG-ERR",%q]`, "", "other", false, 0},
		{`["CLOSED",%q,"auth-required: log in"]`, "auth-required: log in", "auth-required", false, 0},
	}
	for _, test := range tests {
		t.Run(test.frame, func(t *testing.T) {
			conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, sub string, _ int) { say(ws, test.frame, sub) })))
			for range 2 { // the connection is of use afterwards
				_, err := Reconcile(t.Context(), conn, []byte(`{}`), sealed(t, nil), Options{})
				var refused *RelayError
				if !errors.As(err, &refused) || *refused != (RelayError{test.reason, test.max, 0}) || refused.Prefix() != test.prefix || refused.Blocked() != test.blocked {
					t.Fatalf("%#v", err)
				}
			}
		})
	}
}

func TestTroubleInTheMiddleEndsTheReconciliation(t *testing.T) {
	items := makeItems(rand.New(rand.NewPCG(1, 1)), 3000, 300)
	ours := sealed(t, items[:2000])
	tests := []struct {
		name   string
		stalls bool
		trick  func(send func(format string, args ...any)) // instead of the third answer; the subscription comes first
		check  func(err error) bool
	}{
		{"stall", true, func(func(string, ...any)) {}, func(err error) bool { return errors.Is(err, wire.ErrStalled) }},
		{"talk of other things", true, func(send func(string, ...any)) {
			go func() {
				for range 200 {
					time.Sleep(10 * time.Millisecond)
					send(`["EOSE","not %s"]`)
				}
			}()
		}, func(err error) bool { return errors.Is(err, wire.ErrStalled) }},
		{"NEG-ERR", false, func(send func(string, ...any)) { send(`["NEG-ERR",%q,"closed: enough"]`) },
			func(err error) bool { var e *RelayError; return errors.As(err, &e) && e.Prefix() == "closed" }},
		{"CLOSED", false, func(send func(string, ...any)) { send(`["CLOSED",%q,"shutting down"]`) },
			func(err error) bool { var e *RelayError; return errors.As(err, &e) && e.Reason == "shutting down" }},
		{"garbage digits", false, func(send func(string, ...any)) { send(`["NEG-MSG",%q,"61zz"]`) },
			func(err error) bool { var e *FormatError; return errors.As(err, &e) && e.Offset == 2 }},
		{"odd digits", false, func(send func(string, ...any)) { send(`["NEG-MSG",%q,"610"]`) },
			func(err error) bool { var e *FormatError; return errors.As(err, &e) && e.Offset == 3 }},
		{"no digits", false, func(send func(string, ...any)) { send(`["NEG-MSG",%q,""]`) },
			func(err error) bool { var e *FormatError; return errors.As(err, &e) && e.Offset == 0 }},
		{"broken message", false, func(send func(string, ...any)) { send(`["NEG-MSG",%q,"61000009"]`) },
			func(err error) bool { var e *FormatError; return errors.As(err, &e) && e.Offset == 3 }},
		{"frame over the limit", false, func(send func(string, ...any)) { send(`["NEG-MSG",%q,"%s"]`, strings.Repeat("6", MinReadLimit)) },
			func(err error) bool { return errors.Is(err, wire.ErrTooLarge) }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			relay := &testRelay{set: sealed(t, items[1000:]), frameLimit: 5000, closing: func(round int, send func(string, ...any)) bool {
				if round == 3 {
					test.trick(send)
				}
				return round >= 3
			}}
			conn := dial(t, startRelay(t, relay.serve))
			stall := time.Hour // what is told was not waited for
			if test.stalls {
				stall = 300 * time.Millisecond
			}
			r, err := Reconcile(t.Context(), conn, []byte(`{}`), ours, Options{FirstAnswer: time.Hour, Stall: stall})
			var unsupported *UnsupportedError
			if !test.check(err) || errors.As(err, &unsupported) {
				t.Fatalf("%v", err)
			}
			if r.Rounds < 1 || r.Rounds < 2 && !test.stalls || r.Duration <= 0 {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		conn := dial(t, startRelay(t, scripted(func(*websocket.Conn, string, int) { cancel() })))
		if _, err := Reconcile(ctx, conn, []byte(`{}`), ours, Options{}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Run("gone", func(t *testing.T) {
		conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, _ string, _ int) { ws.CloseNow() })))
		var unsupported *UnsupportedError
		if _, err := Reconcile(t.Context(), conn, []byte(`{}`), ours, Options{}); !errors.Is(err, wire.ErrLost) || errors.As(err, &unsupported) {
			t.Error(err)
		}
	})
}

func TestHostileRelaysComeToAnEnd(t *testing.T) {
	ours := sealed(t, makeItems(rand.New(rand.NewPCG(1, 1)), 100, 10))
	differs := AppendHex(nil, append([]byte{Version, 0, 0, modeFingerprint}, make([]byte, FingerprintSize)...))
	list := []byte{Version, 0, 0, modeIDList, 100}
	for i := range 100 {
		list = append(list, slices.Repeat([]byte{byte(i)}, IDSize)...)
	}
	for _, test := range []struct {
		o      Options
		rounds int
		says   string
	}{
		{Options{MaxRounds: 20}, 20, "no end after 20 rounds"},
		{Options{}, maxIdle, "no progress"}, // of the 100,000 rounds that are allowed
	} {
		conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, sub string, _ int) { say(ws, `["NEG-MSG",%q,"%s"]`, sub, differs) })))
		if r, err := Reconcile(t.Context(), conn, []byte(`{}`), ours, test.o); err == nil || r.Rounds != test.rounds || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%d rounds, %v", r.Rounds, err)
		}
	}
	conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, sub string, _ int) { say(ws, `["NEG-MSG",%q,"%s"]`, sub, AppendHex(nil, list)) })))
	named := 0
	if _, err := Reconcile(t.Context(), conn, []byte(`{}`), ours, Options{MaxNeed: 10, Need: func(ids []ID) { named += len(ids) }}); err == nil || named > 10 {
		t.Errorf("%d ids named, %v", named, err)
	}
}

func TestFiltersThatWouldBreakTheFrameAreNotSent(t *testing.T) {
	conn := dial(t, startRelay(t, (&testRelay{set: sealed(t, nil)}).serve))
	for _, filter := range []string{``, ` `, `[]`, `{`, `{}]`, `{},"61"`, `"x"`} {
		for _, reconcile := range []func(context.Context, *wire.Conn, []byte, Storage, Options) (Result, error){Reconcile, ReconcileSplit} {
			if _, err := reconcile(t.Context(), conn, []byte(filter), sealed(t, nil), Options{}); err == nil || !strings.Contains(err.Error(), "filter") {
				t.Errorf("%q: %v", filter, err)
			}
		}
	}
	if conn.BytesWritten() > 0 {
		t.Error("something was sent")
	}
}

func TestAComplaintAboutAnythingElseIsNoAnswer(t *testing.T) {
	t.Parallel()
	conn := dial(t, startRelay(t, scripted(func(ws *websocket.Conn, sub string, n int) {
		if n > 0 {
			return
		}
		say(ws, `["NOTICE","error: bad client, please sign in some day"]`)
		time.Sleep(noticeGrace + 700*time.Millisecond)
		say(ws, `["NEG-MSG",%q,"61"]`, sub)
	})))
	if _, err := Reconcile(t.Context(), conn, []byte(`{}`), sealed(t, nil), Options{FirstAnswer: time.Minute}); err != nil {
		t.Error(err)
	}
}
