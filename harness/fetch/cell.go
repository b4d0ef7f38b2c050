// Package fetch downloads what one relay holds in the ways in which a client may: with one giant REQ, in pages, over several connections that each
// take a share of the time, or by id once the ids are known. It measures what each way brings and costs, and what sets its pace.
package fetch

import (
	"strconv"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays"
	"relaybench/relays/client"
	"relaybench/results"
)

// Strategy is a way to ask for many events.
type Strategy string

// The strategies, as they stand in scenario keys.
const (
	Giant        Strategy = "giant"         // one REQ for everything
	Paged        Strategy = "paged"         // one connection, page by page by until
	ShardedGiant Strategy = "sharded-giant" // a giant REQ for a share of the time on each of several connections
	ShardedPaged Strategy = "sharded-paged" // pages of a share of the time on each
	ByID         Strategy = "by-id"         // REQs for ids, which are known
	Negentropy   Strategy = "negentropy"    // the ids from a reconciliation with nothing (NIP-77), then by id
)

// Strategies lists all, in the order in which they are measured.
func Strategies() []Strategy {
	return []Strategy{Paged, Giant, ShardedGiant, ShardedPaged, ByID, Negentropy}
}

// Title says in a few words what a strategy is.
func (s Strategy) Title() string {
	switch s {
	case Giant:
		return "one REQ for everything"
	case Paged:
		return "page by page"
	case ShardedGiant:
		return "one REQ on each of several connections, by time"
	case ShardedPaged:
		return "pages on several connections, by time"
	case ByID:
		return "by id, in batches"
	}
	return "the ids by reconciliation, then by id"
}

// Uses lists the conditions of a filter (NIP-01) that the strategy needs a relay to keep.
func (s Strategy) Uses() []string {
	switch s {
	case Giant:
		return []string{results.UsesLimit}
	case Paged:
		return []string{results.UsesUntil, results.UsesLimit, results.UsesOrder}
	case ShardedGiant:
		return []string{results.UsesSince, results.UsesUntil, results.UsesLimit}
	case ShardedPaged:
		return []string{results.UsesSince, results.UsesUntil, results.UsesLimit, results.UsesOrder}
	}
	return []string{results.UsesIDs}
}

// Form says what is done with what comes, and how it comes.
type Form struct {
	Parsed  bool // every event is parsed, its id recomputed and its signature verified; else its id is found and counted
	Deflate bool // permessage-deflate is offered (RFC 7692)
}

// Forms lists all.
func Forms() []Form {
	return []Form{{}, {Parsed: true}, {Deflate: true}, {Parsed: true, Deflate: true}}
}

// String is the form for people: "raw", "parsed-deflate".
func (f Form) String() string {
	name := "raw"
	if f.Parsed {
		name = "parsed"
	}
	if f.Deflate {
		name += "-deflate"
	}
	return name
}

// Cell is one way to fetch with all its settings: what one figure stands for.
type Cell struct {
	Strategy Strategy
	Form     Form
	Conns    int // connections
	InFlight int // REQs at a time on each, by id
	Batch    int // ids in one REQ
	Adaptive bool
	Matrix   bool // one of many that differ in Conns, InFlight and Batch
}

// Labels are the cell's settings as its figures carry them. Settings that a strategy has no choice
// of are left out.
func (c Cell) Labels() results.Labels {
	l := results.Labels{results.LabelStrategy: string(c.Strategy), results.LabelForm: "raw"}
	if c.Form.Parsed {
		l[results.LabelForm] = "parsed"
	}
	if c.Form.Deflate {
		l[results.LabelEncoding] = "deflate"
	}
	if c.Matrix || c.Adaptive {
		l[results.LabelConnections], l[results.LabelBatch] = strconv.Itoa(c.Conns), strconv.Itoa(c.Batch)
		l[results.LabelInFlight] = strconv.Itoa(c.InFlight)
		if c.Adaptive {
			l[results.LabelInFlight] = "adaptive"
		}
	}
	return l
}

// Options are how to measure.
type Options struct {
	Stall  time.Duration // without progress for so long, a connection is given up
	Time   time.Duration // a cell takes so long at most; 0: as long as Budget allows
	Events int           // a cell takes so many events at most; 0: all
	Page   int           // events asked for in a page
	Shards int           // connections of the sharded strategies
	Full   bool          // the whole matrix, not a part of it
	// Adaptive adds cells that find the number of REQs in flight by themselves.
	Adaptive bool
	Now      int64 // Unix seconds: what has expired (NIP-40) is decided by it
	Budget   *load.Budget
}

// Target is a relay to fetch from.
type Target struct {
	URL     string
	Process *relays.Process // what it used is asked of it; nil where it was not launched here
	Filter  corpus.Filter   // what to fetch; its Limit is not used
	Ground  *Ground         // what should come
	Limits  Limits

	asking      sync.Mutex
	compression *bool           // whether it agrees to permessage-deflate; nil until it was asked
	no77        *results.Reason // why it does not speak NIP-77, none where it does; nil until it was asked
}

// Limits are what a relay says it keeps to. Zero is unknown or unlimited.
type Limits struct {
	client.Limits
	From string // who says so: results.LimitsDeclared or LimitsTold
}

// matrix are the settings of fetching by id that are tried out in every combination.
type matrix struct{ conns, inFlight, batch []int }

var (
	fullMatrix  = matrix{[]int{1, 2, 4, 8, 16}, []int{1, 4, 8, 16, 20}, []int{50, 125, 250}}
	smallMatrix = matrix{[]int{1, 4}, []int{1, 8}, []int{50, 250}}
)

// mostInFlight is where growing ends.
const mostInFlight = 20

// Cells lists what a strategy is measured in: each setting in every form, side by side, so that they compare.
func (o *Options) Cells(s Strategy) []Cell {
	var settings []Cell
	switch s {
	case Giant, Paged:
		settings = append(settings, Cell{Conns: 1, InFlight: 1})
	case ShardedGiant, ShardedPaged:
		settings = append(settings, Cell{Conns: max(1, o.Shards), InFlight: 1})
	case Negentropy:
		settings = append(settings, Cell{Conns: 4, InFlight: 8, Batch: 250})
	case ByID:
		m := smallMatrix
		if o.Full {
			m = fullMatrix
		}
		for _, batch := range m.batch {
			for _, conns := range m.conns {
				for _, inFlight := range m.inFlight {
					settings = append(settings, Cell{Conns: conns, InFlight: inFlight, Batch: batch, Matrix: true})
				}
			}
		}
		if o.Adaptive {
			for _, conns := range smallMatrix.conns {
				settings = append(settings, Cell{Conns: conns, InFlight: mostInFlight, Batch: 125, Adaptive: true})
			}
		}
	}
	var all []Cell
	for _, c := range settings {
		for _, form := range Forms() {
			c.Strategy, c.Form = s, form
			all = append(all, c)
		}
	}
	return all
}

// fit brings a cell within the relay's limits where it has no settings of its own, and says why it cannot be measured where it has.
func (c *Cell) fit(l Limits) (whyNot results.Reason) {
	limited := func(code string, most int) results.Reason {
		return results.Reason{Code: code, Counts: map[string]float64{"most": float64(most)}, Texts: map[string]string{"source": l.From}}
	}
	if l.Subscriptions > 0 && c.InFlight > l.Subscriptions {
		if c.Matrix && !c.Adaptive {
			return limited(results.CauseSubscriptionLimit, l.Subscriptions)
		}
		c.InFlight = l.Subscriptions
	}
	if l.Events > 0 && c.Batch > l.Events {
		if c.Matrix {
			return limited(results.CauseEventLimit, l.Events)
		}
		c.Batch = l.Events
	}
	return results.Reason{}
}
