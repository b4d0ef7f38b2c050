package main

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"relaybench/harness"
	"relaybench/relays"
)

// private are the flags that say where things are on this machine, or how to show them: they bear
// on no figure.
var private = []string{"out", "work", "cache", "relays-dir", "geode-bin", "strfry-bin", "keep-data", "no-color", "json", "cpuprofile", "help", "relay",
	"base", "head", "baseline", "aa", "threshold", "thresholds", "max-trials", "junit", "download-interval", "download-max-bytes", "download-fresh"}

// public is a flag's value as others may know it: a number, a switch, a list or a text, and a file
// by its base name; nil for nothing.
func public(flag *pflag.Flag) any {
	text := flag.Value.String()
	list, isList := flag.Value.(pflag.SliceValue)
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case slices.Contains(private, flag.Name), text == "" && flag.Name == "corpus", isList && len(list.GetSlice()) == 0:
		return nil
	case isList:
		return list.GetSlice()
	case flag.Name == "corpus":
		return filepath.Base(text)
	case flag.Value.Type() == "bool":
		return text == "true"
	case err == nil && strconv.FormatInt(n, 10) == text:
		return n
	}
	return text
}

// publicFlags returns the settings as the record keeps them: everything that bears on the figures,
// no path of this machine.
func publicFlags(flags *pflag.FlagSet) map[string]any {
	all := make(map[string]any)
	flags.VisitAll(func(flag *pflag.Flag) {
		if value := public(flag); value != nil && (flag.Changed || !strings.HasPrefix(flag.Name, "download")) {
			all[flag.Name] = value
		}
	})
	return all
}

// repeatable returns the words after "relaybench", or after "run", that repeat this run on another
// machine: what was set, with files and programs by their base names.
func (f *runFlags) repeatable(ctx context.Context, contenders []harness.Target, settings relays.Settings) []string {
	words := append([]string{}, f.repeatedBy...)
	f.flags.Visit(func(flag *pflag.Flag) {
		switch value := public(flag).(type) {
		case nil:
		case bool:
			word := "--" + flag.Name
			if !value {
				word += "=false"
			}
			words = append(words, word)
		case []string:
			words = append(words, "--"+flag.Name, strings.Join(value, ","))
		case string:
			words = append(words, "--"+flag.Name, value)
		default:
			words = append(words, "--"+flag.Name, flag.Value.String())
		}
	})
	if f.verb&(ofProbe|ofFetch) != 0 {
		return words // which begin with the relays
	}
	for _, c := range contenders {
		if given := f.given(ctx, c, settings); given != "" {
			words = append(words, "--relay", given)
		}
	}
	return words
}

// given is a relay as --relay names it on another machine, "" for one that is found there.
func (f *runFlags) given(ctx context.Context, c harness.Target, settings relays.Settings) string {
	d, described := c.Definition, c.Definition.Describe(ctx, c.Program, settings)
	switch {
	case d.External():
		return d.Name + "=" + described.URL
	case d.Template:
		return d.Name + "=" + described.Command
	case slices.Contains(f.relays, d.Name):
		return d.Name
	}
	return ""
}
