package report

import (
	"math"
	"strings"
)

// bar draws a share of n cells in eighths; anything above nothing shows at least one eighth.
func bar(share float64, n int) string {
	if math.IsNaN(share) || share <= 0 {
		return ""
	}
	eighths := max(int(math.Round(min(share, 1)*float64(n*8))), 1)
	s := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		s += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return s
}

// spark draws values as a line of at most n characters, each the mean of its share of them.
func spark(values []float64, n int) string {
	n = min(n, len(values))
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	if n < 1 || top <= 0 {
		return ""
	}
	var b strings.Builder
	for i := range n {
		from, to := i*len(values)/n, (i+1)*len(values)/n
		sum := 0.0
		for _, v := range values[from:to] {
			sum += v
		}
		level := math.Round(sum / float64(to-from) / top * 7)
		b.WriteRune([]rune("▁▂▃▄▅▆▇█")[int(min(max(level, 0), 7))])
	}
	return b.String()
}
