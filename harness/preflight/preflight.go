// Package preflight asks a relay what must be known before its figures can be read: does it check
// signatures, store what it acknowledges, answer filters as NIP-01 says, and what are its limits.
// Nothing is believed, everything is asked over real connections, with events of keys that are made
// for the purpose and look like those of the network.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/relays/client"
	"relaybench/relays/wire"
	"relaybench/results"
)

// Scenario is the key under which the findings stand in a record.
const Scenario = "preflight"

// Options say what to ask and how long to wait. Zero values stand for the defaults.
type Options struct {
	URL   string // ws:// or wss://
	Relay string // the name under which the findings stand

	// Oldest and Newest are the times between which the corpus lies, in Unix seconds: events of
	// both must be accepted. The defaults are those of the default synthetic corpus.
	Oldest, Newest int64
	// MaxEventBytes is the largest event that the relay was set up to accept; 65,536 by default.
	// The message size is probed up to it.
	MaxEventBytes int
	// Fsync is what an fsync takes on the disk of the relay's data, the median. Without it nothing
	// is said of fsyncs.
	Fsync time.Duration
	// Only are the codes of the checks to ask, Result.AskAgain of an earlier run say, and the names
	// of the probes, "NIP-45"; none are all checks and all probes.
	Only []string

	Wait   time.Duration // for an answer that must come: 5 s; it moves on with each part of the answer
	Settle time.Duration // how long what was acknowledged may take to be readable: 2.5 s, more on a slow relay
	Quiet  time.Duration // for an answer that may be left out: 1 s
	Check  time.Duration // for one check in all: 15 s
	Total  time.Duration // for everything: 60 s

	flood int // events of the flood
}

const (
	defaultNewest        = 1_780_272_000
	defaultSpan          = 30 * 86400
	defaultMaxEventBytes = 65536
)

func (o Options) withDefaults() Options {
	o.Newest = cmp.Or(o.Newest, defaultNewest)
	o.Oldest = cmp.Or(o.Oldest, o.Newest-defaultSpan)
	o.MaxEventBytes = cmp.Or(o.MaxEventBytes, defaultMaxEventBytes)
	o.Wait = cmp.Or(o.Wait, 5*time.Second)
	o.Settle = cmp.Or(o.Settle, 2500*time.Millisecond)
	o.Quiet = cmp.Or(o.Quiet, time.Second)
	o.Check = cmp.Or(o.Check, 15*time.Second)
	o.Total = cmp.Or(o.Total, 60*time.Second)
	o.flood = cmp.Or(o.flood, floodEvents)
	return o
}

func (o *Options) asks(what string) bool { return len(o.Only) == 0 || slices.Contains(o.Only, what) }

// Result is what was found out about a relay.
type Result struct {
	Findings     []results.Finding // of the checks that were asked, in the order of the table
	Capabilities map[string]string // what was probed, for people: "limit clamp", "NIP-45", …
	Speaks       map[int]bool      // NIPs of which asking found out whether the relay keeps to them
	Negentropy   Negentropy
	// AskAgain are the codes of the checks of which nothing is known: what could not be asked, and
	// what was not asked since that was so of the first check. They are for Options.Only of a later
	// run.
	AskAgain []string
}

// Negentropy says how NEG-OPEN (NIP-77) was answered.
type Negentropy struct {
	// Cause is results.CauseAnswered, CauseUnsupported, CauseRefused or CauseBreaks; "" where
	// nothing is known.
	Cause string
	Texts map[string]string // words of the relay: "reason", "how", "error"
	// Unkept says that it names NIP-77 (NIP-11), and does not answer.
	Unkept bool
}

// Broken reports whether the relay began NIP-77 and broke it, or names it and does not keep to
// that.
func (n *Negentropy) Broken() bool { return n.Unkept || n.Cause == results.CauseBreaks }

// Answered reports whether the relay reconciles.
func (n *Negentropy) Answered() bool { return n.Cause == results.CauseAnswered }

// Passed reports whether no check failed.
func (r *Result) Passed() bool {
	return !slices.ContainsFunc(r.Findings, func(f results.Finding) bool { return f.Verdict == results.Failed })
}

// Known reports whether anything could be found out.
func (r *Result) Known() bool {
	return slices.ContainsFunc(r.Findings, func(f results.Finding) bool { return f.Verdict != results.Undecided })
}

// Merge takes over what a later run found out: findings take the place of those of the same check.
// What is still undecided there is so here.
func (r *Result) Merge(later *Result) {
	for _, f := range later.Findings {
		same := func(o results.Finding) bool { return o.Code == f.Code }
		switch i := slices.IndexFunc(r.Findings, same); {
		case i < 0:
			r.Findings = append(r.Findings, f)
		case f.Verdict != results.Undecided || r.Findings[i].Verdict == results.Undecided:
			r.Findings[i] = f
		}
	}
	slices.SortStableFunc(r.Findings, func(a, b results.Finding) int { return cmp.Compare(place(a.Code), place(b.Code)) })
	maps.Copy(r.Capabilities, later.Capabilities)
	maps.Copy(r.Speaks, later.Speaks)
	if later.Negentropy.Cause != "" {
		r.Negentropy = later.Negentropy
	}
	r.AskAgain = later.AskAgain
}

// place is where a check stands in the table; those of others stand behind it.
func place(code string) int {
	if i := slices.IndexFunc(table, func(c check) bool { return c.code == code }); i >= 0 {
		return i
	}
	return len(table)
}

// parallel is how many checks ask at once. Most of a check is waiting, on a slow relay above all.
const parallel = 4

// prober is one preflight.
type prober struct {
	o   Options
	now int64 // Unix seconds

	challenged atomic.Bool // an AUTH frame (NIP-42) came
	readable   atomic.Bool // an event that was acknowledged came back, in whatever form

	floodKey corpus.SecretKey
	flood    []*corpus.Event // newest first

	mu       sync.Mutex
	rates    map[string]string  // the first text that speaks of a rate limit, by what it limits: "publishing", "asking"
	said     client.Information // by the relay, of itself
	garbage  wire.Garbage       // what came on all connections that ended
	findings []*results.Finding
	open     []bool // of which checks nothing is known
	result   Result
}

// errOutOfTime is the cause of contexts that Options.Check and Options.Total end.
var errOutOfTime = errors.New("the time for asking ran out")

// Run asks the relay. What the relay does wrong is in the Result; the error is ctx's own, and then
// the Result holds what was known by then.
func Run(ctx context.Context, o Options) (Result, error) {
	p := &prober{o: o.withDefaults(), now: time.Now().Unix(), rates: map[string]string{}, findings: make([]*results.Finding, len(table)),
		open: make([]bool, len(table)), result: Result{Capabilities: map[string]string{}, Speaks: map[int]bool{}}}
	for i, c := range table {
		p.open[i] = p.o.asks(c.code)
	}
	if p.o.asks(results.CodeThrottles) {
		p.prepareFlood() // before any clock runs: on a busy machine signing takes longer than asking, and is none of the relay's time
	}
	total, cancel := context.WithTimeoutCause(ctx, p.o.Total, errOutOfTime)
	defer cancel()

	// A relay that takes no event at all is told so once, not thirty times.
	if p.open[0] {
		p.check(total, 0)
	} else {
		p.readable.Store(true) // an earlier run decided that
	}
	if p.readable.Load() {
		p.askAll(total)
	} else if !p.open[0] {
		clear(p.open) // it was asked, and the answer is that no other check can be
	}
	p.findRates()
	for i, f := range p.findings {
		if f != nil {
			p.result.Findings = append(p.result.Findings, *f)
		}
		if p.open[i] {
			p.result.AskAgain = append(p.result.AskAgain, table[i].code)
		}
	}
	return p.result, context.Cause(ctx)
}

// askAll carries out everything behind the first check.
func (p *prober) askAll(ctx context.Context) {
	var group sync.WaitGroup
	slots := make(chan struct{}, parallel)
	run := func(f func()) {
		slots <- struct{}{}
		group.Go(func() { defer func() { <-slots }(); f() })
	}
	for _, c := range probes { // the slowest first: probes wait for answers that may not come
		if p.o.asks(c.name) {
			run(func() { p.probe(ctx, c) })
		}
	}
	for i, c := range table {
		if i > 0 && p.open[i] && !c.alone {
			run(func() { p.check(ctx, i) })
		}
	}
	group.Wait()
	for i, c := range table {
		if p.open[i] && c.alone {
			p.check(ctx, i)
		}
	}
	if p.o.asks("NIP-42") {
		p.capable("NIP-42", map[bool]string{true: "yes: clients are challenged when they connect", false: "no challenge"}[p.challenged.Load()])
	}
}

// check carries out one check of the table, with connections and a key of its own.
func (p *prober) check(ctx context.Context, i int) {
	c := &table[i]
	seen, err := p.carryOut(ctx, c.ask)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), errOutOfTime) {
		return // interrupted: nothing is known
	}
	p.locked(func() {
		if p.open[i] = false; errors.Is(err, errNoQuestion) {
			return
		}
		f := c.finding(seen, err, p.o.Relay)
		p.findings[i], p.open[i] = &f, f.Verdict == results.Undecided
	})
}

// probe carries out one capability probe.
func (p *prober) probe(ctx context.Context, c probe) {
	var spoken bool
	var text string
	_, err := p.carryOut(ctx, func(k *checker) { spoken, text = c.ask(k) })
	if err != nil {
		text = "unknown: " + err.Error()
	} else if c.nip > 0 {
		p.speaks(c.nip, spoken)
	}
	p.capable(c.name, text)
}

func (p *prober) locked(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

func (p *prober) speaks(nip int, yes bool) { p.locked(func() { p.result.Speaks[nip] = yes }) }

func (p *prober) capable(name, text string) {
	p.locked(func() { p.result.Capabilities[name] = clip(text, maxLine) })
}

// carryOut carries out a check, and returns what it tells and what ended it.
func (p *prober) carryOut(ctx context.Context, check func(*checker)) (results.Finding, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.o.Check, errOutOfTime)
	defer cancel()
	c := &checker{prober: p, ctx: ctx, key: newKey()}
	defer c.close()
	err := try(func() { check(c) })
	return c.seen, err
}
