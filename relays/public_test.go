package relays

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPublicHidesThePathsOfThisMachine(t *testing.T) {
	home, base := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	real, link := filepath.Join(base, "real work"), filepath.Join(base, "link")
	root := filepath.Join(link, "mine-123")
	if err := errors.Join(os.Mkdir(real, 0o755), os.Symlink(real, link), os.Mkdir(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(&Definition{Name: "mine"}, "", Settings{}, root)
	for text, want := range map[string]string{
		"cannot open " + p.dir + "/db: full":   "cannot open {dir}/db: full",
		p.dir:                                  "{dir}",
		"'" + root + "/relay.log'":             "'{dir}/../relay.log'",
		"its own " + real + "/mine-123/data/x": "its own {dir}/x",
		"file://" + strings.ReplaceAll(real, " ", "%20") + "/y": "file://{work}/y",
		link + "/other-9/data and " + link + ".":                "{work}/other-9/data and {work}.",
		home + "/.config of " + home:                            "~/.config of ~",
		"dir" + home + "/x " + home + "stead":                   "dir~/x " + home + "stead",
		"listening on " + host + ":80, not " + host + "s":       "listening on {host}:80, not " + host + "s",
		"nothing to hide":                                       "nothing to hide",
		root + "4/data":                                         "{work}/mine-1234/data",
	} {
		if got := p.Public(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	const text, want = "/tmp/x in /var/tmp/x, x/tmp and /tmpfs, /tmp", "{work}/x in /var/tmp/x, x/tmp and /tmpfs, {work}"
	if got := (hidden{"/tmp", "{work}"}).hide(text); got != want {
		t.Errorf("%q", got)
	}
}

func TestMessagesHoldNoEndlessPath(t *testing.T) {
	deep := strings.Repeat("/deep", 2000)
	for _, err := range []error{
		&fs.PathError{Op: "open", Path: deep, Err: fs.ErrPermission}, &os.LinkError{Op: "link", Old: deep, New: deep, Err: fs.ErrPermission},
	} {
		if short := brief(err); len(short.Error()) > 500 || !errors.Is(short, fs.ErrPermission) {
			t.Errorf("%d bytes: %v", len(short.Error()), short)
		}
	}
	if _, err := Start(t.Context(), helperDefinition(t, "good"), "", Settings{WorkDir: t.TempDir() + deep}); err == nil || len(err.Error()) > 500 {
		t.Errorf("a work folder that cannot be: %d bytes", len(err.Error()))
	}
}

func TestDiskOfWhatIsNoFolderIsAnError(t *testing.T) {
	t.Parallel()
	p := startHelper(t, "good", Settings{})
	if _, err := p.Disk(); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.RemoveAll(p.Dir()); err != nil {
		t.Fatal(err)
	}
	fails := func(what, want string) {
		t.Helper()
		disk, err := p.Disk()
		if err == nil || !strings.Contains(err.Error(), "cannot be measured: ") || !strings.Contains(err.Error(), want) || disk != (Disk{}) {
			t.Errorf("%s: %+v, %v", what, disk, err)
		}
	}
	fails("gone", "is gone")
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, p.Dir()); err != nil {
		t.Fatal(err)
	}
	fails("a symbolic link", "no longer a folder")
	_ = os.Remove(p.Dir())
	if err := os.WriteFile(p.Dir(), make([]byte, 1000), 0o644); err != nil {
		t.Fatal(err)
	}
	fails("a file", "no longer a folder")
	_ = os.Remove(p.Dir())
	_ = os.Mkdir(p.Dir(), 0o755)
	// A tree deeper than a path may be long.
	dir, err := os.OpenRoot(p.Dir())
	for range 30 {
		if err != nil {
			t.Fatal(err)
		}
		name := strings.Repeat("d", 200)
		_ = dir.Mkdir(name, 0o755)
		next, openErr := dir.OpenRoot(name)
		dir.Close()
		dir, err = next, openErr
	}
	dir.Close()
	if _, err := p.Disk(); err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "cannot be measured: ") {
		t.Errorf("a deep tree: %v", err)
	}
}
