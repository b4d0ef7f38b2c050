package main

import (
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"relaybench/harness/measure"
	"relaybench/report"
)

func newReport(stdout io.Writer) *cobra.Command {
	var format string
	var noColor bool
	cmd := &cobra.Command{
		Use:   "report RESULTS",
		Short: "Render a results.json, or the one in a run's folder, again",
		Args:  exactArgs(1, "one argument, a results.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "text" && format != "md" {
				return usagef("--format %q: give text or md", format)
			}
			path := args[0]
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				path = filepath.Join(path, "results.json")
			}
			record, err := measure.ReadRecord(path)
			if err != nil {
				return err
			}
			if format == "md" {
				return report.Markdown(stdout, record)
			}
			return report.Terminal(stdout, record, terminalOptions(stdout, noColor))
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or md")
	cmd.Flags().BoolVar(&noColor, "no-color", false, "no colours, even on a terminal (so does $NO_COLOR)")
	return cmd
}

// terminalOptions fits a report to where it goes: colours only on a terminal, and as wide as that is.
func terminalOptions(w io.Writer, noColor bool) report.TerminalOptions {
	o := report.TerminalOptions{Width: 100}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width = width
		}
		o.Color = !noColor && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return o
}
