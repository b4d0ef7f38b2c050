package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"relaybench/results"
)

// statusText says what a reader must know of a figure, in one sentence without its full stop.
func statusText(s *results.Status) string {
	if cases := statusTexts[s.Code]; cases != nil {
		return byCase(&results.Finding{Code: s.Because, Cause: s.Cause, Counts: s.Counts, Texts: s.Texts}, cases)
	}
	return cmp.Or(s.Texts["text"], codeText(s.Code))
}

// statusTexts are what is said of figures by the code of a status, and by its cause.
var statusTexts = map[string]texts{
	results.StatusIncomplete: {
		results.CauseCut:        "incomplete: cut by [/${'limit'}|a limit]",
		results.CauseEnded:      "[;incomplete: it ended early|${explanation}]",
		results.CauseShortage:   "incomplete: ${shortage}",
		results.CauseUnresolved: "[:nobody knows whether it is all|${explanation}]",
		otherwise:               "incomplete: [/${explanation}|records are missing]",
	},
	results.StatusLimited:       {otherwise: "[:" + byHarness + "|${limiting}]"},
	results.StatusNotMeasured:   {otherwise: "[/${why}|${'error'}|${cause}|not measured]"},
	results.StatusNotComparable: {otherwise: "[:not comparable|${cause}]"},
	results.StatusAway: {otherwise: byAbsence +
		": it did not run for ${s:number} s meanwhile (stopped, suspended or held up), and not all the time when it was measured anew either"},
	results.StatusRepeated:     {otherwise: "measured anew in a trial, since relaybench itself did not run for ${s:number} s the first time"},
	results.StatusCoarse:       {otherwise: "coarse: it rests on few steps of the clock"},
	results.StatusNoNumber:     {otherwise: "a trial gave no number that there can be, and is left out"},
	results.StatusBadHistogram: {otherwise: "the histogram of a trial could not be read"},
	results.StatusBottleneck: {
		results.BottleneckRelay:   "paced by the relay: parsing and verifying cost no speed",
		results.BottleneckClient:  "paced by the client's CPU when events are verified",
		results.BottleneckHarness: "paced by relaybench itself, even where it parses nothing",
		results.BottleneckMixed:   "paced by neither alone: both wait, or something else takes the processors",
		otherwise:                 "${cause}",
	},
}

// earlierText is said of a file that could not be written anew.
const earlierText = "it holds an earlier state of the run than this report"

const byAbsence = "taken while relaybench was away"

// shortages say what the machine was short of, and what helps.
var shortages = map[string][2]string{
	results.ShortageDisk:         {"the disk of the work folder was full", "Free some space, or choose another disk with --work DIR."},
	results.ShortageInodes:       {"the file system of the work folder took no more files", "Remove some, or choose another with --work DIR."},
	results.ShortageMemory:       {"memory ran out", "Give the machine more memory, or use a smaller corpus."},
	results.ShortageDescriptors:  {"no more files and connections could be opened", "Raise ulimit -n, or lower --publishers and --query-conns."},
	results.ShortagePorts:        {"there was no free local port", "Widen net.ipv4.ip_local_port_range, or stop what holds the ports."},
	results.ShortageFileSize:     {"files are limited in size (ulimit -f), which a relay may have met", "Run without that limit."},
	results.ShortageAddressSpace: {"address space is limited (ulimit -v), which a relay may have met", "Run without that limit."},
	results.ShortageCPUTime:      {"processor time is limited (ulimit -t), which a relay may have met", "Run without that limit."},
}

// shortageText says what the machine was short of; "" for a code that is no shortage.
func shortageText(code string) string { return shortages[code][0] }

// shortageSentence says what the machine was short of, in whose turns, and what helps. Where one
// relay was measured, alone, nobody asks whose.
func shortageSentence(code string, names []string, alone bool) string {
	turns := "While relaybench measured " + And(names...)
	if alone {
		turns = "During the run"
	}
	return fmt.Sprintf("%s, %s, which is not held against anybody. %s", turns, shortages[code][0], shortages[code][1])
}

const byHarness = "limited by the harness"

// limits say how the harness set a figure.
var limits = map[string]string{
	results.CauseCeiling:  "within 20 % of what it reaches with a relay that does nothing",
	results.CauseCPU:      "it used nearly all of the processors that it may use",
	results.CauseReading:  "frames waited to be read",
	results.CauseLateness: "it did not keep its schedule",
}

// codeText writes a code that no table knows as words.
func codeText(code string) string { return strings.ReplaceAll(code, "-", " ") }

// evidenceTitles say what a line of evidence shows. Those that are not here speak for themselves.
var evidenceTitles = map[string]string{
	results.EvidenceMissing: "missing", results.EvidenceExtra: "extra", results.EvidenceAltered: "altered",
	results.EvidenceRefused: "refused", results.EvidenceUnexpected: "not asked for", results.EvidenceQuestion: "asked",
	results.EvidenceOrder: "order", results.EvidenceWords: "it said", results.EvidenceFrame: "it sent",
}

// evidenceLines are evidence as lines: reasons before events, and events of one kind together where
// ids are short.
func evidenceLines(all []results.Evidence, short bool) []string {
	var reasons, lines []string
	var ids map[string]int // the line that lists events alike
	if short {
		ids = map[string]int{}
	}
	for i := range all {
		e := &all[i]
		head, more := evidenceHead(e), ""
		switch {
		case e.Count > 0 && e.ID == "" && e.Text == "":
			more = "and " + Thousands(fmt.Sprint(e.Count)) + " more"
		case e.Count > 1 && e.ID != "":
			head += ", " + Thousands(fmt.Sprint(e.Count)) + " in all"
		case e.Count > 1:
			head += ", " + Count(int(e.Count), "time")
		}
		id := e.ID
		if e.Code == results.EvidenceEvent && e.Text != "" {
			id = "" // it stands in the event
		}
		if short && id != "" {
			id = Shorten(id, 12) + "…"
		}
		text := e.Text
		if short {
			text = shortIDs(text)
		}
		body := clauses(id, text, more)
		at, known := ids[head]
		switch {
		case e.Code == results.EvidenceRefused && e.ID == "":
			reasons = append(reasons, joinHead(head, body))
		case short && known && e.Text == "":
			if !strings.Contains(lines[at], body) {
				lines[at] += ", " + body
			}
		default:
			if short && head != "" && e.Text == "" {
				ids[head] = len(lines)
			}
			body = strings.TrimPrefix(body, "and ")                                    // nothing is before it
			if line := joinHead(head, body); !short || !slices.Contains(lines, line) { // the same question, in every trial
				lines = append(lines, line)
			}
		}
	}
	return append(reasons, lines...)
}

// evidenceHead is what several lines may have in common.
func evidenceHead(e *results.Evidence) string {
	kind, cause := "", codeText(e.Cause)
	if e.Kind != nil {
		kind = fmt.Sprintf("kind %d", *e.Kind)
	}
	for _, w := range missingWords {
		if e.Code == results.EvidenceMissing && e.Cause == w.cause {
			cause = w.text
		}
	}
	if e.Code == results.EvidenceRefused { // a prefix of NIP-01
		cause = e.Cause
	}
	parts := slices.DeleteFunc([]string{evidenceTitles[e.Code], kind, cause}, func(s string) bool { return s == "" })
	return strings.Join(parts, ", ")
}

// shortIDs shortens the ids and keys in a text to 12 digits, as they are shown on a terminal.
func shortIDs(s string) string {
	var b strings.Builder
	run := 0 // the digits that s[:i] ends in
	for i := 0; i <= len(s); i++ {
		if i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] >= 'a' && s[i] <= 'f') {
			run++
			continue
		}
		if digits := s[i-run : i]; run >= 64 {
			b.WriteString(digits[:12] + "…")
		} else {
			b.WriteString(digits)
		}
		if run = 0; i < len(s) {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

func joinHead(head, body string) string {
	if head == "" || body == "" {
		return head + body
	}
	return head + ": " + body
}
