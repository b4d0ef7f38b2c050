package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"relaybench/harness"
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

	downloads downloadLines
}

// bar is a progress bar with texts that change. The bars' own goroutine reads them, so that it
// takes no lock.
type bar struct {
	*mpb.Bar
	text, left atomic.Pointer[string]
}

func (b *bar) say(text string) { b.text.Store(&text) }

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
		w.bars = mpb.New(mpb.WithOutput(out), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
	}
	return w
}

// wait ends the bars, so that what is printed next stands below them. What was not done stays where
// it was.
func (w *watcher) wait(done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endBar(w.turn, done)
	if w.bars != nil {
		w.bars.Wait()
		w.bars = mpb.New(mpb.WithOutput(w.out), mpb.WithWidth(40), mpb.WithRefreshRate(120*time.Millisecond))
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

func (w *watcher) startBar(text string, total int) {
	w.endBar("", true)
	b := new(bar)
	b.say(text)
	w.since = time.Now()
	b.expect(w.since, 0, 0)
	b.Bar = w.bars.AddBar(int64(total),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string { return *b.text.Load() }, decor.WC{W: 38, C: decor.DindentRight})),
		mpb.AppendDecorators(decor.NewPercentage("%d", decor.WC{W: 5}), decor.Elapsed(decor.ET_STYLE_GO, decor.WC{W: 7}),
			decor.Any(func(decor.Statistics) string { return *b.left.Load() })))
	w.bar = b
}

// endBar leaves the bar as it stands, full if what it showed was done. A text that is not empty
// becomes its last.
func (w *watcher) endBar(text string, done bool) {
	if w.bar == nil {
		return
	}
	if text != "" {
		w.bar.say(text)
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

// corpus implements corpus.Progress.
func (w *watcher) corpus(stage string, done, total int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stage != stage {
		w.stage = stage
		if w.bars == nil {
			w.printf("corpus: %s", stage)
			return
		}
		w.startBar("corpus: "+stage, int(total))
	}
	if w.bar != nil {
		w.bar.SetTotal(total, false)
		w.bar.SetCurrent(done)
		w.bar.expect(w.since, done, total)
	}
}

// Turn implements harness.Observer.
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
	w.endTurn()
	w.turn = label
	w.startBar(label, scenarios*barUnits)
}

// endTurn lets the bar of a turn end with the relay's name alone.
func (w *watcher) endTurn() { w.endBar(w.turn, true) }

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
	group := d.Key
	switch d.Layout {
	case results.LayoutQueries, results.LayoutPairs, results.LayoutDownloads, results.LayoutTable: // many short ones
		group = strings.ToLower(d.Section)
	}
	if w.bar == nil { // as without a turn
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
	w.since = time.Now()
	w.bar.expect(w.since, 0, 0)
	w.bar.say(w.label)
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
	w.bar.say(fmt.Sprintf("%s %d %%", w.label, done*100/total))
	w.bar.expect(w.since, int64(done), int64(total))
	w.bar.SetCurrent(int64((max(w.begun, 1)-1)*barUnits + done*barUnits/total))
}

// note writes a line of its own.
func (w *watcher) note(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.printf("%s", visible(line))
}

// Failed implements harness.Observer.
func (w *watcher) Failed(relay string, reason error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.endBar(w.turn, false)
	w.printf("%s", visible(relay+": "+reason.Error()))
}

// visible makes a text that a relay, a file or a name may have brought safe for a terminal: one
// line, and nothing in it that is not seen.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '·'
	}, text)
}
