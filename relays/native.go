package relays

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Direction says which way a sync carries events, as the relay that carries it out sees it.
type Direction string

// The directions.
const (
	Down Direction = "down" // from the other relay
	Up   Direction = "up"   // to it
	Both Direction = "both"
)

// NativeRule is one of the relay's own commands: [import], which takes events from a file of one
// JSON event a line, or [sync], which exchanges events with another relay. Its placeholders are
// those of the relay's command, and {file} for the file's path, or {url} and {direction} for the
// other relay's address and the way to go.
type NativeRule struct {
	Command    string      `toml:"command"`
	Running    Running     `toml:"running"`
	Stdin      bool        `toml:"stdin"`      // of an import: the file is its standard input, and no {file}
	Directions []Direction `toml:"directions"` // that a sync can be given; all where it has {direction}, and down where it has not
}

// Can says whether a relay has a command for a verb. Where it has none, why is a sentence without
// the relay's name.
func (d *Definition) Can(v Verb) (ok bool, why string) {
	switch {
	case d.External():
		return false, "it runs already: its data cannot be reached"
	case d.native(v).Command != "":
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
func (d *Definition) NeedsStop(v Verb) bool { return d.native(v).Running == MustStop }

// NeedsRun says whether the relay must run while it carries out the verb.
func (d *Definition) NeedsRun(v Verb) bool { return d.native(v).Running == MustRun }

func (d *Definition) native(v Verb) *NativeRule {
	if v == Import {
		return &d.ImportRule
	}
	return &d.SyncRule
}

// fault is what is wrong with a command for a verb, nil for nothing.
func (r *NativeRule) fault(v Verb) error {
	own := map[Verb][]string{Import: {"{file}"}, Sync: {"{url}", "{direction}"}}[v]
	words, err := splitWords(r.Command)
	says := func(placeholder string) bool { return mention(words, placeholder) }
	switch {
	case r.Command == "" && (r.Running != "" || r.Stdin || len(r.Directions) > 0):
		return errors.New("has no command")
	case r.Command == "":
		return nil
	case err != nil:
		return fmt.Errorf("command: %w", err)
	case !says("{program}"):
		return errNoProgram
	case r.Running == "":
		return errors.New("does not say whether the relay runs meanwhile: add running = true, false or \"either\"")
	}
	if err := unknownPlaceholder(words, own...); err != nil {
		return fmt.Errorf("command: %w", err)
	}
	switch {
	case v == Import && len(r.Directions) > 0 || v == Sync && r.Stdin:
		return errors.New("stdin belongs in [import], and directions in [sync]")
	case v == Import && !says("{file}") && !r.Stdin:
		return errors.New("command has no {file}, which stands for the file of events; where it reads standard input, add stdin = true")
	case says("{file}") && r.Stdin:
		return errors.New("command has {file}, and stdin = true: the events come one way or the other")
	case v == Sync && !says("{url}"):
		return errors.New("command has no {url}, which stands for the other relay's address")
	case len(r.Directions) > 1 && !says("{direction}"):
		return errors.New("command has no {direction}, so it cannot be told which of several directions to go")
	}
	for i, way := range r.Directions {
		if !slices.Contains([]Direction{Down, Up, Both}, way) {
			return fmt.Errorf("direction %q; use down, up or both", way)
		}
		if slices.Contains(r.Directions[:i], way) {
			return fmt.Errorf("direction %q stands there twice", way)
		}
	}
	return nil
}
