package relays

import (
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
	b := d.BulkRule
	if b == nil {
		return d
	}
	bulk := *d
	bulk.BulkRule = nil
	bulk.Command = either(b.Command, d.Command)
	bulk.Env = overlay(d.Env, b.Env)
	bulk.Files = overlay(d.Files, b.Files)
	if len(b.Edits) > 0 {
		bulk.Files = maps.Clone(bulk.Files)
		for _, e := range b.Edits {
			bulk.Files[e.File] = strings.Replace(bulk.Files[e.File], e.Find, e.Replace, 1)
		}
	}
	if b.Limits != nil {
		bulk.Limits = *b.Limits
	}
	if b.Notes != nil {
		bulk.Notes = b.Notes
	}
	bulk.Notes = append(slices.Clone(bulk.Notes), b.note())
	return &bulk
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

// validateBulk refuses a bulk form that would not be what it says.
func (d *Definition) validateBulk() error {
	b := d.BulkRule
	if b == nil {
		return nil
	}
	if b.Command == "" && len(b.Env)+len(b.Files)+len(b.Edits) == 0 {
		return fmt.Errorf("relay %s: [bulk] replaces nothing: set command, env, files or edit", d.Name)
	}
	files := maps.Clone(overlay(d.Files, b.Files))
	for i, e := range b.Edits {
		text, ok := files[e.File]
		switch n := strings.Count(text, e.Find); {
		case !ok:
			return fmt.Errorf("relay %s: [bulk] edit %d: there is no file %q under [files]", d.Name, i+1, e.File)
		case e.Find == "":
			return fmt.Errorf("relay %s: [bulk] edit %d: find is empty", d.Name, i+1)
		case n != 1:
			return fmt.Errorf("relay %s: [bulk] edit %d: %q stands %d times in %s, and has to stand there once", d.Name, i+1, e.Find, n, e.File)
		}
		files[e.File] = strings.Replace(text, e.Find, e.Replace, 1)
	}
	if err := d.Bulk().validate(); err != nil {
		return fmt.Errorf("in its bulk form, %w", err)
	}
	return nil
}

// empty says that nothing at all is set: how a variant says that its file's bulk form is not for
// it.
func (b *BulkRule) empty() bool {
	return b.Command == "" && len(b.Env)+len(b.Files)+len(b.Edits)+len(b.Notes) == 0 && b.Limits == nil
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
	env, files := replaced(b.Env, file.Env, d.Env), replaced(b.Files, file.Files, d.Files)
	switch {
	case b.Command != "" && d.Command != file.Command:
		lost = "command"
	case env != "":
		lost = "env " + env
	case files != "":
		lost = fmt.Sprintf("file %q", files)
	default:
		return nil
	}
	return fmt.Errorf("relay %s: the file's [bulk] would replace the variant's own %s: give it [variant.bulk], or bulk = {} where nothing is to be raised", d.Name, lost)
}

// replaced returns the first key of over under which two tables differ.
func replaced(over, a, b map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(over)) {
		if a[key] != b[key] {
			return key
		}
	}
	return ""
}
