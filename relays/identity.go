package relays

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"relaybench/results"
)

// versionTimeout allows for a JVM on a busy machine. A program that takes longer is serving, not
// answering.
const versionTimeout = 10 * time.Second

// question is what is asked of a program file: its content is identified well enough to ask only
// once.
type question struct {
	path, what string
	size       int64
	modified   time.Time
}

var answers sync.Map // question → *answer

type answer struct {
	sync.Mutex
	known bool
	text  string
}

// askOnce returns what ask returns, which is asked again only where it is not sure. Who asks the
// same meanwhile waits: variants of one program for its one answer.
func askOnce(path, what string, ask func() (text string, sure bool)) string {
	if path == "" {
		return ""
	}
	q := question{path: path, what: what}
	if info, err := os.Stat(path); err == nil {
		q.size, q.modified = info.Size(), info.ModTime()
	}
	entry, _ := answers.LoadOrStore(q, &answer{})
	a := entry.(*answer)
	a.Lock()
	defer a.Unlock()
	if !a.known {
		a.text, a.known = ask()
	}
	return a.text
}

// Version asks the program at path for its version, and reads the build information of a Go program
// that does not say. It returns "" where neither is known, runs for at most 10 seconds, and leaves
// nothing running.
func (d *Definition) Version(ctx context.Context, path string) string {
	return askOnce(path, d.VersionRule.Command+"\n"+d.VersionRule.Pattern, func() (string, bool) {
		text := cmp.Or(d.askVersion(ctx, path), buildVersion(path))
		return text, ctx.Err() == nil
	})
}

func (d *Definition) askVersion(ctx context.Context, path string) string {
	words, err := splitWords(d.VersionRule.Command)
	if err != nil || len(words) == 0 {
		return ""
	}
	for i, w := range words {
		words[i] = strings.ReplaceAll(w, "{program}", path)
	}
	// Some programs take any argument for a reason to serve: let them do it in a folder of their
	// own, and not for long.
	dir, err := os.MkdirTemp("", "relaybench-version-")
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	p := newProcess(&Definition{Name: d.Name}, path, Settings{}, dir) // in the environment of a person who asks
	remember(p)
	defer p.Cleanup()
	if os.Mkdir(p.dir, 0o755) != nil || p.execute(words, p.blanks(), nil) != nil {
		return ""
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.Kill()
		<-p.done
	}
	out, _ := os.ReadFile(p.LogPath()) // whatever the status: some print their version and exit 1
	pattern, err := regexp.Compile(cmp.Or(d.VersionRule.Pattern, `\S.*`))
	if err != nil {
		return ""
	}
	match := pattern.FindSubmatch(out)
	if match == nil {
		return ""
	}
	return cleanLine(bytes.TrimSpace(match[min(1, len(match)-1)]), 100)
}

func buildVersion(path string) string {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return ""
	}
	version, revision, dirty := info.Main.Version, "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	if (version == "" || version == "(devel)") && revision != "" {
		version = revision + dirty
	}
	return cleanLine([]byte(version), 100)
}

// programSHA256 hashes the program file itself, which is the script where a script launches the
// relay.
func programSHA256(path string) string {
	return askOnce(path, "sha256", func() (string, bool) {
		f, err := os.Open(path)
		if err != nil {
			return "", false
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return "", false
		}
		return hex.EncodeToString(h.Sum(nil)), true
	})
}

// Describe returns how the relay goes into the record: the command with {port} and {dir} left
// standing and the program by its base name, the rendered files, version and sha256. It holds no
// path of this machine and no secret that can be told by its name.
func (d *Definition) Describe(ctx context.Context, program string, s Settings) results.Relay {
	r := results.Relay{Name: d.Name, Durability: string(d.Durability), Notes: slices.Clone(d.Notes), NeverRanked: d.NeverRanked}
	if d.External() {
		r.URL = publicURL(d.URL)
		return r
	}
	s = s.withDefaults(d)
	b := recorded(program, s)
	words, err := d.argv(b)
	if err != nil {
		return r
	}
	var line []string
	for _, name := range slices.Sorted(maps.Keys(d.Env)) {
		line = append(line, name+"="+b.word(d.Env[name]))
	}
	r.Command = publicCommand(append(line, words...))
	r.Config = d.config(b)
	r.Version = d.Version(ctx, program)
	r.SHA256 = programSHA256(program)
	if d.containerised(program) {
		r.Notes = append(r.Notes, "launched through "+filepath.Base(program)+
			": CPU, memory and disk are those of that client, not of the relay in the container")
	}
	return r
}

// publicURL drops what may be a secret from an address.
func publicURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

var secretName = regexp.MustCompile(`(?i)(secret|token|passw|passphrase|private|nsec|api[-_]?key|credential)`)

// publicCommand joins words so that they can be read and pasted, with home folders and secrets left
// out.
func publicCommand(words []string) string {
	home, _ := os.UserHomeDir()
	public := make([]string, len(words))
	hide := false
	for i, w := range words {
		name, value, pair := strings.Cut(w, "=")
		flag := strings.HasPrefix(w, "-")
		switch {
		case hide && !flag:
			w = "***"
		case pair && value != "" && !strings.Contains(value, "{") && secretName.MatchString(name):
			w = name + "=***"
		}
		hide = flag && !pair && secretName.MatchString(w)
		if len(home) > 1 {
			w = strings.ReplaceAll(w, home+string(filepath.Separator), "~/")
		}
		public[i] = quoteWord(w)
	}
	return strings.Join(public, " ")
}

var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./{}~*-]+$`)

// quoteWord quotes for a POSIX shell, and leaves the braces of placeholders readable.
func quoteWord(w string) string {
	if plainWord.MatchString(w) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
