package relays

import (
	"os"
	"testing"
)

func TestParseStatSurvivesAnyName(t *testing.T) {
	const rest = " S 10 42 10 0 -1 4194560 100 200 0 0 150 50 300 100 20 0 5 0 987654 1000000 256 18446744073709551615"
	for _, name := range []string{"relay", "a) S (b", "x y", ")", "("} {
		r, ok := parseStat([]byte("42 (" + name + ")" + rest))
		if !ok || r.pid != 42 || r.ppid != 10 || r.pgid != 42 || r.cpu != 2 || r.reaped != 4 || r.started != 987654 || r.rss != 256*pageSize || r.zombie {
			t.Errorf("%q: %+v, %v", name, r, ok)
		}
	}
	if _, ok := parseStat([]byte("42 (relay) S 1 2")); ok {
		t.Error("a short line was accepted")
	}
}

func TestParseListening(t *testing.T) {
	const tail = " 00000000:0000 %s 00000000:00000000 00:00000000 00000000     0        0 12345 1 0000000000000000 100 0 0 10 0"
	listens, connected := "0A", "01"
	for _, c := range []struct {
		local, state string
		ok           bool
	}{
		{"0100007F:1F90", listens, true},
		{"00000000:1F90", listens, true},
		{"00000000000000000000000000000000:1F90", listens, true},
		{"0100007F:1F91", listens, false},
		{"0100007F:1F90", connected, false},
		{"0200A8C0:1F90", listens, false},
		{"garbage", listens, false},
	} {
		line := "   0: " + c.local + tail[:15] + c.state + tail[17:]
		if inode, ok := parseListening(line, 8080); ok != c.ok || ok && inode != "12345" {
			t.Errorf("%s %s: %q, %v", c.local, c.state, inode, ok)
		}
	}
}

func TestReadDetailsOfThisProcess(t *testing.T) {
	d := readDetails(os.Getpid())
	if d.highWater == 0 || d.files == 0 || d.switches == 0 {
		t.Errorf("%+v", d)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (relay) S 10 42 10 0 -1 4194560 100 200 0 0 150 50 300 100 20 0 5 0 987654 1000000 256 1"))
	f.Add([]byte("1 ()"))
	f.Fuzz(func(t *testing.T, text []byte) { parseStat(text) })
}

func FuzzParseListening(f *testing.F) {
	f.Add("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 12345 1", 8080)
	f.Fuzz(func(t *testing.T, line string, port int) { parseListening(line, port) })
}

// BenchmarkSample is what watching one relay costs: "members" five times a second, "full" once.
func BenchmarkSample(b *testing.B) {
	d, err := FromTemplate("good", helperTemplate("good"))
	if err != nil {
		b.Fatal(err)
	}
	p, err := Start(b.Context(), &d, "", Settings{WorkDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Cleanup()
	b.Run("members", func(b *testing.B) {
		for b.Loop() {
			p.tree.mu.Lock()
			p.tree.sample(false)
			p.tree.mu.Unlock()
		}
	})
	b.Run("full", func(b *testing.B) {
		for b.Loop() {
			_, _ = p.Usage()
		}
	})
}
