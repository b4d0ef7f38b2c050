//go:build !race

package gate

// fewer is by how much simulations are cut down: not at all.
const fewer = 1
