package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"relaybench/corpus/prepare"
	"relaybench/relays/reference"
)

func newImport() *cobra.Command {
	var s storeFlags
	var o reference.ImportOptions
	cmd := &cobra.Command{
		Use:   "import [FILE…]",
		Short: "Take events from files or standard input into a store",
		Long: `Takes events into a store by the rules of a relay: from files, or from standard input where there is none or it is -.
NDJSON, concatenated JSON or a JSON array, plain or compressed with gzip or zstd. No relay may serve the store meanwhile.`,
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	s.register(flags, "bolt", onDisk, "")
	flags.BoolVar(&o.NoVerify, "no-verify", false, "take ids and signatures on trust")
	flags.IntVar(&o.MaxEventBytes, "max-event-bytes", 1<<20, "longest event")
	flags.StringVar(&o.URL, "url", "", "URL under which clients know the relay, for requests to vanish from it (NIP-62)")
	cmd.RunE = func(cmd *cobra.Command, files []string) (err error) {
		ctx := cmd.Context()
		if err := s.check(onDisk); err != nil {
			return err
		}
		if o.MaxEventBytes < 1 {
			return usagef("--max-event-bytes %d: give a number from 1", o.MaxEventBytes)
		}
		if len(files) == 0 {
			files = []string{"-"}
		}
		for _, file := range files {
			if _, err := os.Stat(file); err != nil && file != "-" {
				return err // before anything is stored
			}
		}
		store, closeStore, err := s.open()
		if err != nil {
			return err
		}
		defer closeStore(&err)
		began, said := time.Now(), time.Now()
		o.Progress = func(n reference.Imported) {
			if time.Since(said) >= time.Second {
				said = time.Now()
				fmt.Fprintf(cmd.ErrOrStderr(), "%d read, %d stored\n", n.Read, n.Stored)
			}
		}
		importer := reference.NewImporter(store, o)
		for _, file := range files {
			failed := importFile(ctx, importer, cmd.InOrStdin(), file)
			err = errors.Join(err, failed)
			if ctx.Err() != nil {
				err = errors.New("interrupted: what is counted is stored, and the rest can be imported again")
				break
			}
		}
		total := importer.Total()
		printImported(cmd.OutOrStdout(), total)
		printRate(cmd.OutOrStdout(), total.Read, time.Since(began))
		return err
	}
	return cmd
}

// importFile imports one file, or standard input. A file that cannot be read to its end is an
// error, and what came before it is stored.
func importFile(ctx context.Context, importer *reference.Importer, stdin io.Reader, file string) error {
	in, name := stdin, "standard input"
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		in, name = f, file
	}
	texts, err := prepare.NewTexts(in, name)
	if err != nil {
		return err
	}
	err = importer.Run(ctx, texts.Next)
	if ctx.Err() != nil {
		return err // it may still be read from
	}
	return errors.Join(err, texts.Close())
}
