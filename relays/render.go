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
)

// placeholders are those that commands, environments and files have.
var placeholders = []string{"{port}", "{dir}", "{program}", "{max_event_bytes}", "{max_message_bytes}", "{max_tags}"}

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// unknownPlaceholder is the error for a {word} in texts that stands for nothing, since that is a
// slip far more often than meant. own are known as well.
func unknownPlaceholder(texts []string, own ...string) error {
	for _, p := range placeholder.FindAllString(strings.Join(texts, "\n"), -1) {
		if !slices.Contains(placeholders, p) && !slices.Contains(own, p) {
			last := len(placeholders) - 1
			known := strings.Join(placeholders[:last], ", ") + " and " + placeholders[last]
			if len(own) > 0 {
				known += ", and " + strings.Join(own, " and ")
			}
			return fmt.Errorf("unknown placeholder %s; known are %s", p, known)
		}
	}
	return nil
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

// messageOverhead is what a frame may hold beyond the event itself.
const messageOverhead = 65536

// fill fills a text in one pass, so that what an address or a path holds is not filled in again.
func (b blanks) fill(text string, more ...string) string {
	event := b.settings.MaxEventBytes
	return strings.NewReplacer(append(more, "{port}", b.port, "{dir}", b.dir, "{program}", b.program,
		"{max_event_bytes}", strconv.Itoa(event),
		"{max_message_bytes}", strconv.Itoa(event+messageOverhead),
		"{max_tags}", strconv.Itoa(b.settings.MaxTags))...).Replace(text)
}

// word fills one word of a command or one value of the environment, where both spellings count. In
// files only that with braces does: <dir> may well be the file's own syntax.
func (b blanks) word(text string) string { return b.fill(text, "<port>", b.port, "<dir>", b.dir) }

// argv returns the words to execute. A template's first word is the program itself; elsewhere
// {program} says where it goes.
func (d *Definition) argv(b blanks) ([]string, error) {
	words, err := splitWords(d.Command)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("the command cannot be split into words: %w", err)
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
	words, err := splitWords(d.native(v).Command)
	if err != nil || len(words) == 0 {
		return nil, fmt.Errorf("the %s command cannot be split into words: %w", v, err)
	}
	for i, w := range words {
		words[i] = b.fill(w, "{file}", b.native.file, "{url}", b.native.url, "{direction}", b.native.direction)
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
		rendered[path.Clean(filepath.ToSlash(name))] = b.fill(text)
	}
	return rendered
}

// prepare creates the folders and writes the files. It goes through os.Root, since a relay that ran
// here before may have left symbolic links that lead out.
func (d *Definition) prepare(b blanks) error {
	if strings.ContainsAny(b.dir, "\"\\\n\r\t'") && mention(slices.Collect(maps.Values(d.Files)), "{dir}") {
		return errors.New("the work folder's path holds a quote, a backslash or a control character, which cannot be written " +
			"into the relay's configuration; choose another with --work")
	}
	root, err := os.OpenRoot(b.dir)
	if err != nil {
		return fmt.Errorf("opening its folder: %w", brief(err))
	}
	defer root.Close()
	files, dirs := d.config(b), slices.Clone(d.Dirs)
	for name := range files {
		dirs = append(dirs, path.Dir(name))
	}
	for _, dir := range dirs {
		if err := root.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("creating %s: %w", shortPath(dir), brief(err))
		}
	}
	for name, text := range files {
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
