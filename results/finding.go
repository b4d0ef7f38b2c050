package results

import "slices"

// Verdict is how a check ended.
type Verdict string

// The verdicts.
const (
	Passed    Verdict = "passed"
	Failed    Verdict = "failed"    // the figures that the check bears on are not what they are called
	Undecided Verdict = "undecided" // it could not be asked, and is held against nobody
	Stated    Verdict = "stated"    // a property or departure that bars no figure
)

// Holds gives the verdict of a check that bars figures where it does not hold.
func Holds(ok bool) Verdict {
	if ok {
		return Passed
	}
	return Failed
}

// States gives the verdict of a check that bars nothing where it does not hold.
func States(ok bool) Verdict {
	if ok {
		return Passed
	}
	return Stated
}

// Finding is what a check found out about a relay. The renderers make the sentence, from Code,
// Verdict and Cause.
type Finding struct {
	Relay    string             `json:"relay"`          // whom the check asked
	Peer     string             `json:"peer,omitempty"` // the other relay of a pair
	Scenario string             `json:"scenario"`
	Labels   Labels             `json:"labels,omitempty"`
	Code     string             `json:"code"` // a stable name of the check: CodeHoldsUnion
	Verdict  Verdict            `json:"verdict"`
	Cause    string             `json:"cause,omitempty"` // a code of what was seen, where a verdict has several
	Counts   map[string]float64 `json:"counts,omitempty"`
	Texts    map[string]string  `json:"texts,omitempty"`   // words of others: a relay's reason, a filter, an error
	BearsOn  []Scope            `json:"bearsOn,omitempty"` // of a failed one: the figures that it invalidates
	Blames   string             `json:"blames,omitempty"`  // of a failed one: the relay at fault; empty where nobody is known to be at fault
	Evidence []Evidence         `json:"evidence,omitempty"`
}

// Evidence is one thing that was seen.
type Evidence struct {
	Code  string `json:"code"`            // one of the Evidence codes
	ID    string `json:"id,omitempty"`    // of an event, 64 hexadecimal digits
	Kind  *int   `json:"kind,omitempty"`  // of that event
	Cause string `json:"cause,omitempty"` // a code of why
	Count int64  `json:"count,omitempty"` // of all that are alike, where this stands for several
	Text  string `json:"text,omitempty"`  // words of others, or an event's text
}

// The codes of Evidence.
const (
	EvidenceMissing    = "missing"    // an event that had to be there
	EvidenceExtra      = "extra"      // an event that must not be there
	EvidenceAltered    = "altered"    // an event that came back otherwise; Text says in what
	EvidenceRefused    = "refused"    // an event that was refused, or Count of them for a reason that Text tells
	EvidenceUnexpected = "unexpected" // an id or event that was not asked for, or of nothing that was published
	EvidenceQuestion   = "question"   // the filter that was asked; Text
	EvidenceOrder      = "order"      // the places in which events came; Text
	EvidenceEvent      = "event"      // an event's text
	EvidenceWords      = "words"      // what the relay said
	EvidenceFrame      = "frame"      // what came instead of a message
	EvidenceLog        = "log"        // a line of a log
	EvidenceSetting    = "setting"    // where in a matrix of settings: Text
	EvidenceText       = "text"       // a line of a record of form 1
)

// Scope names figures: those of scenarios that match a pattern, narrowed down by what else is set.
type Scope struct {
	Scenario string `json:"scenario"`         // "*" is everything, "query.*" is query and all below it, others are exact
	Uses     string `json:"uses,omitempty"`   // only scenarios whose questions use this condition of a filter: "#t"
	Role     Role   `json:"role,omitempty"`   // of a pair's figures: where the relay at fault stands
	Labels   Labels `json:"labels,omitempty"` // that the figure must have
}

// Role is a relay's place in a pair's figure.
type Role string

// The roles.
const (
	AsRelay Role = "relay" // the one whose figure it is: the server that is reconciled with, the sink of a sync
	AsPeer  Role = "peer"  // the other one: the source of a sync
)

// Matches reports whether the pattern stands for the scenario.
func (s *Scope) Matches(scenario string) bool { return MatchScenario(s.Scenario, scenario) }

// MatchScenario reports whether a pattern of a Scope stands for a scenario's key.
func MatchScenario(pattern, scenario string) bool {
	if pattern == "*" {
		return true
	}
	if n := len(pattern) - 2; n > 0 && pattern[n:] == ".*" {
		family := pattern[:n]
		return scenario == family || len(scenario) > n+1 && scenario[:n] == family && scenario[n] == '.'
	}
	return pattern == scenario
}

// Bars reports whether the finding invalidates a figure. uses are the conditions of filters that
// the figure's scenario asks with.
func (f *Finding) Bars(m *Measurement, uses []string) bool {
	if f.Verdict != Failed {
		return false
	}
	for i := range f.BearsOn {
		s := &f.BearsOn[i]
		if s.Matches(m.Scenario) && (s.Uses == "" || slices.Contains(uses, s.Uses)) &&
			m.Labels.Contains(s.Labels) && f.concerns(m, s) {
			return true
		}
	}
	return false
}

// concerns reports whether a figure is of the relay at fault, or of the pair where nobody is known
// to be. What was seen in a pair bears on that pair alone, unless it bears on everything. A
// condition of filters concerns whoever is asked with it: of a sync the source.
func (f *Finding) concerns(m *Measurement, s *Scope) bool {
	samePair := m.Relay == f.Relay && m.Peer == f.Peer || m.Relay == f.Peer && m.Peer == f.Relay
	if f.Blames == "" {
		return samePair
	}
	if f.Peer != "" && !samePair && s.Scenario != "*" {
		return false
	}
	role := s.Role
	if s.Uses != "" && m.Peer != "" {
		role = AsPeer
	}
	switch role {
	case AsRelay:
		return m.Relay == f.Blames
	case AsPeer:
		return m.Peer == f.Blames
	}
	return m.Relay == f.Blames || m.Peer == f.Blames
}

// Barring returns the findings that invalidate a figure of the record, in their order.
func (r *Record) Barring(m *Measurement) []*Finding {
	var uses []string
	if s := r.Scenario(m.Scenario); s != nil {
		uses = s.Uses
	}
	var all []*Finding
	for i := range r.Findings {
		if r.Findings[i].Bars(m, uses) {
			all = append(all, &r.Findings[i])
		}
	}
	return all
}
