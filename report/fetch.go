package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/results"
)

// A download is all that a run says of downloading.
type download struct {
	relays, forms []string    // as they were measured
	ways          []*way      // for each relay
	scenarios     []*scenario // of the ways, for all relays
}

// A way is one way to download from one relay in one form.
type way struct {
	entry
	settings
	rate *row // nil where it was not tried
}

// settings are what the labels of a way say.
type settings struct {
	strategy, form         string
	conns, inFlight, batch int // of fetching by id
	adaptive               bool
}

const (
	fetchMeaning = "One client downloads everything that matches the filter: giant in one REQ, paged by until, sharded with the time " +
		"divided over connections, by-id once ids are known, negentropy finding them by a reconciliation first. raw finds ids and " +
		"counts; parsed parses and verifies every event; deflate has it compressed."
	fetchState = "The current state is what the records that came fold to: replaceable and addressable events to their newest, deletions " +
		"applied. Requests of a reconciliation are its rounds."
)

// fetchColumns say what figures are, by a metric that is among them.
var fetchColumns = []struct{ metric, text string }{
	{"retried", "retried, failed: ids asked for again, and ids that were never answered, where events are asked for by id."},
	{"duplicates", "duplicates: events that came more than once."},
	{"overfetch", "overfetch: bytes on the socket for each byte of a distinct event."},
	{"in flight by Little's law", "in flight: REQs on average by Little's law (their rate × their latency), and as many as may be."},
	{"tool cpu per event", "tool: relaybench itself."},
}

// columns says what the columns of ways are.
func (d *download) columns(ways []*way) string {
	var texts []string
	if slices.ContainsFunc(ways, func(w *way) bool { return w.batch > 0 }) {
		texts = append(texts, "by-id: connections × REQs in flight on each × ids in a REQ, the best of all that were tried; auto finds the second by itself.")
	}
	for _, c := range fetchColumns {
		if slices.ContainsFunc(ways, func(w *way) bool { _, ok := w.value(c.metric); return ok }) {
			texts = append(texts, c.text)
		}
	}
	return strings.Join(texts, " ")
}

// The values of labels that tell ways apart, and metrics that sentences are made of.
const (
	adaptive  = "adaptive" // of REQs in flight: found on the way
	formRaw   = "raw"
	stepTaken = "step" // events a second at one number of REQs in flight, on the way
)

// wayLabels are the labels that a way goes by.
var wayLabels = []string{results.LabelStrategy, results.LabelConnections, results.LabelInFlight, results.LabelBatch,
	results.LabelForm, results.LabelEncoding}

func settingsOf(d *results.Scenario, l results.Labels) settings {
	number := func(name string) int {
		n, _ := strconv.Atoi(l[name])
		return n
	}
	return settings{strategy: cmp.Or(l[results.LabelStrategy], d.Title), form: l[results.LabelForm] + Prefixed("-", l[results.LabelEncoding]),
		conns: number(results.LabelConnections), inFlight: number(results.LabelInFlight), batch: number(results.LabelBatch),
		adaptive: l[results.LabelInFlight] == adaptive}
}

// inMatrix tells whether a way is one of many settings.
func (s *settings) inMatrix() bool { return s.batch > 0 && !s.adaptive }

// label is the strategy, and how it asks by id: connections × REQs in flight on each × ids in a
// REQ.
func (s *settings) label() string {
	switch {
	case s.adaptive:
		return fmt.Sprintf("%s %d×auto×%d", s.strategy, s.conns, s.batch)
	case s.inMatrix():
		return fmt.Sprintf("%s %d×%d×%d", s.strategy, s.conns, s.inFlight, s.batch)
	}
	return s.strategy
}

// name is the way in a list.
func (s *settings) name() string { return s.label() + Prefixed(", ", s.form) }

// download gathers the ways; nil where a run has none.
func (v *view) download() *download {
	d := &download{scenarios: v.laid(results.LayoutDownloads, wayLabels...)}
	for _, sc := range d.scenarios {
		s := settingsOf(sc.Scenario, sc.labels)
		d.forms = AddNew(d.forms, s.form)
		for _, b := range sc.all() {
			for _, r := range b.rows {
				if b.metric.Key == sc.Primary && r.m != nil {
					d.ways = append(d.ways, &way{entry{scenario: sc, key: r.key, labels: plain(s.label(), s.form, r.key.relay)}, s, r})
					d.relays = AddNew(d.relays, r.key.relay)
				}
			}
		}
	}
	if len(d.scenarios) == 0 {
		return nil
	}
	slices.SortStableFunc(d.relays, func(a, b string) int { return cmp.Compare(v.order(a), v.order(b)) })
	place := func(w *way) []int {
		return []int{w.scenario.Order, slices.Index(d.forms, w.form), slices.Index(d.relays, w.key.relay), boolean(w.adaptive), w.batch, w.conns, w.inFlight}
	}
	slices.SortStableFunc(d.ways, func(a, b *way) int { return slices.Compare(place(a), place(b)) })
	return d
}

// contests are the rates that count for the standings: verified ones say what a client can do, and
// of the many settings each counts for little.
func (d *download) contests() (list []*block) {
	for _, w := range d.ways {
		if b, _ := w.primary(); w.form == formRaw && w.batch == 0 && !w.adaptive {
			list = AddNew(list, b)
		}
	}
	return list
}

// matrix are the settings of fetching by id from a relay in a form.
func (d *download) matrix(relay, form string) (all []*way) {
	for _, w := range d.ways {
		if w.inMatrix() && w.key.relay == relay && w.form == form {
			all = append(all, w)
		}
	}
	return all
}

// best is the fastest of settings, of those that are complete if there are any; nil where none was
// measured.
func best(all []*way) (first *way) {
	for _, w := range all {
		if w.rate.has && (first == nil || cmp.Or(boolean(w.rate.whole())-boolean(first.rate.whole()), cmp.Compare(w.rate.value, first.rate.value)) > 0) {
			first = w
		}
	}
	return first
}

// boolean sorts false before true.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// whole tells whether a download brought all.
func (r *row) whole() bool { return r.m.Is(results.StatusIncomplete) == nil }

// lines lists the strategies in all forms: of the matrix the best setting.
func (d *download) lines() (all []*way) {
	for _, w := range d.ways {
		if w.rate.has && (!w.inMatrix() || w == best(d.matrix(w.key.relay, w.form))) {
			all = append(all, w)
		}
	}
	return all
}

// paces says what sets the pace, once for each answer.
func (d *download) paces() (lines []string) {
	var said Groups[string, string]
	for _, w := range d.lines() {
		_, r := w.figure(func(b *block) bool { return b.metric.Key == "parsed of raw" })
		if r == nil || !r.has || r.m.Is(results.StatusBottleneck) == nil {
			continue
		}
		var texts []string
		for i := range r.m.Status {
			if s := &r.m.Status[i]; s.Code == results.StatusBottleneck {
				texts = append(texts, statusText(s))
			}
		}
		name := w.label()
		if w.scenario.labels[results.LabelEncoding] != "" {
			name += " compressed"
		}
		said.Add(map[bool]string{true: "trials differ: "}[len(texts) > 1]+strings.Join(texts, "; "), d.of(w, name, " on ")+" "+Number(r.value)+" %")
	}
	for _, g := range said.List {
		lines = append(lines, g.Key+"; verified, of the raw rate: "+strings.Join(g.Members, ", "))
	}
	return lines
}

// of names the relay of a way behind a text, where there are several.
func (d *download) of(w *way, text, by string) string {
	if len(d.relays) > 1 {
		text += by + w.key.relay
	}
	return text
}

// reasons says why ways are incomplete or were not measured, once for each reason.
func (d *download) reasons(most int) (lines []string) {
	var said Groups[string, string]
	for _, w := range d.ways {
		for i := range w.rate.m.Status {
			s := &w.rate.m.Status[i]
			if s.Code == results.StatusLimited || s.Code == results.StatusBottleneck { // which are said elsewhere
				continue
			}
			said.Add(d.of(w, map[bool]string{false: "not measured: "}[w.rate.has]+statusText(s), ": "), w.name())
		}
	}
	for _, g := range said.List {
		lines = append(lines, g.Key+" ("+Some(g.Members, most)+")")
	}
	return lines
}

// windows tells how adaptive ways found their number of REQs in flight.
func (d *download) windows() (lines []string) {
	for _, w := range d.ways {
		settled, known := w.value("in flight configured")
		if !w.adaptive || !known || w.conns == 0 {
			continue
		}
		var steps []string
		for _, b := range w.scenario.facts {
			for _, r := range b.rows {
				if b.metric.Key == stepTaken && r.key == w.key && r.has {
					steps = append(steps, b.labels[results.LabelStep]+": "+b.scale.Format(r.value))
				}
			}
		}
		found := "over before a step was measured"
		if len(steps) > 0 {
			found = strings.Join(steps, ", ") + " events/s"
		}
		lines = append(lines, fmt.Sprintf("%s, %s, batches of %d: %s, and it ended at %.0f in flight on each", d.of(w, w.form+", adaptive", ", "),
			Count(w.conns, "connection"), w.batch, found, settled/float64(w.conns)))
	}
	return lines
}

// download adds every strategy in every form, what sets their pace, and the matrix of fetching by
// id.
func (d *composer) download(x *download) {
	d.Say(fetchMeaning, Dim)
	d.add(gap{})
	d.ways(x, x.lines())
	if text := x.columns(x.lines()); text != "" {
		d.Say(text, Dim)
	}
	d.to(full, func() { d.Say(fetchState, Dim) })
	d.apart(pointMark, x.paces())
	d.apart(WarningMark, x.reasons(4))
	others := false
	for _, relay := range x.relays {
		for _, form := range x.forms {
			who, all := full, x.matrix(relay, form) // of the forms a terminal has one
			if best(all) == nil {
				continue
			}
			if form == formRaw {
				who = everyone
			}
			others = others || who == full
			d.to(who, func() { d.matrix(x, all) })
		}
	}
	if others {
		d.to(brief, func() { d.Say("The same for the other forms is in report.md.", Dim) })
	}
	d.apart(pointMark, x.windows())
}

// apart adds a list of sentences behind an empty line.
func (d *composer) apart(mark Span, texts []string) {
	if len(texts) > 0 {
		d.add(gap{})
		d.Items(mark, texts, Plain)
	}
}

// ways sets ways to download as rows, with all their figures.
func (d *composer) ways(x *download, all []*way) {
	t := &Table{labels: 2, columns: heads("", "form")}
	if len(x.relays) > 1 {
		t.labels, t.columns = 3, append(t.columns, Column{Head: "relay"})
	}
	var entries []entry
	for _, w := range all {
		e := w.entry
		e.labels = e.labels[:t.labels]
		entries = append(entries, e)
	}
	d.pivot(t, entries, measure{Column{Head: "all?"}, func(s *entry) Cell {
		_, r := s.primary()
		if r.whole() {
			return Cell{text: "complete", style: Green}
		}
		word := map[string]string{results.CauseCut: "cut", results.CauseUnresolved: "unresolved"}[r.m.Is(results.StatusIncomplete).Cause]
		return Cell{text: cmp.Or(word, "incomplete"), style: Yellow}
	}})
}

// matrix adds the settings of fetching by id from one relay in one form, batches and connections
// down, REQs in flight across, and in a file every figure of each.
func (d *composer) matrix(x *download, all []*way) {
	first := best(all)
	var tried []*way
	var cells []crossing
	for _, w := range all {
		y := crossing{[]string{fmt.Sprint(w.batch), fmt.Sprint(w.conns)}, fmt.Sprintf("%d in flight", w.inFlight), Cell{text: "n/a"}}
		if w.rate.has {
			b, _ := w.primary()
			y.cell = Cell{text: b.scale.Format(w.rate.value), mark: d.foot.sign(w.rate.notes())}
			tried = append(tried, w)
		}
		if w == first {
			y.cell.style = GreenBold
		}
		cells = append(cells, y)
	}
	d.add(heading{level: 3, title: x.of(first, "by id, "+first.form+", events/s", ": ")})
	d.Table(cross([]string{"batch", "connections"}, nil, cells))
	d.to(full, func() {
		d.Say("Each setting, as connections × REQs in flight × ids in a REQ:", Plain)
		d.ways(x, tried)
	})
}
