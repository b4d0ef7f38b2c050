package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/harness"
	"relaybench/relays"
	"relaybench/results"
)

// private are the flags that say where things are on this machine, or how to show them: they bear
// on no figure.
var private = []string{"out", "work", "cache", "relays-dir", "geode-bin", "strfry-bin", "keep-data", "no-color", "json", "cpuprofile", "help",
	"base", "head", "baseline", "aa", "threshold", "thresholds", "max-trials", "junit", "download-interval", "download-max-bytes", "download-fresh"}

// preset shows what a verb does where its flags say nothing else.
func preset(flags *pflag.FlagSet, defaults map[string]string) {
	for name, value := range defaults {
		flags.Lookup(name).DefValue = value
	}
}

// apply does it: as if the flags were set, so that the record names them.
func apply(flags *pflag.FlagSet, defaults map[string]string) error {
	for name, value := range defaults {
		if !flags.Changed(name) {
			if err := flags.Set(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// publicFlags returns the settings as the record keeps them: everything that bears on the figures,
// no path of this machine.
func publicFlags(flags *pflag.FlagSet) map[string]any {
	public := make(map[string]any)
	flags.VisitAll(func(flag *pflag.Flag) {
		if slices.Contains(private, flag.Name) || flag.Name == "relay" || strings.HasPrefix(flag.Name, "download") && !flag.Changed {
			return
		}
		if flag.Name == "corpus" {
			if flag.Value.String() != "" {
				public["corpus"] = filepath.Base(flag.Value.String())
			}
			return
		}
		switch v := flag.Value.(type) {
		case pflag.SliceValue:
			if list := v.GetSlice(); len(list) > 0 {
				public[flag.Name] = list
			}
		default:
			public[flag.Name] = typed(flag)
		}
	})
	return public
}

// repeatable returns the words after "run" that repeat this one on another machine: what was set,
// with files and programs by their base names.
func (f *runFlags) repeatable(ctx context.Context, flags *pflag.FlagSet, contenders []harness.Target, settings relays.Settings) []string {
	words := []string{}
	flags.Visit(func(flag *pflag.Flag) {
		switch {
		case slices.Contains(private, flag.Name) || flag.Name == "relay":
		case flag.Name == "corpus":
			words = append(words, "--corpus", filepath.Base(flag.Value.String()))
		case flag.Value.Type() == "bool":
			word := "--" + flag.Name
			if flag.Value.String() != "true" {
				word += "=" + flag.Value.String()
			}
			words = append(words, word)
		default:
			if list, ok := flag.Value.(pflag.SliceValue); ok {
				words = append(words, "--"+flag.Name, strings.Join(list.GetSlice(), ","))
			} else {
				words = append(words, "--"+flag.Name, flag.Value.String())
			}
		}
	})
	for _, c := range contenders {
		d := c.Definition
		switch {
		case d.External():
			words = append(words, "--relay", d.Name+"="+d.Describe(ctx, c.Program, settings).URL)
		case d.Template:
			words = append(words, "--relay", d.Name+"="+d.Describe(ctx, c.Program, settings).Command)
		case slices.Contains(f.relays.extra, d.Name):
			words = append(words, "--relay", d.Name)
		}
	}
	return words
}

// repeatedBy has the record say by which verb it is repeated.
func repeatedBy(words ...string) func(*results.Record) error {
	return func(r *results.Record) error {
		args, _ := r.Options["args"].([]string)
		r.Options["args"] = append(words, args...)
		return nil
	}
}

// typed gives numbers and switches their JSON type.
func typed(flag *pflag.Flag) any {
	text := flag.Value.String()
	var n int64
	if _, err := fmt.Sscan(text, &n); err == nil && fmt.Sprint(n) == text {
		return n
	}
	if flag.Value.Type() == "bool" {
		return text == "true"
	}
	return text
}
