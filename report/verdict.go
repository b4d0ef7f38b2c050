package report

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"relaybench/results"
)

// A verdict answers, at the top of every report, what its reader wants to know first: may these
// numbers be published?
type verdict struct {
	answer  string
	grave   []string // each one alone makes numbers mean something else
	caveats []string // each one must be said beside the numbers, or mended first
}

func (v *view) verdict() verdict {
	var d verdict
	// Relays' words may be in a reason: it is bounded, and all of them stand further down.
	const most = 400
	grave := func(format string, args ...any) { d.grave = append(d.grave, fit(fmt.Sprintf(format, args...), most)) }
	caveat := func(format string, args ...any) {
		d.caveats = append(d.caveats, fit(fmt.Sprintf(format, args...), most))
	}

	for _, text := range Shortages(v.rec) {
		grave("%s", text)
	}
	if v.rec.Partial {
		grave("The run did not finish: what is missing below was not measured.")
	}
	for _, r := range v.relays {
		if text := v.refusal(r.Name); text != "" {
			grave("%s", sentence(text))
		}
		if r.Outcome != results.OutcomeOK {
			grave("%s %s", r.Name, sentence(OutcomeText(r)))
		}
	}
	v.judgeFindings(grave, caveat)
	if !v.nothingRanked() {
		v.judgeBreaches(caveat)
	}
	if len(v.rec.Measurements) == 0 {
		grave("Nothing was measured.")
	}
	warnings := results.Warnings(v.rec)
	contenders := slices.DeleteFunc(slices.Clone(v.relays), func(r *results.Relay) bool { return r.NeverRanked != "" })
	switch {
	case v.nothingRanked():
		contenders, warnings = nil, nil
	case len(contenders) == 1:
		caveat("Only one relay took part: nothing is compared.")
		warnings = results.UnsteadyTrials(v.rec)
	}
	for _, w := range warnings {
		caveat("%s", w)
	}
	classes := map[string][]string{}
	for _, r := range contenders {
		if r.Outcome == results.OutcomeOK {
			classes[r.Durability] = append(classes[r.Durability], r.Name)
		}
	}
	if len(classes) > 1 {
		var parts []string
		for _, c := range slices.Sorted(maps.Keys(classes)) {
			parts = append(parts, And(classes[c]...)+" "+c)
		}
		caveat("An OK does not promise the same everywhere (%s): ingest is not like for like.", strings.Join(parts, "; "))
	}
	if limited := v.marked(results.StatusLimited); limited != "" {
		caveat("Some figures of %s are limited by the harness: the relay may be faster than they say.", limited)
	}
	if away := v.marked(results.StatusAway); away != "" {
		caveat("Some figures of %s were %s, twice: they say nothing of the relay. Measure again on a machine that is let run.", away, byAbsence)
	}
	for _, text := range MachineWarnings(v.rec) {
		caveat("%s", text)
	}
	if v.rec.Tool.Modified {
		caveat("relaybench was built from a tree with uncommitted changes: others cannot build the same.")
	}
	switch {
	case len(d.grave) > 0:
		d.answer = "No"
	case len(d.caveats) > 0:
		d.answer = "Not yet"
	default:
		d.answer = "Yes, with this report beside the numbers"
	}
	return d
}

// nothingRanked tells whether all that was measured is only stated.
func (v *view) nothingRanked() bool {
	return len(v.rec.Scenarios) > 0 && !slices.ContainsFunc(v.rec.Scenarios, func(s results.Scenario) bool { return s.Layout != results.LayoutTable })
}

// marked lists the relays of which a figure has a status.
func (v *view) marked(code string) string {
	var names []string
	for i := range v.rec.Measurements {
		if m := &v.rec.Measurements[i]; m.Is(code) != nil && !v.yardstick(m.Relay) {
			names = AddNew(names, m.Relay)
		}
	}
	return And(names...)
}

// Shortages says, a sentence for each, what the machine was short of in a run, what helps, and
// whose figures it cost.
func Shortages(r *results.Record) (all []string) {
	names := map[string][]string{}
	add := func(code, name string) {
		if shortageText(code) != "" {
			names[code] = AddNew(names[code], name)
		}
	}
	r = Sanitized(r)
	for i := range r.Relays {
		add(r.Relays[i].Shortage, r.Relays[i].Name)
	}
	for i := range r.Findings {
		add(r.Findings[i].Cause, r.Findings[i].Relay)
	}
	for i := range r.Measurements {
		if s := r.Measurements[i].Is(results.StatusIncomplete); s != nil {
			add(s.Because, r.Measurements[i].Relay)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(names)) {
		all = append(all, shortageSentence(code, names[code], len(r.Relays) == 1))
	}
	return all
}

// judgeBreaches speaks of what every run does and this one left out. What runs already is not asked
// by a preflight, which publishes, and with nothing else in a run nothing is calibrated: no advice
// can be given then.
func (v *view) judgeBreaches(caveat func(string, ...any)) {
	if len(v.rec.Measurements) == 0 {
		return
	}
	launched := func(relays []string, advice string) string {
		if !slices.ContainsFunc(relays, func(name string) bool { r := v.relay(name); return r != nil && r.URL == "" }) {
			return ""
		}
		return advice
	}
	var names, unasked []string
	for _, r := range v.relays {
		names = append(names, r.Name)
		asked := slices.ContainsFunc(v.checks, func(f *results.Finding) bool {
			return f.Relay == r.Name && f.Code == results.CodeStores
		})
		if r.Outcome == results.OutcomeOK && !asked && !v.yardstick(r.Name) {
			unasked = append(unasked, r.Name)
		}
	}
	if len(v.rec.Calibration) == 0 {
		caveat("The harness was not calibrated: nothing tells whether a figure is the relay's or the harness's.%s", launched(names, " Measure without --skip calibration."))
	}
	if len(unasked) > 0 {
		caveat("Nobody asked %s whether forged events are refused and filters kept, which would make any relay fast.%s", And(unasked...), launched(unasked, " Measure without --skip preflight."))
	}
}

// judgeFindings speaks of failed checks, and of those that nobody could ask: one line for each
// relay. What is merely stated is no reason against anything.
func (v *view) judgeFindings(grave, caveat func(string, ...any)) {
	for _, name := range v.findingRelays() {
		o := v.outcomes(name)
		say := func(verdict results.Verdict, what string, to func(string, ...any)) {
			var briefs []string
			for _, f := range o.of(verdict) {
				briefs = append(briefs, v.brief(f))
			}
			if len(briefs) > 0 {
				to("%s "+what+": %s.", Speaker(name), o.checks(verdict), Some(briefs, 4))
			}
		}
		say(results.Failed, "failed %s", grave)
		say(results.Undecided, "could not be asked in %s", caveat)
	}
}

// yardstick tells whether a relay takes part to show what the harness can do, and not for its own
// figures.
func (v *view) yardstick(name string) bool {
	r := v.relay(name)
	return r != nil && r.NeverRanked != ""
}

// Speaker names whose finding it is.
func Speaker(relay string) string {
	if relay == "" {
		return "The harness itself"
	}
	return relay
}

// Some lists the first few of a long list.
func Some(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, "; ")
	}
	return fmt.Sprintf("%s; and %d more", strings.Join(list[:n], "; "), len(list)-n)
}

// sentence ends s with one full stop.
func sentence(s string) string { return strings.TrimRight(s, ". ") + "." }

// subject is whom a check speaks of: the relay at fault, or, where neither of two can be told to
// be, the pair.
func subject(f *results.Finding) string {
	switch {
	case f.Verdict != results.Failed || f.Peer == "" && f.Blames == "":
		return f.Relay
	case f.Blames == "":
		return (&pair{a: f.Relay, b: f.Peer}).title()
	}
	return f.Blames
}

// with names the other relay of a check on a pair.
func with(f *results.Finding) string {
	other := f.Peer
	if who := subject(f); who == f.Peer {
		other = f.Relay
	} else if who != f.Relay {
		return ""
	}
	switch {
	case f.Peer == "":
		return ""
	case f.Peer == f.Relay:
		return " with a second instance"
	}
	return " with " + other
}

// where is the scenario in which a check was asked, and with whom; "" where that was before all
// scenarios.
func (v *view) where(f *results.Finding) string {
	text := ""
	if v.layout(f.Scenario) != "" {
		text = v.place(f.Scenario, f.Labels)
	}
	if v.inSync(f) {
		return text + ", " + f.Peer + " → " + f.Relay
	}
	return strings.TrimPrefix(text+with(f), " ")
}

// place names a scenario in a sentence, and the way to download or the labels where it stands for
// several.
func (v *view) place(scenario string, l results.Labels) string {
	if v.layout(scenario) == results.LayoutDownloads && len(l) > 0 {
		s := settingsOf(v.scenario(scenario), l)
		return s.name()
	}
	if v.layout(scenario) == results.LayoutTable {
		return scenario + Prefixed(", ", LabelText(l, inOrder(slices.Collect(maps.Keys(l)))))
	}
	return scenario
}

// findingRelays lists whom the checks speak of, in the order of the run.
func (v *view) findingRelays() []string {
	var names []string
	for _, r := range v.relays {
		if slices.ContainsFunc(v.checks, func(f *results.Finding) bool { return subject(f) == r.Name }) {
			names = append(names, r.Name)
		}
	}
	for _, f := range v.checks {
		names = AddNew(names, subject(f))
	}
	return slices.DeleteFunc(names, v.yardstick) // of which nothing is expected
}

// A fact is one line of what was run.
type fact struct{ key, text string }

// starRule says when there is a star.
func starRule(trials int) string {
	if need := results.TrialsFor(results.Alpha); trials < need {
		return fmt.Sprintf("no ★ from fewer than %d trials, which no test can tell from chance", need)
	}
	return "★ where the best is significantly ahead of every other (Mann–Whitney U, p < 0.05)"
}

// head describes the run: corpus, machine, tool, trials and time.
func (v *view) head() []fact {
	r := v.rec
	var unranked []string
	for _, x := range v.relays {
		if x.NeverRanked != "" {
			unranked = append(unranked, x.Name+": "+x.NeverRanked)
		}
	}
	corpus := []string{r.Corpus.Source}
	if !v.corpusless() {
		size := Count(r.Corpus.Events, "event")
		if r.Corpus.Bytes > 0 {
			size += ", " + BytesText(float64(r.Corpus.Bytes))
		}
		corpus = []string{r.Corpus.Source, size, Prefixed("fingerprint ", Shorten(r.Corpus.Fingerprint, 16))}
	}
	tool := []string{"relaybench " + r.Tool.Version}
	if r.Tool.Revision != "" {
		tool[0] += " (" + Shorten(r.Tool.Revision, 12) + ")"
	}
	if r.Tool.Modified {
		tool = append(tool, "uncommitted changes")
	}
	var trials []string
	if v.trials > 0 {
		trials = []string{fmt.Sprintf("n=%d", v.trials)}
	}
	if v.trials > 1 {
		trials = append(trials, "each figure is the median of its trials, a latency of their medians; p99 is of all samples", starRule(v.trials))
	}
	when := r.StartedAt.UTC().Format("2006-01-02 15:04:05") + " UTC"
	if r.FinishedAt != nil {
		if took := r.FinishedAt.Sub(r.StartedAt); took > 0 {
			when += ", took " + durationText(took)
		}
	}
	var out []fact
	for _, line := range []struct {
		key   string
		parts []string
	}{{"unranked", unranked}, {"corpus", corpus}, {"left out", []string{leftOut(r.Corpus.Dropped)}}, {"machine", machineParts(&r.Environment)},
		{"tool", append(tool, r.Tool.Go, Prefixed("signatures by ", r.Tool.Verifier))}, {"trials", trials}, {"time", []string{when}}} {
		if text := joinSaid(" · ", line.parts); text != "" {
			out = append(out, fact{line.key, text})
		}
	}
	return out
}

// corpusless tells whether the run had no corpus. Its fingerprint is then that of nothing, which is
// no thing to show.
func (v *view) corpusless() bool {
	c := &v.rec.Corpus
	return c.Events == 0 && c.Fingerprint == fmt.Sprintf("%x", sha256.Sum256(nil))
}

// dropTitles say what preparation leaves out, one and many.
var dropTitles = map[string][2]string{
	"deletion": {"deletion", "deletions"}, "tag_value_too_long": {"over-long tag", "over-long tags"}, "too_large": {"over-large event", "over-large events"},
	"too_many_tags": {"event with too many tags", "events with too many tags"}, "duplicate": {"duplicate", "duplicates"}, "ephemeral": {"ephemeral event", "ephemeral events"},
	"control_character": {"event with control characters", "events with control characters"},
	"bad_id":            {"wrong id", "wrong ids"}, "bad_signature": {"wrong signature", "wrong signatures"}, "no_signature": {"missing signature", "missing signatures"},
}

// leftOut says what preparation left out, most first.
func leftOut(dropped map[string]int) string {
	var parts []string
	for _, k := range byCount(dropped) {
		if n := dropped[k]; n > 0 {
			title, ok := dropTitles[k]
			if !ok {
				title = [2]string{strings.ReplaceAll(k, "_", " "), strings.ReplaceAll(k, "_", " ")}
			}
			parts = append(parts, Thousands(fmt.Sprint(n))+" "+title[min(n-1, 1)])
		}
	}
	return strings.Join(parts, ", ")
}

func Prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// Shorten keeps the first n digits of a hexadecimal name, and leaves alone what cannot be one.
func Shorten(s string, n int) string {
	if plainASCII(s) && len(s) > n {
		return s[:n]
	}
	return s
}

func durationText(d time.Duration) string {
	if d < 10*time.Second {
		return Number(float64(d.Round(100*time.Millisecond))/float64(time.Second)) + " s"
	}
	if d < time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
