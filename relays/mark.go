package relays

import (
	"crypto/rand"
	"encoding/hex"
	"time"
)

// markVariable is set, to another random value at each boot, in the environment of all that is launched. A process that leaves its group and
// its parent, as a daemon does, still has it.
const markVariable = "RELAYBENCH_BOOT"

// newMark returns the assignment that marks one boot.
func newMark() string {
	var random [16]byte
	_, _ = rand.Read(random[:])
	return markVariable + "=" + hex.EncodeToString(random[:])
}

// maxEnvironment is more than any environment that a relay was launched with.
const maxEnvironment = 4 << 20

const (
	sweepTime  = 2 * time.Second        // for those that start others as fast as they are killed
	sweepAgain = 2 * time.Millisecond   // from one look to the next
	loadTime   = 300 * time.Millisecond // for those that are just being given their program, or are on their way out, and show no environment
)
