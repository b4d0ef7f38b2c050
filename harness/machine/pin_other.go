//go:build !linux

package machine

import "errors"

// ErrNotHere is returned where the system does not let a process choose its processors.
var ErrNotHere = errors.New("only Linux lets processes be kept to processors; leave --pin out")

// Pinned says who runs where.
type Pinned struct {
	Harness, Relay []int // logical processors
	Undo           func()
}

// Pin cannot be done here.
func Pin() (*Pinned, error) { return nil, ErrNotHere }
