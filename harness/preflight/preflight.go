// Package preflight asks a relay what must be known before its figures can be read: does it check signatures, store what it
// acknowledges, answer filters as NIP-01 says, and what are its limits. Nothing is believed, everything is asked over real connections, with
// events of keys that are made for the purpose.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"relaybench/corpus"
	"relaybench/harness/measure"
)

// Scenario is the key under which the findings stand in a record.
const Scenario = "preflight"

// Options say what to ask and how long to wait. Zero values stand for the defaults.
type Options struct {
	URL string // ws:// or wss://

	// Oldest and Newest are the times between which the corpus lies, in Unix seconds: events of both must be accepted. The defaults are those
	// of the default synthetic corpus.
	Oldest, Newest int64
	// MaxEventBytes is the largest event that the relay was set up to accept; 65,536 by default. The message size is probed up to it.
	MaxEventBytes int

	Wait   time.Duration // for an answer that must come: 5 s; it moves on with each part of the answer
	Settle time.Duration // how long what was acknowledged may take to be readable: 2.5 s
	Quiet  time.Duration // for an answer that may be left out: 1 s
	Check  time.Duration // for one check in all: 15 s
	Total  time.Duration // for everything: 45 s

	flood  int  // events of the flood
	narrow bool // the checks alone, without the probes
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
	o.Total = cmp.Or(o.Total, 45*time.Second)
	o.flood = cmp.Or(o.flood, floodEvents)
	return o
}

// Status is how a check ended.
type Status string

// The ways in which a check ends.
const (
	Passed   Status = "passed"
	Failed   Status = "failed"
	NotAsked Status = "not asked" // nothing is known: what the check needs could not be had
)

// Verdict is a check's outcome.
type Verdict struct {
	Check    string   `json:"check"`    // a stable name
	Required bool     `json:"required"` // a failure makes the relay's figures mean something else
	Status   Status   `json:"status"`
	Detail   string   `json:"detail"` // one sentence; texts of the relay in it are bounded and otherwise as they came
	Evidence []string `json:"evidence,omitempty"`
}

// Result is what was found out about a relay.
type Result struct {
	Verdicts     []Verdict         // in the order of the table, every check once
	Capabilities map[string]string // what was probed: "limit clamp", "NIP-45", …
	Negentropy   bool              // NEG-OPEN (NIP-77) is answered; NegentropyDetail says how it was, or was not
	// NegentropyDetail is empty where NEG-OPEN was not tried.
	NegentropyDetail string
}

// Passed reports whether no required check failed.
func (r *Result) Passed() bool {
	for _, v := range r.Verdicts {
		if v.Required && v.Status == Failed {
			return false
		}
	}
	return true
}

// Findings returns the verdicts as a record keeps them. What was not asked is left out.
func (r *Result) Findings(relay string) []measure.Finding {
	var all []measure.Finding
	for _, v := range r.Verdicts {
		if v.Status != NotAsked {
			all = append(all, measure.Finding{Relay: relay, Scenario: Scenario, Check: v.Check, OK: v.Status == Passed, Required: v.Required, Detail: v.Detail, Evidence: v.Evidence})
		}
	}
	return all
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

	mu        sync.Mutex
	throttled string // the first text that speaks of a rate limit
	result    Result
}

// errOutOfTime is the cause of contexts that Options.Check and Options.Total end.
var errOutOfTime = errors.New("the time for asking ran out")

// Run asks the relay. What the relay does wrong is in the Result; the error is ctx's own, and then the Result holds what was known by then.
func Run(ctx context.Context, o Options) (Result, error) {
	p := &prober{o: o.withDefaults(), now: time.Now().Unix()}
	p.result.Capabilities = make(map[string]string)
	p.result.Verdicts = make([]Verdict, len(table))
	for i, c := range table {
		p.result.Verdicts[i] = Verdict{Check: c.name, Required: c.required, Status: NotAsked, Detail: "not asked: no event was accepted and returned before"}
	}
	p.prepareFlood() // before any clock runs: on a busy machine signing takes longer than asking, and is none of the relay's time
	total, cancel := context.WithTimeoutCause(ctx, p.o.Total, errOutOfTime)
	defer cancel()

	// A relay that takes no event at all is told so once, not twenty times.
	p.check(total, 0)
	if p.readable.Load() {
		var group sync.WaitGroup
		slots := make(chan struct{}, parallel)
		run := func(f func()) {
			slots <- struct{}{}
			group.Go(func() { defer func() { <-slots }(); f() })
		}
		// The slowest first: probes wait for answers that may not come.
		for _, c := range probes {
			if p.o.narrow {
				break
			}
			run(func() { p.probe(total, c) })
		}
		for i, c := range table {
			if i > 0 && c.name != throttles {
				run(func() { p.check(total, i) })
			}
		}
		group.Wait()
		for i, c := range table {
			if c.name == throttles {
				p.check(total, i)
			}
		}
		p.capable("NIP-42", map[bool]string{true: "yes: clients are challenged when they connect", false: "no challenge"}[p.challenged.Load()])
	} else {
		p.throttledBefore()
	}
	return p.result, context.Cause(ctx)
}

// throttledBefore fails the check on throttling where the very first event met a rate limit.
func (p *prober) throttledBefore() {
	for i := range p.result.Verdicts {
		if v := &p.result.Verdicts[i]; v.Check == throttles && p.throttled != "" {
			v.Status, v.Detail = Failed, fmt.Sprintf("the relay limits the rate of events: %s", p.throttled)
		}
	}
}

// shortfall is what a relay did wrong.
type shortfall struct {
	detail   string
	evidence []string
}

func (s *shortfall) Error() string { return s.detail }

func fail(evidence []string, format string, args ...any) error {
	return &shortfall{fmt.Sprintf(format, args...), evidence}
}

// check carries out one check of the table, with connections and a key of its own.
func (p *prober) check(ctx context.Context, i int) {
	c := table[i]
	detail, err := p.asking(ctx, c.ask)
	v := Verdict{Check: c.name, Required: c.required, Status: Passed, Detail: detail}
	short := (*shortfall)(nil)
	switch {
	case err == nil:
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errOutOfTime):
		v.Status, v.Detail = NotAsked, fmt.Sprintf("could not be found out: %v", context.Cause(ctx))
	case errors.As(err, &short):
		v.Status, v.Detail, v.Evidence = Failed, short.detail, bounded(short.evidence)
	case c.required:
		// A relay that could not be checked cannot be vouched for.
		v.Status, v.Detail = Failed, fmt.Sprintf("could not be found out: %v", err)
	default:
		v.Status, v.Detail = NotAsked, fmt.Sprintf("could not be found out: %v", err)
	}
	v.Detail = clip(v.Detail, maxDetail)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Verdicts[i] = v
}

// probe carries out one capability probe.
func (p *prober) probe(ctx context.Context, c probe) {
	value, err := p.asking(ctx, c.ask)
	if err != nil {
		value = fmt.Sprintf("unknown: %v", err)
	}
	p.capable(c.name, value)
}

func (p *prober) capable(name, value string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.result.Capabilities[name] = clip(value, maxDetail)
}

func (p *prober) asking(ctx context.Context, ask func(*asking) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, p.o.Check, errOutOfTime)
	defer cancel()
	a := &asking{prober: p, ctx: ctx, key: newKey()}
	defer a.close()
	return ask(a)
}

// sawThrottle notes a text that speaks of a rate limit.
func (p *prober) sawThrottle(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.throttled == "" {
		p.throttled = text
	}
}

func (p *prober) throttle() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.throttled
}
