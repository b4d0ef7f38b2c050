package reference

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"relaybench/corpus"
)

// ImportOptions say how events are taken into a store that nobody serves meanwhile. Zero values take the defaults.
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

func (n *Imported) count(v verdict) {
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

// Importer takes events into a store by the rules by which a relay takes them, without the relay: verified on all cores, and committed in the order in
// which they come in groups as large as makes a commit cheap.
type Importer struct {
	options ImportOptions
	store   Store
	rules   rules
	group   int // events of one commit
	seq     uint64
	total   Imported
	used    sync.Pool // of *importBatch: fresh memory costs as much as storing an event
}

// How an import is cut. A batch is what one core verifies at a time; what is in flight is bounded by their number and by the longest event.
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

// importBatch is texts that follow each other, and what was found out about them.
type importBatch struct {
	texts []byte
	ends  []int
	jobs  []importJob
	ready chan struct{}
	lost  int64 // texts that are longer than any event
	err   error // why there is no further batch
}

type importJob struct {
	event   corpus.Event
	record  Record
	verdict verdict
	decided bool // the verdict stands without the store
	broken  bool
}

// Run takes all events of a stream. next is corpus.Texts.Next or like it. When ctx ends, the group at hand is committed, and the error is ctx's
// cause: a call of next that waits for more is then left to itself. After any error all that Total counts is in the store.
func (im *Importer) Run(ctx context.Context, next func(dst []byte) (text []byte, whole bool, err error)) error {
	asked := ctx
	ctx, cancel := context.WithCancel(asked)
	verify := make(chan *importBatch, importInFlight)
	arrived := make(chan *importBatch, importInFlight)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	go func() {
		for {
			b := im.readBatch(ctx, next)
			last := b.err != nil // once it is handed over, its memory may be another's
			if !handOver(ctx, verify, b) || !handOver(ctx, arrived, b) || last {
				return
			}
		}
	}()
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for {
				select {
				case b := <-verify:
					im.check(b)
					close(b.ready)
				case <-ctx.Done():
					return
				}
			}
		})
	}
	for {
		group, err := gatherBatches(ctx, arrived, im.group)
		if len(group) > 0 {
			failed := im.commit(group)
			if failed != nil {
				return failed
			}
			im.recycle(group)
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

func handOver(ctx context.Context, to chan<- *importBatch, b *importBatch) bool {
	select {
	case to <- b:
		return true
	case <-ctx.Done():
		return false
	}
}

// gatherBatches returns the batches of one commit. The error is why there are no more, io.EOF at the end.
func gatherBatches(ctx context.Context, arrived <-chan *importBatch, most int) (group []*importBatch, err error) {
	for events, bytes := 0, 0; events < most && bytes < importGroupBytes; {
		var b *importBatch
		select {
		case b = <-arrived:
		case <-ctx.Done():
			return group, ctx.Err()
		}
		select {
		case <-b.ready:
		case <-ctx.Done():
			return group, ctx.Err()
		}
		group = append(group, b)
		events, bytes = events+len(b.jobs), bytes+len(b.texts)
		if b.err != nil {
			return group, b.err
		}
	}
	return group, nil
}

// newBatch takes the memory of a batch that is committed, if there is one.
func (im *Importer) newBatch() *importBatch {
	b, ok := im.used.Get().(*importBatch)
	if !ok {
		b = &importBatch{texts: make([]byte, 0, importBatchBytes/2), jobs: make([]importJob, 0, importBatchEvents)}
	}
	*b = importBatch{texts: b.texts[:0], ends: b.ends[:0], jobs: b.jobs[:0], ready: make(chan struct{})}
	return b
}

// recycle is called once a batch is committed: no store keeps what it was given. One that has grown large is left to the garbage collector.
func (im *Importer) recycle(group []*importBatch) {
	for _, b := range group {
		if cap(b.texts) <= 2*importBatchBytes {
			clear(b.jobs)
			im.used.Put(b)
		}
	}
}

// readBatch reads what one core verifies at a time.
func (im *Importer) readBatch(ctx context.Context, next func([]byte) ([]byte, bool, error)) *importBatch {
	b := im.newBatch()
	for len(b.ends) < importBatchEvents && len(b.texts) < importBatchBytes {
		if b.err = ctx.Err(); b.err != nil {
			return b
		}
		texts, whole, err := next(b.texts)
		if err != nil {
			b.err = err
			return b
		}
		if !whole {
			b.lost++
			continue
		}
		b.texts = texts
		b.ends = append(b.ends, len(texts))
	}
	return b
}

// check parses and verifies: the costly part.
func (im *Importer) check(b *importBatch) {
	b.jobs = slices.Grow(b.jobs, len(b.ends))[:len(b.ends)]
	now, start := im.options.Now().Unix(), 0
	for i, end := range b.ends {
		im.checkOne(&b.jobs[i], bytes.TrimSpace(b.texts[start:end:end]), now)
		start = end
	}
}

func (im *Importer) checkOne(j *importJob, text []byte, now int64) {
	var err error
	j.decided = true
	if j.event, err = corpus.ParseEvent(text); err != nil {
		j.broken = true
		return
	}
	if len(text) > im.options.MaxEventBytes {
		j.verdict = verdict{false, "invalid: event is over " + strconv.Itoa(im.options.MaxEventBytes) + " bytes"}
		return
	}
	if !im.options.NoVerify {
		if err := j.event.Verify(); err != nil {
			j.verdict = verdict{false, "invalid: " + err.Error()}
			return
		}
	}
	if v, refused := refuse(&j.event, now); refused {
		j.verdict = v
		return
	}
	if corpus.IsEphemeral(j.event.Kind) {
		return
	}
	j.decided = false
	j.record = newRecordFrom(&j.event, text)
}

// commit stores a group in one transaction and counts it.
func (im *Importer) commit(group []*importBatch) error {
	var counts Imported
	last := im.seq
	err := im.store.Update(func(tx Tx) error {
		counts, last = Imported{}, im.seq
		for _, b := range group {
			counts.Read += b.lost + int64(len(b.jobs))
			counts.Broken += b.lost
			for i := range b.jobs {
				j := &b.jobs[i]
				switch {
				case j.broken:
					counts.Broken++
					continue
				case j.decided && j.verdict == (verdict{}):
					counts.Ephemeral++
					continue
				case !j.decided:
					last++
					j.record.Seq = last
					var err error
					if j.verdict, err = im.rules.admit(tx, &j.event, &j.record); err != nil {
						return err
					}
				}
				counts.count(j.verdict)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	im.seq = last
	im.total.add(counts)
	return nil
}

func (n *Imported) add(o Imported) {
	n.Read += o.Read
	n.Stored += o.Stored
	n.Duplicates += o.Duplicates
	n.Superseded += o.Superseded
	n.Deleted += o.Deleted
	n.Vanished += o.Vanished
	n.Expired += o.Expired
	n.Ephemeral += o.Ephemeral
	n.Protected += o.Protected
	n.Invalid += o.Invalid
	n.Broken += o.Broken
}
