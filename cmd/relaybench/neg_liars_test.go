package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"relaybench/corpus"
	"relaybench/relays/reference"
	"relaybench/results"
)

// negLiar serves a reference relay on the port that lies when it reconciles (NIP-77):
//
//	neg-flickers   on one connection, times 2 to 6: it claims to hold one event that no one knows
//	neg-twice      where everything is compared, it names the last note that it was given as its alone, whoever has it
//	neg-dies       it ends where everything is compared
//	neg-endless    its answers say without end that something differs, and never what
func negLiar(mode, port string) int {
	var last atomic.Value // id of the note
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		go reference.Serve(context.Background(), behind, reference.Options{Store: reference.NewMemory()})
		err = http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if client, err := websocket.Accept(w, r, nil); err == nil {
				defer client.CloseNow()
				negLies(mode, client, "ws://"+behind.Addr().String(), &last)
			}
		}))
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// negLies passes frames on in both directions, except for what it answers itself.
func negLies(mode string, client *websocket.Conn, honest string, last *atomic.Value) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	relay, _, err := websocket.Dial(ctx, honest, nil)
	if err != nil {
		return
	}
	defer relay.CloseNow()
	for _, conn := range []*websocket.Conn{client, relay} {
		conn.SetReadLimit(4 << 20)
	}
	go func() {
		defer cancel()
		for {
			kind, frame, err := relay.Read(ctx)
			if err != nil || client.Write(ctx, kind, frame) != nil {
				return
			}
		}
	}()
	for opens := 0; ; {
		kind, frame, err := client.Read(ctx)
		if err != nil {
			return
		}
		var parts []json.RawMessage
		json.Unmarshal(frame, &parts)
		if bytes.HasPrefix(frame, []byte(`["EVENT"`)) {
			if e, err := corpus.ParseEvent(parts[1]); err == nil && e.Kind == 1 {
				last.Store(e.ID.String())
			}
		}
		lie := ""
		switch opening := bytes.HasPrefix(frame, []byte(`["NEG-OPEN"`)); {
		case opening && string(parts[2]) != "{}", !opening && !bytes.HasPrefix(frame, []byte(`["NEG-MSG"`)): // the probe, and all else
		case mode == "neg-endless":
			lie = "61000001" + strings.Repeat("ab", 16)
		case mode == "neg-dies":
			fmt.Fprintln(os.Stderr, "the tree is corrupt")
			os.Exit(2)
		case mode == "neg-twice":
			lie = fmt.Sprintf("6102000201%v", last.Load()) // in the first second of 1970
		case opening:
			if opens++; opens > 1 && opens < 7 { // of which three at most are not counted
				lie = "6100000201" + strings.Repeat("cd", 32)
			}
		}
		if lie != "" {
			client.Write(ctx, websocket.MessageText, fmt.Appendf(nil, `["NEG-MSG",%s,"%s"]`, parts[1], lie))
		} else if relay.Write(ctx, kind, frame) != nil {
			return
		}
	}
}

// TestLiesOfRelaysThatReconcileAreFound pairs each liar with an honest relay, on whom nothing may
// be blamed.
func TestLiesOfRelaysThatReconcileAreFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ mode, scenario, check, says string }{
		{"neg-flickers", "negentropy.heartbeat", results.CodeSteady, "of 10 reconciliations"},
		{"neg-twice", "negentropy.identical", results.CodeOnlyKnown, "named 1 of the events on both sides as its alone"},
		{"neg-endless", "negentropy", results.CodeCompletes, "no progress"},
		{"neg-dies", "negentropy", results.CodeCompletes, "liar died in negentropy"},
	} {
		t.Run(test.mode, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			code, _, stderr := relaybenchWith(t, withHonest, "--quick", "--events=300", "--only=negentropy", "--skip=preflight,calibration", "--timeout=10s", "--out", out,
				honest(), hostile(t, "liar", test.mode))
			if code != exitFailed {
				t.Errorf("exit code %d, want %d\n%s", code, exitFailed, stderr)
			}
			r := recorded(t, out)
			f := pairFinding(t, r, "liar", test.scenario, test.check)
			if f.Verdict != results.Failed || !strings.Contains(textOf(f), test.says) {
				t.Errorf("%+v", f)
			}
			if last := "the tree is corrupt"; test.mode == "neg-dies" && !strings.Contains(evidenceOf(&f), last) {
				t.Errorf("%+v, want %q", f.Evidence, last)
			}
			for _, f := range r.Findings {
				if f.Blames == "honest" {
					t.Errorf("the honest relay is blamed: %+v", f)
				}
			}
		})
	}
}
