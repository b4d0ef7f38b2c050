package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"relaybench/corpus/prepare"
	"relaybench/relays/reference"
)

func setImport(flags *pflag.FlagSet) action {
	var s storeFlags
	var o reference.ImportOptions
	s.register(flags, "bolt", onDisk, "")
	flags.BoolVar(&o.NoVerify, "no-verify", false, "take ids and signatures on trust")
	flags.IntVar(&o.MaxEventBytes, "max-event-bytes", 1<<20, "longest event")
	flags.StringVar(&o.URL, "url", "", "URL under which clients know the relay, for requests to vanish from it (NIP-62)")
	return func(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, files []string) (err error) {
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
				fmt.Fprintf(stderr, "%d read, %d stored\n", n.Read, n.Stored)
			}
		}
		importer := reference.NewImporter(store, o)
		for _, file := range files {
			failed := importFile(ctx, importer, stdin, file)
			err = errors.Join(err, failed)
			if ctx.Err() != nil {
				err = errors.New("interrupted: what is counted is stored, and the rest can be imported again")
				break
			}
		}
		printImported(stdout, importer.Total(), time.Since(began))
		return err
	}
}

// importFile imports one file, or standard input. A file that cannot be read to its end is an error, and what came before it is stored.
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

// printImported says what became of the events.
func printImported(w io.Writer, n reference.Imported, took time.Duration) {
	printCounts(w, n)
	if seconds := took.Seconds(); seconds > 0 {
		fmt.Fprintf(w, "in %.1f s: %.0f events/s\n", seconds, float64(n.Read)/seconds)
	}
}

func printCounts(w io.Writer, n reference.Imported) {
	for _, line := range []struct {
		count int64
		what  string
	}{
		{n.Read, "read"},
		{n.Stored, "stored"},
		{n.Duplicates, "held already"},
		{n.Superseded, "superseded by newer versions"},
		{n.Deleted, "deleted by their authors"},
		{n.Vanished, "of authors who asked to vanish"},
		{n.Expired, "expired"},
		{n.Ephemeral, "ephemeral"},
		{n.Protected, "protected, only for authenticated authors"},
		{n.Invalid, "with a wrong id or signature, or too long"},
		{n.Broken, "no event"},
	} {
		if line.count > 0 || line.what == "read" || line.what == "stored" {
			fmt.Fprintf(w, "%9d %s\n", line.count, line.what)
		}
	}
}
