package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"relaybench/harness/layers"
)

// writeLayers prints the two tables of one size, and what is to be said of those that have no figures.
func writeLayers(w io.Writer, s *layers.Size) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s items a side, %s shared: the oldest and the newest fifth differ", count(s.Items), count(s.Shared))
	if s.Signed {
		b.WriteString("; events really signed")
	}
	b.WriteByte('\n')
	layersTable(&b, s.Rows, "cold", func(r *layers.Row) *layers.Measured { return &r.Differing })
	fmt.Fprintf(&b, "\nheartbeat: both hold the same %s items\n", count(s.Items))
	layersTable(&b, s.Rows, "first", func(r *layers.Row) *layers.Measured { return &r.Identical })
	var problems []string
	layersWith := make(map[string][]string)
	for i := range s.Rows {
		if r := &s.Rows[i]; r.Problem != "" {
			if layersWith[r.Problem] == nil {
				problems = append(problems, r.Problem)
			}
			layersWith[r.Problem] = append(layersWith[r.Problem], r.Layer)
		}
	}
	for _, p := range problems {
		fmt.Fprintf(&b, "%s: %s\n", strings.Join(layersWith[p], ", "), visible(p))
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// layersLegend says what the columns are.
func layersLegend(repeat int) string {
	return fmt.Sprintf(`Times are in ms. cold: the first reconciliation after the relay was filled, in a harness without memory
to reuse. warm: of the %d after it the one with the median time, to which the shares beside it belong.
engine: the protocol. coding: hexadecimal digits and JSON. rest: sockets, the kernel and, for a process,
all that the relay does. kB: WebSocket frames; in memory, the bare messages. have and need: the ids that
only the harness and only the peer holds.
`, repeat)
}

// layersTable prints one table. first is what its column of first reconciliations is called.
func layersTable(b *strings.Builder, rows []layers.Row, first string, of func(*layers.Row) *layers.Measured) {
	lines := [][]string{
		{"", "", "", "harness", "", "peer", "", "", "", "", "", "", ""},
		{"", first, "warm", "engine", "coding", "engine", "coding", "rest", "rounds", "kB up", "down", "have", "need"},
	}
	for i := range rows {
		r := &rows[i]
		m := of(r)
		if m.Warm.Total == 0 {
			continue // a line below the tables says why
		}
		c := &m.Warm
		line := []string{r.Layer, millis(m.Cold.Total), millis(c.Total), millis(c.Engine), millis(c.Coding), "–", "–", millis(c.Rest),
			count(c.Rounds), kilobytes(c.BytesUp), kilobytes(c.BytesDown), thousands(c.Have), thousands(c.Need)}
		if r.PeerSeen {
			line[5], line[6] = millis(c.PeerEngine), millis(c.PeerCoding)
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for k, cell := range line {
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		var out strings.Builder
		for k, cell := range line {
			pad := strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell))
			if k == 0 {
				out.WriteString(cell + pad)
			} else {
				out.WriteString("  " + pad + cell)
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

// millis shows a duration in ms, with three digits of it.
func millis(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return strconv.FormatFloat(ms, 'f', 3, 64)
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 2, 64)
	case ms < 100:
		return strconv.FormatFloat(ms, 'f', 1, 64)
	}
	return count(int(ms + 0.5))
}

// kilobytes shows bytes in kB.
func kilobytes(n int64) string {
	kb := float64(n) / 1000
	switch {
	case kb < 1:
		return strconv.FormatFloat(kb, 'f', 2, 64)
	case kb < 100:
		return strconv.FormatFloat(kb, 'f', 1, 64)
	}
	return count(int(kb + 0.5))
}

// count shows a number with commas.
func count(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// thousands shows a number exactly: 200k where it is a multiple of a thousand.
func thousands(n int) string {
	if n > 0 && n%1000 == 0 {
		return count(n/1000) + "k"
	}
	return count(n)
}
