package reference

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"
)

// ImportOptions say how events are taken into a store that nobody serves. Zero values: defaults.
type ImportOptions struct {
	URL           string           // under which clients know the relay (NIP-62); requests to vanish from all relays are known without
	NoVerify      bool             // take ids and signatures on trust
	MaxEventBytes int              // longest event; 1 MiB
	Now           func() time.Time // for NIP-40; time.Now
	Progress      func(Imported)   // called after each commit
}

// Imported counts what became of events by outcome.
type Imported struct {
	Read       int64 // texts
	Stored     int64
	Duplicates int64 // held already
	Superseded int64 // versions that a newer one held outdates
	Deleted    int64 // by their authors (NIP-09)
	Vanished   int64 // their authors did (NIP-62)
	Expired    int64 // NIP-40
	Ephemeral  int64 // never stored (NIP-01)
	Protected  int64 // only for who has authenticated (NIP-70)
	Invalid    int64 // the id or the signature is not the event's, or it is too long
	Broken     int64 // no event at all
}

func (n *Imported) count(v decision) {
	switch v {
	case stored:
		n.Stored++
	case duplicate:
		n.Duplicates++
	case replaced:
		n.Superseded++
	case deleted:
		n.Deleted++
	case vanished:
		n.Vanished++
	case expired:
		n.Expired++
	case protected:
		n.Protected++
	default:
		n.Invalid++
	}
}

// Importer takes events into a store by the rules by which a relay takes them, without the relay:
// verified on all cores, and committed in the order in which they come, in large groups.
type Importer struct {
	options ImportOptions
	store   Store
	rules   rules
	group   int // events of one commit
	seq     uint64
	total   Imported
}

// How an import is cut. A batch is what one core verifies at a time.
const (
	importBatchEvents = 128
	importBatchBytes  = 256 << 10
	importGroup       = 4096    // events of one commit
	importGroupBytes  = 8 << 20 // or so many bytes
	importInFlight    = 32      // batches that are read and not yet committed
)

// NewImporter makes an importer for a store that it is the only one to write to.
func NewImporter(s Store, o ImportOptions) *Importer {
	setDefault(&o.MaxEventBytes, 1<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	im := &Importer{options: o, store: s, group: importGroup, seq: s.LastSeq()}
	im.rules.isHere = func(tag string) bool { return o.URL != "" && sameRelay(tag, o.URL) }
	return im
}

// Total returns the counts of everything so far.
func (im *Importer) Total() Imported { return im.total }

// importBatch is events that follow each other, and what was found out about them.
type importBatch struct {
	jobs  []importJob
	bytes int
	ready chan struct{} // closed once it is verified
	err   error         // why there is no further batch
}

type importJob struct {
	text []byte
	candidate
}

var errCut = errors.New("it is longer than any event")

// Run takes all events of a stream. next is prepare.Texts.Next or like it. When ctx ends, the group
// at hand is committed, and the error is ctx's cause: a call of next that waits for more is then
// left to itself. After any error all that Total counts is in the store.
func (im *Importer) Run(ctx context.Context, next func(dst []byte) (text []byte, whole bool, err error)) error {
	asked := ctx
	ctx, cancel := context.WithCancel(asked)
	defer cancel()
	arrived := make(chan *importBatch, importInFlight)
	go func() {
		for {
			b := im.readBatch(ctx, next)
			select {
			case arrived <- b:
			case <-ctx.Done():
				return
			}
			go func() {
				im.check(b)
				close(b.ready)
			}()
			if b.err != nil {
				return
			}
		}
	}()
	for {
		group, err := gatherBatches(ctx, arrived, im.group)
		if len(group) > 0 {
			if failed := im.commit(group); failed != nil {
				return failed
			}
			if im.options.Progress != nil {
				im.options.Progress(im.total)
			}
		}
		switch {
		case asked.Err() != nil:
			return context.Cause(asked)
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// gatherBatches returns the batches of one commit, with the error why there are no more.
func gatherBatches(ctx context.Context, arrived <-chan *importBatch, most int) (group []*importBatch, err error) {
	for events, bytes := 0, 0; events < most && bytes < importGroupBytes; {
		var b *importBatch
		select {
		case b = <-arrived:
		case <-ctx.Done():
			return group, ctx.Err()
		}
		<-b.ready
		group = append(group, b)
		events, bytes = events+len(b.jobs), bytes+b.bytes
		if b.err != nil {
			return group, b.err
		}
	}
	return group, nil
}

// readBatch reads what one core verifies at a time.
func (im *Importer) readBatch(ctx context.Context, next func([]byte) ([]byte, bool, error)) *importBatch {
	b := &importBatch{jobs: make([]importJob, 0, importBatchEvents), ready: make(chan struct{})}
	for len(b.jobs) < importBatchEvents && b.bytes < importBatchBytes {
		if b.err = ctx.Err(); b.err != nil {
			break
		}
		text, whole, err := next(nil)
		if b.err = err; err != nil {
			break
		}
		j := importJob{text: bytes.TrimSpace(text)}
		if !whole {
			j.problem = errCut
		}
		b.jobs = append(b.jobs, j)
		b.bytes += len(text)
	}
	return b
}

// check examines the events of a batch.
func (im *Importer) check(b *importBatch) {
	now := im.options.Now().Unix()
	for i := range b.jobs {
		if j := &b.jobs[i]; j.problem == nil {
			j.examine(j.text, im.options.MaxEventBytes, im.options.NoVerify, now)
		}
	}
}

// commit stores a group in one transaction and counts it.
func (im *Importer) commit(group []*importBatch) error {
	var total Imported
	var last uint64
	err := im.store.Update(func(tx Tx) error {
		total, last = im.total, im.seq
		for _, b := range group {
			for i := range b.jobs {
				j := &b.jobs[i]
				total.Read++
				switch {
				case j.problem != nil:
					total.Broken++
					continue
				case !j.refused && !j.keep:
					total.Ephemeral++
					continue
				case !j.refused:
					last++
					j.record.Seq = last
					var err error
					if j.decision, err = im.rules.admit(tx, &j.event, &j.record); err != nil {
						return err
					}
				}
				total.count(j.decision)
			}
		}
		return nil
	})
	if err == nil {
		im.total, im.seq = total, last
	}
	return err
}
