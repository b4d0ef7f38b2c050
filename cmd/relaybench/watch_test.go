package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/vbauerster/mpb/v8"

	"relaybench/harness"
	"relaybench/results"
)

// What is done has a full bar, even where nothing told of its progress; what failed has not.
func TestTheBarOfWhatIsDoneIsFull(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(w *watcher)
		full bool
	}{
		"followed by another": {func(w *watcher) { w.Trial("other", 0, 1, 1); w.wait(false) }, true},
		"the last":            {func(w *watcher) { w.wait(true) }, true},
		"given up":            {func(w *watcher) { w.Failed("mine", errors.New("gone")); w.wait(true) }, false},
	} {
		for _, scenarios := range []int{0, 1, 3} {
			var b strings.Builder
			w := &watcher{out: io.Discard, bars: mpb.New(mpb.WithOutput(&b), mpb.WithWidth(120), mpb.WithAutoRefresh())}
			w.Trial("mine", 0, 1, scenarios)
			for i := range scenarios {
				w.Scenario("mine", harness.Description{Scenario: results.Scenario{Key: "sync." + string(rune('a'+i))}})
			}
			c.end(w)
			last := ""
			for line := range strings.SplitSeq(b.String(), "\n") {
				if strings.Contains(line, "mine ") {
					last = line
				}
			}
			if full := strings.Contains(last, "100%"); last == "" || full != c.full {
				t.Errorf("%s, %d scenarios: %q", name, scenarios, last)
			}
		}
	}
}
