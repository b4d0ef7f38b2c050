package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"relaybench/relays/reference"
)

func newExport() *cobra.Command {
	var s storeFlags
	var o reference.ExportOptions
	var since, until int64
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write a store's events to standard output",
		Long:  "Writes the events of a store to standard output, one a line, the oldest first. No relay may serve the store meanwhile.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("unexpected argument %q: events go to standard output", args[0])
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	s.register(flags, "bolt", onDisk, "")
	flags.Int64Var(&since, "since", 0, "only events made at this time or later, in Unix seconds")
	flags.Int64Var(&until, "until", 0, "only events made at this time or earlier, in Unix seconds")
	flags.BoolVar(&o.NewestFirst, "reverse", false, "the newest first")
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := s.check(onDisk); err != nil {
			return err
		}
		if flags.Changed("since") {
			o.Since = &since
		}
		if flags.Changed("until") {
			o.Until = &until
		}
		if _, err := os.Stat(filepath.Join(s.dir, "events."+s.store)); err != nil {
			return fmt.Errorf("there is no store to export: %w", err) // opening would make an empty one
		}
		store, closeStore, err := s.open()
		if err != nil {
			return err
		}
		defer closeStore(&err)
		o.Now = time.Now().Unix()
		n, err := reference.Export(cmd.Context(), store, cmd.OutOrStdout(), o)
		if cmd.Context().Err() != nil {
			return errors.New("interrupted: what was written is not all")
		}
		if err != nil {
			return fmt.Errorf("after %d events: %w", n, err)
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "%d events\n", n)
		return nil
	}
	return cmd
}
