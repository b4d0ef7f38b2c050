package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"relaybench/corpus/model"
	"relaybench/corpus/prepare"
	"relaybench/corpus/synthetic"
	"relaybench/relays/reference"
	"relaybench/relays/reference/referencetest"
	"relaybench/results"
)

// cellKey names the way to download that a figure is of: "by-id.c4.f8.b50.raw-deflate".
func cellKey(m *results.Measurement) string {
	l := m.Labels
	key := l[results.LabelStrategy]
	if batch := l[results.LabelBatch]; batch != "" {
		inFlight := "f" + l[results.LabelInFlight]
		if inFlight == "fadaptive" {
			inFlight = "adaptive"
		}
		key += ".c" + l[results.LabelConnections] + "." + inFlight + ".b" + batch
	}
	key += "." + l[results.LabelForm]
	if encoding := l[results.LabelEncoding]; encoding != "" {
		key += "-" + encoding
	}
	return key
}

// cellValue is the last trial of a figure of a way to download; ok is false where it was not
// measured.
func cellValue(r *results.Record, relay, key, metric string) (v float64, ok bool) {
	for _, m := range r.Measurements {
		if m.Relay == relay && cellKey(&m) == key && m.Metric == metric && len(m.Trials) > 0 {
			return m.Trials[len(m.Trials)-1], true
		}
	}
	return 0, false
}

func note(r *results.Record, key string) string {
	for _, m := range r.Measurements {
		if cellKey(&m) == key && m.Metric == "records/s" {
			return fmt.Sprint(m.Status)
		}
	}
	return "not in the record"
}

func TestFetchRefusesWhatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
	}{
		{nil, "wants one relay"},
		{[]string{"ref-bolt", "ref-sqlite"}, "wants one relay"},
		{[]string{"nobody"}, "not in the catalog"},
		{[]string{"ws://"}, "names no host"},
		{[]string{"http://relay.example.com"}, "write ws://host:port or wss://host"},
		{[]string{"mine=https://relay.example.com"}, "write ws://host:port or wss://host"},
		{[]string{"ref-bolt", "--filter", "{"}, "--filter"},
		{[]string{"ref-bolt", "--filter", `{"limit":5}`}, "leave the limit out"},
		{[]string{"ref-bolt", "--filter", `{"search":"x"}`}, `unknown filter field "search"`},
		{[]string{"ref-bolt", "--matrix", "huge"}, "give small or full"},
		{[]string{"ref-bolt", "--page", "0"}, "--page 0"},
		{[]string{"ref-bolt", "--cell-time", "-1s"}, "--cell-time"},
		{[]string{"ref-bolt", "--cell-events", "-1"}, "--cell-events"},
		{[]string{"ref-bolt", "--shards", "65"}, "--shards 65"},
		{[]string{"ref-bolt", "--shards", "0"}, "--shards 0"},
		{[]string{"ref-bolt", "--samples", "9"}, "no use for --samples"},
		{[]string{"ref-bolt", "--rate", "9"}, "no use for --rate"},
		{[]string{"ref-bolt", "--query-rounds", "9"}, "no use for --query-rounds"},
		{[]string{"ref-bolt", "--query-conns", "9"}, "no use for --query-conns"},
		{[]string{"ref-bolt", "--neg-scattered"}, "no use for --neg-scattered"},
		{[]string{"ref-bolt", "--only", "ingest"}, "fetch measures fetch.* alone"},
		{[]string{"ref-bolt", "--only", "fetch.nothing"}, "matches no scenario"},
	} {
		code, _, stderr := relaybench(t, append([]string{"fetch"}, c.args...)...)
		if code != exitUsage || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// Alone and as a part of run, fetching asks for pages of the same size, and both say so.
func TestTheVerbAndRunFetchTheSamePages(t *testing.T) {
	t.Parallel()
	for verb, other := range map[string]string{"fetch": "the same as run's --page", "run": "the same as fetch's --page"} {
		_, stdout, _ := relaybench(t, verb, "--help")
		help := strings.Join(strings.Fields(stdout), " ")
		_, page, _ := strings.Cut(help, " --page int ")
		if says, standard, _ := strings.Cut(page, " (default "); !strings.HasSuffix(says, other) || !strings.HasPrefix(standard, "20000)") {
			t.Errorf("%s: --page %.300s", verb, page)
		}
	}
}

func TestFetchingIsMeasuredOnlyWhereItIsAskedFor(t *testing.T) {
	for _, c := range []struct {
		only []string
		on   bool
		want int
	}{{nil, false, 0}, {nil, true, 6}, {[]string{"fetch"}, false, 6}, {[]string{"fetch.giant", "ingest"}, false, 1}, {[]string{"ingest"}, false, 0}, {[]string{"ingest"}, true, 6}} {
		f := runFlags{only: c.only, fetch: c.on}
		chosen, err := f.choose()
		n := 0
		for _, key := range chosen {
			if strings.HasPrefix(key, "fetch.") {
				n++
			}
		}
		if err != nil || n != c.want {
			t.Errorf("--only %q, --fetch %v: %d ways to fetch, %v", c.only, c.on, n, err)
		}
	}
}

func TestFetchMeasuresARelayInEveryWay(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybench(t, "fetch", "ref-bolt", "--events=300", "--skip=preflight,calibration", "--adaptive", "--out", out, "--work", t.TempDir())
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	if got := relay(t, r, "ref-bolt"); got.Outcome != results.OutcomeOK {
		t.Errorf("outcome %s: %s", got.Outcome, got.Reason)
	}
	expected, _ := cellValue(r, "ref-bolt", "giant.raw", "expected")
	for _, key := range []string{"giant", "paged", "sharded-giant", "sharded-paged", "by-id.c1.f1.b50", "by-id.c4.f8.b250", "by-id.c4.adaptive.b125", "negentropy"} {
		for _, form := range []string{".raw", ".parsed"} {
			delivered, _ := cellValue(r, "ref-bolt", key+form, "delivered")
			missing, ok := cellValue(r, "ref-bolt", key+form, "missing")
			rate, _ := cellValue(r, "ref-bolt", key+form, "records/s")
			peak, _ := cellValue(r, "ref-bolt", key+form, "relay peak rss")
			state, _ := cellValue(r, "ref-bolt", key+form, "current state")
			if !ok || missing != 0 || delivered != expected || rate <= 0 || peak <= 0 || state != expected {
				t.Errorf("%s%s: %v of %v, %v missing, %v/s, peak %v, current %v", key, form, delivered, expected, missing, rate, peak, state)
			}
		}
		if got := note(r, key+".raw-deflate"); !strings.Contains(got, results.CauseNoCompression) {
			t.Errorf("%s, compressed: %q", key, got)
		}
		strategy, _, _ := strings.Cut(key, ".")
		if f := finding(r, "ref-bolt", "fetch."+strategy, results.CodeComplete); f == nil || f.Verdict != results.Passed {
			t.Errorf("%s: %+v", strategy, f)
		}
	}
	if args, _ := r.Options["args"].([]any); len(args) < 2 || args[0] != "fetch" || args[1] != "ref-bolt" {
		t.Errorf("it is repeated by %v", r.Options["args"])
	}
	for _, part := range []string{"FETCH", "by-id", "REQs in flight", "paced by", "×auto×"} {
		if !strings.Contains(stdout, part) {
			t.Errorf("the report says nothing of %q", part)
		}
	}
}

// --quick is as in the other verbs: 2,000 events, of a relay of the catalog and of one that runs.
func TestAQuickFetchTakesFewEvents(t *testing.T) {
	t.Parallel()
	url, held, _ := watched(t, 4000)
	for _, target := range []string{"ref-bolt", url} {
		out := t.TempDir()
		code, _, stderr := relaybench(t, "fetch", target, "--quick", "--skip=preflight,calibration", "--only=fetch.giant", "--out", out, "--work", t.TempDir())
		if code != exitDone {
			t.Fatalf("%s: exit code %d\n%s", target, code, stderr)
		}
		r := recorded(t, out)
		if target != url && r.Corpus.Events != quickEvents {
			t.Errorf("a corpus of %d events", r.Corpus.Events)
		}
		if got, _ := cellValue(r, r.Relays[0].Name, "giant.raw", "delivered"); target == url && (got < quickEvents || int(got) >= held) {
			t.Errorf("%v events of %d came", got, held)
		}
	}
}

func TestFetchSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybench(t, "fetch", "lossy='"+refrelayProgram+"' --listen 127.0.0.1:{port} --fault drop-results:0.3", "--events=300", "--skip=preflight,calibration",
		"--only=fetch.giant,fetch.by-id", "--out", out, "--work", t.TempDir())
	if code != exitFailed {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	for _, strategy := range []string{"giant", "by-id"} {
		if f := finding(r, "lossy", "fetch."+strategy, results.CodeComplete); f == nil || f.Verdict != results.Failed || !strings.Contains(textOf(f), "records never came") {
			t.Errorf("%s: %+v", strategy, f)
		}
	}
	if !strings.Contains(note(r, "giant.raw"), results.StatusIncomplete) || !strings.Contains(stdout, "incomplete") {
		t.Errorf("note %q", note(r, "giant.raw"))
	}
}

// A relay that does not start is not booted again in its bulk form, and fails once.
func TestARelayThatDoesNotStartIsBootedOnce(t *testing.T) {
	t.Parallel()
	for _, skip := range []string{"calibration", "preflight,calibration"} {
		dir := t.TempDir()
		program, boots := filepath.Join(dir, "relay"), filepath.Join(dir, "boots")
		if err := os.WriteFile(program, []byte("#!/bin/sh\necho boot >> '"+boots+"'\nexit 1\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := relaybench(t, "fetch", "broken="+program+" {port}", "--events=50", "--skip="+skip, "--out", t.TempDir(), "--work", t.TempDir())
		text, _ := os.ReadFile(boots)
		if n := strings.Count(string(text), "boot"); code != exitFailed || n != 1 || strings.Contains(stderr, "check failed") {
			t.Errorf("skipping %s: exit code %d, booted %d times\n%s", skip, code, n, stderr)
		}
	}
}

// A time in which nobody could have sent anything is the user's own, and no fault of the relay.
func TestFetchBlamesNobodyForACut(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	code, stdout, stderr := relaybench(t, "fetch", "ref-bolt", "--events=100", "--skip=preflight,calibration", "--cell-time=1ns", "--out", out, "--work", t.TempDir())
	if code != exitDone {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	for _, f := range r.Findings {
		if f.Code == results.CodeComplete {
			t.Errorf("%+v", f)
		}
	}
	if got := note(r, "giant.raw"); !strings.Contains(got, "--cell-time 1ns") || strings.Contains(stdout, " 0 k") {
		t.Errorf("note %q\n%s", got, stdout)
	}
}

// Relays that never come to an end, say nothing of use, or end while they are read from cost a cell
// or two, and never the run.
func TestFetchOutlivesARelayThatMisbehaves(t *testing.T) {
	t.Parallel()
	for mode, says := range map[string]string{"endless": "events came that had not been asked for", "chatters": "the relay stalled", "hangsup": "never came", "vanishes": "died in fetch.giant"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			out := t.TempDir()
			named := strings.TrimPrefix(hostile(t, "bad", mode), "--relay=")
			code, _, stderr := relaybench(t, "fetch", named, "--events=60", "--skip=preflight,calibration", "--only=fetch.giant",
				"--cell-time=4s", "--timeout=1s", "--out", out, "--work", t.TempDir())
			if code != exitFailed {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
			r := recorded(t, out)
			text := ""
			for i := range r.Findings {
				text += textOf(&r.Findings[i]) + "\n"
			}
			if r.Partial || !strings.Contains(text, says) {
				t.Errorf("partial %v, findings %s", r.Partial, text)
			}
		})
	}
}

func TestFetchOnlyReadsFromARelayThatRuns(t *testing.T) {
	t.Parallel()
	url, events, published := watched(t, 200)
	for _, c := range []struct {
		name string
		args []string
	}{{"nobody knows what it holds", nil}, {"it holds a corpus", []string{"--events=200", "--skip=calibration"}}} {
		out := t.TempDir()
		args := append([]string{"fetch", url, "--only=fetch.paged,fetch.giant,fetch.by-id", "--out", out, "--work", t.TempDir()}, c.args...)
		code, stdout, stderr := relaybench(t, args...)
		if code != exitDone {
			t.Fatalf("%s: exit code %d\n%s", c.name, code, stderr)
		}
		r := recorded(t, out)
		name := r.Relays[0].Name
		for _, key := range []string{"paged.raw", "paged.parsed", "giant.raw", "by-id.c4.f8.b50.raw"} {
			if got, _ := cellValue(r, name, key, "delivered"); int(got) != events {
				t.Errorf("%s, %s: %v of %d", c.name, key, got, events)
			}
			unresolved := c.args == nil && !strings.HasPrefix(key, "by-id")
			if got := note(r, key); strings.Contains(got, results.CauseUnresolved) != unresolved {
				t.Errorf("%s, %s: note %q", c.name, key, got)
			}
		}
		args2, _ := r.Options["args"].([]any)
		if len(args2) < 2 || args2[0] != "fetch" || !strings.Contains(args2[1].(string), url) {
			t.Errorf("%s: it is repeated by %v", c.name, args2)
		}
		if unnamed := strings.Contains(stdout, "what the relay holds is not known beforehand"); unnamed != (c.args == nil) || len(r.Corpus.Fingerprint) != 64 {
			t.Errorf("%s: said to be without a corpus: %v, fingerprint %q", c.name, unnamed, r.Corpus.Fingerprint)
		}
		if !strings.Contains(stdout, "FETCH") || !strings.Contains(stderr, "none is published") {
			t.Errorf("%s:\n%s", c.name, stderr)
		}
	}
	if n := published.Load(); n > 0 {
		t.Errorf("%d messages other than REQ, CLOSE and NEG- were sent to it", n)
	}
}

// Of a relay that holds more than --cell-events, by-id asks for what paging brought.
func TestACutFetchIsFollowedByID(t *testing.T) {
	t.Parallel()
	url, _, _ := watched(t, 200)
	out := t.TempDir()
	code, _, stderr := relaybench(t, "fetch", url, "--only=fetch.paged,fetch.by-id", "--cell-events=50", "--out", out, "--work", t.TempDir())
	if code != exitDone {
		t.Fatalf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	for _, key := range []string{"by-id.c1.f1.b50.raw", "by-id.c4.f8.b50.parsed", "by-id.c4.f8.b250.raw"} {
		if got, ok := cellValue(r, r.Relays[0].Name, key, "delivered"); !ok || got != 50 {
			t.Errorf("%s: %v events came: %s", key, got, note(r, key))
		}
	}
}

// watched is a relay that holds the synthetic corpus of so many events, with a count of the
// messages that would have changed it.
func watched(t *testing.T, n int) (url string, held int, published *atomic.Int64) {
	t.Helper()
	c, err := prepare.Synthetic(context.Background(), synthetic.Spec{Events: n, Seed: 1, BaseTime: 1780272000},
		prepare.Options{MaxEventBytes: 65536, MaxTags: 2000}, filepath.Join(t.TempDir(), "cache"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	inner := referencetest.Holding(t, referencetest.Events(t, c), reference.Options{NoVerify: true})
	m, err := model.New(c, nil, 1780272000)
	if err != nil {
		t.Fatal(err)
	}

	published = new(atomic.Int64)
	allowed := []string{`["REQ"`, `["CLOSE"`, `["NEG-OPEN"`, `["NEG-MSG"`, `["NEG-CLOSE"`}
	spy := referencetest.Between{Up: func(m []byte) {
		if !slices.ContainsFunc(allowed, func(head string) bool { return strings.HasPrefix(string(m), head) }) {
			published.Add(1)
		}
	}}
	return spy.Serve(t, inner), len(m.Effective()), published
}
