package report

import (
	"fmt"
	"slices"
	"strings"

	"relaybench/harness/measure"
)

// Checks of scenarios that other checks follow from.
const (
	checkAccepts = "accepts what a compliant relay keeps"
	checkKept    = "nothing acknowledged is missing"
	checkAnswers = "returns what the model returns"
)

// A failure is one check that a relay failed, in one scenario or in many.
type failure struct {
	check    string
	required bool
	list     []*measure.Finding // those that failed, in the order of the run
	of       int                // how often the relay was checked
	follows  string             // from what, where that is plain
}

// failures folds a relay's failed checks, required ones first, and counts those it passed.
func (v *view) failures(name string) (out []*failure, passed int) {
	times := map[string]int{}
	for _, f := range v.checks {
		if subject(f) != name {
			continue
		}
		times[f.Check]++
		if f.OK {
			passed++
			continue
		}
		i := slices.IndexFunc(out, func(x *failure) bool { return x.check == f.Check && x.required == f.Required })
		if i < 0 {
			i = len(out)
			out = append(out, &failure{check: f.Check, required: f.Required})
		}
		out[i].list = append(out[i].list, f)
	}
	for _, x := range out {
		x.of = times[x.check]
		if x.check == checkAnswers {
			x.follows = v.cause(name, out)
		}
	}
	slices.SortStableFunc(out, func(a, b *failure) int {
		switch {
		case a.required && !b.required:
			return -1
		case b.required && !a.required:
			return 1
		}
		return 0
	})
	return out, passed
}

// cause says from what wrong answers follow: from events that were refused, lost or never sent. It says so for certain only
// where the missing events were looked up and all had that fate.
func (v *view) cause(name string, failed []*failure) string {
	one := func(check string) *measure.Finding {
		i := slices.IndexFunc(failed, func(x *failure) bool { return x.check == check && x.list[0].Peer == "" })
		if i < 0 {
			return nil
		}
		return failed[i].list[0]
	}
	kept, refused, silent := 0, 0, 0
	for _, x := range failed {
		if x.check != checkAnswers {
			continue
		}
		for _, f := range x.list {
			for _, e := range f.Evidence {
				var a, r, u int
				if n, _ := fmt.Sscanf(e, "of the missing, the relay had acknowledged %d, refused %d, never answered %d", &a, &r, &u); n == 3 {
					kept, refused, silent = kept+a, refused+r, silent+u
				}
			}
		}
	}
	known := kept+refused+silent > 0
	verb := func(sure bool) string {
		if sure {
			return "follows from "
		}
		return "may follow from "
	}
	var parts []string
	if one(checkAccepts) != nil && (!known || refused > 0) {
		text := "the events it refused"
		if n := v.refused(name); n > 0 {
			text = "the " + count(n, "event") + " it refused"
		}
		parts = append(parts, text)
	}
	if f := one(checkKept); f != nil && (!known || kept > 0) {
		parts = append(parts, "what it lost: "+clauseOf(found(f)))
	}
	if f := one(checkCompletes); f != nil && f.Scenario != "" && (!known || silent > 0) && !strings.HasPrefix(f.Scenario, "query.") {
		parts = append(parts, f.Scenario+", which did not complete")
	} else if silent > 0 && one(checkAccepts) != nil {
		parts = append(parts, "the events it never answered")
	}
	if len(parts) == 0 {
		return ""
	}
	unexplained := 0
	if one(checkKept) == nil {
		unexplained += kept
	}
	if one(checkAccepts) == nil {
		unexplained += refused
		if one(checkCompletes) == nil {
			unexplained += silent
		}
	}
	return verb(known && unexplained == 0) + strings.Join(parts, ", and from ")
}

// refused is how many events a relay refused at full speed, by the median of its trials.
func (v *view) refused(name string) int {
	total := 0.0
	for _, x := range v.refusals(name) {
		total += x.events
	}
	return int(total)
}

type refusal struct {
	reason string
	events float64
}

// refusals lists why a relay refused events, the most frequent reason first.
func (v *view) refusals(name string) []refusal {
	var out []refusal
	for i := range v.rec.Measurements {
		m := &v.rec.Measurements[i]
		if reason, ok := strings.CutPrefix(m.Metric, refusedFor); ok && m.Relay == name && m.Peer == "" && m.Scenario == "ingest.throughput" {
			if x, ok := m.Value(); ok && x > 0 && x < 1e15 {
				out = append(out, refusal{reason, x})
			}
		}
	}
	slices.SortStableFunc(out, func(a, b refusal) int { return int(b.events) - int(a.events) })
	return out
}

// refusal says in one line that a relay refused much of what a compliant relay keeps, and why; empty where it did not.
func (v *view) refusal(name string) string {
	i := slices.IndexFunc(v.checks, func(f *measure.Finding) bool { return f.Relay == name && f.Check == checkAccepts && !f.OK })
	list := v.refusals(name)
	if i < 0 || len(list) == 0 {
		return ""
	}
	worst := list[0]
	amount := count(int(worst.events), "event")
	if sent := v.offered(name); float64(sent) >= worst.events {
		amount = thousands(fmt.Sprint(int(worst.events))) + " of " + count(sent, "event")
	}
	text := name + " refused " + amount
	if worst.reason == "rate-limited" {
		text = name + " is throttled: it refused " + amount + " as rate-limited"
	} else if worst.reason != "error" {
		text += " as " + worst.reason
	}
	for _, e := range v.checks[i].Evidence {
		if said, ok := strings.CutPrefix(e, worst.reason+", "); ok {
			if _, said, ok = strings.Cut(said, " times: "); ok && said != "" && said != worst.reason {
				text += `, saying "` + fit(strings.TrimPrefix(said, worst.reason+": "), 240) + `"`
			}
		}
	}
	return text
}

// offered is how many events a relay was sent at full speed, as far as every part is known; else 0.
func (v *view) offered(name string) int {
	var total float64
	for _, metric := range []string{"accepted", "duplicates", "unacknowledged"} {
		for i := range v.rec.Measurements {
			m := &v.rec.Measurements[i]
			if m.Relay != name || m.Peer != "" || m.Scenario != "ingest.throughput" || m.Metric != metric {
				continue
			}
			x, _ := m.Value()
			if metric == "accepted" { // a rate: the events are its samples, of all trials
				x = float64(m.Samples) / float64(max(len(m.Trials), 1))
			}
			if x > 0 && x < 1e15 {
				total += x
			}
		}
	}
	if total == 0 && v.refused(name) == 0 {
		return 0
	}
	return int(total) + v.refused(name)
}

// clauseOf is what a sentence says before its first semicolon.
func clauseOf(s string) string {
	s, _, _ = strings.Cut(s, ";")
	return s
}

// found is what a check found, without what stands beside it anyway.
func found(f *measure.Finding) string {
	return readable(strings.TrimPrefix(f.Detail, f.Relay+" failed in "+f.Scenario+": "))
}

// where says in which scenarios a check failed: in the one, or in how many of them.
func (f *failure) where() string {
	if len(f.list) == 1 && f.of == 1 {
		return f.list[0].Scenario
	}
	noun := "scenarios"
	all := func(holds func(*measure.Finding) bool) bool {
		return !slices.ContainsFunc(f.list, func(x *measure.Finding) bool { return !holds(x) })
	}
	switch {
	case all(func(x *measure.Finding) bool { return strings.HasPrefix(x.Scenario, "query.") }):
		noun = "queries"
	case all(func(x *measure.Finding) bool { return x.Peer != "" && x.Scenario == f.list[0].Scenario }):
		noun = "pairs"
	}
	if len(f.list) == 1 {
		return f.list[0].Scenario + with(f.list[0]) + fmt.Sprintf(", 1 of %d %s", f.of, noun)
	}
	return fmt.Sprintf("%d of %d %s", len(f.list), f.of, noun)
}

// brief is a failure in a list of them.
func (f *failure) brief() string {
	text := f.check
	if w := f.where(); w != "" && w != "preflight" {
		text += " (" + w + ")"
	}
	if len(f.list) == 1 && f.of == 1 && subject(f.list[0]) == f.list[0].Relay {
		text += with(f.list[0])
	}
	return text
}

// rest names where a check failed beside the examples that are shown; a query in both its forms by its name alone.
func (f *failure) rest(shown int) string {
	var names []string
	for _, x := range f.list[min(shown, len(f.list)):] {
		name := strings.TrimPrefix(x.Scenario, "query.")
		if subject(x) == x.Relay {
			name += with(x)
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for i := 0; i < len(names); i++ {
		base, first := form(names[i])
		if j := slices.Index(names, base+".varied"); first == "hot" && j >= 0 {
			names[i] = base
			names = slices.Delete(names, j, j+1)
		}
	}
	return strings.Join(names, ", ")
}
