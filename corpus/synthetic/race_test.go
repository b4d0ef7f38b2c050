//go:build race

package synthetic

// shapeEvents is smaller under the race detector, which makes signatures ten times as slow.
const shapeEvents = 3_000
