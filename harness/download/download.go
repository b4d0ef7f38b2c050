// Package download gets a corpus from relays that run somewhere: the newest events that one or
// several of them hold, into a file for prepare.File. It stands beside the other users of
// relays/client and harness/receive, since it asks relays and checks what they send, and above
// corpus, which knows no relay.
//
// Each relay is paged newest first by itself (see client.Pages). What it sends is verified before
// anything else is done with it, so that a forged event cannot keep out the real one whose id it
// has; then it is kept if preparation would keep it and no relay has sent it before. A relay is
// done when it has no more, or when what it would send next is older than all the events that are
// wanted: so the result is the newest events of all relays together, however fast each of them is
// and however often the download was interrupted.
//
// After every page the events are flushed to disk, and then a checkpoint that says how far each
// relay is and how many bytes of the file are valid replaces the one before. A download that was
// killed at any moment goes on from its checkpoint: the file is cut to that length, and what had
// come after it is asked for again. Memory does not grow with events but for their ids (see
// receive.Key) and, where there is a limit, their times.
package download

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/harness/receive"
)

// The defaults of Options.
const (
	DefaultInterval = 200 * time.Millisecond
	DefaultMaxBytes = 16 << 30
	defaultStall    = 30 * time.Second
	defaultAttempts = 5
	defaultBackoff  = time.Second
	defaultConfirm  = time.Second
)

// Options say what to download. URLs and a Limit or Since are what a caller thinks about; zero
// values of the others stand for their defaults.
type Options struct {
	URLs         []string // without user names, queries and fragments: they are published
	Since, Until *int64   // Unix seconds, inclusive; without Until, up to when the download began
	Limit        int      // the newest so many events of all relays together; 0: all
	// Prepare says which events preparation will keep, its Limit aside. Others are not stored.
	Prepare  prepare.Options
	MaxBytes int64         // the most that is stored; DefaultMaxBytes
	Interval time.Duration // the least time between two REQs to one relay; DefaultInterval, none where negative
	Stall    time.Duration // without progress for so long, a connection is given up; 30 s
	Attempts int           // how often a relay may bring nothing in a row before it is given up; 5
	Backoff  time.Duration // the first pause before a new attempt, doubled each time up to a minute; 1 s
	Confirm  time.Duration // before an answer without events is taken for the end; 1 s
	Fresh    bool          // forget what there is of this download
	// Note is told, in one line each, what people should know: of relays that fail, say. What a
	// relay wrote in it is quoted. Watch is told four times a second how far everything is. Wait
	// reports while another process does the same download. Each may be nil.
	Note  func(line string)
	Watch func(Status)
	Wait  corpus.Progress

	mostOfAnswer int // tests lower it
}

// Result is a finished download.
type Result struct {
	File   string // of the events, as NDJSON in canonical form, in the order in which they came
	Source string // one line for people and manifests
	Events int64
	Began  time.Time
	// Finished is when: long ago where Reused says that this is a download of an earlier run.
	Finished time.Time
	Reused   bool
	Relays   []RelayStatus
}

// Failures lists the relays that were given up.
func (r *Result) Failures() (failed []RelayStatus) {
	for _, s := range r.Relays {
		if s.Outcome == Failed {
			failed = append(failed, s)
		}
	}
	return failed
}

// download is one on its way.
type download struct {
	o      *Options
	dir    string
	cancel context.CancelCauseFunc // with an error, ends everything
	known  *prepare.Seen           // ids of all events that are kept, and of what is left out
	relays []*relay

	mu     sync.Mutex // of all below, and of the relays' states
	state  *checkpoint
	events *events
	newest newest
	line   []byte
}

// Run downloads, goes on with a download that was interrupted, or returns the one that is there. A
// relay that fails does not end it as long as another comes to its end; if none does, the error
// says why each failed. After any error the same call goes on where it stopped, but for ErrDamaged,
// after which only Fresh helps.
func Run(ctx context.Context, cacheDir string, o Options) (*Result, error) {
	o.fill()
	of := o.identity()
	text, err := json.Marshal([]any{checkpointFormat, of})
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	d := &download{o: &o, dir: filepath.Join(cacheDir, "downloads", hex.EncodeToString(sum[:20])), known: prepare.NewSeen(), newest: newest{want: o.Limit}}
	if err := os.MkdirAll(filepath.Dir(d.dir), 0o777); err != nil {
		return nil, fmt.Errorf("creating the folder for downloads: %w", err)
	}
	unlock, err := prepare.Lock(ctx, d.dir+".lock", o.Wait)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := d.open(of); err != nil {
		return nil, d.explain(err)
	}
	if d.state.Finished > 0 {
		return d.result(true), nil
	}
	defer d.events.file.Close()
	return d.run(ctx)
}

func (o *Options) fill() {
	o.MaxBytes, o.Interval = cmp.Or(o.MaxBytes, DefaultMaxBytes), max(0, cmp.Or(o.Interval, DefaultInterval))
	o.Stall, o.Attempts = cmp.Or(o.Stall, defaultStall), cmp.Or(o.Attempts, defaultAttempts)
	o.Backoff, o.Confirm = cmp.Or(o.Backoff, defaultBackoff), cmp.Or(o.Confirm, defaultConfirm)
	o.mostOfAnswer = cmp.Or(o.mostOfAnswer, mostOfAnswer)
	o.Prepare.MaxEventBytes = cmp.Or(o.Prepare.MaxEventBytes, prepare.DefaultMaxEventBytes)
	o.Prepare.MaxTags = cmp.Or(o.Prepare.MaxTags, prepare.DefaultMaxTags)
	if o.Note == nil {
		o.Note = func(string) {}
	}
}

func (o *Options) identity() *identity {
	return &identity{URLs: o.URLs, Since: o.Since, Until: o.Until, Limit: o.Limit,
		MaxEventBytes: o.Prepare.MaxEventBytes, MaxTags: o.Prepare.MaxTags, KeepDeletions: o.Prepare.KeepDeletions,
		KeepControlCharacters: o.Prepare.KeepControlCharacters}
}

// open reads how far the download is, or begins it.
func (d *download) open(of *identity) (err error) {
	if d.o.Fresh {
		if err := os.RemoveAll(d.dir); err != nil {
			return err
		}
	}
	if d.state, err = readCheckpoint(d.dir, of); err != nil {
		return err
	}
	if d.state != nil && d.state.Finished > 0 && d.state.Events == 0 {
		d.state = nil // nothing came that could be used again: there may be something now
	}
	begin := d.state == nil
	if begin {
		now := time.Now().Unix()
		d.state = &checkpoint{Format: checkpointFormat, Identity: *of, Began: now, Until: now}
		if of.Until != nil {
			d.state.Until = *of.Until
		}
		for _, url := range of.URLs {
			d.state.Relays = append(d.state.Relays, RelayState{URL: url, Next: d.state.Until})
		}
		if err := os.MkdirAll(d.dir, 0o777); err != nil {
			return err
		}
	}
	for i := range d.state.Relays {
		state := &d.state.Relays[i]
		d.relays = append(d.relays, &relay{download: d, state: state, began: time.Now(), from: *state, before: d.state.Events})
	}
	name := filepath.Join(d.dir, eventsFile)
	if d.state.Finished > 0 {
		info, err := os.Stat(name)
		if err != nil || info.Size() != d.state.Bytes {
			return fmt.Errorf("%w: %s is not there or not of %d bytes", ErrDamaged, name, d.state.Bytes)
		}
		return nil
	}
	found, repeated := int64(0), int64(0)
	d.events, err = openEvents(name, d.state.Bytes, func(e *corpus.Entry) {
		found++
		if !d.known.Add(receive.Key(&e.ID)) {
			repeated++
		}
		d.newest.add(e.CreatedAt)
	})
	switch {
	case err != nil:
		return err
	case found != d.state.Events || repeated > 0:
		d.events.file.Close()
		return fmt.Errorf("%w: %d events are in %s, %d of them twice, where %d should be", ErrDamaged, found, name, repeated, d.state.Events)
	case begin:
		return d.save()
	}
	for _, r := range d.relays {
		if r.state.Outcome == Failed {
			r.state.Outcome, r.state.Failure = Pending, "" // another day
		}
	}
	d.note("going on with the download of %s: %d events are there", day(d.state.Began), d.state.Events)
	return nil
}

// run asks every relay that has more to say.
func (d *download) run(asked context.Context) (*Result, error) {
	ctx, cancel := context.WithCancelCause(asked)
	defer cancel(nil)
	d.cancel = cancel
	stop := d.watch()
	var all sync.WaitGroup
	for _, r := range d.relays {
		if r.state.Outcome == Pending {
			all.Go(func() { r.run(ctx) })
		}
	}
	all.Wait()
	stop()
	d.mu.Lock()
	defer d.mu.Unlock()
	err := context.Cause(ctx)
	switch {
	case asked.Err() != nil:
		err = fmt.Errorf("downloading: %w", err)
	case err == nil:
		err = d.verdict()
	}
	if err == nil {
		d.state.Finished = time.Now().Unix()
	}
	// What came after the last page is kept. Where the disk fails, the checkpoint before stays.
	if saving := d.save(); saving != nil && err == nil {
		d.state.Finished = 0
		err = saving
	}
	if err == nil {
		return d.result(false), nil
	}
	return nil, d.explain(err)
}

// verdict says whether the download came to an end: some relay's part did.
func (d *download) verdict() error {
	var failures []string
	for _, r := range d.relays {
		if r.state.Outcome != Failed {
			return nil
		}
		failures = append(failures, r.state.URL+": "+r.state.Failure)
	}
	if len(failures) == 1 {
		return fmt.Errorf("downloading from %s", failures[0])
	}
	return fmt.Errorf("downloading: no relay came to its end\n%s", strings.Join(failures, "\n"))
}

// explain adds what to do about an error.
func (d *download) explain(err error) error {
	events := int64(0)
	if d.state != nil {
		events = d.state.Events
	}
	switch {
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w: it cannot be continued, and has to be asked for anew", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("storing a download in %s: %w; make room, and give the same command again, which goes on from there", d.dir, err)
	case events == 0:
		return err
	}
	return fmt.Errorf("%w; %d events of the download are kept, and the same command goes on from there", err, events)
}

// save writes a checkpoint. d.mu is held, or nobody else works.
func (d *download) save() error {
	if err := d.events.sync(); err != nil {
		return err
	}
	d.state.Bytes = d.events.bytes
	return d.state.write(d.dir)
}

func (d *download) note(format string, args ...any) { d.o.Note(fmt.Sprintf(format, args...)) }

func (d *download) result(reused bool) *Result {
	r := &Result{File: filepath.Join(d.dir, eventsFile), Source: d.source(), Events: d.state.Events, Reused: reused,
		Began: time.Unix(d.state.Began, 0).UTC(), Finished: time.Unix(d.state.Finished, 0).UTC()}
	for _, relay := range d.relays {
		r.Relays = append(r.Relays, relay.status(math.MinInt64))
	}
	return r
}

// source says where the events come from, and which they are.
func (d *download) source() string {
	var from []string
	for _, r := range d.relays {
		name := r.state.URL
		if r.state.Outcome == Failed {
			name += " (in part)"
		}
		from = append(from, name)
	}
	what := "all events"
	if d.o.Limit > 0 {
		what = fmt.Sprintf("the newest %d events", d.o.Limit)
	}
	if d.o.Since != nil {
		what += " since " + day(*d.o.Since)
	}
	return fmt.Sprintf("download from %s: %s until %s", strings.Join(from, ", "), what, day(d.state.Until))
}

func day(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.DateTime) }
