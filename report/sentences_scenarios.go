package report

import (
	"cmp"
	"fmt"

	"relaybench/results"
)

// scenarioWords are those of publishing, queries, storage, crash, import and downloads.
var scenarioWords = map[string]words{
	results.CodeMeasurable: {"can be measured", notMeasured},
	results.CodeCompletes:  {"completes", say("${'error'}")},
	results.CodeOnlyMessage: {"sends only messages", func(f *results.Finding) string {
		text := fmt.Sprintf("%s %s no message of the protocol", counted(f.Counts["frames"], "frame"), were(f.Counts["frames"]))
		if len(f.Evidence) > 0 {
			text += ": " + faultText(&f.Evidence[0], f.Texts["field"])
		}
		return text
	}},
	results.CodeConnections: {"keeps connections open", func(f *results.Finding) string {
		if f.Counts["lost"] == 0 {
			return passing(f, "no connection broke")
		}
		text := counted(f.Counts["lost"], "connection") + " broke"
		if n := f.Counts["unfinished"]; n > 0 {
			text += ", with " + counted(n, "REQ") + " that had no end"
		}
		if why := f.Texts["error"]; why != "" {
			text += ", the last one so: " + why
		}
		return text
	}},
	results.CodeStops: {"ends on SIGTERM", func(f *results.Finding) string {
		if f.Cause == results.CauseForced {
			return "it did not end within the " + number(f.Counts["s"]) + " s that it had for SIGTERM, and was killed"
		}
		return passing(f, "it ended on SIGTERM in time")
	}},
	results.CodeProcesses: {"leaves no process that cannot be ended", func(f *results.Finding) string {
		if f.Verdict == results.Passed {
			return "nothing of it ran on"
		}
		return counted(f.Counts["processes"], "process") + " could not be ended: " + f.Texts["names"]
	}},
	results.CodeAccepts: {"accepts what a compliant relay keeps", func(f *results.Finding) string {
		if f.Verdict == results.Passed {
			text := "every event that a compliant relay keeps was accepted"
			if f.Counts["rightly refused"] > 0 {
				text += "; " + n(f, "rightly refused") + " refused that it does not keep: superseded, deleted or expired"
			}
			return text
		}
		return "of " + n(f, "of") + " events that a compliant relay keeps: " + listed(some1(f, "refused", "%s refused"), some1(f, "unanswered", "%s never answered"))
	}},
	results.CodeAcceptsSingle:  {"accepts single events", say("${accepted} of ${of} accepted")},
	results.CodeAcceptsPaced:   {"accepts events on a schedule", say("${accepted} of ${of} accepted at ${rate} events/s")},
	results.CodeAcceptsOneMore: {"accepts one more event", say(`one more event was refused: ${"reason"}`)},
	results.CodeQueryable: {"accepted events become queryable", func(f *results.Finding) string {
		return fmt.Sprintf("%s of %s accepted events came back by id within %s s", thousands(fmt.Sprintf("%.0f", f.Counts["of"]-f.Counts["never"])), n(f, "of"), number(f.Counts["within s"]))
	}},
	results.CodeUnseenBefore: {"had not seen the events before", say("${duplicates} of ${of} events were answered as duplicates")},
	results.CodeOnlySent:     {"answers only what was sent", say("${oks:OK} named an event that was not waiting for one")},
	results.CodeAcknowledgedKept: {"nothing acknowledged is missing", func(f *results.Finding) string {
		text := passing(f, fmt.Sprintf("all %s acknowledged events were found again", thousands(fmt.Sprintf("%.0f", f.Counts["of"]-f.Counts["excused"]))))
		switch lost, excused := f.Counts["lost"], f.Counts["excused"]; {
		case f.Verdict == results.Undecided:
			return ""
		case lost > 1 && lost+excused == f.Counts["of"]:
			return clauses("all "+n(f, "of")+" acknowledged events are missing", some1(f, "excused", "%s of them were superseded, deleted or expired since"), lateText(f))
		case lost > 0:
			text = n(f, "lost") + " of " + n(f, "of") + " acknowledged events are missing"
		}
		return clauses(text, some1(f, "excused", "%s more were superseded, deleted or expired since"), lateText(f))
	}},
	results.CodeRemembers: {"answers after a clean stop as before", func(f *results.Finding) string {
		switch {
		case f.Cause == results.CauseNoStart:
			return "it did not start over what it left when it was stopped: " + f.Texts["error"]
		case f.Verdict == results.Passed:
			return n(f, "of") + " questions that it answered right before it was stopped were answered right over what it left"
		}
		return n(f, "wrong") + " of " + n(f, "of") + " questions that it answered right before it was stopped are answered wrong over what it left: " + faultsOf(f)
	}},
	results.CodeForgedRefused: {"refuses forged events in each boot", func(f *results.Finding) string {
		switch {
		case f.Verdict == results.Passed:
			return n(f, "of") + " forged events among the others were refused"
		case f.Verdict != results.Failed:
			return ""
		}
		return "of " + n(f, "of") + " forged events among the others " + listed(some1(f, "accepted", "%s were accepted"), some1(f, "returned", "%s are returned to readers"))
	}},
	results.CodeUnaltered: {"events come back as they were sent", say("${altered} of ${of} events came back with other fields")},
	results.CodeOnlyAsked: {"returns only what was asked for", say("${events:event} came that had not been asked for${?elsewhere ; # came under a subscription id that was never asked under}")},
	results.CodeEOSE:      {"is answered with EOSE", say("${closed} of ${of} queries were ended by CLOSED")},
	results.CodeModel: {"returns what the model returns", func(f *results.Finding) string {
		if f.Counts["wrong"] == 0 {
			return passing(f, "all "+n(f, "of")+" answers are right, "+counted(f.Counts["events"], "event"))
		}
		text := n(f, "wrong") + " of " + n(f, "of") + " answers are wrong: " + faultsOf(f)
		if f.Counts["elsewhere"] > 0 {
			text += "; " + counted(f.Counts["elsewhere"], "event") + " came under a subscription id that nobody asked under"
		}
		if f.Counts["missing"] > 0 {
			text += prefixed("; of the missing: ", listed(some1(f, "missing.acknowledged", "%s acknowledged"), some1(f, "missing.refused", "%s refused"),
				some1(f, "missing.unanswered", "%s never answered"), some1(f, "missing."+results.MissingNotImported, "%s not imported")))
		}
		return text
	}},
	results.CodeUncapped: {"answers in full", say("${capped} of ${of} answers hold the newest ${events} events and no more: the relay caps below the limit asked for")},
	results.CodeImported: {"holds what was imported", func(f *results.Finding) string {
		how := "counted by negentropy"
		if f.Cause == "asked" {
			how = "asked for every id"
		}
		return clauses("of "+n(f, "file")+" events in the file it "+holdingText(f), how, rightly(f))
	}},
	results.CodeReturnsNamed: {"returns what it names", func(f *results.Finding) string {
		return clauses("asked for "+n(f, "of")+" events by id, "+cmp.Or(listed(
			some1(f, "missing", "%s did not come that it had named in a reconciliation"), some1(f, "unnamed", "%s came that it had not named")), "it returned what it had named"),
			lateText(f))
	}},
	results.CodeComplete: {"is complete", completeText},
	results.CodeOnlyRequested: {"sends nothing else", func(f *results.Finding) string {
		text := counted(f.Counts["events"], "event") + " came that had not been asked for"
		if f.Counts["events"] == 0 && f.Counts["duplicates"] > 0 {
			text = ""
		}
		return clauses(text, elsewhere(f), some1(f, "duplicates", "%s came twice"))
	}},
}

// faultsOf lists how answers depart from those of the model.
func faultsOf(f *results.Finding) string {
	return listed(some1(f, "missing", "%s events missing"), some1(f, "extra", "%s that must not be there"),
		some1(f, "misordered", "%s out of order"), some1(f, "duplicate", "%s sent twice"), some1(f, "no id", "%s without a readable id"))
}

// lateText says how many events came only when they were asked for again.
func lateText(f *results.Finding) string {
	if f.Counts["late"] == 0 {
		return ""
	}
	return n(f, "late") + " came only when they were asked for again, up to " + number(f.Counts["late ms"]) + " ms after an answer without them"
}

// faultText says what was wrong with frames that were no message.
func faultText(e *results.Evidence, field string) string {
	what := map[string]string{
		"binary-frame": "a binary frame and not text", "not-utf8": "not UTF-8", "not-json": "not JSON", "not-a-message": "JSON, but no message",
		"wrong-element": "a message with an element missing or of the wrong type", "wrong-field": "an event whose " + field + " is of the wrong type",
	}[e.Cause]
	return prefixed("the first was ", what)
}

// elsewhere says how many events came under another subscription id than that of the question.
func elsewhere(f *results.Finding) string {
	return some1(f, "elsewhere", "%s came under a subscription id that was never asked under")
}

// notMeasured says why a scenario is none for a relay.
func notMeasured(f *results.Finding) string {
	return "not measured: " + reasonText(f.Cause, f.Counts, f.Texts)
}

// reasonText is a clause on why something was not measured, or cannot be.
func reasonText(code string, numbers map[string]float64, texts map[string]string) string {
	f := &results.Finding{Cause: code, Counts: numbers, Texts: texts}
	if code == results.WithoutNIP77 {
		return texts["relay"] + ": " + preflightReconciles(&results.Finding{Cause: texts["cause"], Texts: texts})
	}
	return byCause(reasonTexts)(f)
}

var reasonTexts = causes{
	results.ExternalKill:           "a relay that runs already is nobody's to kill",
	results.ExternalDisk:           "it ran already, and its disk is out of sight",
	results.KeepsNothing:           "it had no events on disk, and lost them when it was stopped, as a relay may that promises nothing",
	results.KeptElsewhere:          "its folder is too small to hold the events that it returns: they are kept elsewhere",
	results.ExternalBulk:           "it runs already, and relaybench fetch reads from such a relay without publishing to it",
	results.ExternalSync:           "a relay that runs already is not to be filled",
	results.WithoutNIP:             "the relay was not found to speak NIP-${nip}",
	results.NothingToAsk:           "the corpus has nothing to ask about",
	results.NothingToPublish:       "no event of the corpus is left that can be published alone",
	results.NoCommand:              "${why no command}",
	results.NoDirection:            "${'relay'}: its sync command does not go ${'direction'}",
	results.StoppedBoth:            "${'relay'}: its sync command works on a relay that does not run, and so has no share to begin with",
	results.OneWay:                 "pages go one way",
	results.NotWatched:             "the relay does not tell how much it holds (NIP-45)${?'text' : #}",
	results.StoppedUnseen:          "the relay does not serve while its command works",
	results.CauseNoCompression:     "the relay does not agree to compression",
	results.CauseNoIDs:             "no ids are known to ask for: fetch.paged, which lists them, was not measured or brought none",
	results.CauseNoMatch:           "no event of the corpus matches the filter",
	results.CauseSubscriptionLimit: "${source} says that a connection may have ${most:REQ} open",
	results.CauseEventLimit:        "${source} says that an answer holds ${most:event} at most",
	results.CauseGivenUp:           "given up before: ${'text'}",
	otherwise:                      "${'text'}",
}

// completeText says how far a transfer came.
func completeText(f *results.Finding) string {
	if f.Verdict == results.Passed {
		if _, known := f.Counts["expected"]; known {
			return "all " + n(f, "expected") + " records came"
		}
		return n(f, "delivered") + " records came, which is all that was asked for"
	}
	if f.Cause == results.CauseEnded {
		return endedText(f)
	}
	text := n(f, "delivered") + " records came"
	if missing, known := f.Counts["missing"]; known && missing > 0 {
		text = n(f, "missing") + " of " + n(f, "expected") + " records never came"
	}
	if why := whyText(f.Cause, f.Counts); why != "" {
		text += ": " + why
	}
	if f.Cause == results.WhyTime {
		text += map[string]string{results.EndedBySource: "; it waited for the source", results.EndedBySink: "; it waited for the sink",
			results.EndedByUnknown: "; nobody saw whether it waited for the source or for the sink"}[f.Texts["by"]]
	}
	return text
}

// endedBy says who ended a transfer, where that is known.
func endedBy(who, text string) string {
	switch who {
	case results.EndedBySource:
		return "stopped by the source: " + text
	case results.EndedBySink:
		return "stopped by the sink: " + text
	case results.EndedByUnknown:
		return text + "; nobody saw whether the source or the sink ended it"
	}
	return text
}

// endedText says who ended a transfer, how far it was, and what may have been the reason.
func endedText(f *results.Finding) string {
	text := endedBy(f.Texts["by"], f.Texts["error"])
	if f.Counts["of"] > 0 {
		text += ", after " + n(f, "came") + " of " + n(f, "of") + " events"
	}
	if left := f.Counts["left MB"]; left > 0 {
		text += fmt.Sprintf(", with about %.1f MB of the page still to come", left)
	}
	if f.Counts["lost"] > 1 {
		text += ", " + n(f, "lost") + " connections lost"
	}
	if f.Counts["waited"] > 0 {
		text += "; relaybench had been waiting for the sink: the source does not wait for slow readers"
	}
	return text
}

// whyText says why a transfer brought less than it set out to bring; empty where no more is known.
func whyText(code string, numbers map[string]float64) string {
	return byCause(whyTexts)(&results.Finding{Cause: code, Counts: numbers})
}

var whyTexts = causes{
	results.CauseCapped:      "the relay caps ${newest events}",
	results.CauseFullSeconds: "seconds hold more events than came in one answer (${seconds}, the newest is ${newest}${?asked ; # were asked for at most})",
	results.CauseWithheld:    "the source did not send them",
	results.WhyMore:          "in all the relay sent ${events:event}",
	results.WhyUnnamed:       "the reconciliation did not name ${unnamed:event}",
	results.WhyFlood:         "answers had not come to their end after ${sent:event} where ${asked:event} had been asked for",
	results.WhyTime:          "it was ended after ${s:s}, far longer than whatever was measured before",
	results.CauseEndAsSaid:   "the end is where the relay says that there is no more",
}

// passing is a sentence that holds of a check that passed alone.
func passing(f *results.Finding, text string) string {
	if f.Verdict != results.Passed {
		return ""
	}
	return text
}

// some1 is a part of a list where there is anything of it.
func some1(f *results.Finding, name, format string) string {
	if f.Counts[name] == 0 {
		return ""
	}
	return fmt.Sprintf(format, n(f, name))
}

func were(n float64) string {
	if n == 1 {
		return "was"
	}
	return "were"
}
