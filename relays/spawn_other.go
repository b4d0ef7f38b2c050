//go:build !linux

package relays

import (
	"os/exec"
	"syscall"
)

// childAttributes gives a child its own process group. There is no parent-death signal here: after a SIGKILL of relaybench its
// relays run on.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// spawn starts cmd; processes cannot be kept to processors here.
func spawn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }
