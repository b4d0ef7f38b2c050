package relays

import (
	"net"
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

func TestListenersAtALoopbackPortAreFound(t *testing.T) {
	for address, found := range map[string]bool{"127.0.0.1": true, "0.0.0.0": true, "[::]": true, "[::1]": true, "127.0.0.2": false} {
		l, err := net.Listen("tcp", address+":0")
		if err != nil {
			t.Logf("%s: %v: not tried", address, err)
			continue
		}
		port := l.Addr().(*net.TCPAddr).Port
		c, err := net.Dial("tcp", l.Addr().String()) // a connection at the port is no listener
		if err != nil {
			t.Fatal(err)
		}
		inodes, own := listeningInodes(port), false
		held, err := socketInodes(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		for _, inode := range held {
			own = own || inodes[inode]
		}
		if own != found || len(inodes) > 1 {
			t.Errorf("%s: %v, want it to be found: %v", address, inodes, found)
		}
		c.Close()
		l.Close()
		if inodes := listeningInodes(port); len(inodes) > 0 {
			t.Errorf("%s: %v listens after its end", address, inodes)
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

func FuzzParseListener(f *testing.F) {
	f.Add(make([]byte, 72), 8080)
	f.Fuzz(func(t *testing.T, message []byte, port int) { parseListener(message, port) })
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
