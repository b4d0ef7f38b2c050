package relays

import (
	"embed"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed catalog/*.toml
var embedded embed.FS

// maxDefinitionBytes is far above any definition; a file beyond it is something else.
const maxDefinitionBytes = 1 << 20

// Catalog returns the relays that are known out of the box, variants included, ordered by file and
// then as written.
func Catalog() ([]Definition, error) {
	dir, err := fs.Sub(embedded, "catalog")
	if err != nil {
		return nil, err
	}
	return load(dir, "catalog/")
}

// LoadDir returns the relays that the *.toml files of a folder define, in the order of their file
// names. A missing folder, an unknown key and a name defined twice are errors that name the file.
func LoadDir(dir string) ([]Definition, error) {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is a file", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("folder of relay definitions: %w", err)
	}
	return load(os.DirFS(dir), dir+string(filepath.Separator))
}

func load(dir fs.FS, prefix string) (all []Definition, err error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, fmt.Errorf("reading relay definitions: %w", err)
	}
	origin := map[string]string{}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() || !strings.HasSuffix(name, ".toml") {
			continue
		}
		text, err := readCapped(dir, name)
		if err != nil {
			return nil, fmt.Errorf("%s%s: %w", prefix, name, err)
		}
		some, err := parse(prefix+name, text)
		if err != nil {
			return nil, err
		}
		for _, d := range some {
			if first, twice := origin[d.Name]; twice {
				return nil, fmt.Errorf("%s: relay %s is already defined in %s", d.origin, d.Name, first)
			}
			origin[d.Name] = d.origin
		}
		all = append(all, some...)
	}
	return all, nil
}

func readCapped(dir fs.FS, name string) (string, error) {
	f, err := dir.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxDefinitionBytes+1))
	if err == nil && len(text) > maxDefinitionBytes {
		err = fmt.Errorf("over %d bytes: no relay definition is that long", maxDefinitionBytes)
	}
	return string(text), err
}
