package reference

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// Bounds of the way that events take. What is on it is bounded by count and by bytes; when it is
// full, connections are not read.
const (
	maxInFlight      = 4096
	maxInFlightBytes = 64 << 20
	maxGroup         = 1024
	groupShare       = 3                     // the part of what is under way that a group waits for: the inverse
	groupTime        = 25 * time.Millisecond // how long a group waits for events that have arrived and are still being verified
)

// job is one event on its way from a connection to the store.
type job struct {
	session *session
	raw     []byte        // the event as it came; the job's own
	ready   chan struct{} // closed once it is examined
	candidate
}

// ingest verifies events on all cores and commits them in groups. Jobs are queued twice, in the
// same order: to the verifiers and to the committer, which takes them in the order of arrival and
// waits for each to be verified.
type ingest struct {
	relay   *relay
	verify  chan *job
	arrived chan *job
	bytes   *budget
	held    *job   // the committer's: taken from arrived, and to be the first of the next group
	ok      []byte // reply's, for one answer after another
	reply   func(group []*job)
	late    *late // nil where OKs are sent at once
	workers sync.WaitGroup
	groups  chan []*Record // committed, on their way to the hub
	done    chan struct{}  // the committer and the broadcaster have ended
}

func startIngest(r *relay) *ingest {
	in := &ingest{
		relay:   r,
		verify:  make(chan *job, maxInFlight),
		arrived: make(chan *job, maxInFlight),
		bytes:   newBudget(maxInFlightBytes),
		groups:  make(chan []*Record, 4),
		done:    make(chan struct{}),
	}
	r.hub.accepted.Store(r.options.Store.LastSeq())
	for range runtime.GOMAXPROCS(0) {
		in.workers.Go(func() {
			for n := 1; ; n++ {
				j, ok := <-in.verify
				if !ok {
					return
				}
				j.check(in.relay)
				close(j.ready)
				if n%4 == 0 {
					runtime.Gosched() // the committer, back from the disk, would else wait until somebody is preempted
				}
			}
		})
	}
	in.reply = in.answer
	if d := r.options.Delay; d > 0 {
		in.late = startLate(d, in.answer)
		in.reply = in.late.add
	}
	go func() {
		in.commit()
		if in.late != nil {
			in.late.stop()
		}
		close(in.groups)
	}()
	go func() {
		defer close(in.done)
		for group := range in.groups {
			in.relay.hub.publish(group)
		}
	}()
	return in
}

// add hands an event over. It blocks while too much is under way. raw is copied.
func (in *ingest) add(s *session, raw []byte) {
	in.bytes.take(len(raw))
	j := &job{session: s, raw: slices.Clone(raw), ready: make(chan struct{})}
	in.verify <- j
	in.arrived <- j
}

// stop waits until all that was added is committed and answered. Nothing may be added any more.
func (in *ingest) stop() {
	close(in.verify)
	close(in.arrived)
	in.workers.Wait()
	<-in.done
}

func (j *job) check(r *relay) {
	o := &r.options
	j.examine(j.raw, o.MaxEventBytes, o.NoVerify, r.now())
	if !j.refused {
		j.decision, j.refused = o.Faults.takes(j.session)
	}
}

// commit is the one writer.
func (in *ingest) commit() {
	seq := in.relay.hub.accepted.Load()
	var group []*job
	for {
		if group = in.gather(group[:0]); len(group) == 0 {
			return
		}
		var fresh []*Record
		fresh, seq = in.store(group, seq)
		in.reply(group)
		if len(fresh) > 0 {
			in.groups <- fresh
		}
	}
}

// gather takes the next event and with it those that have arrived already, so that a lone event is
// committed at once and a stream of them in groups, whatever a commit costs. It waits for the
// verification of a share of what is under way, and takes more only if it is verified: were it to
// wait for all, verifiers would have nothing to do during a commit, and the committer nothing until
// all that the OKs bring in is verified.
func (in *ingest) gather(group []*job) []*job {
	j, ok := in.held, true
	if in.held = nil; j == nil {
		if j, ok = <-in.arrived; !ok {
			return group
		}
	}
	<-j.ready
	group = append(group, j)
	share := len(in.arrived) / groupShare
	deadline := time.Now().Add(groupTime)
	for len(group) < maxGroup {
		select {
		case j, ok = <-in.arrived:
			if !ok {
				return group
			}
		default:
			return group
		}
		if len(group) >= share {
			select {
			case <-j.ready:
			default:
				in.held = j
				return group
			}
		}
		<-j.ready
		group = append(group, j)
		if len(group)%16 == 0 && time.Now().After(deadline) {
			return group
		}
	}
	return group
}

// store commits a group. It returns what is new, for the hub, and the last number given out.
func (in *ingest) store(group []*job, seq uint64) (fresh []*Record, last uint64) {
	admitAll := func(tx Tx) error {
		for _, j := range group {
			if j.refused {
				continue
			}
			last++
			j.record.Seq = last
			j.decision = stored
			if j.keep && !in.relay.options.Faults.loses(&j.record.ID) {
				j.decision = in.relay.rules.admit(tx, &j.event, &j.record)
			}
			if j.decision == stored {
				fresh = append(fresh, &j.record)
			}
		}
		return nil
	}
	last = seq
	var err error
	if slices.ContainsFunc(group, func(j *job) bool { return j.keep }) {
		err = in.relay.options.Store.Update(admitAll)
	} else {
		err = admitAll(nil) // nothing to store: a flood of forgeries costs no transaction
	}
	if err != nil {
		in.relay.log("storing %d events: %v", len(group), err)
		for _, j := range group {
			if !j.refused {
				j.decision = decision{false, "error: could not store the event: " + err.Error()}
			}
		}
		return nil, last // numbers are not used again: some may be in a transaction whose fate is unknown
	}
	in.relay.hub.accepted.Store(last)
	return fresh, last
}

// answer sends the OKs and wakes each connection once.
func (in *ingest) answer(group []*job) {
	var touched []*session
	size := 0
	for _, j := range group {
		if j.problem != nil {
			j.session.refuseBroken(j)
		} else {
			in.ok = appendOK(in.ok[:0], j)
			j.session.out.text(in.ok)
		}
		if !j.session.touched {
			j.session.touched = true
			touched = append(touched, j.session)
		}
		size += len(j.raw)
	}
	for _, s := range touched {
		s.touched = false
		s.out.flush()
	}
	in.bytes.give(size)
	clear(group)
}

type budget struct {
	mu   sync.Mutex
	more sync.Cond
	left int
}

func newBudget(n int) *budget {
	b := &budget{left: n}
	b.more.L = &b.mu
	return b
}

func (b *budget) take(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.left < n {
		b.more.Wait()
	}
	b.left -= n
}

func (b *budget) give(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	b.more.Broadcast()
}
