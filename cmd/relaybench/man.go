package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"relaybench/harness"
)

func newMan(f *runFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages, one for each command, into a folder",
		Long: `man writes a manual page for relaybench and for each of its commands into a folder, which is made where there is none:
  relaybench man ~/.local/share/man/man1 && man relaybench-run`,
		Args: oneArg("argument, the folder for the pages"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("the folder for the pages cannot be made: %w", err)
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			header := doc.GenManHeader{Section: "1", Source: "relaybench " + harness.Version, Manual: "relaybench"}
			if err := doc.GenManTree(root, &header, args[0]); err != nil {
				return fmt.Errorf("writing the pages: %w", err)
			}
			_, err := fmt.Fprintf(f.stdout, "the manual pages are in %s\n", args[0])
			return err
		},
	}
}
