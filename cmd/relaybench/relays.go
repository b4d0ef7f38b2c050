package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/relays"
)

func newRelays(stdout io.Writer) *cobra.Command {
	var f relayFlags
	cmd := &cobra.Command{
		Use:   "relays",
		Short: "List the relays relaybench knows, which of them are on this machine, and how to add one",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			catalog, err := f.catalog()
			if err != nil {
				return err
			}
			for _, s := range relays.Scan(cmd.Context(), catalog, f.environment) {
				describeRelay(stdout, s)
			}
			fmt.Fprint(stdout, `
To add a relay for one run:
  relaybench run --relay 'NAME=/path/to/relay --port {port} --db {dir}'
{port} is a free port on 127.0.0.1, {dir} an empty folder that is removed afterwards. To measure one that runs already:
  relaybench run --relay NAME=ws://127.0.0.1:7777
To keep a definition with configuration files, put a TOML file into a folder and name it with --relays-dir; the README shows one.
`)
			return nil
		},
	}
	cmd.Flags().StringVar(&f.dir, "relays-dir", "", "folder with relay definitions of your own (TOML)")
	return cmd
}

func describeRelay(w io.Writer, s relays.Sighting) {
	d := s.Definition
	reason := wrap(visible(s.Reason), 80)
	fmt.Fprintf(w, "%-16s %-8s %s\n", d.Name, s.Status, reason[0])
	for _, line := range reason[1:] {
		fmt.Fprintf(w, "%-16s %s\n", "", line)
	}
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
	fmt.Fprintf(w, "%-16s %s\n", "", visible(strings.Join(about, ", ")))
	for _, note := range d.Notes {
		for _, line := range wrap(visible(note), 80) {
			fmt.Fprintf(w, "%-16s %s\n", "", line)
		}
	}
}

// wrap breaks a text into lines of so many bytes at spaces; a word that is longer stands alone.
func wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range strings.Fields(text) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}
