package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"relaybench/report"
	"relaybench/results"
)

func newReport(f *runFlags) *cobra.Command {
	return f.command(ofReport, &cobra.Command{
		Use:   "report RESULTS",
		Short: "Render a results.json, or the one in a run's folder, again",
		Args:  oneArg("argument, a results.json"),
	}, func(ctx context.Context, args []string) error {
		return interruptible(ctx, f.stdout, func(w io.Writer) error {
			path, err := oneResult(args[0])
			if err != nil {
				return err
			}
			record, err := results.ReadRecord(path)
			if err != nil {
				return err
			}
			if f.format == "md" {
				return report.Markdown(w, record)
			}
			return report.Terminal(w, record, terminalOptions(f.stdout))
		})
	})
}

// interruptible writes what render makes, or nothing of it where ctx ends before: neither reading a
// record nor making a report of it looks for an interruption, and whoever asked for one need not
// wait for the rest. The program ends then.
func interruptible(ctx context.Context, stdout io.Writer, render func(io.Writer) error) error {
	done := make(chan error, 1)
	go func() {
		var text bytes.Buffer
		err := render(&text)
		if err == nil && ctx.Err() == nil {
			_, err = text.WriteTo(stdout) // a pager that nobody scrolls takes no more
		}
		done <- err
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-done:
		return err
	}
}

// writeJSON writes JSON in ASCII alone, with all else escaped: what a relay said can neither act on
// a terminal nor hide on one.
func writeJSON(w io.Writer, what any) error {
	text, err := json.MarshalIndent(what, "", " ")
	if err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r < 0x7f:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
	}
	b.WriteByte('\n')
	if _, err = b.WriteTo(w); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}

// terminalOptions fits a report to where it goes: colours only on a terminal, and as wide as that
// is.
func terminalOptions(w io.Writer) report.TerminalOptions {
	o, noColor := report.TerminalOptions{Width: 100}, os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb"
	if p, ok := w.(*pipe); ok {
		w, noColor = p.Writer, noColor || p.noColor
	}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width = width
		}
		o.Color = !noColor
	}
	return o
}
