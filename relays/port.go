package relays

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"relaybench/relays/machine"
)

// loopbacks are where a relay on this machine may listen; "localhost" is either.
var loopbacks = []string{"127.0.0.1", "::1"}

// freePort returns a port that nothing listens on, neither on loopback nor on all addresses.
func freePort() (int, error) {
	var last error
	for range 20 {
		port, err := unusedPort()
		if err == nil && listeningHost(port) == "" {
			return port, nil
		}
		last = err
	}
	if last == nil || errors.Is(last, syscall.EADDRINUSE) {
		return 0, machine.ErrNoPort
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

// listeningHost returns the loopback address on which something accepts connections at port, or "".
func listeningHost(port int) string {
	for _, host := range loopbacks {
		c, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(port)), 250*time.Millisecond)
		if err == nil {
			c.Close()
			return host
		}
	}
	return ""
}
