package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"relaybench/results"
)

// footnotes are what readers of one table must know of single cells, each said once, under a
// number.
type footnotes []string

// sign is the numbers of notes, which are added where they are new.
func (n *footnotes) sign(notes []string) string {
	*n = AddNew(*n, notes...)
	var signs []string
	for i, text := range *n {
		if slices.Contains(notes, text) {
			signs = append(signs, superscript(i+1))
		}
	}
	return strings.Join(signs, ",")
}

// superscript writes a number in small digits.
func superscript(n int) string {
	return strings.Map(func(r rune) rune { return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0'] }, strconv.Itoa(n))
}

// earlierText is said of a file that could not be written anew.
const earlierText = "it holds an earlier state of the run than this report"

// bars says why a figure, or one that stands for several, competes with no other: how its relays
// ended, the failed checks that bear on it, and what it says of itself. That the harness limited it
// does not matter where the relay is at fault.
func (v *view) bars(ms ...*results.Measurement) (why []string) {
	var failed []*results.Finding
	for _, m := range ms {
		for _, name := range slices.Compact([]string{m.Relay, m.Peer}) {
			if out := v.out(name); out != "" {
				why = AddNew(why, name+": "+out)
			}
		}
		failed = AddNew(failed, v.rec.Barring(m)...)
	}
	why = append(why, v.accusations(failed, ms)...)
	accused := len(why) > 0
	var limiting []string
	for _, m := range ms {
		for i := range m.Status {
			switch s := &m.Status[i]; {
			case s.Code == results.StatusLimited:
				limiting = AddNew(limiting, cmp.Or(word("limit", s.Cause), s.Cause))
			case barring[s.Code]:
				why = AddNew(why, statusText(s))
			}
		}
	}
	if len(limiting) > 0 && !accused {
		why = append(why, words().Parts["by-harness"]+Prefixed(": ", strings.Join(limiting, ", and ")))
	}
	return why
}

// accused tells whether a figure means nothing: its relay is out, or a failed check bears on it.
func (v *view) accused(m *results.Measurement) bool {
	return v.out(m.Relay) != "" || v.out(m.Peer) != "" || len(v.rec.Barring(m)) > 0
}

// barring are the statuses of figures that are shown and not ranked.
var barring = map[string]bool{
	results.StatusIncomplete: true, results.StatusLimited: true, results.StatusNotComparable: true, results.StatusAway: true,
}

// out is why no figure of a relay is ranked at all; "" where some may be.
func (v *view) out(name string) string {
	switch r := v.relay(name); {
	case r == nil:
		return ""
	case r.Outcome != results.OutcomeOK:
		return OutcomeText(r)
	default:
		return r.NeverRanked
	}
}

// accusations name the relays at fault, each with the checks that it failed and that bear on the
// figures. Where some of a relay's bear on everything, they are enough.
func (v *view) accusations(failed []*results.Finding, ms []*results.Measurement) (all []string) {
	var by Groups[string, *results.Finding]
	for _, f := range failed {
		by.Add(Speaker(subject(f)), f)
	}
	for _, g := range by.List {
		list := g.Members
		if slices.ContainsFunc(list, Grave) {
			list = slices.DeleteFunc(list, func(f *results.Finding) bool { return !Grave(f) })
		}
		var codes Groups[string, *results.Finding]
		for _, f := range list {
			codes.Add(f.Code, f)
		}
		var checks []string
		for _, x := range codes.List {
			checks = append(checks, At(CheckTitle(x.Key), v.asked(x.Members, ms)))
		}
		all = append(all, g.Key+" failed: "+Some(checks, 3))
	}
	return all
}

// At adds a place to what was found there.
func At(text, where string) string {
	if where == "" {
		return text
	}
	return text + " (" + where + ")"
}

// Grave tells whether a check bears on everything.
func Grave(f *results.Finding) bool {
	return slices.ContainsFunc(f.BearsOn, func(s results.Scope) bool {
		return s.Scenario == "*" && s.Uses == "" && s.Role == "" && len(s.Labels) == 0
	})
}

// asked says where a check failed that bears on figures; "" where it was there, and bears on no
// other.
func (v *view) asked(list []*results.Finding, ms []*results.Measurement) string {
	if len(list) > 1 {
		return fmt.Sprint(len(list), " ", v.noun(list))
	}
	f := list[0]
	wider := slices.ContainsFunc(f.BearsOn, func(s results.Scope) bool { return s.Scenario != f.Scenario+".*" })
	if wider || f.Peer != "" || slices.ContainsFunc(ms, func(m *results.Measurement) bool { return m.Scenario != f.Scenario }) {
		return v.where(f)
	}
	return ""
}

const clampedText = "some samples lay outside 0–60 s, and are counted at that bound"

// remarks are what a figure says of itself and does not bar it.
func (r *row) remarks() (all []string) {
	for i := range r.m.Status {
		if s := &r.m.Status[i]; !barring[s.Code] {
			all = append(all, statusText(s))
		}
	}
	if r.dist != nil && r.dist.clamped > 0 {
		all = append(all, clampedText)
	}
	return all
}

// notes are all that a reader must know of a row's figure.
func (r *row) notes() (all []string) {
	if r.m == nil {
		return nil
	}
	if len(r.bars) > 0 {
		all = append(all, strings.Join(r.bars, "; "))
	}
	return append(all, r.remarks()...)
}

// LabelKey tells labels apart.
func LabelKey(l results.Labels) string { return fmt.Sprint(map[string]string(l)) }

// labelOrder is how labels are read; the others come after them.
var labelOrder = []string{results.LabelQuery, results.LabelSize, results.LabelPhase, results.LabelMode, results.LabelDirection, results.LabelStrategy,
	results.LabelConnections, results.LabelInFlight, results.LabelBatch, results.LabelForm, results.LabelEncoding, results.LabelReason}

// LabelText says labels in words: those of the given names, in reading order.
func LabelText(l results.Labels, names []string) string {
	var parts []string
	for _, name := range names {
		value, ok := l[name]
		if !ok {
			continue
		}
		n, err := strconv.Atoi(value)
		switch {
		case name == results.LabelConnections && err == nil:
			value = Count(n, "connection")
		case name == results.LabelSize && err == nil:
			value = Count(n, "item") + " a side"
		case name == results.LabelInFlight:
			value += " in flight"
		case name == results.LabelBatch:
			value = "batches of " + value
		case name == results.LabelWhen && value == "after":
			value = "at the end"
		}
		parts = append(parts, value)
	}
	return strings.Join(parts, ", ")
}

// inOrder sorts the names of labels in reading order.
func inOrder(names []string) []string {
	place := func(name string) uint { return uint(slices.Index(labelOrder, name)) } // the largest for unknown ones
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b)) })
	return names
}

// Varying lists the names of the labels that have several values, in reading order.
func Varying(all []results.Labels) (names []string) {
	values := results.Labels{}
	for _, l := range all {
		for name, value := range l {
			if first, known := values[name]; !known {
				values[name] = value
			} else if first != value {
				names = AddNew(names, name)
			}
		}
	}
	return inOrder(names)
}
