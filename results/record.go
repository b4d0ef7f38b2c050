// Package results holds what a run produces: measurements, findings, and the one record that every
// report is a function of.
package results

import "time"

// Schema identifies the record's form; results.schema.json describes it. A record of form 1 is
// upgraded when it is read.
const Schema = "relaybench/results/2"

// Better says in which direction a metric improves.
type Better string

// The directions. None marks a figure that is stated and never ranked.
const (
	Higher Better = "higher"
	Lower  Better = "lower"
	None   Better = "none"
)

// Measurement is one metric of one relay (of a pair, where Peer is set) in one scenario.
type Measurement struct {
	Relay     string   `json:"relay"`          // "" for the harness itself
	Peer      string   `json:"peer,omitempty"` // the other relay of a pair; of a sync, the source
	Scenario  string   `json:"scenario"`       // a stable dotted key, "query.thread.hot"
	Labels    Labels   `json:"labels,omitempty"`
	Metric    string   `json:"metric"` // "accepted", "ok latency"
	Unit      string   `json:"unit"`   // "events/s", "ms", "bytes/event"
	Better    Better   `json:"better"`
	Trials    Values   `json:"trials"`              // one value for each trial, in the order they ran; finite, and none below 0
	Samples   int64    `json:"samples,omitempty"`   // how many observations stand behind the values
	Clamped   int64    `json:"clamped,omitempty"`   // observations outside 0…60 s, counted in the histogram at that bound
	Histogram string   `json:"histogram,omitempty"` // HDR, compressed V2, base64; nanoseconds; trials merged
	Timeline  Values   `json:"timeline,omitempty"`  // the last trial second by second, in the unit
	Exact     bool     `json:"exact,omitempty"`     // deterministic: compared exactly, never by statistics
	Status    []Status `json:"status,omitempty"`    // what a reader must know of the figure; empty where it is plain
}

// Outcome says how a relay's part in the run ended.
type Outcome string

// The outcomes. Everything but OutcomeOK comes with a reason.
const (
	OutcomeOK      Outcome = "ok"
	OutcomeFailed  Outcome = "failed"  // booted, then crashed, stalled or fell short
	OutcomeNoStart Outcome = "nostart" // never became ready
	OutcomeSkipped Outcome = "skipped" // the run ended first
	// OutcomeUnmeasured: the machine was short of something, and Shortage says of what. It is
	// nobody's fault.
	OutcomeUnmeasured Outcome = "unmeasured"
)

// Relay is one relay as it was run.
type Relay struct {
	Name         string            `json:"name"`
	Command      string            `json:"command"`          // the template as launched, {port} and {dir} left standing
	URL          string            `json:"url,omitempty"`    // set for a relay that relaybench did not launch
	Config       map[string]string `json:"config,omitempty"` // rendered files by path below {dir}
	Version      string            `json:"version"`
	SHA256       string            `json:"sha256,omitempty"` // of the program file
	Durability   string            `json:"durability"`       // commit, batch, none or unknown
	Capabilities map[string]string `json:"capabilities,omitempty"`
	Notes        []string          `json:"notes,omitempty"`
	NeverRanked  string            `json:"neverRanked,omitempty"` // set: measured, but put in no ranking, and this is why
	Outcome      Outcome           `json:"outcome"`
	Reason       string            `json:"reason,omitempty"`
	Shortage     string            `json:"shortage,omitempty"` // a Shortage code, of OutcomeUnmeasured
	LogTail      []string          `json:"logTail,omitempty"`  // with a failure: the log's last lines
}

// Corpus identifies what was replayed.
type Corpus struct {
	Source      string         `json:"source"`
	Fingerprint string         `json:"fingerprint"` // 64 hexadecimal digits
	Events      int            `json:"events"`
	Bytes       int64          `json:"bytes"`
	Kinds       map[string]int `json:"kinds"`             // events by kind number
	Dropped     map[string]int `json:"dropped,omitempty"` // left out in preparation, by reason
}

// Tool is the relaybench that measured.
type Tool struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from a tree with uncommitted changes
	Go       string `json:"go"`
	Verifier string `json:"verifier"` // the library that checks signatures
}

// Environment is the machine, without anything private: no host name, no user, no path.
type Environment struct {
	OS             string      `json:"os"`
	Arch           string      `json:"arch"`
	Kernel         string      `json:"kernel,omitempty"`
	Distribution   string      `json:"distribution,omitempty"`
	CPU            string      `json:"cpu,omitempty"`
	Cores          int         `json:"cores"`                // logical processors that relaybench may use
	QuotaCores     float64     `json:"quotaCores,omitempty"` // as many cores' time as the control group allows, where it limits it
	Governor       string      `json:"governor,omitempty"`   // CPU frequency governor
	MemoryBytes    uint64      `json:"memoryBytes,omitempty"`
	MemoryLimit    uint64      `json:"memoryLimit,omitempty"`    // bytes, of the control group
	Virtualization string      `json:"virtualization,omitempty"` // the hypervisor
	Container      string      `json:"container,omitempty"`      // what runs the container
	FileSystem     string      `json:"fileSystem,omitempty"`     // of the work directory
	Disk           string      `json:"disk,omitempty"`           // kind of device that it lies on: "NVMe", "virtio"
	Rotational     bool        `json:"rotational,omitempty"`     // that device says that it turns
	HarnessCores   []int       `json:"harnessCores,omitempty"`   // with --pin: the processors that relaybench kept to
	RelayCores     []int       `json:"relayCores,omitempty"`     // and those that the relays were kept to
	LoadBefore     *float64    `json:"loadBefore,omitempty"`     // 1-minute load average
	LoadAfter      *float64    `json:"loadAfter,omitempty"`
	BusyBefore     *float64    `json:"busyBefore,omitempty"` // cores' worth of work that other programs did just before the run
	During         *Conditions `json:"during,omitempty"`
}

// InMemory says whether the file system of the work directory keeps its files in memory.
func (e *Environment) InMemory() bool { return e.FileSystem == "tmpfs" || e.FileSystem == "ramfs" }

// Conditions are what the machine went through during the run.
type Conditions struct {
	Seconds          float64 `json:"seconds"`                   // how long it was watched
	BackgroundCores  float64 `json:"backgroundCores,omitempty"` // cores' worth of work by other programs than relaybench and its relays
	StolenCores      float64 `json:"stolenCores,omitempty"`     // cores' worth of time that the hypervisor gave to others
	HarnessCores     float64 `json:"harnessCores,omitempty"`    // cores' worth of relaybench's own work
	ThrottledPeriods uint64  `json:"throttledPeriods,omitempty"`
	ThrottledSeconds float64 `json:"throttledSeconds,omitempty"` // how long the control group's quota held processes up
	ThermalThrottles uint64  `json:"thermalThrottles,omitempty"` // how often the processor slowed down for heat or power
	SwappedBytes     uint64  `json:"swappedBytes,omitempty"`     // moved to and from swap
	SwapUsedBytes    uint64  `json:"swapUsedBytes,omitempty"`    // in use at the end
}

// Calibration is one figure of the harness itself on this machine.
type Calibration struct {
	Name   string  `json:"name"`             // a stable name, without what Labels say
	Labels Labels  `json:"labels,omitempty"` // connections; when, for a figure taken at the run's end
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"`
}

// Record is results.json.
type Record struct {
	Schema       string         `json:"schema"`
	Partial      bool           `json:"partial"` // interrupted, failed, or not yet finished
	StartedAt    time.Time      `json:"startedAt"`
	FinishedAt   *time.Time     `json:"finishedAt,omitempty"`
	Tool         Tool           `json:"tool"`
	Environment  Environment    `json:"environment"`
	Calibration  []Calibration  `json:"calibration,omitempty"`
	Corpus       Corpus         `json:"corpus"`
	Scenarios    []Scenario     `json:"scenarios"` // what was measured, in reading order
	Metrics      []Metric       `json:"metrics"`   // what their metrics are called, in reading order
	Options      map[string]any `json:"options"`   // by flag name without dashes; "args" holds the command line's words
	Relays       []Relay        `json:"relays"`
	Measurements []Measurement  `json:"measurements"`
	Findings     []Finding      `json:"findings"`
}
