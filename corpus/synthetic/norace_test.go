//go:build !race

package synthetic

// shapeEvents is the size of the corpus whose shape is checked: that of a default run.
const shapeEvents = 10_000
