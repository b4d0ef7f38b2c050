//go:build !race

package report

// fewer is by how much simulations are cut down: not at all.
const fewer = 1
