package results

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
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
	for _, m := range metrics1 {
		if used[m.key] {
			r.Metrics = append(r.Metrics, Metric{Key: m.key, Title: m.title, Role: m.role, Sums: m.sums})
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

// codes1 are the checks of form 1, by the names that they had.
var codes1 = map[string]string{
	"can be measured": CodeMeasurable, "can be asked": CodeMeasurable, "completes": CodeCompletes, "sends only messages": CodeOnlyMessage,
	"keeps connections open": CodeConnections, "accepts what a compliant relay keeps": CodeAccepts, "accepts single events": CodeAcceptsSingle,
	"accepts events on a schedule": CodeAcceptsPaced, "accepts one more event": CodeAcceptsOneMore,
	"accepted events become queryable": CodeQueryable, "had not seen the events before": CodeUnseenBefore, "answers only what was sent": CodeOnlySent,
	"nothing acknowledged is missing": CodeAcknowledgedKept, "events come back as they were sent": CodeUnaltered,
	"returns only what was asked for": CodeOnlyAsked, "is answered with EOSE": CodeEOSE, "returns what the model returns": CodeModel,
	"answers in full": CodeUncapped, "speaks NIP-77": CodeNIP77, "holds its share after seeding": CodeHoldsSeeded,
	"finds exactly the difference": CodeDifference, "carries every event over": CodeCarried, "converges": CodeHoldsUnion,
	"stays the same without writes": CodeSteady, "knows an event as soon as it is acknowledged": CodeAtOnce,
	"finds scattered differences": CodeScattered, "holds what was imported": CodeImported, "returns what it names": CodeReturnsNamed,
	"has a way": CodeHasWay, "is watched second by second": CodeWatched, "holds what the source held": CodeHoldsSource,
	"sends what it holds": CodeSendsHeld, "serves as a source": CodeServesSource, "no second holds more than a page": CodeSecondsPaged,
	"its sync command succeeds": CodeSyncCommand, "is complete": CodeComplete, "sends nothing else": CodeOnlyRequested,
	"stores and returns a valid event": CodeStores, "returns text unchanged": CodeText, "refuses a bad signature": CodeBadSignature,
	"refuses a bad id": CodeBadID, "refuses malformed events": CodeMalformed, "accepts events of the corpus' time": CodeCorpusTime,
	"accepts events of 2020": CodeYear2020, "returns kinds 4 and 1059": CodePrivateKinds, "answers a duplicate": CodeDuplicate,
	"filters by id, author, kind and tag": codeFilters1, "keeps to the limit": CodeLimit, "answers newest first": CodeOrder,
	"since and until are inclusive": CodeInclusive, "takes several filters in one REQ": CodeSeveral,
	"replaces replaceable events": CodeReplaceable, "replaces addressable events": CodeAddressable,
	"keeps out superseded versions": CodeLateVersion, "passes ephemeral events on and stores none": CodeEphemeral,
	"sends live events after EOSE": CodeLive, "filters live events": CodeLiveFilter, "ends a subscription on CLOSE": CodeClose,
	"does not throttle": CodeThrottles, "survives the preflight": CodeSurvives,
}

// codeFilters1 is the one check of form 1 on all conditions of a filter.
const codeFilters1 = "filters"

// stated1 are the codes whose failure bars nothing any more.
var stated1 = map[string]bool{CodeMalformed: true, CodeYear2020: true, CodeDuplicate: true, CodeSeveral: true, CodeLateVersion: true,
	CodeEphemeral: true, CodeClose: true, CodeText: true, CodeMeasurable: true, CodeNIP77: true, CodeHasWay: true, CodeWatched: true}

func (o *finding1) upgrade1() Finding {
	f := Finding{Relay: o.Relay, Peer: o.Peer, Code: cmp.Or(codes1[o.Check], o.Check), Cause: StatusText, Texts: map[string]string{"text": o.Detail}}
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
	case !o.Required || stated1[f.Code]:
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

// scenarios1 are the scenarios of form 1 in reading order; a key that ends in a dot stands for all
// below it.
var scenarios1 = []Scenario{
	{Key: "ingest.throughput", Title: "Publishing at full speed", Primary: "accepted", Unit: "events/s", Headlines: []Headline{{"accepted", "accepted/s", nil}, {"ok latency", "OK latency", nil}}},
	{Key: "ingest.visibility", Title: "From publish to readable", Primary: "visible", Unit: "ms", Headlines: []Headline{{"visible", "visible", nil}}},
	{Key: "ingest.paced", Title: "On a schedule, whatever the answers", Primary: "ok from intended", Unit: "ms"},
	{Key: "query.firehose.", Title: "firehose: the newest events of all kinds"},
	{Key: "query.global-feed.", Title: "global-feed: the newest notes"},
	{Key: "query.profiles.", Title: "profiles: of the 50 busiest authors"},
	{Key: "query.author-archive.", Title: "author-archive: everything by the 3 quietest"},
	{Key: "query.follow-feed.", Title: "follow-feed: notes of 150 followed authors"},
	{Key: "query.thread.", Title: "thread: under the most referenced note"},
	{Key: "query.notifications.", Title: "notifications: of the most mentioned key"},
	{Key: "query.conversation.", Title: "conversation: between two people"},
	{Key: "query.reactions-watch.", Title: "reactions-watch: on the 150 busiest notes"},
	{Key: "query.hashtag.", Title: "hashtag: notes under the top one"},
	{Key: "query.by-ids.", Title: "by-ids: 100 events by their ids"},
	{Key: "query.recent-window.", Title: "recent-window: the last fifth of the time"},
	{Key: "query.empty.", Title: "empty: nothing matches, the floor"},
	{Key: "query.deep-page.", Title: "deep-page: in the middle of the past"},
	{Key: "query.", Title: ""},
	{Key: "storage", Title: "On disk after a clean stop", Primary: "allocated", Unit: "bytes/event", Headlines: []Headline{{"allocated", "disk/event", nil}, {"write amplification", "written", nil}}},
	{Key: "crash", Title: "Killed in the middle of publishing, and started again", Primary: "ready again", Unit: "ms"},
	{Key: "import", Title: "Filled by its own import command, and counted by asking", Primary: "stored", Unit: "events/s"},
	{Key: "negentropy.initial", Title: "initial", Headlines: []Headline{{"time", "first reconcile", nil}}},
	{Key: "negentropy.transfer", Title: "transfer", Primary: "events/s", Unit: "events/s"},
	{Key: "negentropy.identical", Title: "identical"},
	{Key: "negentropy.heartbeat", Title: "heartbeat", Headlines: []Headline{{"time", "heartbeat", nil}}},
	{Key: "negentropy.after-write", Title: "after-write"},
	{Key: "negentropy.scattered", Title: "scattered"},
	{Key: "sync.native", Title: "by the sink's own sync command"},
	{Key: "sync.negentropy", Title: "by reconciliation (NIP-77), relaybench between the two"},
	{Key: "sync.req", Title: "by REQs in pages, newest first"},
	{Key: "fetch.giant", Title: "giant", Headlines: []Headline{{"records/s", "giant REQ", Labels{LabelForm: "raw"}}}},
	{Key: "fetch.paged", Title: "paged", Headlines: []Headline{{"records/s", "paged REQs", Labels{LabelForm: "raw"}}}},
	{Key: "fetch.sharded-giant", Title: "sharded-giant"},
	{Key: "fetch.sharded-paged", Title: "sharded-paged"},
	{Key: "fetch.by-id", Title: "by-id"},
	{Key: "fetch.negentropy", Title: "negentropy"},
}

// sections1 are the families of form 1.
var sections1 = map[string]struct {
	title, primary, unit string
	layout               Layout
}{
	"ingest": {"Ingest", "", "", LayoutBars}, "query": {"Queries", "eose", "ms", LayoutQueries}, "storage": {"Storage", "", "", LayoutBars},
	"crash": {"Crash", "", "", LayoutBars}, "import": {"Import", "", "", LayoutBars}, "negentropy": {"Negentropy", "time", "ms", LayoutPairs},
	"sync": {"Sync", "records/s", "events/s", LayoutMatrix}, "fetch": {"Fetch", "records/s", "events/s", LayoutDownloads},
}

// scenario1 describes a scenario of form 1; one that is not known comes last, under its own key.
func scenario1(key string, labels Labels) Scenario {
	family, _, _ := strings.Cut(key, ".")
	section, known := sections1[family]
	if !known {
		section.title, section.layout = family, LayoutBars
	}
	s := Scenario{Title: key, Order: 100 * len(scenarios1)}
	for i, o := range scenarios1 {
		if o.Key == key || strings.HasSuffix(o.Key, ".") && strings.HasPrefix(key, o.Key) {
			s = o
			s.Title, s.Order = cmp.Or(o.Title, key), 100*(i+1)
			break
		}
	}
	s.Key, s.Section, s.Layout, s.Durability = key, section.title, section.layout, family == "ingest"
	s.Primary, s.Unit = cmp.Or(s.Primary, section.primary), cmp.Or(s.Unit, section.unit)
	switch form := labels[LabelForm]; {
	case family == "query" && form != "":
		s.Headlines = []Headline{{"eose", form + " queries", nil}, {"events/s", "query events/s", nil}}
		if form == "varied" {
			s.Order++
		}
	}
	return s
}

// metrics1 are the metrics of form 1 that had a title.
var metrics1 = []struct {
	key, title string
	role       MetricRole
	sums       bool
}{
	{"accepted", "accepted", RoleFigure, false}, {"ok latency", "EVENT to OK", RoleFigure, false}, {"unacknowledged", "never acknowledged", RoleStated, false},
	{"visible", "EVENT to visible for another reader", RoleFigure, false}, {"ok", "EVENT to OK, one at a time", RoleFigure, false},
	{"queryable by ok", "queryable when its OK arrives", RoleStated, false}, {"ok from intended", "intended sending to OK", RoleFigure, false},
	{"ready again", "from start to ready, over what was left", RoleFigure, false}, {"acknowledged before", "acknowledged before", RoleFigure, false},
	{"send delay", "sent late by (the harness)", RoleFigure, false}, {"eose", "time to EOSE", RoleFigure, false}, {"first event", "time to first event", RoleFigure, false},
	{"events/s", "events/s from all connections", RoleFigure, false}, {"queries/s", "answers/s from all connections", RoleFigure, false},
	{"events", "events in the answer", RoleFigure, false}, {"allocated", "disk blocks", RoleFigure, false}, {"apparent", "file lengths", RoleFigure, false},
	{"write amplification", "bytes written for each corpus byte", RoleFigure, false}, {"stored", "stored", RoleFigure, false},
	{"held afterwards", "held afterwards", RoleFigure, false}, {"rejected", "rejected", RoleFigure, false}, {"rejected events", "rejected", RoleFigure, false},
	{"duplicates", "duplicates", RoleFigure, false}, {"poll round trip", "poll round trip (the resolution)", RoleFigure, false},
	{"time", "time", RoleFigure, false}, {"duration", "duration", RoleFigure, false}, {"have", "have", RoleFigure, false}, {"need", "need", RoleFigure, false},
	{"bytes per difference", "B/differing", RoleFigure, false}, {"rounds", "rounds", RoleFigure, false}, {"bytes up", "up", RoleFigure, false},
	{"bytes down", "down", RoleFigure, false}, {"harness share", "harness share", RoleFigure, false}, {"records/s", "records/s", RoleFigure, false},
	{"MB/s", "MB/s", RoleFigure, false}, {"wall time", "wall time", RoleFigure, false}, {"missing", "missing", RoleFigure, false},
	{"retried", "retried", RoleFigure, false}, {"failed", "failed", RoleFigure, false}, {"overfetch", "overfetch", RoleFigure, false},
	{"requests", "REQs", RoleFigure, false}, {"request latency", "REQ time", RoleFigure, false},
	{"in flight by Little's law", "in flight", RoleFigure, false}, {"in flight configured", "in flight at most", RoleFigure, false},
	{"tool cpu per event", "tool cpu/event", RoleFigure, false}, {"reconcile time", "reconciled in", RoleFigure, false},
	{"reconcile rounds", "in rounds", RoleFigure, false}, {"transfers", "transfers", RoleFigure, false}, {"stragglers", "stragglers", RoleFigure, false},
	{"transfer events/s", "transfer/s", RoleFigure, false}, {"pages", "pages", RoleFigure, false}, {"response bytes", "received", RoleFigure, false},
	{"REQ to EOSE", "REQ to EOSE", RoleFigure, false}, {"source cpu", "source cpu", RoleFigure, false}, {"sink cpu", "sink cpu", RoleFigure, false},
	{"tool cpu", "tool cpu", RoleFigure, false}, {"tool's share of the sink's cpu", "tool / sink cpu", RoleFigure, false},
	{"tool peak rss", "tool rss", RoleFigure, false}, {"refused", "refused", RoleFigure, false},
	{"cpu", "cpu", RoleResource, true}, {"peak rss", "peak rss", RoleResource, false}, {"read", "read", RoleResource, true}, {"written", "written", RoleResource, true},
	{"open files", "open files", RoleResource, false}, {"context switches", "context switches", RoleResource, true}, {"harness cpu", "harness cpu", RoleResource, false},
	{"cpu per 1,000 accepted", "cpu per 1,000 accepted", RoleResource, false}, {"cpu per 1,000 stored", "cpu per 1,000 stored", RoleResource, false},
	{"cpu of the command", "cpu of the command", RoleResource, false}, {"peak rss of the command", "peak rss of the command", RoleResource, false},
}
