package download

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/prepare"
	"relaybench/harness/receive"
	"relaybench/relays/client"
)

const (
	// mostPending is how many events of a relay may wait to be verified before its reader does.
	mostPending = 512
	// mostOfAnswer bounds the events in answer to one REQ: a relay might send for ever.
	mostOfAnswer = 1 << 20
	// mostRefused is how many forged or malformed events a relay may send before it is asked
	// whether it sends more of them than others.
	mostRefused = 1000
	// troubleEvery is how often trouble with one relay is worth a line.
	troubleEvery = 30 * time.Second
	// informationTime is how long a relay has for its information document. Its max_message_length
	// is kept to in any case, since a REQ here is shorter than any relay can do with.
	informationTime = 5 * time.Second
)

// Pages are kept within what makes sense: below, a second's events might not fit into an answer;
// above, an answer that breaks off costs too much.
const (
	usualPage    = 500
	smallestPage = 50
	largestPage  = 5000
)

// errEnough: the relay has no more that is wanted.
var errEnough = errors.New("no more is wanted")

// relay is one relay's part of a download.
type relay struct {
	*download
	state    *RelayState // the download's mu guards it
	began    time.Time   // this run
	from     RelayState  // then
	before   int64       // events of the download then
	troubled time.Time

	// The download's mu guards them, too.
	feeder  *receive.Feeder // nil before the relay is asked
	counted receive.Counts  // of it, up to the page that is being read
	leftOut int64           // of that page
}

// run asks until there is no more, it fails, or ctx ends.
func (r *relay) run(ctx context.Context) {
	said, _ := client.Inform(ctx, r.state.URL, min(r.o.Stall, informationTime)) // one without a document has said nothing
	r.warn(&said)
	pipeline := receive.New(ctx, receive.Options{Known: r.known}, r.keep)
	r.mu.Lock()
	r.feeder = pipeline.Feeder()
	r.mu.Unlock()
	p := client.Pages{
		Options: client.Options{URL: r.state.URL, Stall: r.o.Stall, Interval: r.o.Interval, Attempts: r.o.Attempts, Backoff: r.o.Backoff,
			ReadLimit: r.mostRaw() + 4096, Answer: r.o.mostOfAnswer, Trouble: r.trouble},
		Filter: corpus.Filter{Since: r.o.Since, Until: corpus.Int64(r.state.Next)},
		Size:   pageSize(said.Limits.Events, r.o.Limit), Widest: said.Limits.Widest(), Single: said.Limits.Subscriptions == 1, Confirm: r.o.Confirm, Take: r.take, Turned: r.turned,
	}
	done, err := p.Run(ctx)
	if closing := pipeline.Close(); err == nil {
		err = closing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state.Truncated += int64(len(done.Stepped))
	if ctx.Err() != nil {
		return // the page will be asked for again
	}
	r.count()
	switch refused := r.state.Refused(); {
	case errors.Is(err, errEnough):
		r.state.Outcome = Enough
	case err != nil:
		r.state.Outcome, r.state.Failure = Failed, err.Error()
	case refused > 0 && refused >= r.state.Received:
		r.state.Outcome, r.state.Failure = Failed, fmt.Sprintf("all %d events that it sent are forged or malformed", refused)
	default:
		r.state.Outcome, r.state.Next = All, done.Until
	}
	r.conclude()
	if err := r.save(); err != nil {
		r.cancel(err)
	}
}

// pageSize is how many events to ask for at a time where so many are wanted in all, or all (0), of
// a relay that says that it sends so many at once, or does not say (0).
func pageSize(most, wanted int) int {
	size := usualPage
	if most > 0 {
		size = min(max(most, smallestPage), largestPage)
	}
	if wanted > 0 {
		size = min(size, wanted+wanted/10+smallestPage) // some more, so that few may do with one page
	}
	return size
}

// warn says what people should know of what a relay says.
func (r *relay) warn(said *client.Information) {
	var wants []string
	if said.Auth {
		wants = append(wants, "authentication")
	}
	if said.Payment {
		wants = append(wants, "payment")
	}
	if wants != nil {
		r.note("%s says that it wants %s, which it does not get from here; it is asked all the same", r.state.URL, strings.Join(wants, " and "))
	}
}

// conclude says what people should know about how it ended.
func (r *relay) conclude() {
	s := r.state
	if s.Outcome == Failed {
		r.note("%s is given up after %d events: %s", s.URL, s.Received, s.Failure)
	}
	if n := s.Refused(); n > 0 {
		r.note("%s sent %d events that are forged or malformed (%d with a wrong id, %d with a wrong signature): they are left out", s.URL, n, s.BadID, s.BadSignature)
	}
	if s.Truncated > 0 {
		r.note("%s may hold more events of a second than it sends at once, so that not all may have come; seconds of which this is so: %d", s.URL, s.Truncated)
	}
}

// mostRaw is the longest event that is looked at, as a relay may write it: with every character
// escaped it is six times as long as in canonical form.
func (r *relay) mostRaw() int64 { return min(6*int64(r.o.Prepare.MaxEventBytes)+64<<10, 32<<20) }

// take implements client.Take.
func (r *relay) take(_ context.Context, e *client.Event, wait bool) (ok bool, err error) {
	if !wait && r.feeder.Pending() >= mostPending {
		return false, nil
	}
	_, err = r.feeder.Event(e.ID, e.Raw, e.At)
	return true, err
}

// keep implements receive.Consumer: it stores what is new. What a batch brings is stored before the
// relay is given up, since it counts as known from now on.
func (r *relay) keep(b *receive.Batch) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range b.Events {
		if err := r.store(&b.Events[i].Parsed); err != nil {
			r.cancel(err)
			return err
		}
	}
	page := r.page()
	if n, of := r.state.Refused()+page.Refused()+int64(len(b.Refused)), r.state.Received+page.Received; n > mostRefused && 2*n > of {
		return fmt.Errorf("%d of the %d events that it sent are forged or malformed", n, of)
	}
	return nil
}

// store keeps an event that is verified and new.
func (r *relay) store(e *corpus.Event) error {
	r.line = e.AppendJSON(r.line[:0])
	if r.o.Prepare.Drop(e, r.line) != prepare.Kept {
		r.leftOut++
		return nil
	}
	if r.events.bytes+int64(len(r.line))+1 > r.o.MaxBytes {
		return fmt.Errorf("the download has reached %d bytes, the most that it may take: allow more, or ask for fewer events", r.o.MaxBytes)
	}
	if err := r.events.add(r.line); err != nil {
		return err
	}
	r.newest.add(e.CreatedAt)
	r.download.state.Events++
	r.state.New++
	return nil
}

// page is what came of the page that is being read, but for what is new.
func (r *relay) page() Counts {
	if r.feeder == nil {
		return Counts{}
	}
	now, was := r.feeder.Counts(), &r.counted
	return Counts{Received: now.Events - was.Events, LeftOut: r.leftOut,
		Malformed: now.Malformed - was.Malformed, BadID: now.BadID - was.BadID, BadSignature: now.BadSignature - was.BadSignature}
}

// count adds the page's events to the relay's.
func (r *relay) count() {
	page := r.page()
	r.state.Counts.add(&page)
	r.counted, r.leftOut = r.feeder.Counts(), 0
}

// turned stores the events of a whole page, then has the checkpoint say so.
func (r *relay) turned(next int64) error {
	if err := r.feeder.Wait(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count()
	r.state.Next = next
	if err := r.save(); err != nil {
		r.cancel(err)
		return err
	}
	if oldest, full := r.newest.oldest(); full && next < oldest {
		return errEnough
	}
	return nil
}

// trouble tells what is tried again, now and then.
func (r *relay) trouble(err error) {
	if time.Since(r.troubled) >= troubleEvery {
		r.troubled = time.Now()
		r.note("%s: %s; it is asked again", r.state.URL, err.Error())
	}
}
