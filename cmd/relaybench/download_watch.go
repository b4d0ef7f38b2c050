package main

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"relaybench/harness/download"
	"relaybench/report"
)

// downloadEvery is how often a download is worth a line where there is no terminal.
const downloadEvery = 10 * time.Second

// downloadLines are the lines of a download on a terminal, one for each relay and one for all.
type downloadLines struct {
	bars  []*mpb.Bar
	texts []*atomic.Pointer[string]
}

// download shows how far a download is.
func (w *watcher) download(s download.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := []string{downloadTotal(s)}
	var names []string
	for _, r := range s.Relays {
		names = append(names, hostOf(r.URL))
	}
	cut := report.CutNames(names, 24)
	for i, r := range s.Relays {
		lines = append(lines, downloadLine(cut[names[i]], r))
	}
	if w.bars == nil {
		if time.Since(w.last) < downloadEvery {
			return
		}
		if first := w.last.IsZero(); !first || s.Events > 0 {
			for _, line := range lines {
				w.printf("%s", line)
			}
		}
		w.last = time.Now()
		return
	}
	for len(w.downloads.bars) < len(lines) {
		text := new(atomic.Pointer[string])
		text.Store(new(string))
		w.downloads.texts = append(w.downloads.texts, text)
		w.downloads.bars = append(w.downloads.bars, w.bars.New(1, mpb.NopStyle(),
			mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return *text.Load() }))))
	}
	for i, line := range lines {
		w.downloads.texts[i].Store(&line)
	}
}

// endDownload takes the lines away: what is said next tells the end.
func (w *watcher) endDownload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.downloads.bars {
		b.Abort(true)
		b.Wait()
	}
	w.downloads = downloadLines{}
	w.last = time.Time{}
}

func downloadTotal(s download.Status) string {
	total := fmt.Sprintf("downloading: %s different events, %s", count(int(s.Events)), report.BytesText(float64(s.Bytes)))
	if s.Limit > 0 {
		total += "; the newest " + count(s.Limit) + " are wanted"
	}
	return total
}

// hostOf is an address without its scheme.
func hostOf(address string) string {
	_, name, _ := strings.Cut(address, "://")
	return visible(name)
}

// downloadLine tells of one relay in 78 columns, if its name has at most 24.
func downloadLine(name string, r download.RelayStatus) string {
	line := fmt.Sprintf("  %-24s %9s", name, count(int(r.Received)))
	switch r.Outcome {
	case download.All:
		return line + "  has no more"
	case download.Enough:
		return line + "  has no more that is wanted"
	case download.Failed:
		return line + "  given up"
	}
	if r.Received == 0 {
		return line + "  no answer yet"
	}
	line += "  to " + day(r.Next)[:16]
	if r.Rate >= 1 {
		line += fmt.Sprintf(" %6s/s", count(int(r.Rate)))
	}
	if r.Left > 0 {
		line += "  " + r.Left.Round(time.Second).String() + " left"
	}
	return line
}

// count shows a number with commas.
func count(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
