// Package probe looks at production relays as a client sees them: it asks several at once what clients ask (a global feed, notifications, a burst of
// metadata), and measures what comes and how soon, and how long events wait between socket and consumer with signatures checked in two ways.
//
// It is a guest: it sends REQ and CLOSE and nothing else, one REQ at a time on one connection to each relay, with a pause before each and few
// events asked for. Relays are not trusted: events, bytes and time of every answer are bounded.
package probe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/receive"
)

// What a probe may ask for, so that it stays small.
const (
	MaxRelays    = 16                     // at once
	DefaultLimit = 100                    // events that one REQ asks for
	MaxLimit     = 500                    // the same, at most
	MaxAuthors   = 50                     // whose notifications and metadata are asked for
	DefaultPause = time.Second            // before each REQ on a connection
	MinPause     = 500 * time.Millisecond // the same, at least
	DefaultStall = 10 * time.Second       // without progress
)

const (
	connectTime = 10 * time.Second // for TCP, TLS and the WebSocket handshake, where Options.Stall is not shorter
	answerTime  = time.Minute      // the longest that an answer may take, however steadily it comes
	maxBytes    = 16 << 20         // of one answer: with all relays at their worst, memory for a few hundred MiB
	readLimit   = 1 << 20          // of one frame
)

// Shape is what a client asks for.
type Shape string

const (
	// Global is the newest notes (kind 1) of all.
	Global Shape = "global feed"
	// Notifications are what mentions somebody: notes, reposts, reactions and zaps with a p tag (kinds 1, 6, 7, 9735).
	Notifications Shape = "notifications"
	// Metadata are the profiles of all authors seen (kind 0), as a client wants them once its feed is there.
	Metadata Shape = "metadata burst"
)

// Options say what to ask whom. Limits are the caller's to check.
type Options struct {
	URLs        []string
	Shapes      []Shape
	Authors     []corpus.PubKey  // whose notifications and metadata to ask for; none: the authors that the global feed brings
	Checks      []receive.Checks // one pass for each, over connections of its own: Inline, Parallel
	Limit       int              // events that each REQ asks for
	Pause       time.Duration    // before each REQ on a connection
	Stall       time.Duration    // how long a relay may bring nothing: of an answer, or when connecting
	Compression bool             // offer permessage-deflate
	Progress    func(string)     // may be nil
}

// Run probes. Relays that fail are a result; the error is ctx's cause, and what was measured until then comes with it.
func Run(ctx context.Context, o Options) (*Report, error) {
	r := &Report{Limit: o.Limit, Shapes: o.Shapes, Compression: o.Compression}
	authors := slices.Clone(o.Authors)
	for _, checks := range o.Checks {
		p := pass{o: &o, checks: checks, authors: &authors, report: Pass{Verified: checks.String()}}
		p.run(ctx)
		r.Passes = append(r.Passes, p.report)
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
	}
	return r, nil
}

// pass asks every relay for every shape, over one connection to each.
type pass struct {
	o       *Options
	checks  receive.Checks
	authors *[]corpus.PubKey
	report  Pass
}

func (p *pass) run(ctx context.Context) {
	links := make([]*link, len(p.o.URLs))
	for i, url := range p.o.URLs {
		links[i] = newLink(p.o, url)
	}
	for i, shape := range p.o.Shapes {
		if ctx.Err() != nil {
			break
		}
		p.say("%s, signatures checked %s", shape, described(p.checks))
		p.ask(ctx, links, shape, i == 0)
	}
	each(links, func(l *link) { l.close() })
	for _, l := range links {
		p.report.Relays = append(p.report.Relays, l.result())
	}
}

func (p *pass) say(format string, args ...any) {
	if p.o.Progress != nil {
		p.o.Progress(fmt.Sprintf(format, args...))
	}
}

func described(c receive.Checks) string {
	if c == receive.Inline {
		return "inline"
	}
	return "in parallel"
}

// each does something with all links at once.
func each(links []*link, do func(*link)) {
	var all sync.WaitGroup
	for _, l := range links {
		all.Go(func() { do(l) })
	}
	all.Wait()
}

// filter is what a shape asks for; ok is false where it takes authors and none is known.
func (p *pass) filter(shape Shape) (f corpus.Filter, ok bool) {
	authors := (*p.authors)[:min(len(*p.authors), MaxAuthors)]
	switch shape {
	case Global:
		return corpus.Filter{Kinds: []int{1}, Limit: corpus.Int(p.o.Limit)}, true
	case Notifications:
		var mentioned []string
		for _, a := range authors {
			mentioned = append(mentioned, a.String())
		}
		return corpus.Filter{Kinds: []int{1, 6, 7, 9735}, Tags: []corpus.TagFilter{{Name: 'p', Values: mentioned}}, Limit: corpus.Int(p.o.Limit)}, len(authors) > 0
	default:
		return corpus.Filter{Kinds: []int{0}, Authors: authors, Limit: corpus.Int(min(p.o.Limit, len(authors)))}, len(authors) > 0
	}
}

// ask puts one shape to all relays at the same time and waits for all answers. The first one follows the connecting at once, on each relay as soon
// as its connection is there.
func (p *pass) ask(ctx context.Context, links []*link, shape Shape, first bool) {
	filter, ok := p.filter(shape)
	if !ok {
		for _, l := range links {
			l.answers = append(l.answers, &answer{shape: shape, outcome: NotAsked, reason: "no author is known: the global feed brought none, and --author names none"})
		}
		return
	}
	tally := newTally(shape, filter, len(links))
	pipeline := receive.New(ctx, receive.Options{Checks: p.checks,
		// Readers never wait here: what an answer may bring is bounded otherwise.
		Queue: maxBytes, QueueEvents: 1 << 20, Remember: 2 * MaxRelays * MaxLimit}, tally.take)
	for _, l := range links {
		l.begin(shape, filter, pipeline.Feeder())
	}
	each(links, func(l *link) {
		if first {
			l.connect(ctx)
		}
		l.ask(ctx, first)
	})
	err := pipeline.Close()
	stats := pipeline.Stats()
	for i, l := range links {
		l.settle(&tally.relays[i])
	}
	alone(links, tally.good)
	if err == nil {
		p.report.Consumption = append(p.report.Consumption, tally.consumption(p.checks, &stats))
	}
	if shape == Global && len(p.o.Authors) == 0 && len(*p.authors) == 0 {
		*p.authors = tally.authors
	}
}

// alone counts what each relay alone brought, of the events that are good.
func alone(links []*link, good map[corpus.ID]struct{}) {
	brought := make(map[corpus.ID]int) // by how many relays
	for _, l := range links {
		for id := range l.asked.ids {
			brought[id]++
		}
	}
	for _, l := range links {
		for id := range l.asked.ids {
			if _, ok := good[id]; ok && brought[id] == 1 {
				l.asked.alone++
			}
		}
	}
}
