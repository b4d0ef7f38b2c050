package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"relaybench/relays/reference"
)

func setExport(flags *pflag.FlagSet) action {
	var s storeFlags
	var o reference.ExportOptions
	var since, until int64
	s.register(flags, "bolt", onDisk, "")
	flags.Int64Var(&since, "since", 0, "only events made at this time or later, in Unix seconds")
	flags.Int64Var(&until, "until", 0, "only events made at this time or earlier, in Unix seconds")
	flags.BoolVar(&o.NewestFirst, "reverse", false, "the newest first")
	return func(ctx context.Context, _ io.Reader, stdout, stderr io.Writer, args []string) (err error) {
		switch {
		case len(args) > 0:
			return usagef("unexpected argument %q: events go to standard output", args[0])
		case s.check(onDisk) != nil:
			return s.check(onDisk)
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
		n, err := reference.Export(ctx, store, stdout, o)
		if ctx.Err() != nil {
			return errors.New("interrupted: what was written is not all")
		}
		if err != nil {
			return fmt.Errorf("after %d events: %w", n, err)
		}
		fmt.Fprintf(stderr, "%d events\n", n)
		return nil
	}
}
