package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The two files of a prepared corpus.
const (
	EventsFile   = "events.ndjson"
	ManifestFile = "manifest.json"
)

// ManifestFormat identifies the form of manifest.json and of the events file beside it.
const ManifestFormat = "relaybench/corpus/1"

// maxManifestBytes holds a count for each of the 65,536 kinds with room to spare.
const maxManifestBytes = 4 << 20

// ErrDamaged marks a corpus whose files are incomplete, changed, or not of relaybench's making.
var ErrDamaged = errors.New("damaged corpus")

// Manifest describes a prepared corpus: where it comes from, what was left out, and what it holds.
// It names no folder, user or machine, so that it may be published as it is.
type Manifest struct {
	Format string `json:"format"`
	Source string `json:"source"` // one line for people

	Generator        string         `json:"generator,omitempty"` // synthetic corpora only, with the next two
	GeneratorVersion int            `json:"generatorVersion,omitempty"`
	Spec             *SyntheticSpec `json:"spec,omitempty"`

	File       string `json:"file,omitempty"`       // base name of the file that was read
	FileSHA256 string `json:"fileSha256,omitempty"` // of its bytes as stored, compressed or not

	Rules   int             `json:"rules"` // version of the preparation rules
	Options ManifestOptions `json:"options"`

	Read       int            `json:"read"`       // event texts found in the source
	Dropped    map[string]int `json:"dropped"`    // by DropReason; every reason is listed
	OverLimit  int            `json:"overLimit"`  // events older than the newest --limit good ones: good themselves, or not looked at further
	Events     int            `json:"events"`     // events kept
	Bytes      int64          `json:"bytes"`      // length of the events file, one newline an event included
	Kinds      map[string]int `json:"kinds"`      // events by kind number
	OldestUnix int64          `json:"oldestUnix"` // first and last created_at, Unix seconds
	NewestUnix int64          `json:"newestUnix"`

	// FirstUnparseable is the first text that is no event, nil where every one is.
	FirstUnparseable *Failure `json:"firstUnparseable,omitempty"`
	// Undoubled counts the events kept whose backslashes psql's COPY had doubled, which was undone.
	Undoubled int `json:"undoubledBackslashes,omitempty"`

	// Checksum finds damage to the events file, see checksum.
	Checksum string `json:"checksum"`

	// Fingerprint is the sha256, in 64 hexadecimal digits, over the lower-case hexadecimal ids in
	// corpus order without separator.
	Fingerprint string `json:"fingerprint"`
}

// SyntheticSpec is what a synthetic corpus is generated from, see package synthetic.
type SyntheticSpec struct {
	Events   int    `json:"events"`   // how many, exactly
	Seed     uint64 `json:"seed"`     // another seed, another corpus of the same shape
	BaseTime int64  `json:"baseTime"` // Unix seconds; events lie in the 30 days before it, and none at or after it
}

// Failure says where a source has a text that is no event, and why it is none.
type Failure struct {
	Part string `json:"part,omitempty"` // name of the file within a tar archive: whoever packed it chose it
	Line int    `json:"line"`           // of the decompressed text, from 1
	Why  string `json:"why"`
}

func (f *Failure) String() string {
	part := ""
	if f.Part != "" {
		part = fmt.Sprintf("%.200q, ", f.Part)
	}
	return fmt.Sprintf("%sline %d: %s", part, f.Line, f.Why)
}

// ManifestOptions are the preparation's options with the defaults filled in.
type ManifestOptions struct {
	MaxEventBytes int  `json:"maxEventBytes"`
	MaxTags       int  `json:"maxTags"`
	Limit         int  `json:"limit"` // 0 is no limit
	KeepDeletions bool `json:"keepDeletions"`

	KeepControlCharacters bool `json:"keepControlCharacters"`
}

// ReadManifest reads the manifest of the prepared corpus in dir. The error is ErrDamaged where the
// file is not a manifest, and fs.ErrNotExist where there is none.
func ReadManifest(dir string) (*Manifest, error) {
	f, _, err := OpenRegular(filepath.Join(dir, ManifestFile))
	if errors.Is(err, ErrNotRegular) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the corpus manifest: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxManifestBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading the corpus manifest: %w", err)
	}
	m := new(Manifest)
	switch {
	case len(text) > maxManifestBytes:
		return nil, fmt.Errorf("%w: %s is over %d bytes", ErrDamaged, f.Name(), maxManifestBytes)
	case json.Unmarshal(text, m) != nil:
		return nil, fmt.Errorf("%w: %s is not a manifest", ErrDamaged, f.Name())
	case m.Format != ManifestFormat:
		return nil, fmt.Errorf("%w: %s has format %.40q, this relaybench reads %q", ErrDamaged, f.Name(), m.Format, ManifestFormat)
	}
	return m, nil
}

// SameOrigin reports whether both manifests are of the same source, prepared in the same way.
func (m *Manifest) SameOrigin(o *Manifest) bool {
	sameSpec := m.Spec == o.Spec || m.Spec != nil && o.Spec != nil && *m.Spec == *o.Spec
	return sameSpec && m.Generator == o.Generator && m.GeneratorVersion == o.GeneratorVersion &&
		m.FileSHA256 == o.FileSHA256 && m.Rules == o.Rules && m.Options == o.Options
}

func (m *Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the corpus manifest: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, ManifestFile), append(text, '\n'), 0o666); err != nil {
		return fmt.Errorf("writing the corpus manifest: %w", err)
	}
	return nil
}
