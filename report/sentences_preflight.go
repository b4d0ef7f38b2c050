package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"relaybench/results"
)

// preflightWords are the checks of the preflight, and what is said of how they ended. Nothing is to
// be added where a check passed and has nothing to tell.
var preflightWords = map[string]words{
	results.CodeStores:       {"stores and returns a valid event", preflightAsked(preflightStored)},
	results.CodeText:         {"returns text unaltered", preflightAsked(preflightStored)},
	results.CodeEmptyTag:     {"returns an empty tag", preflightAsked(preflightEmptyTag)},
	results.CodeControl:      {"takes control characters beyond the seven escapes", preflightAsked(preflightControlCharacters)},
	results.CodeBadSignature: {"refuses a bad signature", preflightAsked(preflightForged)},
	results.CodeBadID:        {"refuses a bad id", preflightAsked(preflightForged)},
	results.CodeMalformed:    {"refuses malformed events", preflightAsked(preflightForged)},
	results.CodeCorpusTime:   {"accepts events of the corpus' time", preflightAsked(preflightOfTime)},
	results.CodeYear2020:     {"accepts events of 2020", preflightAsked(preflightOfTime)},
	results.CodePrivateKinds: {"returns kinds 4 and 1059", preflightAsked(preflightStored)},
	results.CodeDuplicate:    {"answers a duplicate", preflightAsked(preflightDuplicate)},

	results.CodeFilterIDs:     {"filters by ids", preflightAsked(preflightAnswered)},
	results.CodeFilterAuthors: {"filters by authors", preflightAsked(preflightAnswered)},
	results.CodeFilterKinds:   {"filters by kinds", preflightAsked(preflightAnswered)},
	results.CodeFilterTagE:    {"filters by #e", preflightAsked(preflightAnswered)},
	results.CodeFilterTagP:    {"filters by #p", preflightAsked(preflightAnswered)},
	results.CodeFilterTagT:    {"filters by #t", preflightAsked(preflightAnswered)},
	results.CodeLimit:         {"keeps to the limit", preflightAsked(preflightAnswered)},
	results.CodeOrder:         {"answers newest first", preflightAsked(preflightAnswered)},
	results.CodeInclusive:     {"takes since and until as inclusive", preflightAsked(preflightInclusive)},
	results.CodeFilterMore:    {"filters by ids together with other conditions", preflightAsked(preflightMore)},
	results.CodeSeveral:       {"takes several filters in one REQ", preflightAsked(preflightSeveral)},
	results.CodeStale:         {"answers a repeated filter anew after a write", preflightAsked(preflightStale)},

	results.CodeReplaceable: {"replaces replaceable events", preflightAsked(preflightReplaced)},
	results.CodeAddressable: {"replaces addressable events", preflightAsked(preflightReplaced)},
	results.CodeLateVersion: {"keeps out versions that are superseded", preflightAsked(preflightLateVersion)},
	results.CodeEphemeral:   {"passes ephemeral events on and stores none", preflightAsked(preflightEphemeral)},
	results.CodeDeletion:    {"leaves other authors' events alone when deleting", preflightAsked(preflightDeletion)},
	results.CodeLive:        {"sends live events after EOSE", preflightAsked(preflightLive)},
	results.CodeLiveFilter:  {"filters live events", preflightAsked(preflightLive)},
	results.CodeClose:       {"ends a subscription on CLOSE", preflightAsked(preflightCloses)},

	results.CodeNIP77:      {"reconciles (NIP-77)", preflightAsked(preflightReconciles)},
	results.CodeAdvertised: {"speaks the NIPs that it names", preflightAsked(preflightAdvertised)},
	results.CodeNagle:      {"sends answers without waiting for acknowledgements", preflightAsked(preflightNagle)},
	results.CodeFsyncEach:  {"takes several events to one fsync", preflightAsked(preflightFsyncEach)},
	results.CodeThrottles:  {"does not throttle", preflightAsked(preflightThrottles)},
	results.CodeSurvives:   {"survives the preflight", preflightSurvives},
}

// preflightAsked says what came of a check, or why nothing is known.
func preflightAsked(say func(f *results.Finding) string) func(f *results.Finding) string {
	return func(f *results.Finding) string {
		if f.Verdict == results.Undecided {
			return preflightLeftOpen(f)
		}
		return say(f)
	}
}

// preflightLeftOpen says why nothing is known.
func preflightLeftOpen(f *results.Finding) string {
	const open = "it could not be found out: "
	switch f.Cause {
	case results.CauseSilent:
		text := open + "no answer came in time"
		if notice := f.Texts["notice"]; notice != "" {
			text += ", but NOTICE " + quote(notice)
		}
		if f.Counts["binary"] > 0 {
			text += ", but " + preflightCounted(f, "binary", "binary frame")
		} else if len(f.Evidence) > 0 && f.Evidence[0].Code == results.EvidenceFrame {
			text += ", but a frame that is no message"
		}
		return text
	case results.CauseLost:
		return open + "the connection was lost" + prefixed(" while ", f.Texts["doing"]) + ": " + f.Texts["error"]
	case results.CauseSetup:
		return open + fmt.Sprintf("a valid event of kind %s, which the question needs, was refused: %s", n(f, "kind"), quote(f.Texts["reason"]))
	case results.CauseClosed:
		return open + "the REQ was answered with CLOSED " + quote(f.Texts["reason"])
	case results.CauseSlow:
		return open + fmt.Sprintf("an answer took %s, so that silence means nothing", preflightMillis(f, "ms"))
	case results.CauseTime:
		return open + "the time for asking ran out"
	case results.CauseNeeds:
		return open + "what the question rests on does not hold"
	case results.CausePlain:
		return open + "an event of plain text does not come back as it was sent either"
	case results.CauseFew:
		return open + fmt.Sprintf("only %s came", preflightCounted(f, "answers", "answer"))
	}
	return ""
}

// preflightStored is of an event that was published and read back.
func preflightStored(f *results.Finding) string {
	kind := ""
	if k := f.Counts["kind"]; k > 1 {
		kind = " of kind " + n(f, "kind")
	}
	switch f.Cause {
	case results.CauseRefused:
		return fmt.Sprintf("a valid event%s was refused: %s", kind, quote(f.Texts["reason"]))
	case results.CauseUnnamed:
		return "the OK of an accepted event does not carry the event's id"
	case results.CauseNotReturned:
		if f.Counts["elsewhere"] > 0 {
			return fmt.Sprintf("an acknowledged event%s came back under a subscription id that nobody asked under", kind)
		}
		return fmt.Sprintf("an acknowledged event%s did not come back by its id within %s", kind, preflightMillis(f, "ms"))
	case results.CauseUnreadable:
		return preflightJoinWhy("the event came back as something that is no event", f.Texts["error"])
	case results.CauseTrimmed:
		return fmt.Sprintf("white space at the ends of the content is stripped: %s came back as %s", f.Texts["sent"], f.Texts["returned"])
	case results.CauseTagsDropped:
		return "empty tags are dropped, so that the event is not the one that was signed"
	case results.CauseAltered:
		text := "the event came back with another " + strings.ReplaceAll(f.Texts["fields"], ", ", " and another ")
		if f.Texts["sent"] != "" {
			text += fmt.Sprintf(": %s came back as %s", f.Texts["sent"], f.Texts["returned"])
		}
		return text
	}
	return ""
}

func preflightEmptyTag(f *results.Finding) string {
	if f.Cause == results.CauseRefused {
		return "a valid event with an empty tag is refused: " + quote(f.Texts["reason"])
	}
	return preflightStored(f)
}

func preflightOfTime(f *results.Finding) string {
	at := time.Unix(int64(f.Counts["createdAt"]), 0).UTC().Format("2006-01-02")
	switch f.Cause {
	case results.CauseRefused:
		return fmt.Sprintf("a valid event of %s was refused: %s", at, quote(f.Texts["reason"]))
	case results.CauseNotReturned:
		return fmt.Sprintf("an acknowledged event of %s did not come back by its id within %s", at, preflightMillis(f, "ms"))
	}
	return preflightStored(f)
}

func preflightControlCharacters(f *results.Finding) string {
	if f.Cause != results.CauseCharacters {
		return passing(f, "all control characters are accepted and returned as they were sent")
	}
	var parts []string
	for _, p := range []struct{ name, text string }{
		{"refused", "refused: "}, {"altered", "altered: "}, {"lost", "acknowledged and not returned: "}, {"unanswered", "left without an answer: "},
		{"accepted", "accepted and returned: "},
	} {
		if f.Counts[p.name] == 0 {
			continue
		}
		text := p.text + f.Texts[p.name]
		if p.name == "refused" && f.Texts["reason"] != "" {
			text += " (" + quote(f.Texts["reason"]) + ")"
		}
		parts = append(parts, text)
	}
	return "control characters " + clauses(parts...)
}

// preflightForgeries are the forged events by their names.
var preflightForgeries = map[string]string{
	results.ForgedSignature: "an event with a bad signature", results.ForgedContent: "an event that was changed after it was signed",
	results.ForgedID: "an event under another id", results.NoSignature: "an event without sig", results.NoCreatedAt: "an event without created_at",
	results.ContentNumber: "an event whose content is a number", results.ShortSignature: "an event whose sig is too short",
}

func preflightForged(f *results.Finding) string {
	what := cmp.Or(preflightForgeries[f.Texts["forgery"]], "a forged event")
	switch f.Cause {
	case results.CauseAccepted:
		return fmt.Sprintf("%s gets OK true %s", what, quote(f.Texts["reason"]))
	case results.CauseServed:
		return what + " gets no OK true, and yet is returned to readers"
	}
	var parts []string
	for _, e := range f.Evidence {
		words := quote(f.Texts[e.Text])
		how := map[string]string{results.CauseRefused: "OK false " + words, results.CauseNotice: "NOTICE " + words,
			results.CauseSilent: "no answer", results.CauseLost: "the end of the connection"}[e.Cause]
		if e.Code == results.EvidenceRefused && how != "" {
			parts = append(parts, preflightForgeries[e.Text]+" gets "+how)
		}
	}
	return clauses(parts...)
}

func preflightDuplicate(f *results.Finding) string {
	switch f.Cause {
	case results.CauseNoOK:
		return fmt.Sprintf("an event that was sent twice got no second OK in %s", preflightMillis(f, "ms"))
	case results.CauseUnnamed:
		return "the answer to a duplicate does not carry the event's id: " + quote(f.Texts["reason"])
	}
	return fmt.Sprintf("a duplicate gets OK %t %s", f.Counts["accepted"] > 0, quote(f.Texts["reason"]))
}

// preflightAnswered is of a REQ and what came.
func preflightAnswered(f *results.Finding) string {
	limit := ""
	if f.Cause == results.CauseAnswer && f.Code == results.CodeLimit {
		limit = " to a limit of " + n(f, "limit")
	}
	switch f.Cause {
	case results.CauseAnswer:
		text := fmt.Sprintf("%s came instead of %s%s", preflightCounted(f, "got", "event"), n(f, "want"), limit)
		if f.Counts["missing"] > 0 {
			text += fmt.Sprintf(", %s missing", n(f, "missing"))
		}
		if f.Counts["extra"] > 0 {
			text += fmt.Sprintf(", %s not asked for", n(f, "extra"))
		}
		return text
	case results.CauseDisorder:
		return fmt.Sprintf("%s came in the order %s, numbered as they should have come", preflightCounted(f, "got", "event"), preflightEvidenceText(f, results.EvidenceOrder))
	case results.CauseUnreadable:
		return fmt.Sprintf("%s came without a readable id", preflightCounted(f, "unreadable", "event"))
	case results.CauseFlood:
		return fmt.Sprintf("one REQ was answered with more than %s, of which a few were published", preflightCounted(f, "got", "event"))
	}
	return ""
}

func preflightMore(f *results.Finding) string {
	if f.Verdict == results.Passed {
		return "ids together with an author return what meets both"
	}
	return preflightJoinWhy("ids together with an author do not return what meets both", preflightAnswered(f))
}

func preflightInclusive(f *results.Finding) string {
	since, until := f.Counts[results.UsesSince] > 0, f.Counts[results.UsesUntil] > 0
	switch {
	case since && until:
		return "since and until do not return exactly the events from and to that very second"
	case since:
		return "since does not return exactly the events from that very second on"
	case until:
		return "until does not return exactly the events up to that very second"
	}
	return preflightAnswered(f)
}

func preflightSeveral(f *results.Finding) string {
	if f.Cause == "" && f.Counts["twice"] > 0 {
		return "two filters return the union, and an event that matches both comes twice"
	}
	if f.Cause == results.CauseAnswer {
		return "two filters do not return their union: " + preflightAnswered(f)
	}
	return preflightAnswered(f)
}

func preflightStale(f *results.Finding) string {
	switch f.Cause {
	case results.CauseCached:
		return fmt.Sprintf("an identical filter was answered from before a write until %s after it, when another filter showed it", preflightMillis(f, "ms"))
	case results.CauseNever:
		return fmt.Sprintf("an identical filter was still answered from before a write %s after it, when another filter showed it", preflightMillis(f, "ms"))
	}
	return preflightAnswered(f)
}

func preflightReplaced(f *results.Finding) string {
	if f.Cause != results.CauseAnswer {
		return preflightAnswered(f)
	}
	return fmt.Sprintf("of kind %s, after newer versions, %s", strings.ReplaceAll(n(f, "kind"), ",", ""), preflightAnswered(f))
}

func preflightLateVersion(f *results.Finding) string {
	if f.Cause == results.CauseAnswer {
		return "after an older version that came late " + preflightAnswered(f)
	}
	if f.Cause == "" {
		return fmt.Sprintf("an older version that comes late gets OK %t %s and is not served", f.Counts["accepted"] > 0, quote(f.Texts["reason"]))
	}
	return preflightAnswered(f)
}

func preflightEphemeral(f *results.Finding) string {
	if f.Cause == results.CauseRefused {
		return "an ephemeral event (kind 20001) was refused: " + quote(f.Texts["reason"])
	}
	if f.Cause == "" {
		return ""
	}
	var parts []string
	if f.Counts["stored"] > 0 {
		parts = append(parts, fmt.Sprintf("is still returned %s later", preflightMillis(f, "ms")))
	}
	if f.Counts["delivered"] == 0 {
		parts = append(parts, "did not reach an open subscription")
	}
	if f.Counts["answered"] == 0 {
		parts = append(parts, "got no OK")
	}
	return "an ephemeral event (kind 20001) " + strings.Join(parts, ", and ")
}

func preflightDeletion(f *results.Finding) string {
	switch {
	case f.Cause == results.CauseForeign:
		return "a deletion request (kind 5) also deletes the events of other authors, so that anybody can delete anything"
	case f.Counts["own"] > 0:
		return "a deletion request (kind 5) deletes its author's event and leaves that of another"
	case f.Texts["reason"] != "":
		return "a deletion request (kind 5) is refused: " + quote(f.Texts["reason"])
	}
	return "a deletion request (kind 5) deletes nothing"
}

func preflightLive(f *results.Finding) string {
	switch f.Cause {
	case results.CauseNotDelivered:
		return fmt.Sprintf("an event published after EOSE did not reach the subscription within %s, while other questions were answered", preflightMillis(f, "ms"))
	case results.CauseAnswer:
		return "a subscription with a tag filter gets live events without that tag"
	case results.CauseEndedEarly:
		return "the subscription was ended by CLOSED " + quote(f.Texts["reason"])
	}
	return ""
}

func preflightCloses(f *results.Finding) string {
	switch f.Cause {
	case results.CauseAnswer:
		return "events still come for a subscription that was closed"
	case results.CauseEndedEarly:
		return "a subscription that was left open was ended by CLOSED " + quote(f.Texts["reason"])
	}
	return ""
}

func preflightReconciles(f *results.Finding) string {
	text := preflightReconciled(f)
	if f.Counts["advertised"] > 0 {
		text += ", though its NIP-11 document names NIP-77"
	}
	return text
}

func preflightReconciled(f *results.Finding) string {
	switch f.Cause {
	case results.CauseAnswered:
		return "NEG-OPEN is answered"
	case results.CauseUnsupported:
		if f.Texts["how"] == "silence" { // as negentropy.BySilence names it
			return "it does not speak NIP-77: NEG-OPEN is not answered"
		}
		return fmt.Sprintf("it does not speak NIP-77: NEG-OPEN is answered with %s %s", f.Texts["how"], quote(f.Texts["reason"]))
	case results.CauseRefused:
		return "it refuses to reconcile: " + quote(f.Texts["reason"])
	case results.CauseBreaks:
		return "it answers NEG-OPEN and then breaks NIP-77: " + f.Texts["error"]
	case results.NIP77External:
		return "it runs already, and cannot be given what a pair needs"
	}
	return ""
}

func preflightAdvertised(f *results.Finding) string {
	if f.Cause == results.CauseNotSpoken {
		return preflightJoinWhy("its NIP-11 document names NIPs that were not found by asking: "+f.Texts["nips"], preflightOthers(f))
	}
	return passing(f, preflightJoinWhy(fmt.Sprintf("of the NIPs that it names, all %s that were asked for are spoken", n(f, "asked")), preflightOthers(f)))
}

// preflightOthers are the NIPs that it speaks and does not name.
func preflightOthers(f *results.Finding) string {
	if f.Texts["unnamed"] == "" {
		return ""
	}
	return "it also speaks " + f.Texts["unnamed"] + ", which it does not name"
}

func preflightNagle(f *results.Finding) string {
	if f.Cause == results.CauseHeldBack {
		return fmt.Sprintf("in %s of %s the last frame came about %s after the one before, as Nagle's algorithm holds it back until TCP acknowledges: set TCP_NODELAY, or write an answer in one piece",
			n(f, "held"), preflightCounted(f, "answers", "answer"), preflightMillis(f, "ms"))
	}
	return ""
}

func preflightFsyncEach(f *results.Finding) string {
	if f.Cause != results.CauseHeldBack {
		return ""
	}
	return fmt.Sprintf("each event seems to wait for an fsync of its own: %s to an OK one by one, %s for each with %s in flight, and an fsync of this disk takes %s",
		preflightMillis(f, "alone"), preflightMillis(f, "each"), n(f, "window"), preflightMillis(f, "fsync"))
}

func preflightThrottles(f *results.Finding) string {
	switch f.Cause {
	case results.CauseRates:
		var parts []string
		if text := f.Texts["publishing"]; text != "" {
			parts = append(parts, "it limits the rate of events: "+quote(text))
		}
		if text := f.Texts["asking"]; text != "" {
			parts = append(parts, "it limits the rate of REQs: "+quote(text))
		}
		return clauses(parts...)
	case results.CauseRefused:
		return fmt.Sprintf("in a flood of small events one was refused after %s: %s", preflightCounted(f, "taken", "event"), quote(f.Texts["reason"]))
	case results.CauseHungUp:
		return preflightJoinWhy(fmt.Sprintf("in a flood of small events it ended the connection after %s, and took another at once", preflightCounted(f, "taken", "event")), f.Texts["error"])
	case results.CauseUnanswered:
		text := fmt.Sprintf("in a flood of small events some got no OK after %s, while other questions were answered", preflightCounted(f, "taken", "event"))
		if notice := f.Texts["notice"]; notice != "" {
			text += ", and NOTICE " + quote(notice) + " came"
		}
		return text
	}
	return passing(f, fmt.Sprintf("%s in %s on one connection, and none was held back", preflightCounted(f, "taken", "event"), preflightMillis(f, "ms")))
}

func preflightSurvives(f *results.Finding) string {
	if f.Verdict == results.Failed {
		return preflightJoinWhy("it died while it was asked", f.Texts["error"])
	}
	return ""
}

// preflightCounted is a count with what is counted, whose plural takes an s.
func preflightCounted(f *results.Finding, name, what string) string {
	if f.Counts[name] != 1 {
		what += "s"
	}
	return n(f, name) + " " + what
}

// preflightMillis is a count of milliseconds for prose.
func preflightMillis(f *results.Finding, name string) string {
	ms := f.Counts[name]
	switch {
	case ms >= 1000:
		return fmt.Sprintf("%.1f s", ms/1000)
	case ms >= 10:
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.2g ms", ms)
}

// preflightJoinWhy adds a reason, where there is one.
func preflightJoinWhy(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}

// preflightEvidenceText is the text of the first evidence with this code.
func preflightEvidenceText(f *results.Finding, code string) string {
	for _, e := range f.Evidence {
		if e.Code == code {
			return e.Text
		}
	}
	return ""
}
