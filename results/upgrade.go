package results

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// schema1 is the form before this one: notes and sentences in place of codes, conditions in keys
// and names.
const schema1 = "relaybench/results/1"

type record1 struct {
	Record
	Measurements []measurement1 `json:"measurements"`
	Findings     []finding1     `json:"findings"`
}

type measurement1 struct {
	Measurement
	Note string `json:"note"`
}

type finding1 struct {
	Relay    string   `json:"relay"`
	Peer     string   `json:"peer"`
	Scenario string   `json:"scenario"`
	Check    string   `json:"check"`
	OK       bool     `json:"ok"`
	Required bool     `json:"required"`
	Detail   string   `json:"detail"`
	Evidence []string `json:"evidence"`
}

// upgrade1 reads a record of form 1. This is the one place that takes keys and notes apart: those
// of that form, which does not change any more.
func upgrade1(b []byte) (*Record, error) {
	var old record1
	if err := json.Unmarshal(b, &old); err != nil {
		return nil, jsonError(err, len(b))
	}
	r := &old.Record
	r.Schema = Schema
	notes := 0
	for i := range old.Measurements {
		notes = max(notes, strings.Count(old.Measurements[i].Note, "; "))
	}
	// What upgrading would take too long for.
	err := exceeded(bound{len(old.Measurements), MaxMeasurements, "measurements"}, bound{len(old.Findings), MaxFindings, "findings"},
		bound{notes, MaxStatus, "notes on one measurement"})
	if err = cmp.Or(err, r.withinLimits()); err != nil {
		return nil, err
	}
	for i := range r.Calibration {
		r.Calibration[i].upgrade1()
	}
	seen, used := NewRecorder(r, nil), map[string]bool{}
	for i := range old.Measurements {
		m := old.Measurements[i].upgrade1()
		r.Measurements = append(r.Measurements, m)
		used[m.Metric] = true
		seen.Describe(scenario1(m.Scenario, m.Labels))
	}
	for _, m := range form1().Metrics {
		if used[m.Key] {
			r.Metrics = append(r.Metrics, m)
		}
	}
	for i := range old.Findings {
		f := old.Findings[i].upgrade1()
		r.Findings = append(r.Findings, f)
		if s := scenario1(f.Scenario, f.Labels); s.Section != s.Key { // which may have been measured in no trial
			seen.Describe(s)
		}
	}
	return r, nil
}

// upgrade1 takes the number of connections out of a name: "null relay, EVENT to OK, 4 connections".
func (c *Calibration) upgrade1() {
	i := strings.LastIndex(c.Name, ", ")
	if i < 0 {
		return
	}
	n, _, counted := strings.Cut(c.Name[i+2:], " connection")
	if _, err := strconv.Atoi(n); counted && err == nil {
		c.Name, c.Labels = c.Name[:i], Labels{LabelConnections: n}
	}
}

func (o *measurement1) upgrade1() Measurement {
	m := o.Measurement
	m.Scenario, m.Labels = key1(m.Scenario)
	for _, p := range []struct{ prefix, metric string }{{"rejected: ", "rejected events"}, {"refused: ", "refused"}, {"not stored: ", "not stored"}} {
		if reason, ok := strings.CutPrefix(m.Metric, p.prefix); ok {
			m.Metric, m.Labels = p.metric, m.Labels.With(Labels{LabelReason: reason})
		}
	}
	if rest, ok := strings.CutPrefix(m.Metric, "with "); ok {
		if n, ok := strings.CutSuffix(rest, " in flight"); ok {
			m.Metric, m.Labels = "step", m.Labels.With(Labels{LabelStep: n})
		}
	}
	for note := range strings.SplitSeq(o.Note, "; ") {
		if note != "" {
			m.AddStatus(status1(note, len(m.Trials) > 0))
		}
	}
	return m
}

// key1 takes apart a key: fetch.by-id.c4.f8.b50.raw-deflate is fetch.by-id over 4 connections, with
// 8 REQs in flight on each.
func key1(key string) (string, Labels) {
	parts := strings.Split(key, ".")
	last := parts[len(parts)-1]
	switch family := parts[0]; {
	case family == "query" && len(parts) == 3:
		return key, Labels{LabelQuery: parts[1], LabelForm: last}
	case family == "negentropy" && len(parts) == 2:
		return key, Labels{LabelPhase: last}
	case family == "sync" && len(parts) == 2:
		return key, Labels{LabelMode: last}
	case family == "fetch" && len(parts) > 2:
		labels := Labels{LabelStrategy: parts[1]}
		form, encoding, _ := strings.Cut(last, "-")
		labels[LabelForm] = form
		if encoding != "" {
			labels[LabelEncoding] = encoding
		}
		for _, part := range parts[2 : len(parts)-1] {
			if part == "" {
				continue
			}
			switch name := map[byte]string{'c': LabelConnections, 'f': LabelInFlight, 'b': LabelBatch}[part[0]]; {
			case part == "adaptive":
				labels[LabelInFlight] = part
			case name != "":
				labels[name] = part[1:]
			}
		}
		return "fetch." + parts[1], labels
	}
	return key, nil
}

func status1(note string, measured bool) Status {
	pace := map[string]string{
		"paced by the relay: parsing and verifying cost no speed":                   BottleneckRelay,
		"paced by the client's CPU when events are verified":                        BottleneckClient,
		"paced by relaybench itself, even where it parses nothing":                  BottleneckHarness,
		"paced by neither alone: both wait, or something else takes the processors": BottleneckMixed,
	}
	text := map[string]string{"text": note}
	reason, incomplete := strings.CutPrefix(note, "incomplete")
	reason = strings.TrimPrefix(reason, ": ")
	switch {
	case pace[note] != "":
		return Status{Code: StatusBottleneck, Cause: pace[note]}
	case strings.HasPrefix(note, "limited by the harness"):
		return Status{Code: StatusLimited}
	case strings.HasPrefix(note, "coarse: "):
		return Status{Code: StatusCoarse}
	case note == "a trial gave no number":
		return Status{Code: StatusNoNumber}
	case !measured:
		return Status{Code: StatusNotMeasured, Cause: StatusText, Texts: text}
	case !incomplete:
		return Status{Code: StatusText, Texts: text}
	}
	if limit, ok := strings.CutPrefix(reason, "cut by "); ok {
		return Status{Code: StatusIncomplete, Cause: CauseCut, Texts: map[string]string{"limit": limit}}
	}
	s := Status{Code: StatusIncomplete, Cause: CauseMissing}
	if rest, ok := strings.CutPrefix(reason, "unresolved"); ok {
		s.Cause, reason = CauseUnresolved, strings.TrimPrefix(rest, ", ")
	} else if reason == "it ended early" {
		s.Cause, reason = CauseEnded, ""
	}
	if reason != "" {
		s.Texts = map[string]string{"text": reason}
	}
	return s
}

//go:embed upgrade1.json
var tables1 []byte

// form1 is what form 1 was called, and how it is described now.
var form1 = sync.OnceValue(func() (t struct {
	Codes     map[string]string   // of checks, by the names that they had
	Stated    []string            // codes whose failure bars nothing any more
	Sections  map[string]Scenario // what all scenarios of a family share
	Scenarios []Scenario          // in reading order; a key that ends in a dot stands for all below it
	Metrics   []Metric            // in reading order
}) {
	if err := json.Unmarshal(tables1, &t); err != nil {
		panic("results: upgrade1.json: " + err.Error())
	}
	return t
})

// codeFilters1 is the one check of form 1 on all conditions of a filter.
const codeFilters1 = "filters"

func (o *finding1) upgrade1() Finding {
	f := Finding{Relay: o.Relay, Peer: o.Peer, Code: cmp.Or(form1().Codes[o.Check], o.Check), Cause: StatusText, Texts: map[string]string{"text": o.Detail}}
	f.Scenario, f.Labels = key1(o.Scenario)
	var of, refused int
	if n, _ := fmt.Sscanf(o.Detail, "of %d events that a compliant relay keeps: %d refused", &of, &refused); n == 2 {
		f.Counts = map[string]float64{"of": float64(of), "refused": float64(refused)}
	}
	for _, line := range o.Evidence {
		var kept, refused, silent float64
		if n, _ := fmt.Sscanf(line, "of the missing, the relay had acknowledged %f, refused %f, never answered %f", &kept, &refused, &silent); n == 3 {
			f.Counts = map[string]float64{"missing.acknowledged": kept, "missing.refused": refused, "missing.unanswered": silent}
		}
		f.Evidence = append(f.Evidence, Evidence{Code: EvidenceText, Text: line})
	}
	switch {
	case f.Code == CodeMeasurable || f.Code == CodeNIP77 || f.Code == CodeHasWay || f.Code == CodeWatched:
		f.Verdict = Stated
	case o.OK:
		f.Verdict = Passed
	case !o.Required || slices.Contains(form1().Stated, f.Code):
		f.Verdict = Stated
	default:
		f.Verdict, f.Blames, f.BearsOn = Failed, o.Relay, BearsOn(f.Code, f.Scenario, f.Labels)
		lost := strings.Contains(o.Detail, "acknowledged but lost")
		switch {
		case lost && (f.Code == CodeHoldsSeeded || f.Code == CodeHoldsUnion):
			f.BearsOn = everything
		case f.Code == codeFilters1:
			f.BearsOn = []Scope{{Scenario: "query.*"}}
		case f.Code == CodeThrottles:
			f.BearsOn = Throttled(true, true)
		case f.Code == CodeCompletes && f.Peer != "":
			f.Blames = ""
		}
	}
	return f
}

// explain gives scenarios and metrics the meanings that records of form 2 did not hold at first.
func (r *Record) explain() {
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		s.Meaning = cmp.Or(s.Meaning, scenario1(s.Key, nil).Meaning)
	}
	for _, m := range form1().Metrics {
		used := func(o Measurement) bool { return o.Metric == m.Key }
		if i := slices.IndexFunc(r.Metrics, func(o Metric) bool { return o.Key == m.Key }); i >= 0 {
			r.Metrics[i].Meaning = cmp.Or(r.Metrics[i].Meaning, m.Meaning)
		} else if slices.ContainsFunc(r.Measurements, used) {
			r.Metrics = append(r.Metrics, m)
		}
	}
}

// scenario1 describes a scenario of form 1; one that is not known comes last, under its own key.
func scenario1(key string, labels Labels) Scenario {
	scenarios := form1().Scenarios
	family, _, _ := strings.Cut(key, ".")
	section, known := form1().Sections[family]
	if !known {
		section = Scenario{Title: family, Layout: LayoutBars}
	}
	s := Scenario{Title: key, Order: 100 * len(scenarios)}
	for i, o := range scenarios {
		if o.Key == key || strings.HasSuffix(o.Key, ".") && strings.HasPrefix(key, o.Key) {
			s = o
			s.Title, s.Order = cmp.Or(o.Title, key), 100*(i+1)
			break
		}
	}
	s.Key, s.Section, s.Layout, s.Durability = key, section.Title, section.Layout, family == "ingest"
	s.Primary, s.Unit, s.Meaning = cmp.Or(s.Primary, section.Primary), cmp.Or(s.Unit, section.Unit), cmp.Or(s.Meaning, section.Meaning)
	if form := labels[LabelForm]; family == "query" && form != "" {
		s.Headlines = []Headline{{"eose", form + " queries", nil}, {"events/s", "query events/s", nil}}
		if form == "varied" {
			s.Order++
		}
	}
	return s
}
