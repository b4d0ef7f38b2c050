package scenarios

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/receive"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// What a probe may ask for, so that it stays small.
const (
	MaxProbed         = 16                     // relays at once
	DefaultProbeLimit = 100                    // events that one REQ asks for
	MaxProbeLimit     = 500                    // the same, at most
	MaxProbeAuthors   = 50                     // whose notifications and metadata are asked for
	DefaultProbePause = time.Second            // before each REQ on a connection
	MinProbePause     = 500 * time.Millisecond // the same, at least
)

// ProbeFamily begins the keys of all its scenarios.
const ProbeFamily = "probe"

// ProbeOptions say what to ask, and how signatures are checked. Their limits are the caller's to
// check.
type ProbeOptions struct {
	Shapes      []string         // of ProbeShapes, in their order
	Authors     []corpus.PubKey  // whose notifications and metadata to ask for; none: those that the global feed brings
	Checks      []receive.Checks // one pass for each, over connections of its own: Inline, Parallel
	Limit       int              // events that each REQ asks for
	Pause       time.Duration    // before each REQ on a connection
	Compression bool             // offer permessage-deflate
}

var probeMetrics = explained("connect", "TCP, TLS and the WebSocket handshake, name look-up included",
	"REQ sent", "from the beginning of connecting to the first REQ",
	"first event", "from the REQ to the first event", "EOSE", "from the REQ to the end of the answer", "events", "",
	"new", "verified, asked for, and not brought by another relay before", "duplicates", "brought before, by this relay or another",
	"only here", "sent by no other relay", "frame p50", "", "frame p99", "", "frame max", "the longest frame of an event",
	"unasked", "verified, and not asked for", "after the end", "events that came after EOSE or CLOSED", "malformed", "no event, or without an id",
	"bad id", "an id that is not the event's hash", "bad signature", "", "received", "",
	"delay", "from the socket until the consumer had the verified event", "busy", "the consumer's share of the time from the first event until it was done with the last, checks included if inline",
	"span", "that time", "checking", "time of processor cores for parsing and verifying", "verified", "", "refused", "")

// probeShape is what a client asks for.
type probeShape struct {
	key, title string
	// filter is nil where it takes authors and there is none.
	filter func(o *ProbeOptions, authors []corpus.PubKey) *corpus.Filter
}

var probeShapes = []probeShape{
	{"global", "Global feed: the newest notes", func(o *ProbeOptions, _ []corpus.PubKey) *corpus.Filter {
		return &corpus.Filter{Kinds: []int{1}, Limit: corpus.Int(o.Limit)}
	}},
	{"notifications", "Notifications: notes, reposts, reactions and zaps that mention the authors", func(o *ProbeOptions, authors []corpus.PubKey) *corpus.Filter {
		return &corpus.Filter{Kinds: threadKinds, Tags: tagged('p', hexes(authors)), Limit: corpus.Int(o.Limit)}
	}},
	{"metadata", "Metadata burst: the authors' profiles", func(o *ProbeOptions, authors []corpus.PubKey) *corpus.Filter {
		return &corpus.Filter{Kinds: []int{0}, Authors: authors, Limit: corpus.Int(min(o.Limit, len(authors)))}
	}},
}

// ProbeShapes are what a client asks for when it starts: a global feed, notifications, and a burst
// of metadata, as it wants it once its feed is there.
func ProbeShapes() (keys []string) {
	for _, s := range probeShapes {
		keys = append(keys, s.key)
	}
	return keys
}

// Probe looks at production relays as a client sees them: it asks several at once, and measures
// what comes and how soon, and how long events wait between socket and consumer.
//
// It is a guest: it sends REQ and CLOSE and nothing else, one REQ at a time on one connection to
// each relay, with a pause before each and few events asked for. Relays are not trusted: events,
// bytes and time of every answer are bounded.
type Probe struct{ ProbeOptions }

// Describe implements harness.Scenario.
func (p *Probe) Describe() harness.Description {
	return describeProbe(ProbeFamily, "Relays as a client sees them", 0, "")
}

func describeProbe(key, title string, order int, primary string, rows ...string) harness.Description {
	return harness.Description{Cast: harness.AtOnce, Needs: harness.Empty, Metrics: probeMetrics, Scenario: results.Scenario{
		Key: key, Title: title, Section: "Probe", Order: orderProbe + order, Primary: primary, Unit: "ms",
		Layout: results.LayoutTable, Rows: rows, Ceiling: results.CeilingNone}}
}

// Run implements harness.Scenario. Relays that fail are a result.
func (p *Probe) Run(ctx context.Context, t *harness.Trial) error {
	authors := slices.Clone(p.Authors)
	for _, checks := range p.Checks {
		if err := p.pass(ctx, t, checks, &authors); err != nil {
			return err
		}
	}
	return nil
}

// pass asks every relay for every shape, over one connection to each.
func (p *Probe) pass(ctx context.Context, t *harness.Trial, checks receive.Checks, authors *[]corpus.PubKey) error {
	links := make([]*probeLink, len(t.All))
	for i, relay := range t.All {
		links[i] = &probeLink{o: &p.ProbeOptions, relay: relay}
	}
	all := func(do func(*probeLink)) {
		var done sync.WaitGroup
		for _, l := range links {
			done.Go(func() { do(l) })
		}
		done.Wait()
	}
	first := true
	for i, shape := range probeShapes {
		if !slices.Contains(p.Shapes, shape.key) || ctx.Err() != nil {
			continue
		}
		filter := shape.filter(&p.ProbeOptions, (*authors)[:min(len(*authors), MaxProbeAuthors)])
		if i > 0 && len(*authors) == 0 {
			filter = nil
		}
		tally := probeTally{links: links, filter: filter, good: make(map[corpus.ID]struct{})}
		pipeline := receive.New(ctx, receive.Options{Checks: checks,
			// Readers never wait here: what an answer may bring is bounded otherwise.
			Queue: maxAnswerBytes, QueueEvents: 1 << 20}, tally.take)
		for _, l := range links {
			l.answers = append(l.answers, &probeAnswer{shape: i, filter: filter, feeder: pipeline.Feeder(), ids: make(map[corpus.ID]struct{})})
		}
		all(func(l *probeLink) { l.ask(ctx, first) })
		if err := pipeline.Close(); err != nil {
			break
		}
		first = false
		tally.alone()
		stats := pipeline.Stats()
		for _, l := range links {
			stats.Events += int64(l.asked().nameless) // which were not handed on
		}
		tally.record(t, shape.key, checks, stats)
		if i == 0 && len(*authors) == 0 {
			*authors = tally.authors
		}
	}
	all((*probeLink).close)
	for _, l := range links {
		l.record(checks)
	}
	return context.Cause(ctx)
}

// probeTally is the consumer of one shape's events, as small as a client's: it looks at each event
// and counts it.
type probeTally struct {
	links   []*probeLink
	filter  *corpus.Filter
	authors []corpus.PubKey
	good    map[corpus.ID]struct{} // of the events that are new from somebody
	arrived time.Duration          // the first event handed over
	ended   time.Duration          // the last one was done with
}

// take is the consumer.
func (c *probeTally) take(b *receive.Batch) error {
	for _, e := range slices.Concat(b.Events, b.Refused) {
		c.arrived = min(cmp.Or(c.arrived, e.Arrived), e.Arrived)
	}
	for i := range b.Events {
		e := &b.Events[i]
		from := c.links[e.Feeder].asked()
		if !c.filter.Matches(&e.Parsed) {
			from.unasked++
			continue
		}
		from.fresh++
		c.good[e.ID] = struct{}{}
		if author := e.Parsed.PubKey; len(c.authors) < MaxProbeAuthors && !slices.Contains(c.authors, author) {
			c.authors = append(c.authors, author)
		}
	}
	c.ended = wire.Now()
	return nil
}

// alone counts what each relay alone brought, of the events that are good.
func (c *probeTally) alone() {
	brought := make(map[corpus.ID]int) // by how many relays
	for _, l := range c.links {
		for id := range l.asked().ids {
			brought[id]++
		}
	}
	for _, l := range c.links {
		for id := range l.asked().ids {
			if _, ok := c.good[id]; ok && brought[id] == 1 {
				l.asked().alone++
			}
		}
	}
}

// record keeps what the consumer's side looked like, of all relays together.
func (c *probeTally) record(t *harness.Trial, shape string, checks receive.Checks, s receive.Stats) {
	if s.Delay.Count() == 0 {
		return
	}
	d := describeProbe(ProbeFamily+".queue", "Queue delay: from the socket until the consumer had the verified event, all relays together", 4,
		"delay", results.LabelShape, results.LabelVerifier)
	d.Labels = results.Labels{results.LabelShape: shape, results.LabelVerifier: checks.String()}
	under := t.Under(d)
	if err := under.Latency("delay", results.Lower, s.Delay); err != nil {
		return // of a histogram that cannot be written
	}
	busy := s.Busy
	if checks == receive.Inline {
		busy += s.Checking // the consumer's own work
	}
	if span := c.ended - c.arrived; span > 0 {
		under.Value("busy", "%", results.None, 100*min(1, float64(busy)/float64(span)))
		under.Value("span", "ms", results.None, harness.Milliseconds(span))
	}
	under.Value("checking", "ms", results.None, harness.Milliseconds(s.Checking))
	for metric, n := range map[string]int64{"events": s.Events, "verified": s.Delivered, "duplicates": s.Duplicates, "refused": s.Refused()} {
		under.Value(metric, "events", results.None, float64(n))
	}
}

const (
	connectTime    = 10 * time.Second // for TCP, TLS and the WebSocket handshake, where a stall is not shorter
	answerTime     = time.Minute      // the longest that an answer may take, however steadily it comes
	maxAnswerBytes = 16 << 20         // of one answer: with all relays at their worst, memory for a few hundred MiB
	maxProbeFrame  = 1 << 20          // bytes
)

// probeLink is one relay in one pass.
type probeLink struct {
	o       *ProbeOptions
	relay   *harness.Trial
	answers []*probeAnswer // the last is asked for

	conn       *client.Conn            // nil where there is none
	hangUp     context.CancelCauseFunc // ends its context
	dialled    time.Duration
	connected  time.Duration // how long it took the first time, 0 where it failed
	reconnects int
	failure    error // of the last attempt to connect, or why the connection ended
	extensions string

	notices int
	notice  string // the first
	auth    bool   // the relay sent a challenge
	unknown int    // frames that are no message
	strays  int    // events of subscriptions that nobody made
}

// probeAnswer is what one REQ brought. Times are on wire.Now's scale.
type probeAnswer struct {
	shape  int
	sub    string
	filter *corpus.Filter // nil: it is not asked
	feeder *receive.Feeder

	outcome               string // one of the causes of CodeAnswered; "" where EOSE came
	reason                string // a relay's words, or an error
	sent, first, done     time.Duration
	sinceDial             time.Duration // from the beginning of connecting to the REQ, where it followed at once
	received, nameless    int           // the second without an event, or without its id
	fresh, unasked, alone int           // verified: new from this relay, not asked for, and sent by no other one
	late                  int           // events after EOSE or CLOSED
	bytes                 int
	sizes                 []int // of EVENT frames
	ids                   map[corpus.ID]struct{}
}

func (l *probeLink) asked() *probeAnswer { return l.answers[len(l.answers)-1] }

// connect dials once.
func (l *probeLink) connect(ctx context.Context) {
	stall := l.relay.Options.Stall
	connection, hangUp := context.WithCancelCause(ctx)
	l.hangUp = hangUp
	within := min(stall, connectTime)
	timer := time.AfterFunc(within, func() { hangUp(fmt.Errorf("no connection within %v", within)) })
	defer timer.Stop()
	start := wire.Now()
	l.conn, l.failure = client.Dial(connection, client.Options{URL: l.relay.Relay.URL(), Compression: l.o.Compression, ReadLimit: maxProbeFrame,
		Stall: stall, Answer: l.most()})
	switch cause := errors.Unwrap(l.failure); {
	case l.failure != nil:
		l.failure = cmp.Or(cause, l.failure) // without the URL, which is known
		hangUp(nil)
	case l.connected == 0:
		l.dialled, l.connected, l.extensions = start, wire.Now()-start, l.conn.Stats.Extensions
	default:
		l.reconnects++
	}
}

// most is how many messages are taken at a time.
func (l *probeLink) most() int { return 2*l.o.Limit + 100 }

// ask sends the REQ and waits for the answer's end. Where the connection was lost meanwhile, it
// connects once more. The first one follows the connecting at once.
func (l *probeLink) ask(ctx context.Context, first bool) {
	a := l.asked()
	switch {
	case first:
		l.connect(ctx)
	case a.filter != nil && l.connected > 0:
		if l.listen(ctx, time.Now().Add(l.o.Pause)); ctx.Err() == nil && l.conn == nil {
			l.connect(ctx)
		}
	}
	switch {
	case ctx.Err() != nil || a.filter == nil:
		a.outcome = results.CauseNotAsked
		return
	case l.conn == nil:
		a.outcome, a.reason = results.CauseNotReached, l.failure.Error()
		return
	}
	// An error of writing is the reader's to tell, who may have the relay's reason.
	s, _ := l.conn.Request(ctx, a.filter.AppendJSON(nil), *a.filter.Limit)
	_ = l.conn.Wire().Flush()
	if a.sub, a.sent = s.ID, s.Sent; first {
		a.sinceDial = a.sent - l.dialled
	}
	for end := time.Now().Add(answerTime); a.done == 0; {
		if err := l.read(ctx, end, a); err != nil {
			a.done = wire.Now()
			a.outcome, a.reason = outcomeOf(err)
			return
		}
	}
	if a.outcome == "" {
		_ = l.conn.End(s)
		_ = l.conn.Wire().Flush()
	}
}

// errTooMuch ends an answer, and its connection: there is no telling when it would stop.
var errTooMuch = fmt.Errorf("more than %d MiB", maxAnswerBytes>>20)

// outcomeOf is how an answer ended with an error.
func outcomeOf(err error) (cause, reason string) {
	flood := (*client.FloodError)(nil)
	switch {
	case errors.As(err, &flood), errors.Is(err, errTooMuch):
		return results.CauseFlooded, err.Error()
	case errors.Is(err, client.ErrSilent):
		return results.CauseTooSlow, fmt.Sprintf("no end of it within %v", answerTime)
	case errors.Is(err, wire.ErrStalled):
		return results.CauseStalled, err.Error()
	}
	return results.CauseDisconnected, err.Error()
}

// read deals with the next message, of which a is the answer that is waited for, nil where none is.
// After an error there is no connection, save where nothing came and nothing is waited for.
func (l *probeLink) read(ctx context.Context, until time.Time, a *probeAnswer) error {
	s, err := l.conn.ReadBy(ctx, until)
	if err == nil {
		err = l.take(s, a)
	}
	if err == nil || a == nil && errors.Is(err, client.ErrSilent) {
		return err
	}
	l.failure = err
	l.conn.Abort()
	l.hangUp(nil)
	l.conn = nil
	return err
}

// take takes the message that was just read, of the REQ that s is.
func (l *probeLink) take(s *client.Subscription, a *probeAnswer) error {
	m, size := &l.conn.Message, len(l.conn.Frame())
	if a != nil {
		a.bytes += size
	}
	switch {
	case m.Type == wire.Event && s != nil && a != nil:
		if !m.HasID {
			a.nameless++
		} else if _, err := a.feeder.Event(m.ID, m.Event, l.conn.At); err != nil {
			return err
		} else {
			a.ids[m.ID] = struct{}{}
		}
		a.received++
		a.sizes = append(a.sizes, size)
		a.first = cmp.Or(a.first, l.conn.At)
		l.conn.Useful()
	case s != nil && a != nil: // EOSE or CLOSED
		a.done = l.conn.At
		if m.Type == wire.Closed {
			if a.outcome, a.reason = results.CauseClosed, m.ReasonText(); strings.HasPrefix(a.reason, "auth-required:") {
				a.outcome = results.CauseAuthRequired
			}
		}
		return nil
	case m.Type == wire.Event:
		if i := slices.IndexFunc(l.answers, func(a *probeAnswer) bool { return a.sub == string(m.Sub) }); i >= 0 {
			l.answers[i].late++
		} else {
			l.strays++
		}
	case m.Type == wire.Notice:
		if l.notices++; l.notices == 1 {
			l.notice = m.ReasonText()
		}
	case m.Type == wire.Auth:
		l.auth = true
	case m.Type == wire.Unknown:
		l.unknown++
	}
	if a != nil && a.bytes > maxAnswerBytes {
		return errTooMuch
	}
	return nil
}

// listen takes what comes while nothing is asked for, up to a deadline, or what has come already,
// but no flood of it.
func (l *probeLink) listen(ctx context.Context, until time.Time) {
	for n := 0; l.conn != nil && (n < l.most() || time.Now().Before(until)); n++ {
		if err := l.read(ctx, until, nil); errors.Is(err, client.ErrSilent) {
			return
		}
	}
	if wait := time.Until(until); wait > 0 && ctx.Err() == nil { // the pause is for the relay
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// close says good-bye, after what has come already.
func (l *probeLink) close() {
	l.listen(context.Background(), time.Time{})
	if l.conn != nil {
		l.conn.Close()
		l.hangUp(nil)
	}
}

// record keeps what one pass found out about the relay.
func (l *probeLink) record(checks receive.Checks) {
	under := func(key, title string, order int, primary string) *harness.Trial {
		d := describeProbe(ProbeFamily+"."+key, title, order, primary, results.LabelVerifier)
		d.Labels = results.Labels{results.LabelVerifier: checks.String()}
		return l.relay.Under(d)
	}
	t := under("connection", "Connections", 0, "connect")
	if l.connected == 0 {
		l.relay.Unready = l.failure
		return
	}
	t.Value("connect", "ms", results.Lower, harness.Milliseconds(l.connected))
	if sent := l.answers[0].sinceDial; sent > 0 {
		t.Value("REQ sent", "ms", results.Lower, harness.Milliseconds(sent))
	}
	for _, f := range []struct {
		is     bool
		code   string
		counts map[string]float64
		texts  map[string]string
	}{
		{l.o.Compression, results.CodeCompression, nil, map[string]string{"extensions": l.extensions}},
		{l.auth, results.CodeAsksWho, nil, nil},
		{l.notices > 0, results.CodeNotices, counts("notices", l.notices), map[string]string{"notice": l.notice}},
		{l.unknown > 0, results.CodeOnlyMessage, counts("frames", l.unknown), nil},
		{l.strays > 0, results.CodeOnlyRequested, counts("elsewhere", l.strays), nil},
		{l.reconnects > 0, results.CodeConnections, counts("lost", l.reconnects), nil},
	} {
		if f.is {
			t.AddFinding(results.Finding{Code: f.code, Verdict: results.Stated, Counts: f.counts, Texts: f.texts})
		}
	}
	for _, a := range l.answers {
		shape := probeShapes[a.shape]
		a.record(under(shape.key, shape.title, 1+a.shape, "EOSE"))
	}
}

// record keeps an answer.
func (a *probeAnswer) record(t *harness.Trial) {
	answered := check(results.CodeAnswered, a.outcome == "", nil)
	if answered.Cause, answered.Texts = a.outcome, map[string]string{"reason": a.reason}; a.outcome == results.CauseNotAsked {
		answered.Verdict = results.Stated
	}
	t.AddFinding(answered)
	if a.sent == 0 {
		return
	}
	value := func(metric, unit string, better results.Better, v float64) {
		m := results.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{v}}
		if a.outcome != "" && better != results.None {
			m.AddStatus(results.Status{Code: results.StatusIncomplete, Cause: results.CauseEnded, Texts: map[string]string{"text": a.reason}})
		}
		t.Measure(m)
	}
	if a.first > 0 {
		value("first event", "ms", results.Lower, harness.Milliseconds(max(0, a.first-a.sent))) // it may have come before the REQ was sent
	}
	value("EOSE", "ms", results.Lower, harness.Milliseconds(max(0, a.done-a.sent)))
	checked := a.feeder.Counts()
	malformed, badID, badSignature := int(checked.Malformed)+a.nameless, int(checked.BadID), int(checked.BadSignature)
	for _, m := range []struct {
		metric string
		n      int
	}{{"events", a.received}, {"new", a.fresh}, {"duplicates", int(checked.Duplicates)}, {"only here", a.alone}, {"unasked", a.unasked},
		{"after the end", a.late}, {"malformed", malformed}, {"bad id", badID}, {"bad signature", badSignature}} {
		value(m.metric, "events", results.None, float64(m.n))
	}
	if n := len(a.sizes); n > 0 {
		slices.Sort(a.sizes)
		for metric, at := range map[string]int{"frame p50": (n*50 + 99) / 100, "frame p99": (n*99 + 99) / 100, "frame max": n} {
			value(metric, "bytes", results.None, float64(a.sizes[at-1]))
		}
		value("received", "bytes", results.None, float64(a.bytes))
	}
	t.AddFinding(check(results.CodeGenuine, malformed+badID+badSignature == 0,
		counts("malformed", malformed, "bad id", badID, "bad signature", badSignature, "of", a.received)))
	t.AddFinding(results.Finding{Code: results.CodeOnlyRequested, Verdict: results.States(a.unasked == 0), Counts: counts("events", a.unasked)})
	if a.late > 0 {
		t.AddFinding(results.Finding{Code: results.CodeEndsOnce, Verdict: results.Stated, Counts: counts("events", a.late)})
	}
}
