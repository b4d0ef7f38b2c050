package download

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	checkpointFormat = "relaybench/download/1"
	checkpointFile   = "checkpoint.json"
	eventsFile       = "events.ndjson"
	maxCheckpoint    = 1 << 20
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
	Relays   []relayState `json:"relays"`   // in the order of the URLs
}

// relayState is how far one relay is.
type relayState struct {
	URL     string  `json:"url"`
	Next    int64   `json:"next"` // where its next page begins: all that is newer has come
	Outcome Outcome `json:"outcome"`
	Failure string  `json:"failure,omitempty"` // why it has failed
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
	f, err := os.Open(filepath.Join(dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading where a download stopped: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCheckpoint+1))
	if err != nil {
		return nil, fmt.Errorf("reading where a download stopped: %w", err)
	}
	c := new(checkpoint)
	if len(text) > maxCheckpoint || json.Unmarshal(text, c) != nil || c.Format != checkpointFormat || !c.Identity.equal(of) ||
		c.Bytes < 0 || c.Events < 0 || len(c.Relays) != len(of.URLs) {
		return nil, fmt.Errorf("%w: %s is not a checkpoint of it", ErrDamaged, f.Name())
	}
	for i := range c.Relays {
		if c.Relays[i].URL != of.URLs[i] {
			return nil, fmt.Errorf("%w: %s is of other relays", ErrDamaged, f.Name())
		}
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
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		return errors.Join(err, removed(name+".new"))
	}
	return nil
}

// removed removes a file that may not be there.
func removed(name string) error {
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
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

func (i *identity) text() []byte {
	text, err := json.Marshal([]any{checkpointFormat, i})
	if err != nil {
		panic("download: an identity that JSON cannot hold: " + err.Error()) // it is of strings, numbers and flags
	}
	return text
}

func (i *identity) equal(o *identity) bool { return bytes.Equal(i.text(), o.text()) }
