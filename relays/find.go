package relays

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// variable turns a relay's name into the stem of its environment variables: nostr-rs-relay becomes
// NOSTR_RS_RELAY.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z' || r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// SkipVariable is the variable of the environment that leaves a relay, or a family, out of a run.
func SkipVariable(name string) string { return "SKIP_" + variable(name) }

func (d *Definition) variables() []string {
	if len(d.Lookup.Env) > 0 {
		return d.Lookup.Env
	}
	return []string{variable(d.Name) + "_BIN"}
}

func (d *Definition) binaries() []string {
	if len(d.Lookup.Binaries) > 0 {
		return d.Lookup.Binaries
	}
	return []string{d.Family}
}

// Find looks for the relay's program: first where its variables ($STRFRY_BIN) say, then, where the
// definition wants it, beside the running program, then on the PATH. The path it returns is
// absolute. ok is false where there is none. A variable that is set but names nothing executable is
// an error, since silence would measure something else than was meant.
func (d *Definition) Find(getenv func(string) string) (path string, ok bool, err error) {
	for _, name := range d.variables() {
		if value := getenv(name); value != "" {
			if path, err = locate(value, getenv("PATH")); err != nil {
				return "", false, fmt.Errorf("$%s: %w", name, err)
			}
			return path, true, nil
		}
	}
	self, selfErr := os.Executable()
	for _, binary := range d.binaries() {
		if path := filepath.Join(filepath.Dir(self), binary); d.Lookup.Beside && selfErr == nil && executable(path) == nil {
			return path, true, nil
		}
	}
	for _, binary := range d.binaries() {
		if path, err := locate(binary, getenv("PATH")); err == nil {
			return path, true, nil
		}
	}
	return "", false, nil
}

// Resolve returns the absolute path of the program that Start will run, or "" for a relay that
// already runs. Errors say what was looked for and how to provide it.
func (d *Definition) Resolve(getenv func(string) string) (string, error) {
	path, err := d.resolve(getenv)
	if err != nil {
		return "", fmt.Errorf("relay %s: %w", d.Name, err)
	}
	return path, nil
}

func (d *Definition) resolve(getenv func(string) string) (string, error) {
	switch {
	case d.External():
		return "", nil
	case d.Template:
		words, err := splitWords(d.Command)
		if err != nil || len(words) == 0 {
			return "", fmt.Errorf("the command cannot be split into words: %w", err)
		}
		return locate(words[0], getenv("PATH"))
	}
	path, ok, err := d.Find(getenv)
	if err == nil && !ok {
		err = errors.New("not found; " + d.missing())
	}
	return path, err
}

func (d *Definition) missing() string {
	return fmt.Sprintf("set $%s or put %s on the PATH", d.variables()[0], strings.Join(d.binaries(), " or "))
}

// locate finds a program as a shell would: a path as it stands (relative to the current folder), a
// bare name on the PATH. Relative entries of the PATH are passed over.
func locate(name, searchPath string) (string, error) {
	if strings.ContainsRune(name, filepath.Separator) {
		path, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		return path, executable(path)
	}
	for _, dir := range filepath.SplitList(searchPath) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not on the PATH", shortPath(name))
}

func executable(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist", shortPath(path))
	case err != nil:
		return brief(err)
	case info.IsDir():
		return fmt.Errorf("%s is a folder, not a program", shortPath(path))
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not executable", shortPath(path))
	}
	return nil
}

// Status says what a look around found of a relay.
type Status string

// The statuses.
const (
	Found   Status = "found"
	Missing Status = "missing"
	Skipped Status = "skipped" // SKIP_<NAME> is set
	Broken  Status = "broken"  // a variable names a program that cannot be run
)

// Sighting is what a look around found of one relay.
type Sighting struct {
	Definition Definition
	Status     Status
	Program    string // absolute path, where found
	Version    string // "" where the program does not say
	SHA256     string // of the program file, 64 hexadecimal digits
	Default    bool   // takes part in a run that names no relays
	Reason     string // one line for a person: where it is, or what to do
}

// Scan looks for every relay of a catalog on this machine, in order. Versions are asked of the
// programs that are found, each once, for at most 10 seconds.
func Scan(ctx context.Context, catalog []Definition, getenv func(string) string) []Sighting {
	sightings := make([]Sighting, len(catalog))
	var wg sync.WaitGroup
	slots := make(chan struct{}, 2)
	for i := range catalog {
		sightings[i] = look(&catalog[i], getenv)
		if s := &sightings[i]; s.Status == Found {
			wg.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				s.Version = s.Definition.Version(ctx, s.Program)
				s.SHA256 = programSHA256(s.Program)
			})
		}
	}
	wg.Wait()
	return sightings
}

func look(d *Definition, getenv func(string) string) Sighting {
	s := Sighting{Definition: *d}
	for _, name := range []string{d.Name, d.Family} {
		if v := getenv(SkipVariable(name)); v != "" && v != "0" && v != "false" {
			s.Status, s.Reason = Skipped, "left out by "+SkipVariable(name)
			return s
		}
	}
	path, ok, err := d.Find(getenv)
	switch {
	case err != nil:
		s.Status, s.Reason = Broken, err.Error()
	case !ok:
		s.Status, s.Reason = Missing, d.missing()
	default:
		s.Status, s.Program, s.Reason = Found, path, path
		s.Default = d.OnRequest == "" && d.Unsuitable == ""
	}
	switch {
	case d.Unsuitable != "":
		s.Reason = "not part of a run unless named: " + d.Unsuitable + " (" + s.Reason + ")"
	case d.OnRequest != "" && s.Status == Found:
		s.Reason = "takes part when asked for: " + d.OnRequest + " (" + s.Reason + ")"
	}
	return s
}
