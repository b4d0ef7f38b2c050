package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"relaybench/harness"
	"relaybench/relays"
)

// environment is os.Getenv with the flags that stand for variables on top.
func (f *runFlags) environment(name string) string {
	return cmp.Or(map[string]string{"GEODE_BIN": f.geodeBin, "STRFRY_BIN": f.strfryBin}[name], os.Getenv(name))
}

// indexOf finds a relay by its name, -1 where it is not there.
func indexOf(all []relays.Definition, name string) int {
	return slices.IndexFunc(all, func(d relays.Definition) bool { return d.Name == name })
}

// named says whether a relay of that name is among the targets.
func named(all []harness.Target, name string) bool {
	return slices.ContainsFunc(all, func(c harness.Target) bool { return c.Definition.Name == name })
}

// catalog returns the embedded definitions, with the user's own replacing those of the same name.
func (f *runFlags) catalog() ([]relays.Definition, error) {
	all, err := relays.Catalog()
	if err != nil || f.relaysDir == "" {
		return all, err
	}
	own, err := relays.LoadDir(f.relaysDir)
	if err != nil {
		return nil, usagef("--relays-dir: %w", err)
	}
	for _, d := range own {
		if i := indexOf(all, d.Name); i >= 0 {
			all[i] = d
		} else {
			all = append(all, d)
		}
	}
	return all, nil
}

// added reads the --relay flags. Nothing is booted before all of them are known to be right.
func (f *runFlags) added() (all []harness.Target, err error) {
	for _, text := range f.relays {
		c, err := f.one("--relay", text, "")
		if err != nil {
			return nil, err
		}
		if named(all, c.Definition.Name) {
			return nil, usagef("--relay: two relays are named %s; give each its own name", c.Definition.Name)
		}
		all = append(all, c)
	}
	return all, nil
}

// one reads what a flag names as a relay: a name of the catalog, NAME=COMMAND, or, where there is a
// name for it, a command alone.
func (f *runFlags) one(flag, text, unnamed string) (c harness.Target, err error) {
	catalog, err := f.catalog()
	if err != nil {
		return c, err
	}
	c.Definition = new(relays.Definition)
	if i := indexOf(catalog, text); i >= 0 {
		*c.Definition = catalog[i]
	} else {
		name, command, err := relays.SplitName(text, f.environment)
		before, _, isPair := strings.Cut(text, "=")
		switch {
		case err != nil:
			return c, usagef("%s: %w", flag, err)
		case name == "" && unnamed == "" && !isPair:
			return c, usagef("%s %q: not in the catalog (relaybench relays lists it); to add a relay, write --relay 'NAME=COMMAND --port {port} --db {dir}'", flag, text)
		case name == "" && unnamed == "" && relays.IsName(before):
			return c, usagef("%s %q: that is a command without a name; write --relay 'NAME=%s'", flag, text, text)
		}
		name = cmp.Or(name, unnamed, before) // the last of which FromTemplate says to be none
		if *c.Definition, err = relays.FromTemplate(name, command); err != nil {
			return c, usagef("%s: %w", flag, err)
		}
	}
	if c.Program, err = c.Definition.Resolve(f.environment); err != nil {
		return c, usagef("%s: %w", flag, err)
	}
	return c, nil
}

// contenders finds the relays of this run: those of the catalog that are on this machine, and those
// added. It says of each what was found.
func (f *runFlags) contenders(ctx context.Context, stderr io.Writer) ([]harness.Target, error) {
	catalog, err := f.catalog()
	if err != nil {
		return nil, err
	}
	added, err := f.added()
	if err != nil {
		return nil, err
	}
	var all []harness.Target
	var absent bytes.Buffer
	say := func(w io.Writer, name, text string) { fmt.Fprintf(w, "  %-16s %s\n", name, visible(text)) }
	for _, s := range relays.Scan(ctx, catalog, f.environment) {
		d := s.Definition
		if f.geodeNoIndex && s.Status == relays.Found && d.Family == "geode" {
			if s.Default = d.Name == "geode-nosearch"; !s.Default {
				d.OnRequest = "--geode-no-search"
			}
		}
		switch {
		case named(added, d.Name):
		case s.Default:
			all = append(all, harness.Target{Definition: &d, Program: s.Program})
			say(stderr, d.Name, "found "+s.Program+" "+s.Version)
		case d.Unsuitable != "" || d.OnRequest != "":
			say(&absent, d.Name, "only when named: --relay "+d.Name)
		case s.Status == relays.Broken:
			for variable, set := range map[string]string{"GEODE_BIN": f.geodeBin, "STRFRY_BIN": f.strfryBin} {
				if set != "" {
					s.Reason = strings.ReplaceAll(s.Reason, "$"+variable, "--"+strings.ToLower(strings.ReplaceAll(variable, "_", "-")))
				}
			}
			return nil, usagef("%s", s.Reason)
		case s.Status == relays.Missing:
			say(&absent, d.Name, "not found; "+s.Reason)
		default:
			say(&absent, d.Name, s.Reason)
		}
	}
	if f.geodeNoIndex && !named(all, "geode-nosearch") {
		return nil, usagef("--geode-no-search: geode was not found; set $GEODE_BIN or give --geode-bin")
	}
	for _, c := range added {
		if c.Definition.External() {
			say(stderr, c.Definition.Name, "added; it runs already: no disk, CPU, memory or restart figures, and the preflight's and the corpus' events stay on it")
		} else {
			say(stderr, c.Definition.Name, "added "+c.Program)
		}
	}
	absent.WriteTo(stderr)
	if all = append(all, added...); len(all) == 0 {
		return nil, usagef("there is no relay to measure; add one with --relay 'mine=/path/relay --port {port} --db {dir}'")
	}
	return all, nil
}

// bundled is a form of the reference relay as it comes with relaybench, nil where its program is
// not to be found.
func (f *runFlags) bundled(name string) (*harness.Target, error) {
	catalog, err := relays.Catalog()
	if err != nil {
		return nil, err
	}
	d := &catalog[indexOf(catalog, name)]
	program, found, err := d.Find(f.environment)
	if err != nil || !found {
		return nil, err
	}
	return &harness.Target{Definition: d, Program: program}, nil
}
