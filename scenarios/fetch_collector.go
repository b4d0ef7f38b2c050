package scenarios

import (
	"context"
	"fmt"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/harness/receive"
	"relaybench/relays/client"
	"relaybench/relays/wire"
)

// slack is how many events beyond what is expected, and beyond twice that, are taken before a relay
// is said to send without end.
const slack = 100_000

// collector takes the events of one cell from all its connections.
type collector struct {
	most int                     // events before it ends, 0 for no end
	why  error                   // with this
	end  context.CancelCauseFunc // ends all connections

	mu    sync.Mutex
	ids   []corpus.ID // as they came, duplicates included
	taken int         // events, dealt with or not
	began bool        // anything has come
	late  error       // the time of the cell is over: it ends with this as soon as anything has come

	pipeline *receive.Pipeline
	free     chan *receive.Feeder // one for each connection that may call at once
}

// newCollector makes a collector for so many connections. What has been taken is dealt with even
// when the cell is cut: only ctx ends that. It ends after most events where that is not 0. Where
// records is not nil, it remembers what comes, which has to be parsed for that.
func newCollector(ctx context.Context, end context.CancelCauseFunc, form fetchForm, conns, room, most int, records *load.Records) *collector {
	t := &collector{end: end}
	if room > 0 {
		t.most, t.why = 2*room+slack, &client.FloodError{Sent: 2*room + slack, Asked: room}
		t.ids = make([]corpus.ID, 0, room)
	}
	if most > 0 && (t.most == 0 || most < t.most) {
		t.most, t.why = most, &load.CutError{Limit: fmt.Sprintf("--cell-events %d", most)}
	}
	if !form.parsed {
		return t
	}
	t.pipeline = receive.New(ctx, receive.Options{}, func(b *receive.Batch) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		for i := range b.Events {
			t.ids = append(t.ids, b.Events[i].ID)
			if records != nil {
				records.Add(&b.Events[i].Parsed)
			}
		}
		return nil
	})
	t.free = make(chan *receive.Feeder, conns)
	for range conns {
		t.free <- t.pipeline.Feeder()
	}
	return t
}

// take is the client.Take of all strategies. Parsed, it waits where signature checks fall behind:
// that is what such a client does.
func (t *collector) take(_ context.Context, e *client.Event, _ bool) (bool, error) {
	t.mu.Lock()
	t.taken++
	enough := t.most > 0 && t.taken >= t.most
	t.begins(true)
	if t.pipeline == nil {
		t.ids = append(t.ids, e.ID)
	}
	t.mu.Unlock()
	if t.pipeline != nil {
		f := <-t.free
		_, err := f.Event(e.ID, e.Raw, e.At)
		t.free <- f
		if err != nil {
			t.end(err)
		}
	}
	if enough { // connections end by their context, so that none takes it for a failure to be tried again
		t.end(t.why)
	}
	return true, nil
}

// begins notes whether anything has come of what is asked for from now on. The caller holds mu.
func (t *collector) begins(came bool) {
	if t.began = came; came && t.late != nil {
		t.end(t.late)
	}
}

// named is told of what came that is no event: the ids that a reconciliation names, until they are
// asked for.
func (t *collector) named(came bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begins(came)
}

// over is told that the time of the cell is over. Where nothing has come, whoever waits for the
// first event says how it ends: that the time was too short is one thing, a relay that never
// answers is another.
func (t *collector) over(late error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.late = late
	t.begins(t.began)
}

// trouble ends a cell whose time is over, with what went wrong before anything came.
func (t *collector) trouble(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.late != nil && !t.began {
		t.end(err)
	}
}

// collected is what a collector came to.
type collected struct {
	ids        []corpus.ID
	duplicates int // that never got into ids
	refused    int // that failed a check
	late       time.Duration
}

// finish waits until all that was taken is dealt with. It takes late longer than the connections
// did.
func (t *collector) finish() collected {
	f := collected{}
	if t.pipeline != nil {
		began := wire.Now()
		_ = t.pipeline.Close() // why it ended before is known: by end
		f.late = wire.Now() - began
		counts := t.pipeline.Stats().Counts
		f.duplicates, f.refused = int(counts.Duplicates), int(counts.Refused())
	}
	f.ids = t.ids
	return f
}
