package corpus

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"syscall"
)

// Entry is what the index has of one event. Offset and Length bound its line, without the newline.
type Entry struct {
	ID        ID
	PubKey    PubKey
	CreatedAt int64 // Unix seconds
	Offset    int64
	Length    uint32
	Kind      uint16
}

// Corpus is a prepared corpus: canonical NDJSON in corpus order (created_at ascending, then id
// ascending), mapped into memory from a copy of its own, with an index of 88 bytes an event.
// Everything but Close is safe for concurrent use.
type Corpus struct {
	dir      string
	manifest *Manifest
	text     []byte
	mapped   bool // text is an mmap, not Go memory
	entries  []Entry
	checksum string // of text, where mapped

	findOnce sync.Once
	slots    []uint32 // open addressing over entries: index+1, 0 is free
}

// Open maps the prepared corpus in dir and builds its index. Every line's form, the order, the
// file's checksum and all of the manifest's figures are checked, the fingerprint among them; hashes
// and signatures are not (see Verify). The error is ErrDamaged if anything is amiss, and
// fs.ErrNotExist if there is no corpus in dir. The caller closes the Corpus.
func Open(dir string) (*Corpus, error) {
	c, err := load(dir)
	if err != nil {
		return nil, err
	}
	if err := c.checkManifest(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// load maps and indexes the corpus without comparing its lines with the manifest.
func load(dir string) (*Corpus, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, EventsFile)
	text, err := mapFile(name, m.Bytes)
	if err != nil {
		return nil, err
	}
	c := &Corpus{dir: dir, manifest: m, text: text, mapped: true}
	if c.entries, c.checksum, err = indexLines(text, forget); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s: %w", ErrDamaged, name, err), c.Close())
	}
	return c, nil
}

// mapFile maps a private copy of a file that must be exactly size bytes long. Whoever cuts a mapped
// file short kills all who read the mapping, and whoever writes to it changes what they read:
// nobody has a name for the copy.
func mapFile(name string, size int64) ([]byte, error) {
	f, info, err := OpenRegular(name)
	if errors.Is(err, ErrNotRegular) {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, fmt.Errorf("opening the corpus: %w", err)
	}
	defer f.Close()
	switch {
	case info.Size() != size:
		return nil, fmt.Errorf("%w: %s is %d bytes long where its manifest says %d", ErrDamaged, name, info.Size(), size)
	case size == 0:
		return nil, fmt.Errorf("%w: %s is empty", ErrDamaged, name)
	}
	private, err := copyOf(f, size)
	if err != nil {
		return nil, err
	}
	defer private.Close()
	text, err := syscall.Mmap(int(private.Fd()), 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s into memory: %w", name, err)
	}
	return text, nil
}

// LargeFile is from how many bytes on an events file is worth the time that it takes to write it to
// the disk before somebody measures, and to give memory back before it is indexed.
const LargeFile = 128 << 20

// copyOf returns a copy that has no name, beside the file, where file systems that can share its
// blocks, or else in the system's temporary folder. A large one is on the disk when it is returned,
// so that nothing of it is written while somebody measures.
func copyOf(f *os.File, size int64) (private *os.File, err error) {
	for _, dir := range []string{filepath.Dir(f.Name()), os.TempDir()} {
		if private, err = os.CreateTemp(dir, ".reading-*"); err != nil {
			continue
		}
		var n int64
		if err = os.Remove(private.Name()); err == nil {
			_, err = f.Seek(0, io.SeekStart)
		}
		if err == nil {
			n, err = io.Copy(private, io.LimitReader(f, size)) // which lets the system share blocks
		}
		if err == nil && size >= LargeFile {
			err = private.Sync()
		}
		if err == nil && n == size {
			return private, nil
		}
		private.Close()
		if err == nil {
			return nil, fmt.Errorf("%w: %s became shorter while it was read", ErrDamaged, f.Name())
		}
	}
	return nil, fmt.Errorf("copying the corpus, of %d bytes, so that nothing changes it while it is read: %w", size, err)
}

func (c *Corpus) checkManifest() error {
	t := newSummary()
	for i := range c.entries {
		t.add(&c.entries[i])
	}
	got := *c.manifest
	t.fill(&got)
	got.Checksum = c.checksum
	m := c.manifest
	read := m.Events + m.OverLimit // and what was left out
	for _, n := range m.Dropped {
		read += n
	}
	for _, figure := range []struct {
		name      string
		got, want any
	}{
		{"events", got.Events, m.Events},
		{"bytes", got.Bytes, m.Bytes},
		{"fingerprint", got.Fingerprint, m.Fingerprint},
		{"kinds", got.Kinds, m.Kinds},
		{"oldest created_at", got.OldestUnix, m.OldestUnix},
		{"newest created_at", got.NewestUnix, m.NewestUnix},
		{"checksum", got.Checksum, m.Checksum},
		{"events and what was left out", read, m.Read},
	} {
		if !reflect.DeepEqual(figure.got, figure.want) {
			return fmt.Errorf("%w: %s: %s of the file: %v, of its manifest: %v", ErrDamaged, c.dir, figure.name, figure.got, figure.want)
		}
	}
	return nil
}

// FromEvents makes a corpus in memory of events, put into corpus order. Ids and signatures are
// taken as they are. It fails on two events with one id.
func FromEvents(events []Event) (*Corpus, error) {
	order := make([]*Event, len(events))
	for i := range events {
		order[i] = &events[i]
	}
	slices.SortFunc(order, func(a, b *Event) int {
		return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	c := &Corpus{entries: make([]Entry, 0, len(events))}
	t := newSummary()
	for i, e := range order {
		if i > 0 && order[i-1].ID == e.ID {
			return nil, fmt.Errorf("two events with id %s", e.ID)
		}
		start := len(c.text)
		c.text = e.AppendJSON(c.text)
		entry := Entry{e.ID, e.PubKey, e.CreatedAt, int64(start), uint32(len(c.text) - start), uint16(e.Kind)}
		c.entries = append(c.entries, entry)
		c.text = append(c.text, '\n')
		t.add(&entry)
	}
	c.manifest = &Manifest{Format: ManifestFormat, Source: "events in memory", Read: len(events)}
	t.fill(c.manifest)
	return c, nil
}

// Len returns the number of events, none of a nil corpus.
func (c *Corpus) Len() int {
	if c == nil {
		return 0
	}
	return len(c.entries)
}

// Raw returns event i's canonical JSON without newline. It points into the corpus: it must not be
// changed, nor used after Close.
func (c *Corpus) Raw(i int) []byte {
	e := &c.entries[i]
	end := e.Offset + int64(e.Length)
	return c.text[e.Offset:end:end]
}

// Text returns all events in corpus order, each with its newline. It must not be changed.
func (c *Corpus) Text() []byte { return c.text }

// Entry returns the index's record of event i, which must not be changed.
func (c *Corpus) Entry(i int) *Entry { return &c.entries[i] }

// Event parses event i. The result shares no memory with the corpus.
func (c *Corpus) Event(i int) (Event, error) {
	e, err := ParseEvent(c.Raw(i))
	if err != nil {
		return Event{}, fmt.Errorf("event %d of the corpus: %w", i, err)
	}
	return e, nil
}

// Manifest returns what is known of the corpus as a whole. It must not be changed.
func (c *Corpus) Manifest() *Manifest { return c.manifest }

// Dir returns the folder that the corpus was opened from, "" for one in memory.
func (c *Corpus) Dir() string { return c.dir }

// Forget gives back the memory that holds the events' text where that is a file: most of what a
// large corpus takes, once all of it has been read. Whoever reads it again gets it from the
// system's cache of the file. A nil corpus has nothing to forget.
func (c *Corpus) Forget() {
	if c != nil && c.mapped {
		forget(c.text)
	}
}

// ForgetPart is Forget for the events from lo up to hi.
func (c *Corpus) ForgetPart(lo, hi int) {
	if c.mapped && lo < hi {
		last := &c.entries[hi-1]
		forget(c.text[c.entries[lo].Offset : last.Offset+int64(last.Length)])
	}
}

// Close unmaps the corpus, with all that Raw returned. A second call does nothing.
func (c *Corpus) Close() error {
	text := c.text
	c.text, c.entries = nil, nil
	if !c.mapped || text == nil {
		return nil
	}
	if err := syscall.Munmap(text); err != nil {
		return fmt.Errorf("unmapping the corpus: %w", err)
	}
	return nil
}

// Find returns the index of the event with this id. The first call builds a hash table of at most 8
// bytes an event; every call after that takes constant time.
func (c *Corpus) Find(id ID) (i int, ok bool) {
	c.findOnce.Do(c.buildSlots)
	mask := uint64(len(c.slots) - 1)
	for at := idHash(&id) & mask; c.slots[at] != 0; at = (at + 1) & mask {
		if i := int(c.slots[at] - 1); c.entries[i].ID == id {
			return i, true
		}
	}
	return 0, false
}

func (c *Corpus) buildSlots() {
	size := 2
	for 2*size < 3*len(c.entries) {
		size *= 2
	}
	c.slots = make([]uint32, size)
	mask := uint64(size - 1)
	for i := range c.entries {
		at := idHash(&c.entries[i].ID) & mask
		for c.slots[at] != 0 {
			at = (at + 1) & mask
		}
		c.slots[at] = uint32(i + 1)
	}
}

// idHash mixes all of an id: in a corpus ids are hashes, but callers look for any bytes.
func idHash(id *ID) uint64 {
	var h uint64
	for i := 0; i < len(id); i += 8 {
		h = (h ^ binary.LittleEndian.Uint64(id[i:])) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}
