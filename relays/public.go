package relays

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Public returns a text by the relay as it may be published: its folder reads as {dir}, the folder
// of its boot as {dir}/.., the work folder as {work} and the home folder as ~, however they are
// spelled: through symbolic links, or escaped as in a URL. This machine's name reads as {host}.
func (p *Process) Public(text string) string {
	for _, h := range p.hidden {
		text = h.hide(text)
	}
	return text
}

// hidden is a path of this machine, or its name, and what is published in its place.
type hidden struct{ path, placeholder string }

// hiddenPaths returns what Public hides, longer paths before those that they begin with.
func hiddenPaths(dir, root, work string) []hidden {
	home, _ := os.UserHomeDir()
	var all []hidden
	for _, h := range []hidden{{dir, "{dir}"}, {root, "{dir}/.."}, {work, "{work}"}, {home, "~"}} {
		if len(h.path) < 2 {
			continue // not known, or the root of all
		}
		spellings := []string{h.path}
		if real := realPath(h.path); real != h.path {
			spellings = append(spellings, real)
		}
		for _, s := range spellings {
			all = append(all, hidden{s, h.placeholder})
			if escaped := (&url.URL{Path: s}).EscapedPath(); escaped != s {
				all = append(all, hidden{escaped, h.placeholder})
			}
		}
	}
	if host, err := os.Hostname(); err == nil && len(host) > 1 && host != "localhost" {
		all = append(all, hidden{host, "{host}"})
	}
	return all
}

// realPath follows symbolic links as far as the path exists: the relay's own folder may not yet.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(realPath(parent), filepath.Base(path))
	}
	return path
}

// hide replaces the path where it stands as a whole: /tmp is neither in /tmpfs nor in /var/tmp. A
// longer path is hidden whatever it follows, since it is not there by chance.
func (h hidden) hide(text string) string {
	if !strings.Contains(text, h.path) {
		return text
	}
	short := strings.Count(h.path, string(filepath.Separator)) < 2
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, h.path)
		if !found {
			break
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		out.WriteString(before)
		if before != "" && short && nameRune(last) || after != "" && nameRune(next) && next != '.' {
			out.WriteString(h.path)
		} else {
			out.WriteString(h.placeholder)
		}
		text = after
	}
	out.WriteString(text)
	return out.String()
}

// nameRune says whether a rune is of the kind that file names are made of.
func nameRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("._-", r)
}

const maxPathInMessage = 200

// shortPath cuts the middle out of a path that would fill a page.
func shortPath(path string) string {
	if len(path) <= maxPathInMessage {
		return path
	}
	half := maxPathInMessage / 2
	return strings.ToValidUTF8(path[:half], "") + "…" + strings.ToValidUTF8(path[len(path)-half:], "")
}

// brief returns an error of the file system with its paths cut to what a sentence can hold.
func brief(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path) && len(path.Path) > maxPathInMessage:
		return fmt.Errorf("%s %s: %w", path.Op, shortPath(path.Path), path.Err)
	case errors.As(err, &link) && len(link.Old)+len(link.New) > maxPathInMessage:
		return fmt.Errorf("%s %s %s: %w", link.Op, shortPath(link.Old), shortPath(link.New), link.Err)
	}
	return err
}
