package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"relaybench/harness"
	"relaybench/harness/download"
	"relaybench/report"
	"relaybench/results"
)

// watcher shows progress: bars on a terminal, plain lines elsewhere. It implements
// harness.Observer.
type watcher struct {
	out  io.Writer
	bars *mpb.Progress // nil where lines are written

	mu    sync.Mutex
	bar   *bar
	turn  string // the relay and trial
	label string // the relay and scenario
	group string // of the last line written
	stage string // of the corpus
	begun int    // scenarios of this turn
	last  time.Time
	since time.Time // when the step that is under way began
	lines []*bar    // of a download: one for all, and one for each relay
}

// bar is a progress bar with texts that change. The bars' own goroutine reads them, so that it
// takes no lock.
type bar struct {
	*mpb.Bar
	text, left atomic.Pointer[string]
}

// newBar adds a bar that has a text of so many columns before it.
func (w *watcher) newBar(text string, columns int, total int64, style mpb.BarFillerBuilder, after ...decor.Decorator) *bar {
	b := new(bar)
	b.text.Store(&text)
	b.left.Store(new(string))
	said := func(text *atomic.Pointer[string], at ...decor.WC) decor.Decorator {
		return decor.Any(func(decor.Statistics) string { return *text.Load() }, at...)
	}
	b.Bar = w.bars.New(total, style, mpb.PrependDecorators(said(&b.text, decor.WC{W: columns, C: decor.DindentRight})),
		mpb.AppendDecorators(append(after, said(&b.left))...))
	return b
}

// expect says how long the step that is under way will take yet, going by how far it has come since
// then; nothing as long as that is a guess.
func (b *bar) expect(since time.Time, done, total int64) {
	text := ""
	if took := time.Since(since); took > time.Second && done > 0 && done < total {
		left := time.Duration(float64(took) * float64(total-done) / float64(done))
		text = "  " + max(left, time.Second).Round(time.Second).String() + " left"
	}
	b.left.Store(&text)
}

func newWatcher(out io.Writer) *watcher {
	w := &watcher{out: out}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb" {
		w.open()
	}
	return w
}

func (w *watcher) open() {
	w.bars = mpb.New(mpb.WithOutput(w.out), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
}

// wait ends the bars, so that what is printed next stands below them. What was not done stays where
// it was.
func (w *watcher) wait(done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endBar(w.turn, done)
	if w.bars != nil {
		w.bars.Wait()
		w.open()
	}
}

func (w *watcher) printf(format string, args ...any) {
	line := fmt.Sprintf(format, args...) + "\n"
	if w.bars != nil {
		if _, err := io.WriteString(w.bars, line); err == nil {
			return
		}
	}
	io.WriteString(w.out, line)
}

// note writes a line of its own.
func (w *watcher) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.printf("%s", visible(fmt.Sprintf(format, args...)))
}

func (w *watcher) startBar(text string, total int64) {
	w.endBar(w.turn, true)
	w.since = time.Now()
	w.bar = w.newBar(text, 38, total, mpb.BarStyle(), decor.NewPercentage("%d", decor.WC{W: 5}), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 7}))
}

// step begins to tell of another step in the same bar.
func (w *watcher) step(text string) {
	w.since = time.Now()
	w.bar.text.Store(&text)
	w.bar.expect(w.since, 0, 0)
}

// endBar leaves the bar as it stands, full if what it showed was done. A text that is not empty
// becomes its last.
func (w *watcher) endBar(text string, done bool) {
	if w.bar == nil {
		return
	}
	if text != "" {
		w.bar.text.Store(&text)
	}
	w.bar.expect(w.since, 0, 0)
	if done {
		w.bar.Increment() // nothing of nothing would be 0 %
		w.bar.SetTotal(-1, true)
	} else {
		w.bar.Abort(false)
	}
	w.bar = nil
}

// corpus is a corpus.Progress.
func (w *watcher) corpus(stage string, done, total int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if first := w.stage != stage; first && w.bars == nil {
		w.printf("corpus: %s", stage)
	} else if first {
		w.startBar("corpus: "+stage, total)
	}
	if w.stage = stage; w.bar != nil {
		w.bar.SetTotal(total, false)
		w.bar.SetCurrent(done)
		w.bar.expect(w.since, done, total)
	}
}

// Trial implements harness.Observer.
func (w *watcher) Trial(relay string, trial, trials, scenarios int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.group = 0, ""
	label := relay
	if trials > 1 {
		label = fmt.Sprintf("%s, trial %d of %d", relay, trial+1, trials)
	}
	if w.bars == nil {
		w.printf("%s: boots", label)
		return
	}
	w.startBar(label, int64(scenarios*barUnits))
	w.turn = label
}

// barUnits is how finely a scenario's own progress moves the bar of its turn.
const barUnits = 100

// Scenario implements harness.Observer.
func (w *watcher) Scenario(relay string, d harness.Description) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d.Key == harness.Again {
		w.begun, w.group = 0, ""
		w.printf("%s: %s", relay, d.Title)
		return
	}
	if w.bar == nil { // as without a turn
		group := d.Key
		switch d.Layout {
		case results.LayoutQueries, results.LayoutPairs, results.LayoutDownloads, results.LayoutTable: // many short ones
			group = strings.ToLower(d.Section)
		}
		if group != w.group {
			w.printf("%s: %s", relay, group)
		}
		w.group = group
		return
	}
	if d.Key != "seeding" && d.Key != harness.Preflight {
		w.begun++
	}
	w.label = relay + "  " + d.Key
	w.step(w.label)
	w.bar.SetCurrent(int64((max(w.begun, 1) - 1) * barUnits))
}

// Progress implements harness.Observer.
func (w *watcher) Progress(done, total int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bar == nil || total == 0 || time.Since(w.last) < 50*time.Millisecond {
		return
	}
	w.last = time.Now()
	text := fmt.Sprintf("%s %d %%", w.label, done*100/total)
	w.bar.text.Store(&text)
	w.bar.expect(w.since, int64(done), int64(total))
	w.bar.SetCurrent(int64((max(w.begun, 1)-1)*barUnits + done*barUnits/total))
}

// Failed implements harness.Observer.
func (w *watcher) Failed(relay string, reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endBar(w.turn, false)
	w.printf("%s", visible(relay+": "+reason.Error()))
}

// downloadEvery is how often a download is worth a line where there is no terminal.
const downloadEvery = 10 * time.Second

// download shows how far a download is.
func (w *watcher) download(s download.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, r := range s.Relays {
		names = append(names, hostOf(r.URL))
	}
	lines, cut := []string{downloadTotal(s)}, report.CutNames(names, 24)
	for i, r := range s.Relays {
		lines = append(lines, downloadLine(cut[names[i]], r))
	}
	if w.bars == nil && time.Since(w.last) < downloadEvery {
		return
	}
	for i, line := range lines {
		switch {
		case w.bars != nil && i == len(w.lines):
			w.lines = append(w.lines, w.newBar(line, 0, 1, mpb.NopStyle()))
		case w.bars != nil:
			w.lines[i].text.Store(&line)
		case !w.last.IsZero() || s.Events > 0:
			w.printf("%s", line)
		}
	}
	w.last = time.Now()
}

// endDownload takes the lines away: what is said next tells the end.
func (w *watcher) endDownload() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range w.lines {
		b.Abort(true)
		b.Wait()
	}
	w.lines, w.last = nil, time.Time{}
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
func count(n int) string { return report.Thousands(strconv.Itoa(n)) }

// visible makes a text that a relay, a file or a name may have brought safe for a terminal: one
// line, and nothing in it that is not seen.
func visible(text string) string {
	return report.Visible(strings.NewReplacer("\n", " ", "\t", " ").Replace(text))
}
