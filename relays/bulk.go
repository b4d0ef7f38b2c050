package relays

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// BulkRule says what a relay's definition replaces where all of its events are moved at once, so
// that no limit that protects a public relay from its clients stands in the way. env and files are
// replaced key by key; edits change single places of files.
type BulkRule struct {
	Command string            `toml:"command"`
	Env     map[string]string `toml:"env"`
	Files   map[string]string `toml:"files"`
	Edits   []Edit            `toml:"edit"`
	Limits  *Limits           `toml:"limits"`
	Notes   []string          `toml:"notes"` // in place of the relay's
}

// Edit replaces a text that stands in a file exactly once.
type Edit struct {
	File    string `toml:"file"`
	Find    string `toml:"find"`
	Replace string `toml:"replace"`
}

// Bulk returns the relay as it is launched where its events are moved in bulk: under its name, with
// its limits raised, and with a note that says so. A relay with nothing to raise is returned as it
// is.
func (d *Definition) Bulk() *Definition {
	bulk, _ := d.bulk() // what would be wrong was found when it was read
	return bulk
}

// bulk is Bulk; the error says why the bulk form would not be what it says.
func (d *Definition) bulk() (*Definition, error) {
	b := d.BulkRule
	switch {
	case b == nil:
		return d, nil
	case b.Command == "" && len(b.Env)+len(b.Files)+len(b.Edits) == 0:
		return nil, errors.New("[bulk] replaces nothing: set command, env, files or edit")
	}
	bulk := *d
	bulk.BulkRule = nil
	bulk.Command = cmp.Or(b.Command, d.Command)
	bulk.Env, bulk.Files = overlay(d.Env, b.Env), overlay(d.Files, b.Files)
	for i, e := range b.Edits {
		text, ok := bulk.Files[e.File]
		n, where := strings.Count(text, e.Find), fmt.Sprintf("[bulk] edit %d", i+1)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s: there is no file %q under [files]", where, e.File)
		case e.Find == "":
			return nil, fmt.Errorf("%s: find is empty", where)
		case n != 1:
			return nil, fmt.Errorf("%s: %q stands %d times in %s, and has to stand there once", where, e.Find, n, e.File)
		}
		bulk.Files[e.File] = strings.Replace(text, e.Find, e.Replace, 1)
	}
	bulk.Limits = *cmp.Or(b.Limits, &d.Limits)
	if b.Notes != nil {
		bulk.Notes = b.Notes
	}
	bulk.Notes = append(slices.Clone(bulk.Notes), b.note())
	return &bulk, nil
}

func overlay(base, over map[string]string) map[string]string {
	if len(base)+len(over) == 0 {
		return nil
	}
	m := map[string]string{}
	maps.Copy(m, base)
	maps.Copy(m, over)
	return m
}

// note says what was raised, in the words of the relay's own configuration.
func (b *BulkRule) note() string {
	var raised []string
	for _, name := range slices.Sorted(maps.Keys(b.Env)) {
		raised = append(raised, name+"="+b.Env[name])
	}
	for _, e := range b.Edits {
		raised = append(raised, strings.Join(strings.Fields(e.Replace), " "))
	}
	if b.Command != "" {
		raised = append(raised, b.Command)
	}
	if len(raised) == 0 {
		return "limits raised for bulk transfers"
	}
	return "raised for bulk transfers: " + strings.Join(raised, "; ")
}

// validateInherited refuses a variant in whose bulk form, which is that of its file, something of
// the file's would stand in place of what makes it a variant: it would be measured as another relay
// under its name.
func (d *Definition) validateInherited(file *Definition) error {
	b := d.BulkRule
	if b == nil {
		return nil
	}
	lost := ""
	if b.Command != "" && d.Command != file.Command {
		lost = "command"
	}
	for _, key := range slices.Sorted(maps.Keys(b.Files)) {
		if lost == "" && file.Files[key] != d.Files[key] {
			lost = fmt.Sprintf("file %q", key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b.Env)) {
		if lost == "" && file.Env[key] != d.Env[key] {
			lost = "env " + key
		}
	}
	if lost == "" {
		return nil
	}
	return fmt.Errorf("relay %s: the file's [bulk] would replace the variant's own %s: give it [variant.bulk], or bulk = {} where nothing is to be raised", d.Name, lost)
}
