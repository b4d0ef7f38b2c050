package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/clipperhouse/displaywidth"

	"relaybench/relays/reference"
	"relaybench/report"
	"relaybench/results"
	"relaybench/scenarios"
)

func TestProbeRefusesWhatCannotBeMeant(t *testing.T) {
	const url, npub = "wss://relay.example", "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"
	many := []string{}
	for range scenarios.MaxProbed + 1 {
		many = append(many, url)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "wants the relays' URLs"},
		{many, "17 relays are more than 16"},
		{[]string{"https://relay.example"}, "begins with ws://"},
		{[]string{"ftp://relay.example"}, "begins with ws://"},
		{[]string{"relay.example"}, "no URL of a relay"},
		{[]string{"localhost:7777"}, "no URL of a relay"},
		{[]string{"wss://"}, "names no host"},
		{[]string{"ws://:7777"}, "names no host"},
		{[]string{"ws://127.0.0.1:99999"}, "there is no port 99999"},
		{[]string{"wss://me:secret@relay.example"}, "a user name or a password"},
		{[]string{"wss://relay.example/#part"}, "a part after #"},
		{[]string{"wss://relay.example\x1b[31m"}, "no URL of a relay"},
		{[]string{url, "wss://RELAY.example/"}, "given twice"},
		{[]string{url, "--limit", "0"}, "from 1 to 500"},
		{[]string{url, "--limit", "501"}, "from 1 to 500"},
		{[]string{url, "--pause", "10ms"}, "from 500ms"},
		{[]string{url, "--timeout", "1ms"}, "from 100ms"},
		{[]string{url, "--author", npub[:60]}, "has a mistake in it"},
		{[]string{url, "--author", "nsec1secret"}, "secret key"},
		{[]string{url, "--author", "me"}, "npub1"},
		{[]string{url, "--author", npub, "--author", "3bf0c63fcb93463407af97a5e5ee64fa883d107ef9e558472c4eb9aaaefa459d"}, "twice"},
		{[]string{url, "--only", "feed"}, `"feed" is none of`},
		{[]string{url, "--only", "global,global"}, "named twice"},
		{[]string{url, "--only", ""}, "none of"},
		{[]string{url, "--only", "metadata"}, "--author"},
		{[]string{url, "--verify", "maybe"}, "inline, parallel or both"},
		{[]string{url, "--no-such-flag"}, "unknown flag"},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), &stdout, &stderr, append([]string{"probe"}, c.args...))
		if code != exitUsage || !strings.Contains(stderr.String(), c.says) || strings.Count(stderr.String(), "\n") != 1 || stdout.Len() > 0 {
			t.Errorf("%q: exit code %d, stdout %q, stderr %q, want %q", c.args, code, stdout.String(), stderr.String(), c.says)
		}
		if strings.Contains(stderr.String(), "secret@") || strings.Contains(stderr.String(), "nsec1secret") || strings.Contains(stderr.String(), "\x1b") {
			t.Errorf("%q: it repeats %q", c.args, stderr.String())
		}
	}
}

// listening serves a relay of this process until the test ends.
func listening(t *testing.T, faults ...string) string {
	t.Helper()
	f, err := reference.ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() {
		served <- reference.Serve(ctx, l, reference.Options{Store: reference.NewMemory(), Faults: f, StopTime: 100 * time.Millisecond})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return "ws://" + l.Addr().String()
}

func TestProbeTellsAndItsExitCodeAgrees(t *testing.T) {
	honest, mute := listening(t), listening(t, "half-open")
	t.Setenv("RELAYBENCH_RESULTS", t.TempDir())
	var stdout, stderr strings.Builder
	if code := run(t.Context(), &stdout, &stderr, []string{"probe", honest, "--only", "global", "--verify", "parallel"}); code != exitDone {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "Global feed") || !strings.Contains(stdout.String(), honest) {
		t.Errorf("%s", stdout.String())
	}
	stdout.Reset()
	out := t.TempDir()
	code := run(t.Context(), &stdout, &stderr, []string{"probe", honest, mute, "--only", "global", "--verify", "inline", "--json", "--timeout", "2s", "--out", out})
	if code != exitFailed || !strings.Contains(stderr.String(), mute) {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	file := filepath.Join(out, "printed.json")
	if err := os.WriteFile(file, []byte(stdout.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	printed, err := results.ReadRecord(file)
	if err != nil {
		t.Fatalf("%v in %s", err, stdout.String())
	}
	for name, r := range map[string]*results.Record{"printed": printed, "results.json": recorded(t, out)} {
		if relay(t, r, honest).Outcome != results.OutcomeOK || relay(t, r, mute).Outcome != results.OutcomeNoStart {
			t.Errorf("%s: %+v", name, r.Relays)
		}
		if !slices.ContainsFunc(r.Findings, func(f results.Finding) bool {
			return f.Relay == honest && f.Scenario == "probe.global" && f.Code == results.CodeAnswered && f.Verdict == results.Passed
		}) {
			t.Errorf("%s: %+v", name, r.Findings)
		}
		if args, ok := r.Options["args"].([]any); !ok || len(args) < 4 || args[0] != "probe" || args[1] != honest || args[2] != mute || slices.Contains(args, any("--relay")) {
			t.Errorf("%s: repeated by %v", name, r.Options["args"])
		}
	}
}

// hostileProbe is as a relay would like it that wants to draw on the terminal.
func hostileProbe() *results.Record {
	const evil = "\x1b[2J\x1b[31mred\u202e\r\nsecond line \u0007"
	r := &results.Record{Metrics: []results.Metric{{Key: "EOSE", Title: "from the REQ to the end of the answer"}, {Key: "frame max", Title: "frame max"}}}
	for i, key := range []string{"probe.connection", "probe.global", "probe.metadata"} {
		r.Scenarios = append(r.Scenarios, results.Scenario{Key: key, Title: "about " + key, Section: "Probe", Order: i, Primary: "EOSE", Layout: results.LayoutTable,
			Rows: []string{results.LabelVerifier}})
	}
	for _, name := range []string{"a-relay-with-a-very-long-name.somewhere.example/and/a/path/too", "ws://127.0.0.1:7777"} {
		r.Relays = append(r.Relays, results.Relay{Name: name, URL: "wss://" + name, Outcome: results.OutcomeOK})
		for _, verifier := range []string{"inline", "parallel"} {
			labels := results.Labels{results.LabelVerifier: verifier}
			for _, key := range []string{"probe.global", "probe.metadata"} {
				r.Measurements = append(r.Measurements,
					results.Measurement{Relay: name, Scenario: key, Metric: "EOSE", Unit: "ms", Better: results.Lower, Labels: labels, Trials: []float64{12345.6},
						Status: []results.Status{{Code: results.StatusIncomplete, Cause: results.CauseEnded, Texts: map[string]string{"text": evil + strings.Repeat("x", 300)}}}},
					results.Measurement{Relay: name, Scenario: key, Metric: "frame max", Unit: "bytes", Better: results.None, Labels: labels, Trials: []float64{4 << 20}})
				r.Findings = append(r.Findings,
					results.Finding{Relay: name, Scenario: key, Labels: labels, Code: results.CodeAnswered, Verdict: results.Failed, Blames: name, Cause: results.CauseClosed,
						Texts: map[string]string{"reason": evil + strings.Repeat("x", 300)}},
					results.Finding{Relay: name, Scenario: key, Labels: labels, Code: results.CodeGenuine, Verdict: results.Failed, Blames: name,
						Counts: map[string]float64{"bad id": 2, "of": 100}})
			}
			r.Findings = append(r.Findings,
				results.Finding{Relay: name, Scenario: "probe.connection", Labels: labels, Code: results.CodeAsksWho, Verdict: results.Stated},
				results.Finding{Relay: name, Scenario: "probe.connection", Labels: labels, Code: results.CodeNotices, Verdict: results.Stated,
					Counts: map[string]float64{"notices": 4}, Texts: map[string]string{"notice": evil}},
				results.Finding{Relay: name, Scenario: "probe.connection", Labels: labels, Code: results.CodeCompression, Verdict: results.Stated,
					Texts: map[string]string{"extensions": "permessage-deflate; " + evil + strings.Repeat("y", 150)}})
		}
	}
	return r
}

// Scripts give every verb the same flag, whatever it prints.
func TestEveryVerbTakesNoColor(t *testing.T) {
	for _, cmd := range newRoot(new(pipe), io.Discard).Commands() {
		if cmd.InheritedFlags().Lookup("no-color") == nil {
			t.Errorf("%s does not take --no-color", cmd.Name())
		}
	}
	for _, color := range []bool{false, true} {
		out := &pipe{}
		root := newRoot(out, io.Discard)
		root.SetArgs([]string{"relays", fmt.Sprintf("--no-color=%v", !color), "too many"})
		if err := root.Execute(); err == nil || out.noColor == color {
			t.Errorf("--no-color=%v: %v, %v", !color, out.noColor, err)
		}
	}
}

func TestProbeTablesFitAndHoldNothingUnseen(t *testing.T) {
	for _, width := range []int{20, 30, 40, 60, 80, 100, 160} {
		var b strings.Builder
		if err := report.Terminal(&b, hostileProbe(), report.TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := displaywidth.String(line); n > width {
				t.Errorf("%d cells of %d: %q", n, width, line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%q", line)
			}
		}
		for _, want := range []string{"about probe.global", "about probe.metadata", "CLOSED", "NOTICE", "permessage-deflate", "wants to know who asks", "2 under an id that is not their hash"} {
			if text := strings.Join(strings.Fields(b.String()), ""); !strings.Contains(text, strings.ReplaceAll(want, " ", "")) {
				t.Errorf("width %d lacks %q:\n%s", width, want, b.String())
			}
		}
	}
}

func TestAPrintedRecordIsASCII(t *testing.T) {
	var b strings.Builder
	if err := writeJSON(&b, hostileProbe()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []byte(b.String()) {
		if c > '~' || c < ' ' && c != '\n' {
			t.Fatalf("byte %#x in %s", c, b.String())
		}
	}
	var got results.Record
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || !reflect.DeepEqual(got.Findings, hostileProbe().Findings) {
		t.Errorf("%v", err)
	}
}
