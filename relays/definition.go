// Package relays turns a relay from data (a TOML definition or a command given by a person) into a
// measured process: it is found, configured, launched on a free port, proven ready, sampled,
// stopped, and leaves nothing behind.
package relays

import (
	"cmp"
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

	ImportRule NativeRule `toml:"import"` // its own commands, where it has them
	SyncRule   NativeRule `toml:"sync"`
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
		line, _, _ := strings.Cut(cmp.Or(at.Message, err.Error()), "\n")
		err = fmt.Errorf("line %d: %s", at.Position.Line, line)
	case err != nil:
	case len(unknown) > 0:
		err = fmt.Errorf("unknown key %q", unknown[0].String())
	case len(all) == 0:
		err = errors.New("variants_only is set and there is no variant")
	}
	for i := 0; err == nil && i < len(all); i++ {
		if all[i].Durability == "" {
			all[i].Durability = DurabilityOpen
		}
		err = all[i].validate()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return all, nil
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
		one.Name, one.Env, one.Files = "", maps.Clone(base.Env), maps.Clone(base.Files)
		if _, ok := set["find"]; !ok && len(base.Lookup.Env) == 0 {
			// A variant is the same program: geode-nosearch is found by GEODE_BIN.
			one.Lookup.Env = []string{variable(d.Family) + "_BIN"}
		}
		fields := map[string]any{"name": &one.Name, "title": &one.Title, "storage": &one.Storage, "find": &one.Lookup, "command": &one.Command,
			"env": &one.Env, "dirs": &one.Dirs, "files": &one.Files, "limits": &one.Limits, "durability": &one.Durability,
			"import": &one.ImportRule, "sync": &one.SyncRule, "bulk": &one.BulkRule, "notes": &one.Notes,
			"on_request": &one.OnRequest, "never_ranked": &one.NeverRanked}
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
		if _, own := set["bulk"]; own && reflect.ValueOf(*one.BulkRule).IsZero() {
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

var nameRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

// IsName tells whether a relay can be called so: names are fit for reports, files and command
// lines.
func IsName(name string) bool { return nameRule.MatchString(name) }

var stopSignals = map[string]syscall.Signal{
	"": syscall.SIGTERM, "SIGTERM": syscall.SIGTERM, "SIGINT": syscall.SIGINT, "SIGQUIT": syscall.SIGQUIT, "SIGHUP": syscall.SIGHUP,
}

func (d *Definition) validate() error {
	if !IsName(d.Name) {
		return fmt.Errorf("%q is no relay name: use 1 to 32 of letters, digits, '.', '_' and '-'", d.Name)
	}
	if err := d.fault(); err != nil {
		return fmt.Errorf("relay %s: %w", d.Name, err)
	}
	return nil
}

// fault is what is wrong with a definition under its name, nil for nothing.
func (d *Definition) fault() error {
	words, err := splitWords(d.Command)
	_, badPattern := regexp.Compile(d.VersionRule.Pattern)
	_, badCommand := splitWords(d.VersionRule.Command)
	paths := slices.AppendSeq(slices.Clone(d.Dirs), maps.Keys(d.Files))
	outside := slices.IndexFunc(paths, func(path string) bool { return !filepath.IsLocal(path) || filepath.Clean(path) == "." })
	_, isSignal := stopSignals[d.StopSignal]
	switch {
	case d.Template && err != nil:
		return fmt.Errorf("the command cannot be split into words: %w", err)
	case d.Template && (len(words) == 0 || words[0] == ""):
		return fmt.Errorf("the command is empty; write --relay '%s=/path/to/relay --port {port} --db {dir}'", d.Name)
	case err != nil:
		return fmt.Errorf("command: %w", err)
	case len(words) == 0:
		return errors.New("command is empty")
	case !d.Template && !mention(words, "{program}"):
		return errNoProgram
	case !d.usesPort():
		return errNoPort
	case outside >= 0:
		return fmt.Errorf("%q does not stay inside {dir}", paths[outside])
	case !isSignal:
		return fmt.Errorf("stop_signal %q; use SIGTERM, SIGINT, SIGQUIT or SIGHUP", d.StopSignal)
	case badPattern != nil:
		return fmt.Errorf("version.pattern: %w", badPattern)
	case badCommand != nil:
		return fmt.Errorf("version.command: %w", badCommand)
	case !slices.Contains([]Durability{Commit, Batch, NotDurable, DurabilityOpen}, d.Durability):
		return fmt.Errorf("durability %q; use commit, batch, none or unknown", d.Durability)
	}
	if err := unknownPlaceholder(d.told()); err != nil {
		return err
	}
	for _, v := range []Verb{Import, Sync} {
		if err := d.native(v).fault(v); err != nil {
			return fmt.Errorf("[%s] %w", v, err)
		}
	}
	bulk, err := d.bulk()
	if err == nil && bulk != d {
		if err = bulk.fault(); err != nil {
			err = fmt.Errorf("in its bulk form, %w", err)
		}
	}
	return err
}

var (
	errNoProgram = errors.New("command has no {program}, which stands for the program that was found")
	errNoPort    = errors.New("{port} is in neither command, env nor files, so it cannot be told where to listen")
)

func (d *Definition) usesPort() bool {
	return mention(d.told(), "{port}", "<port>") || mention(slices.Collect(maps.Values(d.Files)), "{port}")
}

// usesDir says whether a template tells the relay where its folder is.
func (d *Definition) usesDir() bool { return mention(d.told(), "{dir}", "<dir>") }

// told returns what is filled word by word: the values of the environment and the command's words.
// What was quoted in the command is not searched as it stands, since quotes may come between a
// placeholder and its braces.
func (d *Definition) told() []string {
	words, _ := splitWords(d.Command)
	return slices.AppendSeq(words, maps.Values(d.Env))
}

// mention says whether one of some texts holds one of the spellings.
func mention(texts []string, spellings ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(spellings, func(s string) bool { return strings.Contains(text, s) })
	})
}

// splitWords splits a command as a POSIX shell does. The error says in plain words what is wrong
// with the quotes.
func splitWords(command string) ([]string, error) {
	words, err := shellquote.Split(command)
	switch {
	case errors.Is(err, shellquote.UnterminatedSingleQuoteError):
		err = errors.New("a single quote is opened and never closed")
	case errors.Is(err, shellquote.UnterminatedDoubleQuoteError):
		err = errors.New("a double quote is opened and never closed")
	case errors.Is(err, shellquote.UnterminatedEscapeError):
		err = errors.New("it ends in a backslash")
	}
	return words, err
}

// eventEnvelope is what a message holds beyond the event itself: ["EVENT",…] (NIP-01).
const eventEnvelope = len(`["EVENT",]`)

// Accepts says whether the relay, as it is launched, takes events of up to maxEventBytes bytes (the
// corpus's ceiling, 65,536 where it is 0), as far as its definition tells. Where it does not, why
// is a sentence without the relay's name.
func (d *Definition) Accepts(maxEventBytes int) (ok bool, why string) {
	event := Settings{MaxEventBytes: max(maxEventBytes, 0)}.withDefaults(d).MaxEventBytes
	switch l := d.Limits; {
	case l.MessageBytes > 0 && event > l.MessageBytes-eventEnvelope:
		return false, fmt.Sprintf("reads messages of up to %d bytes, which cannot be configured: an event of %d bytes is refused", l.MessageBytes, event)
	case l.ContentChars > 0 && event > l.ContentChars:
		return false, fmt.Sprintf("takes contents of up to %d characters, which cannot be configured: an event of %d bytes may be refused", l.ContentChars, event)
	}
	return true, ""
}
