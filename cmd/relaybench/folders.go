package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// writeWhole leaves either the whole file or none: a disk that is full takes a part of it.
func writeWhole(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err != nil && regular(path) { // never a device or a pipe
		os.Remove(path)
	}
	return err
}

// openOutput opens a file that a flag names, which may be "", so that one that cannot be written is
// found out before minutes of measuring. It keeps what it holds; done removes it if it is empty.
func openOutput(flag, path string) (file *os.File, done func() error, err error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644); err != nil { // to write alone would wait for a pipe's reader
		return nil, nil, usagef("--%s %s cannot be written: %w", flag, path, err)
	}
	return file, func() error {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() == 0 {
			os.Remove(path)
		}
		return file.Close()
	}, nil
}

// existing are those of the files that were written: on a full disk some were not.
func existing(files ...string) []string {
	return slices.DeleteFunc(files, func(file string) bool { return !regular(file) })
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// openResults makes the run's own folder.
func (f *runFlags) openResults(started time.Time) (string, error) {
	parent := cmp.Or(f.out, os.Getenv("RELAYBENCH_RESULTS"), "results")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("the results folder cannot be made: %w; choose another with --out", err)
	}
	for n := 1; n < 100; n++ {
		dir := filepath.Join(parent, started.Format("20060102T150405Z"))
		if n > 1 {
			dir += fmt.Sprintf("-%d", n)
		}
		err := os.Mkdir(dir, 0o755)
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return "", fmt.Errorf("results cannot be written: %w; choose another folder with --out", err)
		}
	}
	return "", fmt.Errorf("results cannot be written: %s has too many runs of this second", parent)
}
