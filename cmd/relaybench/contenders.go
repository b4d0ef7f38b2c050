package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"relaybench/harness"
	"relaybench/relays"
)

// relayFlags are the flags that say which relays take part.
type relayFlags struct {
	extra        []string // NAME=COMMAND, NAME=ws://…, or NAME of the catalog
	dir          string
	geodeBin     string
	geodeNoIndex bool
	strfryBin    string
}

// environment is os.Getenv with the flags that stand for variables on top.
func (f *relayFlags) environment(name string) string {
	switch {
	case name == "GEODE_BIN" && f.geodeBin != "":
		return f.geodeBin
	case name == "STRFRY_BIN" && f.strfryBin != "":
		return f.strfryBin
	}
	return os.Getenv(name)
}

// catalog returns the embedded definitions, with the user's own replacing those of the same name.
func (f *relayFlags) catalog() ([]relays.Definition, error) {
	all, err := relays.Catalog()
	if err != nil || f.dir == "" {
		return all, err
	}
	own, err := relays.LoadDir(f.dir)
	if err != nil {
		return nil, usagef("--relays-dir: %w", err)
	}
	for _, d := range own {
		if i := slices.IndexFunc(all, func(o relays.Definition) bool { return o.Name == d.Name }); i >= 0 {
			all[i] = d
		} else {
			all = append(all, d)
		}
	}
	return all, nil
}

// added reads the --relay flags. Nothing is booted before all of them are known to be right.
func (f *relayFlags) added(catalog []relays.Definition) ([]harness.Target, error) {
	var all []harness.Target
	for _, text := range f.extra {
		c, err := f.one(catalog, "--relay", text, "")
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(all, func(o harness.Target) bool { return o.Definition.Name == c.Definition.Name }) {
			return nil, usagef("--relay: two relays are named %s; give each its own name", c.Definition.Name)
		}
		all = append(all, c)
	}
	return all, nil
}

// one reads what a flag names as a relay: a name of the catalog, NAME=COMMAND, or, where there is a
// name for it, a command alone.
func (f *relayFlags) one(catalog []relays.Definition, flag, text, unnamed string) (c harness.Target, err error) {
	var d relays.Definition
	if i := slices.IndexFunc(catalog, func(d relays.Definition) bool { return d.Name == text }); i >= 0 {
		d = catalog[i]
	} else {
		name, command, err := relays.SplitName(text, f.environment)
		before, _, isPair := strings.Cut(text, "=")
		switch {
		case err != nil:
			return c, usagef("%s: %w", flag, err)
		case name != "":
		case unnamed != "":
			name = unnamed
		case !isPair:
			return c, usagef("%s %q: not in the catalog (relaybench relays lists it); to add a relay, write --relay 'NAME=COMMAND --port {port} --db {dir}'", flag, text)
		case relays.IsName(before):
			return c, usagef("%s %q: that is a command without a name; write --relay 'NAME=%s'", flag, text, text)
		default:
			name = before // which FromTemplate says to be none
		}
		if d, err = relays.FromTemplate(name, command); err != nil {
			return c, usagef("%s: %w", flag, err)
		}
	}
	program, err := d.Resolve(f.environment)
	if err != nil {
		return c, usagef("%s: %w", flag, err)
	}
	return harness.Target{Definition: &d, Program: program}, nil
}

// contenders finds the relays of this run: those of the catalog that are on this machine, and those
// added. It says of each what was found.
func (f *relayFlags) contenders(ctx context.Context, stderr io.Writer) ([]harness.Target, error) {
	catalog, err := f.catalog()
	if err != nil {
		return nil, err
	}
	added, err := f.added(catalog)
	if err != nil {
		return nil, err
	}
	wanted := func(name string) bool {
		return slices.ContainsFunc(added, func(c harness.Target) bool { return c.Definition.Name == name })
	}
	var all []harness.Target
	var absent []string
	say := func(name, text string) { fmt.Fprintf(stderr, "  %-16s %s\n", name, visible(text)) }
	for _, s := range relays.Scan(ctx, catalog, f.environment) {
		d := s.Definition
		if f.geodeNoIndex && s.Status == relays.Found {
			switch d.Name {
			case "geode":
				s.Default, d.OnRequest = false, "--geode-no-search"
			case "geode-nosearch":
				s.Default = true
			}
		}
		switch {
		case wanted(d.Name):
		case s.Default:
			all = append(all, harness.Target{Definition: &d, Program: s.Program})
			say(d.Name, "found "+s.Program+" "+s.Version)
		case d.Unsuitable != "" || d.OnRequest != "":
			absent = append(absent, d.Name, "only when named: --relay "+d.Name)
		case s.Status == relays.Broken:
			reason := s.Reason
			if f.geodeBin != "" {
				reason = strings.ReplaceAll(reason, "$GEODE_BIN", "--geode-bin")
			}
			if f.strfryBin != "" {
				reason = strings.ReplaceAll(reason, "$STRFRY_BIN", "--strfry-bin")
			}
			return nil, usagef("%s", reason)
		case s.Status == relays.Missing:
			absent = append(absent, d.Name, "not found; "+s.Reason)
		default:
			absent = append(absent, d.Name, s.Reason)
		}
	}
	if f.geodeNoIndex && !slices.ContainsFunc(all, func(c harness.Target) bool { return c.Definition.Name == "geode-nosearch" }) {
		return nil, usagef("--geode-no-search: geode was not found; set $GEODE_BIN or give --geode-bin")
	}
	for _, c := range added {
		if c.Definition.External() {
			say(c.Definition.Name, "added; it runs already: no disk, CPU, memory or restart figures, and the preflight's and the corpus' events stay on it")
		} else {
			say(c.Definition.Name, "added "+c.Program)
		}
	}
	for i := 0; i < len(absent); i += 2 {
		say(absent[i], absent[i+1])
	}
	all = append(all, added...)
	if len(all) == 0 {
		return nil, usagef("there is no relay to measure; add one with --relay 'mine=/path/relay --port {port} --db {dir}'")
	}
	return all, nil
}

// nullRelay is the reference relay without a store, the harness's yardstick; ok is false where the
// program is not to be found.
func (f *relayFlags) nullRelay() (c harness.Target, ok bool) {
	catalog, err := relays.Catalog()
	if err != nil {
		return c, false
	}
	for _, d := range catalog {
		if d.Name == "ref-null" {
			program, ok, err := d.Find(f.environment)
			return harness.Target{Definition: &d, Program: program}, ok && err == nil
		}
	}
	return c, false
}
