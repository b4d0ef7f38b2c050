package harness

import "relaybench/relays/wire"

// Garbage counts a relay's frames that are no valid message of the protocol. The connection
// collects it: wire.Conn.ReadMessage.
type Garbage = wire.Garbage
