// Package prepare makes corpora: it reads dumps of any form, checks and sorts what is in them or
// what is generated, and keeps the result in a cache.
package prepare

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
)

// The defaults of Options, which are what strfry accepts unless configured otherwise.
const (
	DefaultMaxEventBytes = 65536
	DefaultMaxTags       = 2000
)

// MaxEventBytesCeiling is the largest Options.MaxEventBytes. No longer text is read.
const MaxEventBytesCeiling = 16 << 20

// MaxTagValueBytes is the longest element that a tag of a prepared event may have.
const MaxTagValueBytes = 1024

// rulesVersion is in the cache key: it rises when the same input gives something else.
const rulesVersion = 2

// ErrEmpty marks a source in which there is no event text at all, ErrAllDropped one of which
// nothing is left after preparation.
var (
	ErrEmpty      = errors.New("no events")
	ErrAllDropped = errors.New("every event was dropped")
)

// Options say which events of a source are kept. The zero value means the defaults.
type Options struct {
	MaxEventBytes int  // longest canonical JSON of one event in bytes; 0 is DefaultMaxEventBytes
	MaxTags       int  // most tags of one event; 0 is DefaultMaxTags
	Limit         int  // keep the newest so many; 0 keeps all
	KeepDeletions bool // keep kind 5 (NIP-09), whose effect on what is stored depends on the order of arrival
	// KeepControlCharacters keeps what DropControlCharacter is about.
	KeepControlCharacters bool

	// Spill is a folder for what preparation writes before it sorts, as much as it prepares; "" is
	// beside the result. Source is a line for people that says where the events of a file come
	// from; "" is the file's name. Neither bears on what is prepared.
	Spill, Source string
}

// filled checks the options and puts the defaults in.
func (o Options) filled() (Options, error) {
	switch {
	case o.MaxEventBytes < 0 || o.MaxEventBytes > MaxEventBytesCeiling:
		return o, fmt.Errorf("largest event of %d bytes: between 1 and %d is possible, 0 is the default of %d", o.MaxEventBytes, MaxEventBytesCeiling, DefaultMaxEventBytes)
	case o.MaxTags < 0:
		return o, fmt.Errorf("at most %d tags: a number from 1 is possible, 0 is the default of %d", o.MaxTags, DefaultMaxTags)
	case o.Limit < 0:
		return o, fmt.Errorf("limit of %d events: a number from 1 is possible, 0 keeps all", o.Limit)
	}
	o.MaxEventBytes, o.MaxTags = cmp.Or(o.MaxEventBytes, DefaultMaxEventBytes), cmp.Or(o.MaxTags, DefaultMaxTags)
	return o, nil
}

// DropReason says why preparation left an event out. Its String is a stable key in records.
type DropReason uint8

// The reasons, in the order in which they are looked for. The first that applies counts.
const (
	Kept            DropReason = iota // it was not left out
	DropUnparseable                   // no JSON object with the fields of NIP-01, or over 16 MiB of text
	DropDuplicate                     // the same event as an earlier one, or its id with another valid signature
	DropNoSignature                   // sig is absent or not 128 hexadecimal digits, as in a NIP-59 rumor
	DropDeletion                      // kind 5 (NIP-09)
	DropEphemeral                     // kind 20000–29999: relays do not store them (NIP-01)
	DropTooManyTags                   // over Options.MaxTags
	DropTagValue                      // a tag's element over MaxTagValueBytes
	DropTooLarge                      // over Options.MaxEventBytes
	// DropControlCharacter is a character below U+0020 but for \n, \r, \t, \b and \f, or U+007F, in
	// the content or in a tag. NIP-01 escapes seven characters and wants all others verbatim, which
	// JSON forbids for these but the last: implementations hash them in different ways, and so take
	// each other's events for forged.
	DropControlCharacter
	DropBadID        // id is not the hash of the event
	DropBadSignature // the signature does not verify
	dropReasons
)

var dropNames = [dropReasons]string{
	"kept", "unparseable", "duplicate", "no_signature", "deletion", "ephemeral", "too_many_tags", "tag_value_too_long", "too_large", "control_character", "bad_id", "bad_signature",
}

// String returns the reason's key, such as "bad_signature".
func (r DropReason) String() string {
	if r >= dropReasons {
		return "unknown"
	}
	return dropNames[r]
}

// DropReasons returns all reasons in the order in which they are looked for.
func DropReasons() []DropReason {
	reasons := make([]DropReason, 0, dropReasons-1)
	for r := DropUnparseable; r < dropReasons; r++ {
		reasons = append(reasons, r)
	}
	return reasons
}

type dropCounts [dropReasons]int

// summary lists the reasons that occurred, for people.
func (d dropCounts) summary() string {
	var parts []string
	for _, r := range DropReasons() {
		if d[r] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", d[r], r))
		}
	}
	return strings.Join(parts, ", ")
}

// Drop applies the rules that need neither hash nor signature: all that preparation has for an
// event that is verified. line is its canonical JSON.
func (o *Options) Drop(e *corpus.Event, line []byte) DropReason {
	tagged := func(is func(element string) bool) bool {
		return slices.ContainsFunc(e.Tags, func(t corpus.Tag) bool { return slices.ContainsFunc(t, is) })
	}
	switch {
	case e.Kind == corpus.KindDeletion && !o.KeepDeletions:
		return DropDeletion
	case corpus.IsEphemeral(e.Kind):
		return DropEphemeral
	case len(e.Tags) > cmp.Or(o.MaxTags, DefaultMaxTags):
		return DropTooManyTags
	case tagged(func(element string) bool { return len(element) > MaxTagValueBytes }):
		return DropTagValue
	case len(line) > cmp.Or(o.MaxEventBytes, DefaultMaxEventBytes):
		return DropTooLarge
	case !o.KeepControlCharacters && (hasControl(e.Content) || tagged(hasControl)):
		return DropControlCharacter
	}
	return Kept
}

// hasControl looks for what DropControlCharacter is about.
func hasControl(text string) bool {
	for _, c := range []byte(text) {
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\b' && c != '\f' || c == 0x7f {
			return true
		}
	}
	return false
}

// File prepares the events of a file: JSON events in any sequence, one a line or not, in
// arrays, in relays' messages or around {"events":[…]}, as psql's COPY writes them or as RFC 7464
// does, or a tar archive of such files, plain or compressed with gzip or zstd. The result is kept
// in cacheDir under a key of the file's sha256 and the options, and opened from there the next
// time. The error is ErrEmpty, ErrAllDropped, or a *SourceError for a file that cannot be read to
// its end. Nothing is left behind on an error.
func File(ctx context.Context, path string, o Options, cacheDir string, p corpus.Progress) (*corpus.Corpus, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	src, err := openSource(path)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	sum, err := src.hash(ctx, p)
	if err != nil {
		return nil, err
	}
	name := filepath.Base(path)
	m := corpus.Manifest{Source: cmp.Or(o.Source, "file "+name), File: name, FileSHA256: sum}
	return prepareCached(ctx, path, "file", sum, m, o, cacheDir, p, func(sorted *sorter, m *corpus.Manifest) (dropCounts, error) {
		done, err := runPipeline(ctx, src, &o, sorted, floorLag, p)
		if err == nil {
			err = src.unchanged()
		}
		if err == nil && done.read == 0 {
			err = fmt.Errorf("%s: %w: there is only white space or an empty list in it", path, ErrEmpty)
		}
		m.Read, m.OverLimit, m.Undoubled, m.FirstUnparseable = done.read, done.tooOld, done.copied, done.first
		return done.drops, err
	})
}

// Synthetic generates the corpus of spec and applies the preparation's rules to it. Signatures,
// which it has just made, are not checked. The result is kept in cacheDir under a key of generator,
// version, spec and options, and opened from there the next time. Nothing is left behind on an
// error.
func Synthetic(ctx context.Context, spec synthetic.Spec, o Options, cacheDir string, p corpus.Progress) (*corpus.Corpus, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	m := corpus.Manifest{
		Source:    fmt.Sprintf("synthetic: %s %d, %d events, seed %d, base time %d", synthetic.Name, synthetic.Version, spec.Events, spec.Seed, spec.BaseTime),
		Generator: synthetic.Name, GeneratorVersion: synthetic.Version, Spec: (*corpus.SyntheticSpec)(&spec),
	}
	identity := []any{synthetic.Name, synthetic.Version, spec}
	return prepareCached(ctx, "the synthetic corpus", "synthetic", identity, m, o, cacheDir, p, func(sorted *sorter, m *corpus.Manifest) (drops dropCounts, err error) {
		var line []byte
		err = spec.Generate(ctx, p, func(e *corpus.Event) error {
			m.Read++
			line = e.AppendJSON(line[:0])
			if reason := o.Drop(e, line); reason != Kept {
				drops[reason]++
				return nil
			}
			return sorted.add(e.CreatedAt, &e.ID, uint16(e.Kind), line)
		})
		if err != nil {
			err = fmt.Errorf("generating the synthetic corpus: %w", err)
		}
		return drops, err
	})
}

// prepareCached opens what the cache holds of the source that errors call by name. Where that is
// nothing, fill gives the good events to a sorter and says in the manifest and the counts what
// became of the others.
func prepareCached(ctx context.Context, name, kind string, identity any, m corpus.Manifest, o Options, cacheDir string, p corpus.Progress,
	fill func(*sorter, *corpus.Manifest) (dropCounts, error)) (*corpus.Corpus, error) {
	m.Format, m.Rules = corpus.ManifestFormat, rulesVersion
	m.Options = corpus.ManifestOptions{MaxEventBytes: o.MaxEventBytes, MaxTags: o.MaxTags, Limit: o.Limit, KeepDeletions: o.KeepDeletions,
		KeepControlCharacters: o.KeepControlCharacters}
	text, err := json.Marshal([]any{m.Format, m.Rules, kind, identity, m.Options})
	if err != nil {
		return nil, fmt.Errorf("naming the prepared corpus: %w", err)
	}
	key := sha256.Sum256(text) // over all that decides the content
	return cached(ctx, cacheDir, kind+"-"+hex.EncodeToString(key[:20]), &m, p, func(dir string) error {
		sorted := newSorter(cmp.Or(o.Spill, dir))
		defer sorted.close()
		m := m
		drops, err := fill(sorted, &m)
		if err != nil {
			return err
		}
		if sorted.added == 0 {
			err := fmt.Errorf("%s: %w (%s): none of its %d events can be used", name, ErrAllDropped, drops.summary(), m.Read)
			if first := m.FirstUnparseable; first != nil {
				err = fmt.Errorf("%w; the first that is unparseable is in %s", err, first)
			}
			return err
		}
		return writeSorted(ctx, sorted, o.Limit, m, drops, dir, p)
	})
}

// writeSorted writes what the sorter holds, with the manifest.
func writeSorted(ctx context.Context, sorted *sorter, limit int, m corpus.Manifest, drops dropCounts, dir string, p corpus.Progress) error {
	out, err := corpus.NewWriter(dir)
	if err != nil {
		return err
	}
	defer out.Close()
	written := 0
	over, err := sorted.each(ctx, limit, func(r *sortEntry, line []byte) error {
		if written++; written%4096 == 0 {
			p.Report("write", int64(written), int64(sorted.added))
		}
		return out.Add(corpus.Entry{ID: r.id, CreatedAt: r.createdAt, Kind: r.kind}, line)
	})
	if err != nil {
		return fmt.Errorf("writing the prepared corpus: %w", err)
	}
	p.Report("write", int64(written), int64(written))
	drops[DropDuplicate] += sorted.duplicates
	m.OverLimit += over
	m.Dropped = make(map[string]int, dropReasons-1)
	for _, r := range DropReasons() {
		m.Dropped[r.String()] = drops[r]
	}
	return out.Finish(m)
}
