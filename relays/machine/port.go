package machine

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"
)

// ErrNoPort is returned where every local port is taken.
var ErrNoPort = errors.New("no free local port")

// loopbacks are where a relay on this machine may listen; "localhost" is either.
var loopbacks = []string{"127.0.0.1", "::1"}

// FreePort returns a port that nothing listens on, neither on loopback nor on all addresses.
func FreePort() (int, error) {
	var last error
	for range 20 {
		port, err := unusedPort()
		if err == nil && ListeningHost(port) == "" {
			return port, nil
		}
		last = err
	}
	if last == nil || errors.Is(last, syscall.EADDRINUSE) {
		return 0, ErrNoPort
	}
	return 0, fmt.Errorf("looking for a free local port: %w", last)
}

func unusedPort() (int, error) {
	one, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := one.Addr().(*net.TCPAddr).Port
	one.Close()
	all, err := net.Listen("tcp", ":"+strconv.Itoa(port))
	if err != nil {
		return 0, err
	}
	all.Close()
	return port, nil
}

// ListeningHost returns the loopback address on which something accepts connections at port, or "".
func ListeningHost(port int) string {
	for _, host := range loopbacks {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(port)), 250*time.Millisecond)
		if err == nil {
			c.Close()
			return host
		}
	}
	return ""
}
