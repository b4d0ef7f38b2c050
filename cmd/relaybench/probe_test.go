package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/clipperhouse/displaywidth"

	"relaybench/harness/probe"
	"relaybench/relays/reference"
)

func TestProbeRefusesWhatCannotBeMeant(t *testing.T) {
	const url, npub = "wss://relay.example", "npub180cvv07tjdrrgpa0j7j7tmnyl2yr6yr7l8j4s3evf6u64th6gkwsyjh6w6"
	many := []string{}
	for range probe.MaxRelays + 1 {
		many = append(many, url)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "wants the relays' URLs"},
		{many, "17 relays are more than 16"},
		{[]string{"https://relay.example"}, "begins with ws://"},
		{[]string{"ftp://relay.example"}, "must begin with wss://"},
		{[]string{"relay.example"}, "no URL of a relay"},
		{[]string{"localhost:7777"}, "no URL of a relay"},
		{[]string{"wss://"}, "names no host"},
		{[]string{"ws://:7777"}, "names no host"},
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
	var stdout, stderr strings.Builder
	if code := run(t.Context(), &stdout, &stderr, []string{"probe", honest, "--only", "global", "--verify", "parallel"}); code != exitDone {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	if !strings.Contains(stdout.String(), "GLOBAL FEED") || !strings.Contains(stdout.String(), honest) {
		t.Errorf("%s", stdout.String())
	}
	stdout.Reset()
	code := run(t.Context(), &stdout, &stderr, []string{"probe", honest, mute, "--only", "global", "--verify", "inline", "--json", "--timeout", "2s"})
	if code != exitFailed || !strings.Contains(stderr.String(), mute) {
		t.Errorf("exit code %d\n%s", code, stderr.String())
	}
	var got struct {
		Tool, SignaturesBy string
		StartedAt          time.Time
		probe.Report
	}
	if err := json.Unmarshal([]byte(stdout.String()), &got); err != nil {
		t.Fatalf("%v in %s", err, stdout.String())
	}
	if got.StartedAt.IsZero() || got.Tool == "" || got.SignaturesBy == "" || len(got.Passes) != 1 || len(got.Passes[0].Relays) != 2 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []probe.Outcome{probe.Complete, probe.NotReached} {
		if a := got.Passes[0].Relays[i].Answers[0]; a.Outcome != want {
			t.Errorf("relay %d: %+v, want %s", i, a, want)
		}
	}
}

// hostileReport is as a relay would like it that wants to draw on the terminal.
func hostileReport() *probe.Report {
	const evil = "\x1b[2J\x1b[31mred\u202e\r\nsecond line \u0007"
	ms := func(v float64) *float64 { return &v }
	answer := func(shape probe.Shape, o probe.Outcome) probe.Answer {
		return probe.Answer{Shape: shape, Outcome: o, Reason: evil + strings.Repeat("x", 300), FirstMs: ms(1234.5), EndMs: ms(12345.6), Received: 1100, Unique: 1000,
			Duplicates: 100, Alone: 900, Unasked: 3, BadID: 2, AfterEnd: 1, FrameBytes: &probe.Sizes{P50: 600, P99: 60_000, Max: 4 << 20}}
	}
	r := &probe.Report{Limit: 500, Shapes: []probe.Shape{probe.Global, probe.Notifications, probe.Metadata}, Compression: true}
	for _, verified := range []string{"inline", "parallel"} {
		p := probe.Pass{Verified: verified}
		for _, url := range []string{"wss://a-relay-with-a-very-long-name.somewhere.example/and/a/path/too", "ws://127.0.0.1:7777"} {
			relay := probe.Relay{URL: url, ConnectMs: ms(321), Extensions: "permessage-deflate; " + evil + strings.Repeat("y", 150), Auth: true, Notices: 4, Notice: evil, Unknown: 2, Strays: 3, Reconnects: 1}
			for i, shape := range r.Shapes {
				relay.Answers = append(relay.Answers, answer(shape, []probe.Outcome{probe.Closed, probe.AuthRequired, probe.Complete}[i]))
			}
			p.Relays = append(p.Relays, relay)
		}
		for _, shape := range r.Shapes {
			p.Consumption = append(p.Consumption, probe.Consumption{Shape: shape, Delivered: 1000, DelayMs: &probe.Delay{P50: 0.1, P90: 20, Max: 30_000}, CheckingMs: 99, Busy: 0.5})
		}
		r.Passes = append(r.Passes, p)
	}
	return r
}

// Scripts give every verb the same flag, whatever it prints.
func TestEveryVerbTakesNoColor(t *testing.T) {
	for _, cmd := range newRoot(io.Discard, io.Discard).Commands() {
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
		if err := writeProbe(&b, hostileReport(), width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			line = strings.TrimSuffix(line, "\n")
			if n := displaywidth.String(line); n > width {
				t.Errorf("%d cells of %d: %q", n, width, line)
			}
			if visible(line) != line {
				t.Errorf("%q", line)
			}
		}
		for _, want := range []string{"CONNECTIONS", "GLOBAL FEED", "NOTIFICATIONS", "METADATA BURST", "QUEUE DELAY", "auth-required", "NOTICE", "4,194,304", "who asks", "whose id is not their hash: 2"} {
			if !strings.Contains(strings.Join(strings.Fields(b.String()), " "), want) {
				t.Errorf("width %d lacks %q:\n%s", width, want, b.String())
			}
		}
	}
}

func TestProbeJSONIsASCII(t *testing.T) {
	var b strings.Builder
	if err := writeProbeJSON(&b, time.Now(), hostileReport()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []byte(b.String()) {
		if c > '~' || c < ' ' && c != '\n' {
			t.Fatalf("byte %#x in %s", c, b.String())
		}
	}
	var got probe.Report
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil || got.Passes[0].Relays[0].Notice != hostileReport().Passes[0].Relays[0].Notice {
		t.Errorf("%v", err)
	}
}

func TestProbeOfARunThatWasInterruptedIsStillATable(t *testing.T) {
	r := hostileReport()
	r.Passes = r.Passes[:1]
	r.Passes[0].Relays[1].Answers = nil
	r.Passes[0].Consumption = nil
	for _, r := range []*probe.Report{r, {Shapes: []probe.Shape{probe.Global, probe.Notifications, probe.Metadata}}} {
		var b strings.Builder
		if err := writeProbe(&b, r, 80); err != nil {
			t.Error(err)
		}
	}
}
