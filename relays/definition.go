// Package relays turns a relay from data (a TOML definition or a command given by a person) into a
// measured process: it is found, configured, launched on a free port, proven ready, sampled,
// stopped, and leaves nothing behind.
package relays

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/kballard/go-shellquote"
)

// Definition says how one relay is found, configured, launched and stopped. It is data: a TOML file
// in the catalog or in a person's own folder, or the outcome of [FromTemplate].
type Definition struct {
	Name     string `toml:"name"`     // the key in reports and on the command line: [A-Za-z0-9._-]{1,32}
	Title    string `toml:"title"`    // what people call it
	Language string `toml:"language"` // what it is written in
	Storage  string `toml:"storage"`  // what it stores events in
	Homepage string `toml:"homepage"` // where people read about it
	Source   string `toml:"source"`   // where its source lives
	NIPs     []int  `toml:"nips"`     // what it claims; information only, since capabilities are probed

	Lookup      Lookup            `toml:"find"`
	Command     string            `toml:"command"`   // split as a POSIX shell splits words; {program} {port} {dir} …
	Env         map[string]string `toml:"env"`       // added to the environment; the same placeholders
	ClearEnv    []string          `toml:"clear_env"` // variables the relay must not inherit; a trailing * matches any ending
	Dirs        []string          `toml:"dirs"`      // created below {dir} before launch
	Files       map[string]string `toml:"files"`     // rendered below {dir} before launch
	VersionRule VersionRule       `toml:"version"`
	Limits      Limits            `toml:"limits"`
	Durability  Durability        `toml:"durability"`

	ImportRule ImportRule `toml:"import"` // its own commands, where it has them
	SyncRule   SyncRule   `toml:"sync"`
	BulkRule   *BulkRule  `toml:"bulk"` // what is raised where its events are moved in bulk

	ReadyTimeout Duration `toml:"ready_timeout"` // from launch to the first EOSE; 30 s unless set
	StopSignal   string   `toml:"stop_signal"`   // SIGTERM unless set
	StopTimeout  Duration `toml:"stop_timeout"`  // from the stop signal to SIGKILL; 10 s unless set

	Notes       []string `toml:"notes"`        // what a reader of results must know
	OnRequest   string   `toml:"on_request"`   // set: takes part only when asked for, and this is why
	Unsuitable  string   `toml:"unsuitable"`   // set: cannot hold a general corpus, and this is why
	NeverRanked string   `toml:"never_ranked"` // set: measured, but put in no ranking, and this is why

	VariantsOnly bool                        `toml:"variants_only"` // the file itself is no relay, only its variants are
	Variants     []map[string]toml.Primitive `toml:"variant"`       // second forms: see expand

	Family   string `toml:"-"` // the name in the file: geode for geode-nosearch
	URL      string `toml:"-"` // set for a relay that already runs (External)
	Template bool   `toml:"-"` // made by FromTemplate: the program is the command's first word

	origin string // the file, for messages
}

// Lookup says where a relay's program is looked for, in this order.
type Lookup struct {
	Env      []string `toml:"env"`      // variables that name the program; NAME_BIN unless set
	Beside   bool     `toml:"beside"`   // in the folder of the running program, before PATH
	Binaries []string `toml:"binaries"` // names on the PATH; the relay's name unless set
}

// VersionRule says how a program tells its version.
type VersionRule struct {
	Command string `toml:"command"` // "{program} --version"
	Pattern string `toml:"pattern"` // a regular expression; its first group, or else its match, is the version
}

// Limits are what the relay clamps or refuses in the configuration that is launched. Zero is
// unknown or unlimited.
type Limits struct {
	FilterLimit   int `toml:"filter_limit"`  // events returned for one filter at most
	DefaultLimit  int `toml:"default_limit"` // events returned for a filter without limit
	Filters       int `toml:"filters"`       // filters in one REQ
	Subscriptions int `toml:"subscriptions"` // open subscriptions on one connection
	TagFilters    int `toml:"tag_filters"`   // tag names in one filter
	MessageBytes  int `toml:"message_bytes"` // one incoming message, where it cannot be configured
	ContentChars  int `toml:"content_chars"` // the content of one event, in characters, where it cannot be configured
	SyncEvents    int `toml:"sync_events"`   // events in one negentropy session (NIP-77)
}

// Durability is what an OK means for an event when the power fails a moment later.
type Durability string

// The durability classes. Ingest rates of different classes are not compared without a mark.
const (
	Commit         Durability = "commit"  // synced to disk before its OK
	Batch          Durability = "batch"   // synced in groups, or at checkpoints (SQLite's WAL with synchronous=NORMAL)
	NotDurable     Durability = "none"    // never synced by the relay
	DurabilityOpen Durability = "unknown" // not established
)

// Duration is a time.Duration written as "30s" or "2m".
type Duration time.Duration

// UnmarshalText reads "30s" or "2m"; a negative or unreadable duration is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration; write 30s or 2m", text)
	}
	*d = Duration(v)
	return nil
}

// parse reads one definition file into the relays it describes. Every message names the file.
func parse(origin, text string) (all []Definition, err error) {
	var d Definition
	md, err := toml.Decode(text, &d)
	if err == nil {
		d.origin, d.Family = origin, d.Name
		all, err = d.expand(&md)
	}
	var at toml.ParseError
	switch unknown := md.Undecoded(); {
	case errors.As(err, &at):
		return nil, fmt.Errorf("%s: line %d: %s", origin, at.Position.Line, firstLine(at.Message, err))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", origin, err)
	case len(unknown) > 0:
		return nil, fmt.Errorf("%s: unknown key %q", origin, unknown[0].String())
	case len(all) == 0:
		return nil, fmt.Errorf("%s: variants_only is set and there is no variant", origin)
	}
	for i := range all {
		if err := all[i].validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", origin, err)
		}
	}
	return all, nil
}

func firstLine(message string, err error) string {
	line, _, _ := strings.Cut(either(message, err.Error()), "\n")
	return line
}

// expand returns the file's relay and its variants, each complete. What a variant sets replaces
// what its file sets; env and files are replaced key by key. An empty table for one of the relay's
// own commands, or for the bulk form, says that the variant has none.
func (d *Definition) expand(md *toml.MetaData) (all []Definition, err error) {
	base := *d
	base.Variants, base.VariantsOnly = nil, false
	if !d.VariantsOnly {
		all = append(all, base)
	}
	for _, set := range d.Variants {
		one := base
		one.Env, one.Files = maps.Clone(base.Env), maps.Clone(base.Files)
		if _, ok := set["find"]; !ok && len(base.Lookup.Env) == 0 {
			// A variant is the same program: geode-nosearch is found by GEODE_BIN.
			one.Lookup.Env = []string{variable(d.Family) + "_BIN"}
		}
		fields := map[string]any{"name": &one.Name, "title": &one.Title, "storage": &one.Storage, "find": &one.Lookup, "command": &one.Command,
			"env": &one.Env, "dirs": &one.Dirs, "files": &one.Files, "limits": &one.Limits, "durability": &one.Durability,
			"import": &one.ImportRule, "sync": &one.SyncRule, "bulk": &one.BulkRule, "notes": &one.Notes,
			"on_request": &one.OnRequest, "never_ranked": &one.NeverRanked}
		one.Name = ""
		for _, key := range slices.Sorted(maps.Keys(set)) {
			field := fields[key]
			if field == nil {
				return nil, fmt.Errorf("unknown key %q", "variant."+key)
			}
			if key != "env" && key != "files" {
				reflect.ValueOf(field).Elem().SetZero()
			}
			if err := md.PrimitiveDecode(set[key], field); err != nil {
				return nil, err
			}
		}
		if _, own := set["bulk"]; own && one.BulkRule.empty() {
			one.BulkRule = nil
		} else if !own {
			if err := one.validateInherited(&base); err != nil {
				return nil, err
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func either[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

func overlay(base, over map[string]string) map[string]string {
	if len(over) == 0 {
		return base
	}
	m := maps.Clone(base)
	if m == nil {
		m = map[string]string{}
	}
	maps.Copy(m, over)
	return m
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// IsName tells whether a relay can be called so.
func IsName(name string) bool { return nameRule.MatchString(name) }

// checkName keeps names fit for reports, file names and command lines.
func checkName(name string) error {
	if !IsName(name) {
		return fmt.Errorf("%q is no relay name: use 1 to 32 of letters, digits, '.', '_' and '-'", name)
	}
	return nil
}

var stopSignals = map[string]syscall.Signal{
	"": syscall.SIGTERM, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT, "SIGHUP": syscall.SIGHUP,
}

func (d *Definition) validate() error {
	if err := checkName(d.Name); err != nil {
		return err
	}
	words, err := shellquote.Split(d.Command)
	if err != nil {
		return fmt.Errorf("relay %s: command: %w", d.Name, quoteTrouble(err))
	}
	if len(words) == 0 {
		return fmt.Errorf("relay %s: command is empty", d.Name)
	}
	if !mention(words, "{program}") {
		return fmt.Errorf("relay %s: command has no {program}, which stands for the program that was found", d.Name)
	}
	if !d.usesPort() {
		return fmt.Errorf("relay %s: {port} is in neither command, env nor files, so it cannot be told where to listen", d.Name)
	}
	for _, text := range append(slices.Collect(maps.Values(d.Env)), words...) {
		if p := unknownPlaceholder(text); p != "" {
			return fmt.Errorf("relay %s: unknown placeholder %s; known are %s", d.Name, p, knownPlaceholders)
		}
	}
	for _, path := range append(slices.Collect(maps.Keys(d.Files)), d.Dirs...) {
		if !filepath.IsLocal(path) || filepath.Clean(path) == "." {
			return fmt.Errorf("relay %s: %q does not stay inside {dir}", d.Name, path)
		}
	}
	if _, ok := stopSignals[d.StopSignal]; !ok {
		return fmt.Errorf("relay %s: stop_signal %q; use SIGTERM, SIGINT, SIGQUIT or SIGHUP", d.Name, d.StopSignal)
	}
	if _, err := regexp.Compile(d.VersionRule.Pattern); err != nil {
		return fmt.Errorf("relay %s: version.pattern: %w", d.Name, err)
	}
	if _, err := shellquote.Split(d.VersionRule.Command); err != nil {
		return fmt.Errorf("relay %s: version.command: %w", d.Name, quoteTrouble(err))
	}
	switch d.Durability {
	case "":
		d.Durability = DurabilityOpen
	case Commit, Batch, NotDurable, DurabilityOpen:
	default:
		return fmt.Errorf("relay %s: durability %q; use commit, batch, none or unknown", d.Name, d.Durability)
	}
	if err := d.validateNative(); err != nil {
		return err
	}
	return d.validateBulk()
}

// usesPort says whether the relay can be told its port.
func (d *Definition) usesPort() bool {
	return mention(d.told(), "{port}", "<port>") || mention(values(d.Files), "{port}")
}

// usesDir says whether a template tells the relay where its folder is.
func (d *Definition) usesDir() bool { return mention(d.told(), "{dir}", "<dir>") }

// told returns what is filled word by word: the values of the environment and the command's words.
// What was quoted in the command is not searched as it stands, since quotes may come between a
// placeholder and its braces.
func (d *Definition) told() []string {
	words, _ := shellquote.Split(d.Command)
	return append(values(d.Env), words...)
}

// mention says whether one of some texts holds one of the spellings.
func mention(texts []string, spellings ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(spellings, func(s string) bool { return strings.Contains(text, s) })
	})
}

// quoteTrouble says in plain words what is wrong with the quotes.
func quoteTrouble(err error) error {
	switch {
	case errors.Is(err, shellquote.UnterminatedSingleQuoteError):
		return errors.New("a single quote is opened and never closed")
	case errors.Is(err, shellquote.UnterminatedDoubleQuoteError):
		return errors.New("a double quote is opened and never closed")
	case errors.Is(err, shellquote.UnterminatedEscapeError):
		return errors.New("it ends in a backslash")
	}
	return err
}
