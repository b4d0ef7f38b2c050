package report

import (
	"math"
	"strings"
	"testing"

	"relaybench/results"
)

func TestValuesOfABlockShareOneUnit(t *testing.T) {
	for _, c := range []struct {
		unit   string
		values []float64
		want   string
	}{
		{"ms", []float64{0.031}, "31.0 µs"},
		{"ms", []float64{0.84, 1.356}, "0.840 ms|1.36 ms"},
		{"ms", []float64{118, 1180}, "118 ms|1,180 ms"},
		{"ms", []float64{800, 2600}, "0.800 s|2.60 s"},
		{"ms", []float64{0.3, 24}, "0.300 ms|24.0 ms"},
		{"ns", []float64{58}, "58 ns"},
		{"s", []float64{4.1, 0.4}, "4.10 s|0.400 s"},
		{"s", []float64{0}, "0 s"},
		{"events/s", []float64{6200, 3844.4}, "6,200|3,844"},
		{"events/s", []float64{240000, 74400}, "240 k|74.4 k"},
		{"events/s", []float64{240000, 150}, "240,000|150"},
		{"events/s", []float64{240000, 0}, "240 k|0"},
		{"events/s", []float64{24e6, 0}, "24 M|0"},
		{"bytes/event", []float64{1540, 2484}, "1,540 B|2,484 B"},
		{"MiB", []float64{2.2, 9.02}, "2.20 MiB|9.02 MiB"},
		{"MiB", []float64{0.4}, "410 KiB"},
		{"MiB", []float64{0.03, 60}, "30.7 KiB|61,440 KiB"},
		{"MiB", []float64{0.1, 60}, "0.100 MiB|60.0 MiB"},
		{"bytes/byte", []float64{3.4}, "3.40"},
		{"%", []float64{99.5, 100}, "99.5 %|100 %"},
		{"count", []float64{500}, "500"},
		{"files", []float64{9, 9.5, 1200.5}, "9|9.5|1,200"},
		{"files", []float64{0.321}, "0.321"},
		{"wombats", []float64{1234567.5}, "1,234,568"},
		{"ms", []float64{math.NaN()}, "n/a ms"},
	} {
		s := ScaleFor(c.unit, c.values)
		var got []string
		for _, v := range c.values {
			got = append(got, s.Format(v))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%v %s: got %s, want %s", c.values, c.unit, strings.Join(got, "|"), c.want)
		}
	}
}

func TestATitleNamesItsUnitOnce(t *testing.T) {
	for _, c := range [][3]string{
		{"switches per accepted event", "switches/event", "switches per accepted event"}, {"requests", "requests", "requests"},
		{"open", "files", "open, files"}, {"rate", "events/s", "rate, events/s"}, {"events per relay", "events/s", "events per relay, events/s"},
	} {
		if got := WithUnit(c[0], c[1]); got != c[2] {
			t.Errorf("%s in %s: %q", c[0], c[1], got)
		}
	}
}

func TestSmallSizesOfAColumnAreInKiB(t *testing.T) {
	for bytes, want := range map[float64]string{0: "0 MiB", 32 << 10: "32.0 KiB", 102 << 10: "102 KiB", 103 << 10: "0.101 MiB", 20 << 20: "20.0 MiB", 3 << 30: "3,072 MiB"} {
		if got := columnSize(bytes); got != want {
			t.Errorf("%v bytes: got %s, want %s", bytes, got, want)
		}
	}
}

func TestWhatWaitedTooShortToCountHasNoRows(t *testing.T) {
	r := newRun(t, 1, bolt)
	for scenario, ms := range map[string]float64{"ingest.throughput": 0.03, "storage": 4} {
		r.add(bolt, scenario, "reading delay", "ms", results.None, ms)
	}
	show := func() (terminal, md string) {
		rec := r.record()
		rec.Metrics = append(rec.Metrics, results.Metric{Key: "reading delay", Title: "frames waited", Role: results.RoleResource})
		return string(renderTerminal(t, rec, TerminalOptions{Width: 200})), string(renderMarkdown(t, rec))
	}
	if text, md := show(); strings.Contains(text, "frames waited") || strings.Contains(text, "<0.01 s") || !strings.Contains(md, "30.0 µs") {
		t.Errorf("%s\n%s", text, md)
	}
	r.add(bolt, "ingest.visibility", "reading delay", "ms", results.None, 70)
	if text, _ := show(); !strings.Contains(text, "frames waited") || !strings.Contains(text, "0.07 s") {
		t.Error(text)
	}
}

// TestSmallResourcesAreInKiB holds the table to it: what is below a tenth of a MiB has no zeros for
// its first digits.
func TestSmallResourcesAreInKiB(t *testing.T) {
	r := fixtures(t)["two-healthy"]
	for i := range r.Measurements {
		if m := &r.Measurements[i]; m.Metric == "bytes written" || m.Metric == "peak rss" {
			m.Trials, m.Unit = []float64{0.03}, "MiB"
		}
	}
	text := string(renderTerminal(t, r, TerminalOptions{Width: 160}))
	if !strings.Contains(text, "30.7 KiB") || strings.Contains(text, "0.030 MiB") {
		t.Errorf("%s", text)
	}
}

func TestNumbersCarryThreeDigits(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.00012: "0.00012", 0.5: "0.500", 9.999: "10.0", 9.99: "9.99", 99.96: "100", 12.34: "12.3", 999.6: "1,000", -1234567: "-1,234,567", 1e20: "1e+20", math.Inf(1): "n/a"} {
		if got := Number(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
}

func TestBarsAreProportionalAndNeverVanish(t *testing.T) {
	for _, c := range []struct {
		share float64
		want  string
	}{{0, ""}, {math.NaN(), ""}, {-1, ""}, {1e-9, "▏"}, {0.5, "████"}, {0.55, "████▍"}, {1, "████████"}, {7, "████████"}} {
		if got := bar(c.share, 8); got != c.want {
			t.Errorf("%v: got %q, want %q", c.share, got, c.want)
		}
	}
}

func TestSparksAverageWhatDoesNotFit(t *testing.T) {
	for _, c := range []struct {
		values []float64
		n      int
		want   string
	}{{nil, 8, ""}, {[]float64{0, 0}, 8, ""}, {[]float64{0, 7}, 8, "▁█"}, {[]float64{0, 0, 7, 7}, 2, "▁█"}, {[]float64{1, -5}, 2, "█▁"}} {
		if got := spark(c.values, c.n); got != c.want {
			t.Errorf("%v in %d: got %q, want %q", c.values, c.n, got, c.want)
		}
	}
}

func TestNamesAreCutInTheMiddleByCells(t *testing.T) {
	for _, c := range []struct {
		name string
		n    int
		want string
	}{{"geode-nosearch-a", 20, "geode-nosearch-a"}, {"geode-nosearch-a", 9, "geod…ch-a"}, {"逐次リレー測定", 8, "逐次…定"}, {"abc", 2, "a…"}, {"abc", 0, ""}} {
		got := fitMiddle(c.name, c.n)
		if got != c.want || width(got) > c.n {
			t.Errorf("%q in %d: got %q of %d cells, want %q", c.name, c.n, got, width(got), c.want)
		}
	}
}

func TestDifferentNamesAreCutDifferently(t *testing.T) {
	for _, c := range []struct {
		names []string
		n     int
		want  []string
	}{
		{[]string{"geode-a", "geode-b"}, 10, []string{"geode-a", "geode-b"}},
		{[]string{"geode-nosearch-a", "geode-nosearch-b", "geode-nosearch-a"}, 9, []string{"geod…ch-a", "geod…ch-b", "geod…ch-a"}},
		{[]string{"relay-branch-alpha-experimental", "relay-branch-gamma-experimental"}, 12, []string{"rela…alp…tal", "rela…gam…tal"}},
		{[]string{"relay-branch-alpha-experimental", "strfry", "relay-branch-alphb-experimental"}, 9, []string{"rel…a-…al", "strfry", "rel…b-…al"}},
		{[]string{"relay-left-x-tail-of-it", "relay-left-y-tail-of-it", "relay-righ-x-tail-of-it"}, 9, []string{"rel…le…#1", "rel…le…#2", "rel…ri…it"}},
		{[]string{"逐次リレー測定甲乙丙丁戊", "逐次リレー測定己乙丙丁戊"}, 10, []string{"逐…甲…丁戊", "逐…己…丁戊"}},
	} {
		got := CutNames(c.names, c.n)
		shown := map[string]string{}
		for i, name := range c.names {
			if width(got[name]) > c.n {
				t.Errorf("%q in %d: %q has %d cells", name, c.n, got[name], width(got[name]))
			}
			if other, taken := shown[got[name]]; taken && other != name {
				t.Errorf("%q and %q are both %q", other, name, got[name])
			}
			if shown[got[name]] = name; got[name] != c.want[i] {
				t.Errorf("%q in %d: %q, want %q", name, c.n, got[name], c.want[i])
			}
		}
	}
}

func TestWrappingKeepsEveryWord(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"one two three", 7, "one two|three"}, {"abcdefghij kl", 4, "abcd|efgh|ij|kl"}, {"逐次リレー", 3, "逐|次|リ|レ|ー"}, {"逐", 1, "逐"}, {"  ", 5, ""}} {
		if got := strings.Join(Wrap(c.text, c.n), "|"); got != c.want {
			t.Errorf("%q in %d: got %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

func TestCommandLinesCanBePasted(t *testing.T) {
	for _, c := range []struct {
		options map[string]any
		want    string
	}{
		{map[string]any{"args": []any{"--relay", "mine=/opt/my relay --port {port}"}, "events": 5.0}, `--relay 'mine=/opt/my relay --port {port}'`},
		{map[string]any{"args": []any{}, "events": 5.0}, ""},
		{map[string]any{"args": []string{"--quick"}}, "--quick"},
		{map[string]any{"events": 10000.0}, ""},
	} {
		if got := commandLine(c.options); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestCPUTimeShowsNoMoreThanWasCounted(t *testing.T) {
	for seconds, want := range map[float64]string{0: "<0.01 s", 0.07: "0.07 s", 0.175: "0.17 s", 9.999: "10.0 s", 131: "131 s", -1: "n/a"} {
		if got := cpuText(seconds); got != want {
			t.Errorf("%v: got %s, want %s", seconds, got, want)
		}
	}
}

func TestLongReasonsLoseTheirLastClauses(t *testing.T) {
	const reason = "failed: no progress in ingest: 3 of 4 gave up, the relay stalled"
	for n, want := range map[int]string{80: reason, 50: "failed: no progress in ingest: 3 of 4 gave up", 30: "failed: no progress in ingest", 10: "failed", 3: "fa…"} {
		if got := clause(reason, n); got != want {
			t.Errorf("%d: got %q, want %q", n, got, want)
		}
	}
}

func TestColumnsAreSharedOutEvenly(t *testing.T) {
	var b strings.Builder
	s := newScreen(&b, 40, false)
	(&terminal{screen: s}).table(&Table{labels: 1, columns: heads("", "aaaaaaaa", "bbbbbbbb", "cccccccc", "dddddddd"), rows: []Row{{cells: plain("x", "1", "2", "3", "4")}}})
	if err := s.flush(); err != nil {
		t.Fatal(err)
	}
	if want := "     aaaaaaaa  bbbbbbbb\n  x         1         2\n\n     cccccccc  dddddddd\n  x         3         4\n"; b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}
