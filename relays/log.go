package relays

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	logHeadBytes = 4 << 20   // what a log file holds of the beginning
	logTailBytes = 256 << 10 // and of the end
	logLineBytes = 500       // one line in a report
)

// boundedLog drains a relay's output through a pipe into a file that cannot grow beyond
// logHeadBytes + logTailBytes, and keeps the end in memory. The relay is never held up by it: on a
// full disk it goes on draining.
type boundedLog struct {
	pipe *os.File
	done chan struct{}

	mu    sync.Mutex
	file  *os.File
	total int64  // bytes seen
	saved int64  // bytes of the beginning in the file
	last  []byte // bytes of the end, up to twice as many as are wanted
}

// openLog returns the log and the end of its pipe that becomes the child's output.
func openLog(path string) (*boundedLog, *os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	widenPipe(write)
	l := &boundedLog{pipe: read, done: make(chan struct{}), file: file}
	go func() {
		defer close(l.done)
		buf := make([]byte, 64<<10)
		for {
			n, err := l.pipe.Read(buf)
			l.add(buf[:n])
			if err != nil {
				return
			}
		}
	}()
	return l, write, nil
}

func (l *boundedLog) add(p []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.saved == l.total && l.saved < logHeadBytes {
		n, err := l.file.Write(p[:min(int64(len(p)), logHeadBytes-l.saved)])
		l.saved += int64(n)
		if err != nil {
			l.saved-- // what follows would not join on: from here only the end is kept
		}
	}
	l.total += int64(len(p))
	if l.last = append(l.last, p...); len(l.last) > 2*logTailBytes {
		l.last = l.last[:copy(l.last, l.last[len(l.last)-logTailBytes:])]
	}
}

// end returns the last bytes seen.
func (l *boundedLog) end() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.last[max(0, len(l.last)-logTailBytes):])
}

// finish waits for what is still in the pipe and completes the file. Only a process that left the
// group, or a child that was never started, can still hold the pipe: it is waited for no longer
// than that.
func (l *boundedLog) finish(patience time.Duration) {
	_ = l.pipe.SetReadDeadline(time.Now().Add(patience))
	<-l.done
	l.pipe.Close()
	end := l.end()
	l.mu.Lock()
	defer l.mu.Unlock()
	if missing := l.total - max(l.saved, 0); missing > 0 {
		end = end[max(0, int64(len(end))-missing):]
		if left := missing - int64(len(end)); left > 0 {
			fmt.Fprintf(l.file, "\n[%d bytes left out]\n", left)
		}
		_, _ = l.file.Write(end)
	}
	l.file.Close()
}

// tail returns the last n lines, cleaned; empty lines do not count.
func (l *boundedLog) tail(n int) (lines []string) {
	for line := range bytes.Lines(l.end()) {
		if clean := cleanLine(line, logLineBytes); strings.TrimSpace(clean) != "" {
			lines = append(lines, clean)
		}
	}
	return lines[max(0, len(lines)-n):]
}

// terminalEscape is an escape sequence of terminals (ECMA-48): parameters and one final byte, a
// string up to BEL or ESC \, or one more byte; cut short at the line's end.
var terminalEscape = regexp.MustCompile(`\x1b(?s:\[[ -?]*[@-~]?|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|.|$)`)

// cleanLine makes a line of a program that is not trusted fit to be shown: no escape sequences, no
// control or format characters, valid UTF-8, at most limit bytes.
func cleanLine(line []byte, limit int) string {
	var out strings.Builder
	for _, r := range string(terminalEscape.ReplaceAll(line, nil)) {
		switch {
		case r == '\t':
			r = ' '
		case !unicode.IsGraphic(r):
			continue
		}
		if out.Len()+utf8.RuneLen(r) > limit-len("…") {
			out.WriteString("…")
			break
		}
		out.WriteRune(r)
	}
	return out.String()
}
