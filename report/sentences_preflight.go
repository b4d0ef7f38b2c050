package report

import (
	"cmp"
	"fmt"
	"strings"

	"relaybench/results"
)

// preflightWords are the checks of the preflight, and what is said of how they ended. Nothing is to
// be added where a check passed and has nothing to tell.
var preflightWords = map[string]words{
	results.CodeStores:       {"stores and returns a valid event", byCause(storedTexts)},
	results.CodeText:         {"returns text unaltered", byCause(storedTexts)},
	results.CodeEmptyTag:     {"returns an empty tag", byCause(emptyTagTexts, storedTexts)},
	results.CodeControl:      {"takes control characters beyond the seven escapes", preflightAsked(preflightControlCharacters)},
	results.CodeBadSignature: {"refuses a bad signature", preflightAsked(preflightForged)},
	results.CodeBadID:        {"refuses a bad id", preflightAsked(preflightForged)},
	results.CodeMalformed:    {"refuses malformed events", preflightAsked(preflightForged)},
	results.CodeCorpusTime:   {"accepts events of the corpus' time", byCause(ofTimeTexts, storedTexts)},
	results.CodeYear2020:     {"accepts events of 2020", byCause(ofTimeTexts, storedTexts)},
	results.CodePrivateKinds: {"returns kinds 4 and 1059", byCause(storedTexts)},
	results.CodeDuplicate:    {"answers a duplicate", byCause(duplicateTexts)},

	results.CodeFilterIDs:     {"filters by ids", byCause(answeredTexts)},
	results.CodeFilterAuthors: {"filters by authors", byCause(answeredTexts)},
	results.CodeFilterKinds:   {"filters by kinds", byCause(answeredTexts)},
	results.CodeFilterTagE:    {"filters by #e", byCause(answeredTexts)},
	results.CodeFilterTagP:    {"filters by #p", byCause(answeredTexts)},
	results.CodeFilterTagT:    {"filters by #t", byCause(answeredTexts)},
	results.CodeLimit:         {"keeps to the limit", byCause(limitTexts, answeredTexts)},
	results.CodeOrder:         {"answers newest first", byCause(answeredTexts)},
	results.CodeInclusive:     {"takes since and until as inclusive", preflightAsked(preflightInclusive)},
	results.CodeFilterMore:    {"filters by ids together with other conditions", preflightAsked(preflightMore)},
	results.CodeSeveral:       {"takes several filters in one REQ", byCause(severalTexts, answeredTexts)},
	results.CodeStale:         {"answers a repeated filter anew after a write", byCause(staleTexts, answeredTexts)},

	results.CodeReplaceable: {"replaces replaceable events", byCause(replacedTexts, answeredTexts)},
	results.CodeAddressable: {"replaces addressable events", byCause(replacedTexts, answeredTexts)},
	results.CodeLateVersion: {"keeps out versions that are superseded", byCause(lateVersionTexts, answeredTexts)},
	results.CodeEphemeral:   {"passes ephemeral events on and stores none", preflightAsked(preflightEphemeral)},
	results.CodeDeletion:    {"leaves other authors' events alone when deleting", preflightAsked(preflightDeletion)},
	results.CodeLive:        {"sends live events after EOSE", byCause(liveTexts)},
	results.CodeLiveFilter:  {"filters live events", byCause(liveTexts)},
	results.CodeClose:       {"ends a subscription on CLOSE", byCause(closesTexts)},

	results.CodeNIP77:      {"reconciles (NIP-77)", preflightAsked(preflightReconciles)},
	results.CodeAdvertised: {"speaks the NIPs that it names", preflightAsked(preflightAdvertised)},
	results.CodeNagle:      {"sends answers without waiting for acknowledgements", byCause(nagleTexts)},
	results.CodeFsyncEach:  {"takes several events to one fsync", byCause(fsyncTexts)},
	results.CodeThrottles:  {"does not throttle", byCause(throttleTexts)},
	results.CodeSurvives:   {"survives the preflight", preflightSurvives},
}

// preflightAsked says what came of a check, or why nothing is known.
func preflightAsked(say func(f *results.Finding) string) func(f *results.Finding) string {
	return func(f *results.Finding) string {
		if f.Verdict == results.Undecided {
			return byCause(leftOpenTexts)(f)
		}
		return say(f)
	}
}

// What is said of checks, by cause: see expand.
const answerText = "${got:event} came instead of ${want}${?missing , # missing}${?extra , # not asked for}"

var (
	leftOpenTexts = causes{
		results.CauseSilent: "no answer came in time${?\"notice\" , but NOTICE #}${unread}",
		results.CauseLost:   "the connection was lost${?'doing'  while #}: ${'error'}",
		results.CauseSetup:  `a valid event of kind ${kind}, which the question needs, was refused: ${"reason"}`,
		results.CauseClosed: `the REQ was answered with CLOSED ${"reason"}`,
		results.CauseSlow:   "an answer took ${ms:ms}, so that silence means nothing",
		results.CauseTime:   "the time for asking ran out",
		results.CauseNeeds:  "what the question rests on does not hold",
		results.CausePlain:  "an event of plain text does not come back as it was sent either",
		results.CauseFew:    "only ${answers:answer} came",
	}
	// Of an event that was published and read back.
	storedTexts = causes{
		results.CauseRefused:                    `a valid event${of kind} was refused: ${"reason"}`,
		results.CauseUnnamed:                    "the OK of an accepted event does not carry the event's id",
		results.CauseNotReturned:                "an acknowledged event${of kind} did not come back by its id within ${ms:ms}",
		results.CauseNotReturned + " elsewhere": "an acknowledged event${of kind} came back under a subscription id that nobody asked under",
		results.CauseUnreadable:                 "the event came back as something that is no event${?'error' : #}",
		results.CauseTrimmed:                    "white space at the ends of the content is stripped: ${'sent'} came back as ${'returned'}",
		results.CauseTagsDropped:                "empty tags are dropped, so that the event is not the one that was signed",
		results.CauseAltered:                    "the event came back with another ${fields}${?'sent' : # came back as }${'returned'}",
	}
	emptyTagTexts = causes{results.CauseRefused: `a valid event with an empty tag is refused: ${"reason"}`}
	ofTimeTexts   = causes{
		results.CauseRefused:     `a valid event of ${date} was refused: ${"reason"}`,
		results.CauseNotReturned: "an acknowledged event of ${date} did not come back by its id within ${ms:ms}",
	}
	duplicateTexts = causes{
		results.CauseNoOK:    "an event that was sent twice got no second OK in ${ms:ms}",
		results.CauseUnnamed: `the answer to a duplicate does not carry the event's id: ${"reason"}`,
		otherwise:            `a duplicate gets OK ${accepted:true} ${"reason"}`,
	}
	// Of a REQ and what came.
	answeredTexts = causes{
		results.CauseAnswer:     answerText,
		results.CauseDisorder:   "${got:event} came in the order ${order}, numbered as they should have come",
		results.CauseUnreadable: "${unreadable:event} came without a readable id",
		results.CauseFlood:      "one REQ was answered with more than ${got:event}, of which a few were published",
	}
	limitTexts   = causes{results.CauseAnswer: "${got:event} came instead of ${want} to a limit of ${limit}${?missing , # missing}${?extra , # not asked for}"}
	severalTexts = causes{
		"":                  "${?twice two filters return the union, and an event that matches both comes twice}",
		results.CauseAnswer: "two filters do not return their union: " + answerText,
	}
	staleTexts = causes{
		results.CauseCached: "an identical filter was answered from before a write until ${ms:ms} after it, when another filter showed it",
		results.CauseNever:  "an identical filter was still answered from before a write ${ms:ms} after it, when another filter showed it",
	}
	replacedTexts    = causes{results.CauseAnswer: "of kind ${kind}, after newer versions, " + answerText}
	lateVersionTexts = causes{
		results.CauseAnswer: "after an older version that came late " + answerText,
		"":                  `an older version that comes late gets OK ${accepted:true} ${"reason"} and is not served`,
	}
	liveTexts = causes{
		results.CauseNotDelivered: "an event published after EOSE did not reach the subscription within ${ms:ms}, while other questions were answered",
		results.CauseAnswer:       "a subscription with a tag filter gets live events without that tag",
		results.CauseEndedEarly:   `the subscription was ended by CLOSED ${"reason"}`,
	}
	closesTexts = causes{
		results.CauseAnswer:     "events still come for a subscription that was closed",
		results.CauseEndedEarly: `a subscription that was left open was ended by CLOSED ${"reason"}`,
	}
	nagleTexts = causes{results.CauseHeldBack: "in ${held} of ${answers:answer} the last frame came about ${ms:ms} after the one before, as Nagle's algorithm " +
		"holds it back until TCP acknowledges: set TCP_NODELAY, or write an answer in one piece"}
	fsyncTexts = causes{results.CauseHeldBack: "each event seems to wait for an fsync of its own: ${alone:ms} to an OK one by one, ${each:ms} for each " +
		"with ${window} in flight, and an fsync of this disk takes ${fsync:ms}"}
	throttleTexts = causes{
		results.CauseRates:      `${?"publishing" it limits the rate of events: #}${both rates}${?"asking" it limits the rate of REQs: #}`,
		results.CauseRefused:    `in a flood of small events one was refused after ${taken:event}: ${"reason"}`,
		results.CauseHungUp:     "in a flood of small events it ended the connection after ${taken:event}, and took another at once${?'error' : #}",
		results.CauseUnanswered: `in a flood of small events some got no OK after ${taken:event}, while other questions were answered${?"notice" , and NOTICE # came}`,
		whenPassed:              "${taken:event} in ${ms:ms} on one connection, and none was held back",
	}
)

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

func preflightMore(f *results.Finding) string {
	if f.Verdict == results.Passed {
		return "ids together with an author return what meets both"
	}
	return preflightJoinWhy("ids together with an author do not return what meets both", byCause(answeredTexts)(f))
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
	return byCause(answeredTexts)(f)
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
		parts = append(parts, fmt.Sprintf("is still returned %s later", millisText(f, "ms")))
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

func preflightSurvives(f *results.Finding) string {
	if f.Verdict == results.Failed {
		return preflightJoinWhy("it died while it was asked", f.Texts["error"])
	}
	return ""
}

// preflightJoinWhy adds a reason, where there is one.
func preflightJoinWhy(text, why string) string {
	if why == "" {
		return text
	}
	return text + ": " + why
}
