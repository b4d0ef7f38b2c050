package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/harness/measure"
)

// downloading is the family of scenarios that download from one relay.
const downloading = "fetch"

// fetched tells whether a measurement belongs to the section of downloads. What a relay consumed stands with the other resources.
func fetched(m *measure.Measurement) bool {
	return within(m.Scenario, downloading) && !isResource(m.Metric)
}

// A download is all that a run says of downloading.
type download struct {
	relays    []string
	cells     []*fetchCell
	scenarios []*scenario // of the cells, for their distributions
	scale     scale       // of all rates
}

// A fetchCell is one way to download in one form: its key is fetch.STRATEGY[.cN.fN.bN|.cN.adaptive.bN].FORM.
type fetchCell struct {
	key, strategy, form    string
	conns, inFlight, batch int // of one cell of the matrix
	adaptive               bool
	rate                   *block // records a second, with a row for each relay
	requests               *block // how long each REQ took; nil where that is not known
	all                    map[string][]*measure.Measurement
}

// fetchStrategies is the order of the table, and fetchForms that of its lines.
var (
	fetchStrategies = []string{"giant", "paged", "sharded-giant", "sharded-paged", "by-id", "negentropy"}
	fetchForms      = []string{"raw", "parsed", "raw-deflate", "parsed-deflate"}
)

// unresolved is a download of which nobody knows whether it is all.
const unresolved = "unresolved"

const (
	fetchMeaning = "One client downloads everything that matches the filter: giant in one REQ, paged by until, sharded with the time divided over connections, by-id once ids are known, negentropy finding them by a reconciliation first. raw finds ids and counts; parsed parses and verifies every event; deflate has it compressed."
	fetchColumns = "by-id: connections × REQs in flight on each × ids in a REQ, the best of all that were tried; auto finds the second by itself. retried, failed: ids asked for again, and ids that were never answered, where events are asked for by id. again: events that came more than once. overfetch: bytes on the socket for each byte of a distinct event. in flight: REQs on average by Little's law (their rate × their latency), of as many as may be. CPU: relaybench's own for each event."
)

// parseFetchKey reads a cell's key; ok is false for another scenario.
func parseFetchKey(key string) (c *fetchCell, ok bool) {
	parts := strings.Split(key, ".")
	if len(parts) < 3 || parts[0] != downloading {
		return nil, false
	}
	c = &fetchCell{key: key, strategy: parts[1], form: parts[len(parts)-1], all: map[string][]*measure.Measurement{}}
	for _, part := range parts[2 : len(parts)-1] {
		n, err := strconv.Atoi(strings.TrimLeft(part, "cfb"))
		switch {
		case part == "adaptive":
			c.adaptive = true
		case err != nil:
		case part[0] == 'c':
			c.conns = n
		case part[0] == 'f':
			c.inFlight = n
		case part[0] == 'b':
			c.batch = n
		}
	}
	return c, true
}

// inMatrix tells whether the cell is one of many settings.
func (c *fetchCell) inMatrix() bool { return c.batch > 0 && !c.adaptive }

// name is the cell in a list.
func (c *fetchCell) name() string {
	switch {
	case c.adaptive:
		return fmt.Sprintf("%s, %d × adaptive × %d, %s", c.strategy, c.conns, c.batch, c.form)
	case c.inMatrix():
		return fmt.Sprintf("%s, %d × %d × %d, %s", c.strategy, c.conns, c.inFlight, c.batch, c.form)
	}
	return c.strategy + ", " + c.form
}

// download gathers the cells; nil where a run has none.
func (v *view) download() *download {
	d := &download{}
	byKey := map[string]*fetchCell{}
	members := map[string][]*measure.Measurement{}
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if !fetched(m) {
			continue
		}
		c := byKey[m.Scenario]
		if c == nil {
			var ok bool
			if c, ok = parseFetchKey(m.Scenario); !ok {
				continue
			}
			byKey[m.Scenario] = c
			d.cells = append(d.cells, c)
		}
		c.all[m.Relay] = append(c.all[m.Relay], m)
		members[m.Scenario] = append(members[m.Scenario], m)
		if !slices.Contains(d.relays, m.Relay) {
			d.relays = append(d.relays, m.Relay)
		}
	}
	if len(d.cells) == 0 {
		return nil
	}
	place := func(list []string, s string) int {
		if i := slices.Index(list, s); i >= 0 {
			return i
		}
		return len(list)
	}
	slices.SortStableFunc(d.cells, func(a, b *fetchCell) int {
		return cmp.Or(cmp.Compare(place(fetchStrategies, a.strategy), place(fetchStrategies, b.strategy)), cmp.Compare(boolean(a.adaptive), boolean(b.adaptive)), cmp.Compare(a.batch, b.batch), cmp.Compare(a.conns, b.conns),
			cmp.Compare(a.inFlight, b.inFlight), cmp.Compare(place(fetchForms, a.form), place(fetchForms, b.form)))
	})
	slices.SortStableFunc(d.relays, func(a, b string) int { return cmp.Compare(v.order(a), v.order(b)) })
	var rates []float64
	for _, c := range d.cells {
		s := &scenario{key: c.key}
		v.fill(s, members[c.key])
		d.scenarios = append(d.scenarios, s)
		if i := slices.IndexFunc(s.facts, func(b *block) bool { return b.metric == "request latency" }); i >= 0 {
			c.requests = s.facts[i]
		}
		if c.rate = metric(s, metricRecords); c.rate != nil {
			for _, r := range c.rate.rows {
				rates = append(rates, r.shown(c.rate.unit)...)
			}
		}
	}
	d.scale = scaleFor("events/s", rates)
	for _, c := range d.cells {
		if c.rate != nil {
			c.rate.scale = d.scale
		}
	}
	return d
}

// contests are the rates that count for the standings: verified ones say what a client can do, and of the many settings each counts for little.
func (d *download) contests() (list []*block) {
	for _, c := range d.cells {
		if c.rate != nil && c.form == "raw" && !c.inMatrix() && !c.adaptive {
			list = append(list, c.rate)
		}
	}
	return list
}

// row is a relay's line of a cell's rate; nil where it has none.
func (c *fetchCell) row(relay string) *row {
	if c.rate == nil {
		return nil
	}
	if i := slices.IndexFunc(c.rate.rows, func(r *row) bool { return r.m != nil && r.m.Relay == relay }); i >= 0 {
		return c.rate.rows[i]
	}
	return nil
}

// latency is how long each REQ took; nil where that is not known.
func (c *fetchCell) latency(relay string) *distribution {
	if c.requests == nil {
		return nil
	}
	for _, r := range c.requests.rows {
		if r.m != nil && r.m.Relay == relay {
			return r.dist
		}
	}
	return nil
}

// value is a figure of a relay's cell.
func (c *fetchCell) value(relay, metric string) (float64, bool) {
	if m := find(c.all[relay], metric); m != nil {
		return m.Value()
	}
	return 0, false
}

// best is the cell of the matrix in which a relay was fastest in a form, of those that are complete if there are any.
func (d *download) best(relay, form string) (best *fetchCell) {
	rank := func(c *fetchCell) (complete bool, rate float64, ok bool) {
		r := c.row(relay)
		if r == nil || !r.has {
			return false, 0, false
		}
		return !r.m.IsIncomplete(), r.value, true
	}
	for _, c := range d.cells {
		if !c.inMatrix() || c.form != form {
			continue
		}
		complete, rate, ok := rank(c)
		if !ok {
			continue
		}
		if best != nil {
			bestComplete, bestRate, _ := rank(best)
			if bestComplete && !complete || bestComplete == complete && rate <= bestRate {
				continue
			}
		}
		best = c
	}
	return best
}

// state is how complete a cell was, in a word.
func (c *fetchCell) state(relay string) string {
	r := c.row(relay)
	switch {
	case r == nil || !r.has:
		return nothing
	case !r.m.IsIncomplete():
		return "complete"
	case strings.Contains(r.m.Note, measure.Incomplete+": cut by"):
		return "cut"
	}
	if strings.Contains(r.m.Note, measure.Incomplete+": "+unresolved) {
		return unresolved
	}
	return "incomplete"
}

// A fetchLine is a line of the table of strategies: a cell for a relay.
type fetchLine struct {
	label string
	cell  *fetchCell
	relay string
}

// lines lists the strategies in all forms: of the matrix the best setting.
func (d *download) lines() (all []fetchLine) {
	for _, strategy := range fetchStrategies {
		for _, form := range fetchForms {
			for _, relay := range d.relays {
				best := d.best(relay, form)
				for _, c := range d.cells {
					if c.strategy != strategy || c.form != form || c.inMatrix() && c != best {
						continue
					}
					if r := c.row(relay); r == nil || !r.has {
						continue
					}
					label := strategy
					switch {
					case c.adaptive:
						label += fmt.Sprintf(" %d×auto×%d", c.conns, c.batch)
					case c.inMatrix():
						label += fmt.Sprintf(" %d×%d×%d", c.conns, c.inFlight, c.batch)
					}
					all = append(all, fetchLine{label, c, relay})
				}
			}
		}
	}
	return all
}

// fetchHead are the columns behind a line's label, form, relay and rate.
var fetchHead = []string{"MB/s", "all?", "missing", "retried", "failed", "again", "overfetch", "REQs", "REQ p50", "p99", "max", "in flight", "CPU"}

// figures are a line's columns. The text of a p99 from few samples ends in a star.
func (l fetchLine) figures() []string {
	text := func(metric string, format func(float64) string) string {
		if x, ok := l.cell.value(l.relay, metric); ok {
			return format(x)
		}
		return nothing
	}
	count := func(x float64) string { return thousands(strconv.FormatFloat(x, 'f', 0, 64)) }
	out := []string{text("MB/s", number), l.cell.state(l.relay), text("missing", count), text("retried", count), text("failed", count), text("duplicates", count), text("overfetch", ratioText), text("requests", count)}
	p50, p99, top := nothing, nothing, nothing
	if d := l.cell.latency(l.relay); d != nil {
		s := scaleFor("s", []float64{d.p50, d.top})
		p50, p99, top = s.format(d.p50), s.format(d.p99), s.format(d.top)
		if d.n < fewSamples {
			p99 += "*"
		}
	}
	out = append(out, p50, p99, top)
	meant, ok := l.cell.value(l.relay, "in flight by Little's law")
	configured, known := l.cell.value(l.relay, "in flight configured")
	if ok && known {
		out = append(out, strconv.FormatFloat(meant, 'f', 1, 64)+" of "+count(configured))
	} else {
		out = append(out, nothing)
	}
	return append(out, text("tool cpu per event", func(x float64) string { return number(x) + " µs" }))
}

// tried lists all settings of fetching by id from one relay in one form, in the order of its matrix, those that were not measured left out.
func (d *download) tried(relay, form string) (all []fetchLine) {
	for _, c := range d.cells {
		if r := c.row(relay); c.inMatrix() && c.form == form && r != nil && r.has {
			all = append(all, fetchLine{fmt.Sprintf("%d×%d×%d", c.conns, c.inFlight, c.batch), c, relay})
		}
	}
	return all
}

// fetchAccount are the columns of the account behind a line's label, form and relay.
var fetchAccount = []string{"wall time", "received", "REQs: answered, closed, unfinished", "delivered", "current state", "superseded", "deleted", "expired or vanished", "authors", "peak RSS of relaybench", "of the relay"}

// account is what a line's download came to.
func (l fetchLine) account() []string {
	text := func(metric, unit string) string {
		if x, ok := l.cell.value(l.relay, metric); ok {
			return scaleFor(unit, []float64{x}).format(x)
		}
		return nothing
	}
	whole := func(metric string) string { return text(metric, "events") }
	requests := nothing
	if _, ok := l.cell.value(l.relay, "requests"); ok {
		requests = whole("requests") + ": " + whole("requests answered") + ", " + whole("requests closed") + ", " + whole("requests unfinished")
	}
	return []string{text("wall time", "s"), text("response bytes", "MiB"), requests, whole("delivered"), whole("current state"), whole("superseded"), whole("deleted"),
		whole("expired or vanished"), whole("authors"), text("tool peak rss", "MiB"), text("relay peak rss", "MiB")}
}

// paces says what sets the pace, once for each answer.
func (d *download) paces() (lines []string) {
	var order []string
	who := map[string][]string{}
	list := d.lines()
	for _, relay := range d.relays {
		for _, l := range list {
			m := find(l.cell.all[relay], "parsed of raw")
			if l.relay != relay || m == nil || m.Note == "" {
				continue
			}
			share, _ := m.Value()
			key := m.Note
			if strings.Contains(key, "; ") {
				key = "trials differ: " + key
			}
			if who[key] == nil {
				order = append(order, key)
			}
			text := l.label
			if strings.HasSuffix(l.cell.form, "-deflate") {
				text += " compressed"
			}
			if len(d.relays) > 1 {
				text += " on " + relay
			}
			who[key] = append(who[key], fmt.Sprintf("%s %s %%", text, number(share)))
		}
	}
	for _, key := range order {
		lines = append(lines, key+"; verified, of the raw rate: "+strings.Join(who[key], ", "))
	}
	return lines
}

// reasons says why cells are incomplete or were not measured, once for each reason.
func (d *download) reasons(most int) (lines []string) {
	var order []string
	who := map[string][]string{}
	for _, relay := range d.relays {
		for _, c := range d.cells {
			r := c.row(relay)
			if r == nil || r.m == nil {
				continue
			}
			for note := range strings.SplitSeq(r.m.Note, "; ") {
				if note == "" || note == harnessLimited || note == measure.Incomplete {
					continue
				}
				key := strings.TrimPrefix(note, measure.Incomplete+": ")
				if key != note && !strings.HasPrefix(key, unresolved) {
					key = note
				}
				if !r.has {
					key = "not measured: " + note
				}
				if len(d.relays) > 1 {
					key = relay + ": " + key
				}
				if who[key] == nil {
					order = append(order, key)
				}
				who[key] = append(who[key], c.name())
			}
		}
	}
	for _, key := range order {
		lines = append(lines, key+" ("+some(who[key], most)+")")
	}
	return lines
}

// A fetchMatrix is fetching by id from one relay in one form: batches and connections down, REQs in flight across.
type fetchMatrix struct {
	relay, form string
	inFlight    []int
	rows        []fetchMatrixRow
}

type fetchMatrixRow struct {
	batch, conns int
	texts        []string
	best         int // the column of the best of all, else -1
}

// unfinished tells whether any figure is of an incomplete download.
func (m *fetchMatrix) unfinished() bool {
	return slices.ContainsFunc(m.rows, func(r fetchMatrixRow) bool {
		return slices.ContainsFunc(r.texts, func(text string) bool { return strings.HasSuffix(text, "…") })
	})
}

// matrices are the tables of a form, or of all where it is "".
func (d *download) matrices(form string) (all []*fetchMatrix) {
	for _, relay := range d.relays {
		for _, f := range fetchForms {
			if form != "" && f != form {
				continue
			}
			if m := d.matrix(relay, f); m != nil {
				all = append(all, m)
			}
		}
	}
	return all
}

func (d *download) matrix(relay, form string) *fetchMatrix {
	m := &fetchMatrix{relay: relay, form: form}
	best := d.best(relay, form)
	if best == nil {
		return nil
	}
	for _, c := range d.cells {
		if c.inMatrix() && c.form == form && !slices.Contains(m.inFlight, c.inFlight) {
			m.inFlight = append(m.inFlight, c.inFlight)
		}
	}
	slices.Sort(m.inFlight)
	for _, c := range d.cells { // sorted by batch and connections
		r := c.row(relay)
		if !c.inMatrix() || c.form != form || r == nil {
			continue
		}
		n := len(m.rows)
		if n == 0 || m.rows[n-1].batch != c.batch || m.rows[n-1].conns != c.conns {
			m.rows = append(m.rows, fetchMatrixRow{batch: c.batch, conns: c.conns, texts: slices.Repeat([]string{nothing}, len(m.inFlight)), best: -1})
			n++
		}
		column := slices.Index(m.inFlight, c.inFlight)
		text := "n/a"
		if r.has {
			text = d.scale.format(r.value)
			if r.m.IsIncomplete() {
				text += "…"
			}
		}
		m.rows[n-1].texts[column] = text
		if c == best {
			m.rows[n-1].best = column
		}
	}
	return m
}

// windows tells how adaptive cells found their number of REQs in flight.
func (d *download) windows() (lines []string) {
	for _, relay := range d.relays {
		for _, c := range d.cells {
			if !c.adaptive {
				continue
			}
			var steps []string
			for _, m := range c.all[relay] {
				rest, ok := strings.CutPrefix(m.Metric, "with ")
				if n, in := strings.CutSuffix(rest, " in flight"); ok && in {
					if x, ok := m.Value(); ok {
						steps = append(steps, n+": "+d.scale.format(x))
					}
				}
			}
			settled, ok := c.value(relay, "in flight configured")
			if !ok || c.conns == 0 {
				continue
			}
			text := fmt.Sprintf("%s, adaptive, %s, batches of %d: ", c.form, count(c.conns, "connection"), c.batch)
			if len(d.relays) > 1 {
				text = relay + ", " + text
			}
			if len(steps) == 0 {
				text += "over before a step was measured, "
			} else {
				text += strings.Join(steps, ", ") + " events/s, "
			}
			lines = append(lines, text+fmt.Sprintf("and it ended at %.0f in flight on each", settled/float64(c.conns)))
		}
	}
	return lines
}

// boolean sorts false before true.
func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}
