package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/relays"
	"relaybench/report"
)

func newRelays(f *runFlags) *cobra.Command {
	return f.command(ofRelays, &cobra.Command{
		Use:   "relays",
		Short: "List the relays relaybench knows, which of them are on this machine, and how to add one",
	}, func(ctx context.Context, _ []string) error {
		catalog, err := f.catalog()
		if err != nil {
			return err
		}
		width := terminalOptions(f.stdout).Width
		for _, s := range relays.Scan(ctx, catalog, f.environment) {
			describeRelay(f.stdout, s, width)
		}
		for _, p := range []struct{ text, command string }{
			{"To add a relay for one run:", "relaybench run --relay 'NAME=/path/to/relay --port {port} --db {dir}'"},
			{"{port} is a free port on 127.0.0.1, {dir} an empty folder that is removed afterwards. To measure one that runs already:",
				"relaybench run --relay NAME=ws://127.0.0.1:7777"},
			{"To keep a definition with configuration files, put a TOML file into a folder and name it with --relays-dir: docs/relays.md says how.", ""},
		} {
			fmt.Fprintln(f.stdout)
			writeWrapped(f.stdout, "", p.text, width)
			if p.command != "" {
				fmt.Fprintln(f.stdout, "  "+p.command) // in one piece, to be copied
			}
		}
		return nil
	})
}

func describeRelay(w io.Writer, s relays.Sighting, width int) {
	d := s.Definition
	about := []string{d.Title, d.Language, d.Storage}
	if d.Durability != "" {
		about = append(about, "durability "+string(d.Durability))
	}
	if s.Version != "" {
		about = append(about, "version "+s.Version)
	}
	if s.SHA256 != "" {
		about = append(about, "sha256 "+s.SHA256[:12])
	}
	fmt.Fprintf(w, "%-*s %s\n", max(0, min(16, width-10)), d.Name, s.Status)
	for _, text := range slices.Concat([]string{s.Reason, strings.Join(about, ", ")}, d.Notes) {
		writeWrapped(w, "  ", visible(text), width)
	}
}

// writeWrapped writes a text in lines that are no wider than a terminal, each behind an indent.
func writeWrapped(w io.Writer, indent, text string, width int) {
	for _, line := range report.Wrap(text, max(1, width-len(indent))) {
		fmt.Fprintln(w, indent+line)
	}
}
