package download

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
)

const (
	checkpointFormat = "relaybench/download/1"
	checkpointFile   = "checkpoint.json"
	eventsFile       = "events.ndjson"
)

// ErrDamaged: what an earlier run left of a download cannot be continued.
var ErrDamaged = errors.New("damaged download")

// checkpoint says how far a download is. What it says is on disk before it is.
type checkpoint struct {
	Format   string       `json:"format"`
	Identity identity     `json:"identity"`
	Began    int64        `json:"began"`    // Unix seconds, as all times here
	Until    int64        `json:"until"`    // the newest time asked for
	Finished int64        `json:"finished"` // 0: not yet
	Bytes    int64        `json:"bytes"`    // of the events file that are valid
	Events   int64        `json:"events"`   // in them
	Relays   []RelayState `json:"relays"`   // in the order of the URLs
}

// identity is what makes two downloads the same: who asks for the same gets the one that is there.
type identity struct {
	URLs          []string `json:"urls"`
	Since         *int64   `json:"since"`
	Until         *int64   `json:"until"` // nil: when it began
	Limit         int      `json:"limit"`
	MaxEventBytes int      `json:"maxEventBytes"`
	MaxTags       int      `json:"maxTags"`
	KeepDeletions bool     `json:"keepDeletions"`

	// KeepControlCharacters is left out where it is not set, so that downloads from before it was
	// there are known again: what they hold is prepared by today's rules.
	KeepControlCharacters bool `json:"keepControlCharacters,omitempty"`
}

// RelayState is how far one relay is.
type RelayState struct {
	URL     string  `json:"url"`
	Next    int64   `json:"next"` // Unix seconds, where its next page begins: all that is newer has come
	Outcome Outcome `json:"outcome"`
	Failure string  `json:"failure,omitempty"` // why it has failed; a relay may have written some of it, which is quoted then
	Counts
}

// Outcome is how a relay's part ended.
type Outcome string

// The outcomes.
const (
	Pending Outcome = ""       // it goes on
	All     Outcome = "all"    // the relay says that it has no more
	Enough  Outcome = "enough" // it has no more that are wanted: what it would send next is older than all that are
	Failed  Outcome = "failed" // it was given up
)

// Counts are what came of one relay.
type Counts struct {
	Received     int64 `json:"received"`     // events that it sent, each page counted by itself
	New          int64 `json:"new"`          // kept, and from no other relay before
	LeftOut      int64 `json:"leftOut"`      // genuine, and not for a corpus: see prepare.Options
	Malformed    int64 `json:"malformed"`    // no events
	BadID        int64 `json:"badId"`        // events whose id is not their hash
	BadSignature int64 `json:"badSignature"` // events with a signature that is not their author's
	Truncated    int64 `json:"stepped"`      // seconds that may hold more events than the relay sends at once
}

// Refused is how many events were forged or malformed.
func (c *Counts) Refused() int64 { return c.Malformed + c.BadID + c.BadSignature }

func (c *Counts) add(o *Counts) {
	c.Received += o.Received
	c.New += o.New
	c.LeftOut += o.LeftOut
	c.Malformed += o.Malformed
	c.BadID += o.BadID
	c.BadSignature += o.BadSignature
	c.Truncated += o.Truncated
}

// readCheckpoint returns nil where there is none.
func readCheckpoint(dir string, of *identity) (*checkpoint, error) {
	name := filepath.Join(dir, checkpointFile)
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading where a download stopped: %w", err)
	}
	c := new(checkpoint)
	if json.Unmarshal(text, c) != nil || c.Format != checkpointFormat || !reflect.DeepEqual(&c.Identity, of) ||
		c.Bytes < 0 || c.Events < 0 || len(c.Relays) != len(of.URLs) {
		return nil, fmt.Errorf("%w: %s is not a checkpoint of it", ErrDamaged, name)
	}
	return c, nil
}

// write replaces the checkpoint in one step. The folder is not synced: should the machine stop, the
// checkpoint before is as good.
func (c *checkpoint) write(dir string) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, checkpointFile)
	f, err := os.Create(name + ".new")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // which it no longer has once it is in place
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

// events is the file that events go to as they come: canonical NDJSON, only appended to.
type events struct {
	file  *os.File
	w     *bufio.Writer
	bytes int64 // written, buffered ones included
}

const eventsBuffer = 1 << 20

// openEvents cuts off what came after the checkpoint, and calls each for every event before it.
func openEvents(name string, valid int64, each func(*corpus.Entry)) (*events, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular() || info.Size() < valid:
		err = fmt.Errorf("%w: %s is no file of %d bytes", ErrDamaged, name, valid)
	default:
		if err = f.Truncate(valid); err == nil {
			err = readEvents(f, valid, each)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &events{f, bufio.NewWriterSize(f, eventsBuffer), valid}, nil
}

// readEvents goes through the file of so many bytes to its end.
func readEvents(f *os.File, size int64, each func(*corpus.Entry)) error {
	lines := bufio.NewScanner(f)
	lines.Buffer(make([]byte, eventsBuffer), prepare.MaxEventBytesCeiling+2)
	var e corpus.Entry
	read := int64(0)
	var err error
	for err == nil && lines.Scan() {
		if err = e.Read(lines.Bytes()); err == nil {
			read += int64(e.Length) + 1
			each(&e)
		}
	}
	if err = errors.Join(err, lines.Err()); err == nil && read != size {
		err = errors.New("the last line has no end")
	}
	if err != nil {
		return fmt.Errorf("%w: %s, behind byte %d: %w", ErrDamaged, f.Name(), read, err)
	}
	return nil
}

// add appends an event.
func (s *events) add(line []byte) error {
	s.bytes += int64(len(line)) + 1
	_, _ = s.w.Write(line) // an error comes back from whatever is written next
	return s.w.WriteByte('\n')
}

// sync puts all that was added on the disk.
func (s *events) sync() error {
	if err := s.w.Flush(); err != nil {
		return err
	}
	return s.file.Sync()
}
