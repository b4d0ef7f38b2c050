// Package reporttest holds what the tests of report, compare and gate share: records, golden files,
// and what no rendering may let through.
package reporttest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"relaybench/results"
)

// Wobble makes trials differ by a few per cent, the same way every time.
func Wobble(trial int) float64 { return 1 + 0.03*math.Sin(float64(trial)*2.1) }

// Finding is a check that passed, or that failed, bears on what its code says, and blames the
// relay.
func Finding(relay, peer, scenario, code string, ok bool, detail string, evidence ...results.Evidence) results.Finding {
	f := results.Finding{Relay: relay, Peer: peer, Scenario: scenario, Code: code, Verdict: results.Holds(ok), Evidence: evidence,
		Cause: results.StatusText, Texts: map[string]string{"text": detail}}
	if !ok {
		f.Blames, f.BearsOn = relay, results.BearsOn(code, scenario, nil)
	}
	return f
}

// Described has a record's scenarios and metrics described, and its keys taken apart, as those of
// form 1 are on reading. Findings stay as they are.
func Described(r *results.Record) *results.Record {
	old := *r
	old.Schema, old.Findings, old.Relays = "relaybench/results/1", nil, slices.Clone(r.Relays) // all that anything is of
	know := func(names ...string) {
		for _, name := range names {
			if name != "" && !slices.ContainsFunc(old.Relays, func(o results.Relay) bool { return o.Name == name }) {
				old.Relays = append(old.Relays, results.Relay{Name: name})
			}
		}
	}
	for _, f := range r.Findings {
		old.Findings = append(old.Findings, results.Finding{Relay: f.Relay, Peer: f.Peer, Scenario: f.Scenario})
		know(f.Relay, f.Peer)
	}
	for _, m := range r.Measurements {
		know(m.Relay, m.Peer)
	}
	f, err := os.CreateTemp("", "results-*.json")
	if err == nil {
		defer os.Remove(f.Name())
		err = errors.Join(json.NewEncoder(f).Encode(old), f.Close())
	}
	if err != nil {
		panic(err)
	}
	out, err := results.ReadRecord(f.Name())
	if err != nil {
		panic(err)
	}
	out.Findings = r.Findings
	for i := range out.Measurements { // JSON replaces what is not UTF-8
		m, was := &out.Measurements[i], &r.Measurements[i]
		m.Relay, m.Peer, m.Unit = was.Relay, was.Peer, was.Unit
	}
	out.Relays = r.Relays
	out.Options, out.Corpus, out.Environment = r.Options, r.Corpus, r.Environment
	return out
}

// Hostile is what a program under test might put where a name or a line is expected.
const Hostile = "evil\x1b[2J\x07\r\n|`<img src=x onerror=alert(1)>`![x](http://e.vil)\u202eltr\u200b **b** @all \\| </details>\xff\u0085"

var update = flag.Bool("update", false, "write the golden files anew")

// Golden compares a rendering with a file of testdata, which -update writes anew.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
		for i := range min(len(g), len(w)) {
			if g[i] != w[i] {
				t.Fatalf("%s differs from line %d on (go test -update writes it anew):\n got %q\nwant %q", path, i+1, g[i], w[i])
			}
		}
		t.Fatalf("%s has %d lines, the report %d", path, len(w), len(g))
	}
}

var (
	escapedTick = regexp.MustCompile(`\\.`)
	codeSpan    = regexp.MustCompile("`[^`]*`")
	ourTags     = regexp.MustCompile(`</?(details|summary|code)>`)
)

// Markup returns the first line of a Markdown report that holds markup which is not ours: HTML, a
// link or an image outside code, or a table row with more or fewer cells than its head.
func Markup(out string) string {
	fence, cells := "", -1
	for line := range strings.SplitSeq(out, "\n") {
		switch {
		case fence != "":
			if line == fence {
				fence = ""
			}
			continue
		case strings.HasPrefix(line, "```"):
			fence = line[:strings.LastIndex(line, "`")+1]
			continue
		}
		summary := strings.HasPrefix(line, "<details>") // HTML, where a backslash escapes nothing
		rest := line
		if !summary {
			rest = codeSpan.ReplaceAllString(escapedTick.ReplaceAllString(line, ""), "")
		}
		rest = ourTags.ReplaceAllString(rest, "")
		rest = strings.TrimPrefix(rest, "> **PARTIAL**")
		if strings.ContainsAny(rest, "<>") || !summary && (strings.ContainsAny(rest, "[]`") || strings.Contains(rest, "://")) {
			return line
		}
		if !strings.HasPrefix(line, "|") {
			cells = -1
			continue
		}
		n := strings.Count(escapedTick.ReplaceAllString(line, ""), "|")
		if cells >= 0 && n != cells {
			return line
		}
		cells = n
	}
	if fence != "" {
		return "an open fence"
	}
	return ""
}

// Header is a record of which nothing was measured yet.
func Header() *results.Record {
	return &results.Record{
		Schema: results.Schema, StartedAt: time.Date(2026, 8, 30, 12, 0, 0, 0, time.UTC),
		Tool:        results.Tool{Version: "0.1.0", Revision: "4be1c2d09f7766"},
		Environment: results.Environment{OS: "linux", Arch: "amd64", Kernel: "6.8", CPU: "AMD EPYC 7543", Cores: 2, Governor: "performance", Virtualization: "kvm", FileSystem: "ext4", Disk: "NVMe"},
		Corpus:      results.Corpus{Source: "synthetic", Fingerprint: strings.Repeat("3fa9c01d7be24856", 4), Events: 10000},
		Options:     map[string]any{"window": 200.0, "samples": 200.0, "seed": 1.0, "trials": 10.0, "args": []any{"--trials", "10"}},
	}
}

// Spread is four trials about a value, which are as many as a test needs.
func Spread(value float64) []float64 {
	return []float64{value, value * 1.01, value * 0.99, value * 1.02}
}

// Failed is a failed check of a relay that bears on figures.
func Failed(relay string, bearsOn ...string) func(*results.Record) {
	return func(r *results.Record) {
		f := Finding(relay, "", "preflight", "c", false, "it does not")
		f.BearsOn = nil
		for _, scenario := range bearsOn {
			f.BearsOn = append(f.BearsOn, results.Scope{Scenario: scenario})
		}
		r.Findings = append(r.Findings, f)
	}
}
