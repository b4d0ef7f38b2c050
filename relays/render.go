package relays

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/kballard/go-shellquote"
)

const knownPlaceholders = "{port}, {dir}, {program}, {max_event_bytes}, {max_message_bytes} and {max_tags}"

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// unknownPlaceholder returns the first {word} of text that stands for nothing, since that is a slip
// far more often than meant.
func unknownPlaceholder(text string, alsoKnown ...string) string {
	for _, p := range placeholder.FindAllString(text, -1) {
		switch p {
		case "{port}", "{dir}", "{program}", "{max_event_bytes}", "{max_message_bytes}", "{max_tags}":
		default:
			if !slices.Contains(alsoKnown, p) {
				return p
			}
		}
	}
	return ""
}

// blanks are what the placeholders stand for in one boot.
type blanks struct {
	port, dir, program string
	settings           Settings
	native             nativeBlanks
}

// nativeBlanks are those that only the relay's own commands have.
type nativeBlanks struct{ file, url, direction string }

// recorded are the blanks of the published form: port and folder are left standing, and the program
// goes by its base name.
func recorded(program string, s Settings) blanks {
	return blanks{port: "{port}", dir: "{dir}", program: filepath.Base(program), settings: s, native: nativeBlanks{"{file}", "{url}", "{direction}"}}
}

func (b blanks) ceilings() []string {
	event := b.settings.MaxEventBytes
	return []string{
		"{max_event_bytes}", strconv.Itoa(event),
		"{max_message_bytes}", strconv.Itoa(event + messageOverhead),
		"{max_tags}", strconv.Itoa(b.settings.MaxTags),
	}
}

// messageOverhead is what a frame may hold beyond the event itself.
const messageOverhead = 65536

// word fills one word of a command or one value of the environment, where both spellings count.
func (b blanks) word(text string) string {
	pairs := append(b.ceilings(), "{port}", b.port, "<port>", b.port, "{dir}", b.dir, "<dir>", b.dir, "{program}", b.program)
	return strings.NewReplacer(pairs...).Replace(text)
}

// file fills a rendered file, where only the spelling with braces counts: <dir> may well be the
// file's own syntax.
func (b blanks) file(text string) string {
	return strings.NewReplacer(append(b.ceilings(), "{port}", b.port, "{dir}", b.dir, "{program}", b.program)...).Replace(text)
}

// argv returns the words to execute. A template's first word is the program itself; elsewhere
// {program} says where it goes.
func (d *Definition) argv(b blanks) ([]string, error) {
	words, err := shellquote.Split(d.Command)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("the command cannot be split into words: %w", quoteTrouble(err))
	}
	for i, w := range words {
		words[i] = b.word(w)
	}
	if d.Template {
		words[0] = b.program
	}
	return words, nil
}

// nativeArgv returns the words of one of the relay's own commands.
func (d *Definition) nativeArgv(v Verb, b blanks) ([]string, error) {
	words, err := shellquote.Split(d.rule(v).command)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("the %s command cannot be split into words: %w", v, quoteTrouble(err))
	}
	// One pass over each word: what an address or a path holds is not filled in again.
	pairs := append(b.ceilings(), "{port}", b.port, "{dir}", b.dir, "{program}", b.program,
		"{file}", b.native.file, "{url}", b.native.url, "{direction}", b.native.direction)
	fill := strings.NewReplacer(pairs...)
	for i, w := range words {
		words[i] = fill.Replace(w)
	}
	return words, nil
}

// environ returns the child's whole environment: ours, without what the definition clears, and with
// what it sets.
func (d *Definition) environ(ours []string, b blanks) []string {
	env := slices.DeleteFunc(slices.Clone(ours), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		return slices.ContainsFunc(d.ClearEnv, func(pattern string) bool {
			prefix, open := strings.CutSuffix(pattern, "*")
			return name == pattern || open && strings.HasPrefix(name, prefix)
		})
	})
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		env = append(env, name+"="+b.word(d.Env[name]))
	}
	return env
}

// config returns the rendered files by their path below {dir}.
func (d *Definition) config(b blanks) map[string]string {
	if len(d.Files) == 0 {
		return nil
	}
	rendered := make(map[string]string, len(d.Files))
	for name, text := range d.Files {
		rendered[path.Clean(filepath.ToSlash(name))] = b.file(text)
	}
	return rendered
}

// prepare creates the folders and writes the files. It goes through os.Root, since a relay that ran
// here before may have left symbolic links that lead out.
func (d *Definition) prepare(b blanks) error {
	if strings.ContainsAny(b.dir, "\"\\\n\r\t'") && slices.ContainsFunc(values(d.Files), func(text string) bool { return strings.Contains(text, "{dir}") }) {
		return errors.New("the work folder's path holds a quote, a backslash or a control character, which cannot be written " +
			"into the relay's configuration; choose another with --work")
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return fmt.Errorf("opening its folder: %w", brief(err))
	}
	defer root.Close()
	for _, dir := range d.Dirs {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("creating %s: %w", shortPath(dir), brief(err))
		}
	}
	for name, text := range d.config(b) {
		if dir := path.Dir(name); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return fmt.Errorf("creating %s: %w", shortPath(dir), brief(err))
			}
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(text, "#!") {
			mode = 0o755
		}
		if err := root.WriteFile(name, []byte(text), mode); err != nil {
			return fmt.Errorf("writing %s: %w", shortPath(name), brief(err))
		}
	}
	return nil
}
