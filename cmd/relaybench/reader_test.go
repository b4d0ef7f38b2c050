package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"relaybench/results"
)

// long writes a record whose report is longer than any pipe holds, and returns its path.
func long(t *testing.T) string {
	t.Helper()
	r := &results.Record{StartedAt: time.Now(), Relays: []results.Relay{{Name: "a", Outcome: results.OutcomeOK}, {Name: "b", Outcome: results.OutcomeOK}}}
	for i := range 3000 {
		for _, relay := range []string{"a", "b"} {
			r.Measurements = append(r.Measurements, results.Measurement{Relay: relay, Scenario: fmt.Sprintf("query.q%d.hot", i), Metric: "eose", Unit: "ms",
				Better: results.Lower, Trials: []float64{1, 2, 3, 4, 5, 6}})
		}
	}
	path := filepath.Join(t.TempDir(), "results.json")
	if err := r.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestAReaderThatLeavesIsNoFailure gives verbs a stdout that nobody reads any more, as head leaves
// it: the exit code stays the verdict's, and nothing is said of the pipe.
func TestAReaderThatLeavesIsNoFailure(t *testing.T) {
	t.Parallel()
	file := long(t)
	measuring := []string{"--quick", "--events=100", "--only=storage", "--skip=preflight,calibration", honest()}
	for _, test := range []struct {
		name string
		code int
		args []string
		says string // on stderr; "" for nothing at all
	}{
		{"report", exitDone, []string{"report", file}, ""},
		{"report as Markdown", exitDone, []string{"report", "--format=md", file}, ""},
		{"compare", exitDone, []string{"compare", "--all", file, long(t)}, ""},
		{"relays", exitDone, []string{"relays"}, ""},
		{"help", exitDone, []string{"run", "--help"}, ""},
		{"completion", exitDone, []string{"completion", "bash"}, ""},
		{"run", exitDone, append(measuring, "--out", t.TempDir()), "honest: storage"},
		{"run with a relay that fails", exitFailed, append(measuring, "--out", t.TempDir(), hostile(t, "exits", "exits")), "exited with status 3"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			read.Close()
			defer write.Close()
			cmd := program(t, t.Context(), withHonest, test.args...)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = write, &stderr
			if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != test.code {
				t.Errorf("%v, want exit code %d\n%s", cmd.ProcessState, test.code, stderr.String())
			}
			if text := stderr.String(); strings.Contains(text, "pipe") || !strings.Contains(text, test.says) || test.says == "" && text != "" {
				t.Errorf("said %q", text)
			}
		})
	}
}

// TestOtherFailuresOfStdoutAreTold: a full disk behind stdout is not a reader that has left.
func TestOtherFailuresOfStdoutAreTold(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("this machine has no /dev/full: ", err)
	}
	defer full.Close()
	cmd := program(t, t.Context(), nil, "report", long(t))
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = full, &stderr
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("%v: %q", err, stderr.String())
	}
}

// TestOneInterruptionEndsAReport interrupts report where its output stands in a pipe that nobody
// empties, as in a pager: it cannot end by itself.
func TestOneInterruptionEndsAReport(t *testing.T) {
	t.Parallel()
	for _, verb := range [][]string{{"report", "--format=md", long(t)}, {"compare", "--all", long(t), long(t)}} {
		t.Run(verb[0], func(t *testing.T) {
			t.Parallel()
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer read.Close()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := program(t, ctx, nil, verb...)
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = write, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			if _, err := io.ReadFull(read, make([]byte, 1)); err != nil { // it has begun to write
				cancel()
				_ = cmd.Wait()
				t.Fatal(err, stderr.String())
			}
			cancel() // sends one interrupt
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.Contains(stderr.String(), "interrupted") {
				t.Errorf("%v: %q", cmd.ProcessState, stderr.String())
			}
		})
	}
}

// TestAnInterruptionDoesNotWaitForRendering interrupts while a report is made, which never ends.
func TestAnInterruptionDoesNotWaitForRendering(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	forever := make(chan struct{})
	defer close(forever)
	var out bytes.Buffer
	err := interruptible(ctx, &out, func(w io.Writer) error {
		io.WriteString(w, "half of it")
		cancel(errInterrupted)
		<-forever
		return nil
	})
	if !errors.Is(err, errInterrupted) || out.Len() > 0 {
		t.Errorf("%v, wrote %q", err, out.String())
	}
	broken := errors.New("broken")
	if err := interruptible(t.Context(), &out, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("%v, want the error of rendering", err)
	}
	if err := interruptible(t.Context(), &out, func(w io.Writer) error { io.WriteString(w, "all"); return nil }); err != nil || out.String() != "all" {
		t.Errorf("%v, wrote %q", err, out.String())
	}
}
