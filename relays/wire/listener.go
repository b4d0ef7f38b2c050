package wire

import "net"

// serverPending is how many bytes a peer of a buffered listener may be behind before writes to it
// block.
const serverPending = 1 << 20

// BufferedListener makes the connections that l accepts collect writes, so that a server which
// answers many messages between two reads pays for one system call. Bytes are sent before a Read
// that has to wait; at once while a Read waits already; when 64 KB have come together; on Flush and
// Close; and a millisecond after a write in any case. A Write blocks while the peer is 1 MiB
// behind, and fails when the connection is closed or its write deadline passes.
func BufferedListener(l net.Listener) net.Listener { return bufferedListener{l} }

type bufferedListener struct{ net.Listener }

func (l bufferedListener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return serverConn{newBufferedConn(inner, serverPending)}, nil
}

type serverConn struct{ *bufferedConn }

func (c serverConn) Write(p []byte) (int, error) {
	if err := c.waitRoom(); err != nil {
		return 0, err
	}
	return c.bufferedConn.Write(p)
}
