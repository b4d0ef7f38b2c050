package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"relaybench/report"
	"relaybench/results"
)

func newReport(stdout io.Writer) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "report RESULTS",
		Short: "Render a results.json, or the one in a run's folder, again",
		Args:  exactArgs(1, "one argument, a results.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "text" && format != "md" {
				return usagef("--format %q: give text or md", format)
			}
			return interruptible(cmd.Context(), stdout, func(w io.Writer) error {
				path := args[0]
				if info, err := os.Stat(path); err == nil && info.IsDir() {
					path = filepath.Join(path, "results.json")
				}
				record, err := results.ReadRecord(path)
				if err != nil {
					return err
				}
				if format == "md" {
					return report.Markdown(w, record)
				}
				return report.Terminal(w, record, terminalOptions(stdout))
			})
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or md")
	return cmd
}

// interruptible writes what render makes, or nothing of it where ctx ends before: neither reading a
// record nor making a report of it looks for an interruption, and whoever asked for one need not
// wait for the rest. The program ends then.
func interruptible(ctx context.Context, stdout io.Writer, render func(io.Writer) error) error {
	made := make(chan error, 1)
	var text bytes.Buffer
	go func() { made <- render(&text) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-made:
		if err != nil {
			return err
		}
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := text.WriteTo(stdout)
		wrote <- err
	}()
	select {
	case <-ctx.Done(): // a pager that nobody scrolls takes no more
		return context.Cause(ctx)
	case err := <-wrote:
		return err
	}
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
