package reference

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"relaybench/corpus"
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

// outcomes are the counts by what was decided; what is in none of them is invalid.
func (n *Imported) outcomes() map[decision]*int64 {
	return map[decision]*int64{stored: &n.Stored, duplicate: &n.Duplicates, replaced: &n.Superseded, deleted: &n.Deleted,
		vanished: &n.Vanished, expired: &n.Expired, protected: &n.Protected}
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

// How an import is cut: a group is what one transaction commits.
const (
	importGroupEvents = 4096
	importGroupBytes  = 8 << 20 // or so many bytes
	importInFlight    = 2       // groups that are read and not yet committed
)

// NewImporter makes an importer for a store that it is the only one to write to.
func NewImporter(s Store, o ImportOptions) *Importer {
	setDefault(&o.MaxEventBytes, 1<<20)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Importer{options: o, store: s, rules: rules{o.URL}, group: importGroupEvents, seq: s.LastSeq()}
}

// Total returns the counts of everything so far.
func (im *Importer) Total() Imported { return im.total }

// importGroup is events that follow each other, and what was found out about them.
type importGroup struct {
	jobs  []importJob
	ready chan struct{} // closed once they are verified
	err   error         // why there is no further group
}

type importJob struct {
	text []byte
	candidate
}

var errCut = errors.New("it is longer than any event")

// Run takes all events of a stream. next is prepare.Texts.Next or like it. When ctx ends, the commit
// under way is finished, and the error is ctx's cause: a call of next that waits for more is then
// left to itself. After any error all that Total counts is in the store.
func (im *Importer) Run(ctx context.Context, next func(dst []byte) (text []byte, whole bool, err error)) error {
	reading, cancel := context.WithCancel(ctx)
	defer cancel()
	groups := make(chan *importGroup, importInFlight)
	go func() {
		for more := true; more; {
			g := im.read(reading, next)
			more = g.err == nil
			go im.check(g)
			select {
			case groups <- g:
			case <-reading.Done():
				return
			}
		}
	}()
	for {
		var g *importGroup
		select {
		case g = <-groups:
			<-g.ready
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := im.commit(g); err != nil {
			return err
		}
		if im.options.Progress != nil && len(g.jobs) > 0 {
			im.options.Progress(im.total)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case g.err == io.EOF:
			return nil
		case g.err != nil:
			return g.err
		}
	}
}

func (im *Importer) read(ctx context.Context, next func([]byte) ([]byte, bool, error)) *importGroup {
	g := &importGroup{ready: make(chan struct{})}
	for bytes := 0; len(g.jobs) < im.group && bytes < importGroupBytes; {
		if g.err = ctx.Err(); g.err != nil {
			break
		}
		text, whole, err := next(nil)
		if g.err = err; err != nil {
			break
		}
		j := importJob{text: text}
		if !whole {
			j.problem = errCut
		}
		g.jobs = append(g.jobs, j)
		bytes += len(text)
	}
	return g
}

// check examines the events of a group, on all cores.
func (im *Importer) check(g *importGroup) {
	defer close(g.ready)
	now := im.options.Now().Unix()
	corpus.InParallel(len(g.jobs), func(i int) {
		if j := &g.jobs[i]; j.problem == nil {
			j.examine(bytes.TrimSpace(j.text), im.options.MaxEventBytes, im.options.NoVerify, now)
		}
	})
}

// commit stores a group in one transaction and counts it.
func (im *Importer) commit(g *importGroup) error {
	if len(g.jobs) == 0 {
		return nil
	}
	total, last := im.total, im.seq
	outcomes := total.outcomes()
	err := im.store.Update(func(tx Tx) error {
		for i := range g.jobs {
			j := &g.jobs[i]
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
				j.decision = im.rules.admit(tx, &j.event, &j.record)
			}
			*cmp.Or(outcomes[j.decision], &total.Invalid)++
		}
		return nil
	})
	if err == nil {
		im.total, im.seq = total, last
	}
	return err
}
