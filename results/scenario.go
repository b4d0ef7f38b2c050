package results

import "slices"

// Scenario describes one scenario of a record, so that a reader needs no table of names.
type Scenario struct {
	Key     string `json:"key"`
	Title   string `json:"title"`
	Section string `json:"section"` // the heading under which it stands
	// Meaning says in sentences what its title leaves open. What several of a section say alike is
	// shown once.
	Meaning string `json:"meaning,omitempty"`
	// Order is its place in reading order; scenarios of one section stand together.
	Order     int        `json:"order"`
	Primary   string     `json:"primary,omitempty"` // the metric that stands for it
	Unit      string     `json:"unit,omitempty"`    // of the primary metric
	Layout    Layout     `json:"layout"`
	Uses      []string   `json:"uses,omitempty"` // conditions of the filters that it asks with: "ids", "#e", "limit"
	Headlines []Headline `json:"headlines,omitempty"`
	// Ceiling is what bounds its rates of events on the harness's side, empty where nothing that is
	// calibrated does.
	Ceiling Ceiling `json:"ceiling,omitempty"`
	// RoundTrips are its latencies that hold one frame there and at least one back: the loopback's
	// echo is their floor.
	RoundTrips []string `json:"roundTrips,omitempty"`
	// Tables and Rows name the labels that tell the tables of LayoutTable apart, and their rows
	// beside the relays. Without Tables there is one table, of the scenario's title.
	Tables []string `json:"tables,omitempty"`
	Rows   []string `json:"rows,omitempty"`
	// Durability says that syncing before the OK costs what others do not pay.
	Durability bool `json:"durability,omitempty"`
}

// Layout says how the figures of a scenario are laid out. Bars and queries take any metrics; pairs
// tell their phases by LabelPhase and put the figures of both relays of a Peer side by side; a
// matrix takes one figure for each relay (the sink) and Peer (the source); downloads are told apart
// by LabelStrategy, LabelForm, LabelConnections, LabelInFlight and LabelBatch; tables by what
// Tables and Rows name.
type Layout string

// The layouts.
const (
	LayoutBars      Layout = "bars"      // a metric a block, a relay a row
	LayoutQueries   Layout = "queries"   // the same, in one table with the other queries
	LayoutPairs     Layout = "pairs"     // a pair a block, a phase a row
	LayoutMatrix    Layout = "matrix"    // sources down, sinks across
	LayoutDownloads Layout = "downloads" // a strategy a row, and a matrix of settings
	LayoutTable     Layout = "table"     // a relay a row, a metric a column; nothing is ranked
)

// Ceiling names what the harness reaches with a relay that does nothing, and over how many
// connections.
type Ceiling string

// The ceilings.
const (
	CeilingIngest   Ceiling = "ingest"   // CeilingPublish over the option publishers
	CeilingPair     Ceiling = "pair"     // CeilingPublish over one connection: from relay to relay
	CeilingQuery    Ceiling = "query"    // CeilingReceive over the option query-conns
	CeilingDownload Ceiling = "download" // CeilingReceive over the figure's LabelConnections, else one
	CeilingNone     Ceiling = "none"     // the work is a relay's own command: nothing of the harness bounds it
)

// Headline is a figure of the summary. Those of one title share a column, as a geometric mean.
type Headline struct {
	Metric string `json:"metric"`
	Title  string `json:"title"`
	Labels Labels `json:"labels,omitempty"` // that the figure must have
}

// Metric describes a metric, under whatever scenario it stands.
type Metric struct {
	Key     string     `json:"key"`
	Title   string     `json:"title"`
	Role    MetricRole `json:"role"`
	Sums    bool       `json:"sums,omitempty"`    // figures of several scenarios add up
	Meaning string     `json:"meaning,omitempty"` // a clause, where the title does not say it
}

// MetricRole says what a metric is for.
type MetricRole string

// The roles of metrics.
const (
	RoleFigure   MetricRole = "figure"   // shown, and ranked where it has a direction
	RoleStated   MetricRole = "stated"   // better one way, but all should be at their best: a line, and no bars
	RoleResource MetricRole = "resource" // what relay and harness consumed: one table for all
)

// The conditions of filters (NIP-01) that Uses name; a tag is "#" with its letter.
const (
	UsesIDs     = "ids"
	UsesAuthors = "authors"
	UsesKinds   = "kinds"
	UsesSince   = "since"
	UsesUntil   = "until"
	UsesLimit   = "limit"
	UsesOrder   = "order" // newest first, which NIP-01 asks for with a limit
)

// Scenario returns the description of a key, nil where there is none.
func (r *Record) Scenario(key string) *Scenario {
	if i := slices.IndexFunc(r.Scenarios, func(s Scenario) bool { return s.Key == key }); i >= 0 {
		return &r.Scenarios[i]
	}
	return nil
}

// Metric returns the description of a metric; one that has none is a figure under its own name.
func (r *Record) Metric(key string) Metric {
	if i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Key == key }); i >= 0 {
		return r.Metrics[i]
	}
	return Metric{Key: key, Title: key, Role: RoleFigure}
}
