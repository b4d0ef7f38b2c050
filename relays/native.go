package relays

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kballard/go-shellquote"
)

// Verb is what a relay's own program can do with its data beside serving it.
type Verb string

// The verbs.
const (
	Import Verb = "import" // takes events from a file
	Sync   Verb = "sync"   // exchanges events with another relay
)

// Running says whether the relay serves while one of its commands works on its data. In a file it
// is true, false or "either".
type Running string

// The answers. The zero value is none: a file has to say.
const (
	MustRun   Running = "true"
	MustStop  Running = "false"
	MayEither Running = "either"
)

// UnmarshalTOML reads true, false or "either".
func (r *Running) UnmarshalTOML(value any) error {
	switch value {
	case true:
		*r = MustRun
	case false:
		*r = MustStop
	case "either":
		*r = MayEither
	default:
		return fmt.Errorf("running is %v; write true, false or \"either\"", value)
	}
	return nil
}

// ImportRule is the command that takes events from a file of one JSON event a line. Its
// placeholders are those of the relay's command, and {file} for the file's path.
type ImportRule struct {
	Command string  `toml:"command"`
	Stdin   bool    `toml:"stdin"` // the file is its standard input, and no {file}
	Running Running `toml:"running"`
}

// Direction says which way a sync carries events, as the relay that carries it out sees it.
type Direction string

// The directions.
const (
	Down Direction = "down" // from the other relay
	Up   Direction = "up"   // to it
	Both Direction = "both"
)

// SyncRule is the command that exchanges events with the relay at {url}, in the {direction} given.
type SyncRule struct {
	Command    string      `toml:"command"`
	Directions []Direction `toml:"directions"` // that it can be given; all where it has {direction}, and down where it has not
	Running    Running     `toml:"running"`
}

// Can says whether a relay has a command for a verb. Where it has none, why is a sentence without
// the relay's name.
func (d *Definition) Can(v Verb) (ok bool, why string) {
	switch {
	case d.External():
		return false, "it runs already: its data cannot be reached"
	case d.rule(v).command != "":
		return true, ""
	}
	return false, fmt.Sprintf("its definition names no %s command", v)
}

// Directions returns the ways in which the relay's own sync command can be told to go; none where
// it has no such command.
func (d *Definition) Directions() []Direction {
	switch {
	case d.SyncRule.Command == "":
		return nil
	case len(d.SyncRule.Directions) > 0:
		return slices.Clone(d.SyncRule.Directions)
	case strings.Contains(d.SyncRule.Command, "{direction}"):
		return []Direction{Down, Up, Both}
	}
	return []Direction{Down}
}

// NeedsStop says whether the relay must not run while it carries out the verb.
func (d *Definition) NeedsStop(v Verb) bool { return d.rule(v).running == MustStop }

// NeedsRun says whether the relay must run while it carries out the verb.
func (d *Definition) NeedsRun(v Verb) bool { return d.rule(v).running == MustRun }

// rule is what the two tables have in common.
type rule struct {
	verb    Verb
	command string
	running Running
	extra   []string // placeholders beyond those of the relay's command
}

func (d *Definition) rule(v Verb) rule {
	switch v {
	case Import:
		return rule{v, d.ImportRule.Command, d.ImportRule.Running, []string{"{file}"}}
	}
	return rule{Sync, d.SyncRule.Command, d.SyncRule.Running, []string{"{url}", "{direction}"}}
}

// validateNative refuses tables that could not be carried out.
func (d *Definition) validateNative() error {
	for _, v := range []Verb{Import, Sync} {
		if err := d.rule(v).validate(); err != nil {
			return fmt.Errorf("relay %s: [%s] %w", d.Name, v, err)
		}
	}
	if err := d.ImportRule.validate(); err != nil {
		return fmt.Errorf("relay %s: [import] %w", d.Name, err)
	}
	if err := d.SyncRule.validate(); err != nil {
		return fmt.Errorf("relay %s: [sync] %w", d.Name, err)
	}
	return nil
}

func (r rule) validate() error {
	if r.command == "" {
		if r.running != "" {
			return errors.New("has no command")
		}
		return nil
	}
	words, err := shellquote.Split(r.command)
	switch {
	case err != nil:
		return fmt.Errorf("command: %w", quoteTrouble(err))
	case !mention(words, "{program}"):
		return errors.New("command has no {program}, which stands for the program that was found")
	case r.running == "":
		return errors.New("does not say whether the relay runs meanwhile: add running = true, false or \"either\"")
	}
	for _, w := range words {
		if p := unknownPlaceholder(w, r.extra...); p != "" {
			return fmt.Errorf("command: unknown placeholder %s; known are %s, and %s", p, knownPlaceholders, strings.Join(r.extra, " and "))
		}
	}
	return nil
}

func (r ImportRule) validate() error {
	named := strings.Contains(r.Command, "{file}")
	switch {
	case r.Command == "" && r.Stdin:
		return errors.New("has no command")
	case r.Command != "" && !named && !r.Stdin:
		return errors.New("command has no {file}, which stands for the file of events; where it reads standard input, add stdin = true")
	case named && r.Stdin:
		return errors.New("command has {file}, and stdin = true: the events come one way or the other")
	}
	return nil
}

func (r SyncRule) validate() error {
	told := strings.Contains(r.Command, "{direction}")
	switch {
	case r.Command == "" && len(r.Directions) > 0:
		return errors.New("has no command")
	case r.Command == "":
		return nil
	case !strings.Contains(r.Command, "{url}"):
		return errors.New("command has no {url}, which stands for the other relay's address")
	case len(r.Directions) > 1 && !told:
		return errors.New("command has no {direction}, so it cannot be told which of several directions to go")
	}
	for i, dir := range r.Directions {
		switch dir {
		case Down, Up, Both:
		default:
			return fmt.Errorf("direction %q; use down, up or both", dir)
		}
		if slices.Contains(r.Directions[:i], dir) {
			return fmt.Errorf("direction %q stands there twice", dir)
		}
	}
	return nil
}
