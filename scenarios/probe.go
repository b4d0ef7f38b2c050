package scenarios

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/receive"
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
		var mentioned []string
		for _, a := range authors {
			mentioned = append(mentioned, a.String())
		}
		return &corpus.Filter{Kinds: []int{1, 6, 7, 9735}, Tags: []corpus.TagFilter{{Name: 'p', Values: mentioned}}, Limit: corpus.Int(o.Limit)}
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
	return harness.Description{Cast: harness.AtOnce, Needs: harness.Empty, Scenario: results.Scenario{Key: key, Title: title, Section: sectionProbe, Order: orderProbe + order,
		Primary: primary, Unit: "ms", Layout: results.LayoutTable, Rows: rows, Ceiling: results.CeilingNone}, Metrics: probeMetrics}
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
	for i, shape := range probeShapes {
		if !slices.Contains(p.Shapes, shape.key) || ctx.Err() != nil {
			continue
		}
		first := len(links) > 0 && len(links[0].answers) == 0
		filter := shape.filter(&p.ProbeOptions, (*authors)[:min(len(*authors), MaxProbeAuthors)])
		if shape.key != probeShapes[0].key && len(*authors) == 0 {
			filter = nil
		}
		tally := newProbeTally(len(links))
		pipeline := receive.New(ctx, receive.Options{Checks: checks,
			// Readers never wait here: what an answer may bring is bounded otherwise.
			Queue: maxAnswerBytes, QueueEvents: 1 << 20}, func(b *receive.Batch) error { return tally.take(b, filter) })
		for _, l := range links {
			l.answers = append(l.answers, &probeAnswer{shape: i, filter: filter, feeder: pipeline.Feeder(), ids: make(map[corpus.ID]struct{})})
		}
		all(func(l *probeLink) { l.ask(ctx, first) })
		if err := pipeline.Close(); err != nil {
			break
		}
		tally.alone(links)
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
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// probeTally is the consumer of one shape's events, as small as a client's: it looks at each event
// and counts it.
type probeTally struct {
	fresh   []int // by relay: asked for, verified, and not brought by another before
	unasked []int // verified, and not what was asked for
	authors []corpus.PubKey
	good    map[corpus.ID]struct{} // of the events that are new from somebody
	arrived time.Duration          // the first event handed over
	ended   time.Duration          // the last one was done with
}

func newProbeTally(relays int) *probeTally {
	return &probeTally{fresh: make([]int, relays), unasked: make([]int, relays), good: make(map[corpus.ID]struct{})}
}

// take is the consumer.
func (c *probeTally) take(b *receive.Batch, filter *corpus.Filter) error {
	for _, e := range slices.Concat(b.Events, b.Refused) {
		c.arrived = min(cmp.Or(c.arrived, e.Arrived), e.Arrived)
	}
	for i := range b.Events {
		e := &b.Events[i]
		if !filter.Matches(&e.Parsed) {
			c.unasked[e.Feeder]++
			continue
		}
		c.fresh[e.Feeder]++
		c.good[e.ID] = struct{}{}
		if author := e.Parsed.PubKey; len(c.authors) < MaxProbeAuthors && !slices.Contains(c.authors, author) {
			c.authors = append(c.authors, author)
		}
	}
	c.ended = wire.Now()
	return nil
}

// alone hands each answer what was found out about its events, and counts what each relay alone
// brought, of the events that are good.
func (c *probeTally) alone(links []*probeLink) {
	brought := make(map[corpus.ID]int) // by how many relays
	for _, l := range links {
		for id := range l.asked().ids {
			brought[id]++
		}
	}
	for k, l := range links {
		a := l.asked()
		a.fresh, a.unasked = c.fresh[k], c.unasked[k]
		for id := range a.ids {
			if _, ok := c.good[id]; ok && brought[id] == 1 {
				a.alone++
			}
		}
	}
}

// record keeps what the consumer's side looked like, of all relays together.
func (c *probeTally) record(t *harness.Trial, shape string, checks receive.Checks, s receive.Stats) {
	if s.Delay.Count() == 0 {
		return
	}
	d := describeProbe(ProbeFamily+".queue", "Queue delay: from the socket until the consumer had the verified event, all relays together", 4, "delay", results.LabelShape, results.LabelVerifier)
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
