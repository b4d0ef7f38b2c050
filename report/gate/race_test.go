//go:build race

package gate

// fewer is by how much simulations are cut down where the race detector makes them slow.
const fewer = 5
