//go:build !linux

package machine

import "errors"

// ErrNotHere is returned where the system does not let a process choose its processors.
var ErrNotHere = errors.New("only Linux lets processes be kept to processors; leave --pin out")

// Shares are whose the processors are.
type Shares struct{ Harness, Relay []int } // logical processors

// Divide cannot be done here.
func Divide() (*Shares, error) { return nil, ErrNotHere }

// Keep cannot be done here.
func (*Shares) Keep() (undo func(), err error) { return nil, ErrNotHere }
