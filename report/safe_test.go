package report

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"relaybench/report/reporttest"
	"relaybench/results"
)

// unsafe finds a character that must not reach a reader, whatever the record holds.
func unsafe(out string) string {
	if !utf8.ValidString(out) {
		return "bytes that are not UTF-8"
	}
	for i, r := range out {
		if r == '\n' {
			continue
		}
		if unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || !unicode.IsPrint(r) && r != ' ' {
			return out[max(i-20, 0):min(i+20, len(out))]
		}
	}
	return ""
}

func TestVisibleWritesOutWhatDoesNotShow(t *testing.T) {
	for in, want := range map[string]string{
		"plain":                                 "plain",
		"a\tb\nc\rd":                            `a\u{9}b\u{a}c\u{d}d`,
		"\x1b[31mred\x1b[0m":                    `\u{1b}[31mred\u{1b}[0m`,
		"c1\u009b31m":                           `c1\u{9b}31m`,
		"bidi\u202egnp.exe":                     `bidi\u{202e}gnp.exe`,
		"iso\u2066late":                         `iso\u{2066}late`,
		"zero\u200bwidth":                       `zero\u{200b}width`,
		"join\u200der":                          `join\u{200d}er`,
		"bom\ufeff":                             `bom\u{feff}`,
		"soft\u00adhyphen":                      `soft\u{ad}hyphen`,
		"nbsp\u00a0":                            `nbsp\u{a0}`,
		"line\u2028sep":                         `line\u{2028}sep`,
		"filler\u3164":                          `filler\u{3164}`,
		"braille\u2800":                         `braille\u{2800}`,
		"tag\U000e0041":                         `tag\u{e0041}`,
		"private\ue000":                         `private\u{e000}`,
		"vs\ufe0f":                              `vs\u{fe0f}`,
		"bad\xff\xc0":                           `bad\x{ff}\x{c0}`,
		"日本 ⚡ é":                                "日本 ⚡ é",
		"e\u0301\u0301\u0301\u0301\u0301\u0301": "e\u0301\u0301\u0301\u0301" + `\u{301}\u{301}`,
		`already \u{1b} written`:                `already \u{5c}u{1b} written`,
		`C:\temp`:                               `C:\temp`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestVisibleBoundsWhatItLetsThrough(t *testing.T) {
	for _, in := range []string{strings.Repeat("x", 1<<20), strings.Repeat("é", maxText), strings.Repeat("\x1b", 1<<20), "x" + strings.Repeat("⚡", maxText)} {
		got := Visible(in)
		if len(got) > maxText*8 || !strings.HasSuffix(got, "… (cut)") || !utf8.ValidString(got) || strings.Contains(got, `\x{`) {
			t.Errorf("%d bytes became %d, ending in %q", len(in), len(got), got[len(got)-20:])
		}
	}
}

func TestMarkdownTextCannotBecomeMarkup(t *testing.T) {
	for in, want := range map[string]string{
		"a|b":                 `a\|b`,
		"**b** _i_ `c`":       `\*\*b\*\* \_i\_ \` + "`c\\`",
		"<img src=x> & </b>":  "&lt;img src=x&gt; &amp; &lt;/b&gt;",
		"![x](y) [l](m)":      `\!\[x\](y) \[l\](m)`,
		"- item":              `\- item`,
		"1. item":             `1\. item`,
		"1.25 ms":             "1.25 ms",
		"# head":              `\# head`,
		"see http://e.vil":    "`see http://e.vil`",
		"WWW.e.vil":           "`WWW.e.vil`",
		"@everyone":           "`@everyone`",
		"@a|b`":               "<code>&#64;a&#124;b&#96;</code>",
		`back\slash`:          `back\\slash`,
		"~~gone~~ $x$":        `\~\~gone\~\~ \$x\$`,
		"ref-bolt 2,000 (ok)": "ref-bolt 2,000 (ok)",
	} {
		if got := mdText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestFencesAreLongerThanWhatTheyHold(t *testing.T) {
	got := mdFence("sh", []string{"```", "a ````` b"})
	if want := "``````sh\n```\na ````` b\n``````\n"; got != want {
		t.Errorf("got %q", got)
	}
}

var ours = regexp.MustCompile(`\x1b\[[0-9;]+m`)

// filled is a record in which every string is s.
func filled(s string) *results.Record {
	h := results.NewHistogram()
	h.RecordN(time.Millisecond, 5)
	encoded, err := h.Encode()
	if err != nil {
		panic(err)
	}
	load := 3.0
	r := &results.Record{Partial: true, Options: map[string]any{s: s, "list": []any{s, map[string]any{s: s}}}}
	r.Environment.LoadBefore = &load
	r.Relays = make([]results.Relay, 2)
	r.Calibration = make([]results.Calibration, 1)
	r.Measurements = make([]results.Measurement, 3)
	r.Findings = make([]results.Finding, 2)
	fill(reflect.ValueOf(r).Elem(), s)
	r.Relays[1].Name = s + "2"
	r.Relays[1].Outcome = results.OutcomeOK
	queries, pairs, matrix, downloads, stated := "query."+s, "negentropy."+s, "sync."+s, "fetch."+s, "reconcile."+s
	r.Scenarios = nil
	for i, d := range []results.Scenario{{Key: queries, Layout: results.LayoutQueries, Primary: "eose"}, {Key: pairs, Layout: results.LayoutPairs, Primary: "time"},
		{Key: "negentropy.heartbeat", Layout: results.LayoutPairs, Primary: "time"}, {Key: matrix, Layout: results.LayoutMatrix, Primary: "records/s"}, {Key: downloads, Layout: results.LayoutDownloads, Primary: "records/s"},
		{Key: stated, Layout: results.LayoutTable, Primary: s, Tables: []string{s}, Rows: []string{results.LabelLayer}}} {
		d.Title, d.Section, d.Order, d.Headlines = s, s, i, []results.Headline{{Metric: d.Primary, Title: s}}
		r.Scenarios = append(r.Scenarios, d)
	}
	r.Measurements[0].Histogram, r.Measurements[0].Scenario, r.Measurements[0].Metric = encoded, queries, "eose"
	r.Measurements[1].Better, r.Measurements[1].Peer = results.Lower, ""
	r.Measurements[2].Better, r.Measurements[2].Peer, r.Measurements[2].Relay = results.Lower, "", s+"2"
	r.Measurements[2].Trials = []float64{7}
	words := map[string]string{"text": s, "error": s, "limit": s}
	status := []results.Status{{Code: results.StatusIncomplete, Cause: s, Texts: words}, {Code: results.StatusBottleneck, Cause: s}, {Code: s, Cause: s, Texts: words}}
	add := func(relay, peer, scenario, metric string, labels results.Labels) {
		r.Measurements = append(r.Measurements, results.Measurement{Relay: relay, Peer: peer, Scenario: scenario, Metric: metric, Unit: s, Better: results.Lower,
			Trials: []float64{7, 8}, Labels: labels, Status: status})
	}
	for _, scenario := range []string{pairs, "negentropy.heartbeat", matrix} {
		phase := results.Labels{results.LabelPhase: map[string]string{pairs: "initial", "negentropy.heartbeat": "heartbeat"}[scenario], s: s}
		add("unlisted "+s, s+"2", scenario, "time", phase)
		for _, metric := range []string{"time", "have", "need", "bytes per difference", "events/s", "events", "refused", "records/s", s} {
			labels := phase
			if metric == "refused" {
				labels = phase.With(results.Labels{results.LabelReason: s})
			}
			add(s, s+"2", scenario, metric, labels)
			add(s+"2", s, scenario, metric, labels)
			add(s, s, scenario, metric, labels)
		}
	}
	for _, metric := range []string{"records/s", "step", "parsed of raw", s} {
		for _, form := range []string{"raw", s} {
			add(s, "", downloads, metric, results.Labels{results.LabelForm: form, results.LabelInFlight: "2", results.LabelBatch: "5", results.LabelConnections: s, results.LabelEncoding: s})
			add(s, "", downloads, metric, results.Labels{results.LabelForm: form, results.LabelInFlight: "adaptive", results.LabelBatch: "5", results.LabelStrategy: s})
		}
	}
	for _, relay := range []string{"", s, s + "3"} {
		for _, metric := range []string{"warm", "rest", s} {
			add(relay, "", stated, metric, results.Labels{results.LabelLayer: s, s: s})
		}
	}
	for _, code := range []string{results.CodeHoldsUnion, results.CodeCompletes, results.CodeHoldsSeeded, results.CodeHasWay, s} {
		for _, peer := range []string{"", s, s + "2", s + "3"} {
			for i, verdict := range []results.Verdict{results.Failed, results.Stated, results.Undecided} {
				f := reporttest.Finding(s, peer, []string{pairs, matrix, s}[i], code, false, s, results.Evidence{Code: s, Cause: s, Text: s}, results.Evidence{Code: results.EvidenceMissing, ID: s, Count: 4},
					results.Evidence{Code: results.EvidenceText, Text: s + ": " + strings.Repeat("a", 64)})
				f.Verdict = verdict
				r.Findings = append(r.Findings, f)
			}
		}
	}
	r.Findings = append(r.Findings, results.Finding{Relay: s + "4", Code: results.CodeNIP77, Texts: words, Cause: results.StatusText})
	return r
}

func fill(v reflect.Value, s string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), s)
		}
	case reflect.Slice:
		if v.IsNil() {
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		for i := range v.Len() {
			fill(v.Index(i), s)
		}
	case reflect.Map:
		if v.Type().Elem().Kind() == reflect.String {
			v.Set(reflect.ValueOf(map[string]string{s: s}))
		} else if v.Type().Elem().Kind() == reflect.Int {
			v.Set(reflect.ValueOf(map[string]int{s: 3}))
		}
	case reflect.Float64:
		v.SetFloat(2)
	}
}

func checkSafe(t *testing.T, r *results.Record) {
	t.Helper()
	plain := string(renderTerminal(t, r, TerminalOptions{Width: 70, Files: []string{r.Corpus.Source}}))
	if bad := unsafe(plain); bad != "" {
		t.Errorf("on the terminal: %q", bad)
	}
	coloured := string(renderTerminal(t, r, TerminalOptions{Width: 70, Color: true, Files: []string{r.Corpus.Source}}))
	if stripped := ours.ReplaceAllString(coloured, ""); stripped != plain {
		t.Error("colours change the text")
	}
	files := false
	for l := range strings.SplitSeq(plain, "\n") {
		if files = files || strings.HasPrefix(l, "FILES "); width(l) > 70 && !files {
			t.Errorf("%d cells wide: %q", width(l), l)
		}
	}
	md := string(renderMarkdown(t, r))
	if bad := unsafe(strings.ReplaceAll(md, "⚠️", "")); bad != "" {
		t.Errorf("in Markdown: %q", bad)
	}
	if bad := reporttest.Markup(md); bad != "" {
		t.Errorf("markup in Markdown: %q", bad)
	}
}

func TestNothingInARecordReachesAReaderUnescaped(t *testing.T) {
	for _, r := range fixtures(t) {
		checkSafe(t, r)
	}
	for _, s := range []string{reporttest.Hostile, "", " ", "|", "`", "\\", "\\|", "``` \\", "</details>", "-", "1.", "http://x|`", "\xff", "a\nb", "→", "query.x.hot"} {
		checkSafe(t, filled(s))
	}
}

func FuzzReports(f *testing.F) {
	for _, s := range []string{reporttest.Hostile, "", "\x1b]0;title\x07", "\u202e", "`|\\<", "e\u0301", "👩‍👩‍👧", "</code>", "\\u{1b}", "\x00", "%d%s", "\xa9\u200d👧"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkSafe(t, filled(s)) })
}

func FuzzVisible(f *testing.F) {
	f.Add(reporttest.Hostile, "x")
	f.Add("\x1b", `\u{1b}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		va, vb := Visible(a), Visible(b)
		if bad := unsafe(va); bad != "" {
			t.Errorf("%q lets %q through", a, bad)
		}
		if strings.Contains(va, "\n") {
			t.Errorf("%q keeps a line end", a)
		}
		if a != b && va == vb && max(len(a), len(b)) <= maxText {
			t.Errorf("%q and %q both read %q", a, b, va)
		}
		if code := mdCode(va); !bytes.HasPrefix([]byte(code), []byte("<code>")) && strings.Count(code, "`") > 2 {
			t.Errorf("%q breaks out of %q", va, code)
		}
	})
}
