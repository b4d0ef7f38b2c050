package report

import (
	"cmp"
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
	to := func(list *[]string) func(format string, args ...any) {
		return func(format string, args ...any) { *list = append(*list, fit(fmt.Sprintf(format, args...), most)) }
	}
	grave, caveat := to(&d.grave), to(&d.caveats)

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
		caveat("Some figures of %s were %s, twice: they say nothing of the relay. Measure again on a machine that is let run.", away, words().Parts["by-absence"])
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
		if word("shortage", code) != "" {
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
		turns := "While relaybench measured " + And(names[code]...)
		if len(r.Relays) == 1 { // nobody asks whose
			turns = "During the run"
		}
		what, help := word("shortage", code), word("shortage-help", code)
		all = append(all, fmt.Sprintf("%s, %s, which is not held against anybody. %s", turns, what, help))
	}
	return all
}

// Trouble says, in a line each, which relays failed, and how many checks failed of whom.
func Trouble(r *results.Record) (all []string) {
	v := newView(r)
	for _, relay := range v.relays {
		if relay.Outcome != results.OutcomeOK && relay.Outcome != results.OutcomeUnmeasured {
			all = append(all, relay.Name+": "+relay.Reason)
		}
	}
	for _, name := range v.findingRelays() {
		if failed := v.outcomes(name).of(results.Failed); len(failed) > 0 {
			all = append(all, fmt.Sprintf("%s: %s failed, see the report", cmp.Or(name, "relaybench itself"), Count(len(failed), "check")))
		}
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
	var calibrate, ask string // the advice, where a relay is launched
	var unasked []string
	for _, r := range v.relays {
		asked := slices.ContainsFunc(v.checks, func(f *results.Finding) bool {
			return f.Relay == r.Name && f.Code == results.CodeStores
		})
		missed := r.Outcome == results.OutcomeOK && !asked && r.NeverRanked == ""
		if missed {
			unasked = append(unasked, r.Name)
		}
		if r.URL == "" {
			calibrate = " Measure without --skip calibration."
		}
		if r.URL == "" && missed {
			ask = " Measure without --skip preflight."
		}
	}
	if len(v.rec.Calibration) == 0 {
		caveat("The harness was not calibrated: nothing tells whether a figure is the relay's or the harness's.%s", calibrate)
	}
	if len(unasked) > 0 {
		caveat("Nobody asked %s whether forged events are refused and filters kept, which would make any relay fast.%s", And(unasked...), ask)
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
func Speaker(relay string) string { return cmp.Or(relay, "The harness itself") }

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
	switch who := subject(f); {
	case f.Peer == "" || who != f.Relay && who != f.Peer:
		return ""
	case f.Peer == f.Relay:
		return " with a second instance"
	case who == f.Peer:
		return " with " + f.Relay
	}
	return " with " + f.Peer
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
		return wayName(v.scenario(scenario), l)
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
func (v *view) head() (facts []fact) {
	r := v.rec
	add := func(key string, parts ...string) {
		if text := joinSaid(" · ", parts); text != "" {
			facts = append(facts, fact{key, text})
		}
	}
	var unranked []string
	for _, x := range v.relays {
		if x.NeverRanked != "" {
			unranked = append(unranked, x.Name+": "+x.NeverRanked)
		}
	}
	add("unranked", unranked...)
	size, fingerprint := "", ""
	if !v.corpusless() {
		size, fingerprint = Count(r.Corpus.Events, "event"), Prefixed("fingerprint ", Shorten(r.Corpus.Fingerprint, 16))
		if r.Corpus.Bytes > 0 {
			size += ", " + BytesText(float64(r.Corpus.Bytes))
		}
	}
	add("corpus", r.Corpus.Source, size, fingerprint)
	add("left out", leftOut(r.Corpus.Dropped))
	add("machine", machineParts(&r.Environment)...)
	tool, modified := At("relaybench "+r.Tool.Version, Shorten(r.Tool.Revision, 12)), ""
	if r.Tool.Modified {
		modified = "uncommitted changes"
	}
	add("tool", tool, modified, r.Tool.Go, Prefixed("signatures by ", r.Tool.Verifier))
	switch n := fmt.Sprintf("n=%d", v.trials); {
	case v.trials > 1:
		add("trials", n, "each figure is the median of its trials, a latency of their medians; p99 is of all samples", starRule(v.trials))
	case v.trials > 0:
		add("trials", n)
	}
	when := r.StartedAt.UTC().Format(time.DateTime) + " UTC"
	if r.FinishedAt != nil && r.FinishedAt.After(r.StartedAt) {
		when += ", took " + durationText(r.FinishedAt.Sub(r.StartedAt))
	}
	add("time", when)
	return facts
}

// corpusless tells whether the run had no corpus. Its fingerprint is then that of nothing, which is
// no thing to show.
func (v *view) corpusless() bool {
	c := &v.rec.Corpus
	return c.Events == 0 && c.Fingerprint == fmt.Sprintf("%x", sha256.Sum256(nil))
}

// leftOut says what preparation left out, most first.
func leftOut(dropped map[string]int) string {
	var parts []string
	for _, k := range byCount(dropped) {
		if n := dropped[k]; n > 0 {
			parts = append(parts, byCase(&results.Finding{Cause: k, Counts: map[string]float64{"n": float64(n)},
				Texts: map[string]string{"name": strings.ReplaceAll(k, "_", " ")}}, words().Texts["dropped"]))
		}
	}
	return strings.Join(parts, ", ")
}

// Prefixed is a text behind a prefix, "" where there is none.
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
