package wire

import (
	"fmt"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

const window = 200 // unacknowledged events on each connection

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report adds rates and what a frame cost. With the server in a process of its own the CPU time is
// the harness's alone.
func report(b *testing.B, what string, frames int, elapsed, cpu time.Duration) {
	b.ReportMetric(float64(frames)/elapsed.Seconds(), what+"/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(frames), "cpu-µs/"+what)
}

func eachServer(b *testing.B, run func(b *testing.B, url string)) {
	b.Run("server=apart", func(b *testing.B) { run(b, startNullServer(b)) })
	b.Run("server=inside", func(b *testing.B) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		go serveNull(l)
		run(b, "ws://"+l.Addr().String())
	})
}

// publish sends count events with up to window of them unacknowledged, and reads their OKs.
func publish(c *Conn, raw []byte, count int) error {
	sent := 0
	for ; sent < min(window, count); sent++ {
		if err := c.SendEvent(raw); err != nil {
			return err
		}
	}
	var m Message
	for range count {
		frame, _, err := c.Read()
		if err != nil {
			return err
		}
		if Parse(frame, &m); m.Type != OK || !m.HasID || !m.Accepted {
			return fmt.Errorf("unexpected %s", frame)
		}
		if sent < count {
			sent++
			if err := c.SendEvent(raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// receive asks and reads the answer, rounds times.
func receive(c *Conn, rounds int) error {
	var m Message
	for range rounds {
		if err := c.Send([]byte(`["REQ","s",{}]`)); err != nil {
			return err
		}
		for m.Type = Unknown; m.Type != EOSE; {
			frame, _, err := c.Read()
			if err != nil {
				return err
			}
			if Parse(frame, &m); m.Type != EOSE && (m.Type != Event || !m.HasID) {
				return fmt.Errorf("unexpected %s", frame)
			}
		}
	}
	return nil
}

func together(b *testing.B, conns []*Conn, work func(c *Conn) error) {
	var wg sync.WaitGroup
	for _, c := range conns {
		wg.Go(func() {
			if err := work(c); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
}

// BenchmarkPublish is EVENT→OK in a closed loop of window events on each connection.
func BenchmarkPublish(b *testing.B) {
	eachServer(b, func(b *testing.B, url string) {
		for _, n := range []int{1, 4, 16} {
			b.Run(fmt.Sprintf("conns=%d", n), func(b *testing.B) {
				conns := make([]*Conn, n)
				for i := range conns {
					conns[i] = connect(b, url)
				}
				raw := []byte(benchEvent)
				share := b.N/n + 1
				b.ReportAllocs()
				b.SetBytes(int64(len(raw)))
				b.ResetTimer()
				before, start := cpuTime(), Now()
				together(b, conns, func(c *Conn) error { return publish(c, raw, share) })
				elapsed, cpu := Now()-start, cpuTime()-before
				b.StopTimer()
				report(b, "event", share*n, elapsed, cpu)
			})
		}
	})
}

// BenchmarkReceive is answers of 500 EVENT frames, read and parsed. One operation is one frame.
func BenchmarkReceive(b *testing.B) {
	eachServer(b, func(b *testing.B, url string) {
		for _, n := range []int{1, 4} {
			b.Run(fmt.Sprintf("conns=%d", n), func(b *testing.B) {
				conns := make([]*Conn, n)
				for i := range conns {
					conns[i] = connect(b, url)
				}
				rounds := b.N/answerSize/n + 1
				b.ReportAllocs()
				b.SetBytes(int64(len(benchEvent)))
				b.ResetTimer()
				before, start := cpuTime(), Now()
				together(b, conns, func(c *Conn) error { return receive(c, rounds) })
				elapsed, cpu := Now()-start, cpuTime()-before
				b.StopTimer()
				report(b, "event", rounds*answerSize*n, elapsed, cpu)
			})
		}
	})
}

// BenchmarkRoundTrip is one event and its OK at a time: the floor under every latency.
func BenchmarkRoundTrip(b *testing.B) {
	c := connect(b, startNullServer(b))
	raw := []byte(benchEvent)
	b.ReportAllocs()
	for b.Loop() {
		c.SendEvent(raw)
		if _, _, err := c.Read(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSplitFrame sends a frame in two writes before it reads, which is where Nagle's algorithm
// waits for the server's delayed acknowledgement: tens of milliseconds where the option is off,
// that a benchmark would count as the relay's.
func BenchmarkSplitFrame(b *testing.B) {
	for _, noDelay := range []bool{true, false} {
		b.Run(fmt.Sprintf("nodelay=%v", noDelay), func(b *testing.B) {
			c := connect(b, startNullServer(b))
			if err := c.conn.Conn.(*net.TCPConn).SetNoDelay(noDelay); err != nil {
				b.Fatal(err)
			}
			payload := eventHead + benchEvent + eventTail
			frame := []byte{opText, 0x80 | 126, byte(len(payload) >> 8), byte(len(payload)), 0, 0, 0, 0} // masked with zeros
			frame = append(frame, payload...)
			for b.Loop() {
				for _, part := range [][]byte{frame[:8], frame[8:]} {
					c.stream.Write(part)
					c.Flush()
				}
				if _, _, err := c.Read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
