package report

import "relaybench/results"

// dictionary has the words of all codes, in the form that expand takes. Nothing is to be added
// where a check passed and has nothing to tell.
var dictionary = map[string]words{
	// Of publishing, queries, storage, crash, import and downloads.
	results.CodeMeasurable:  check("can be measured", texts{otherwise: "not measured: ${why}"}),
	results.CodeCompletes:   check("completes", texts{otherwise: "${'error'}"}),
	results.CodeOnlyMessage: check("sends only messages", texts{otherwise: "${frames:frame} ${were} no message of the protocol${fault}"}),
	results.CodeConnections: check("keeps connections open", texts{
		whenPassed: "no connection broke",
		otherwise:  "[lost?${lost:connection} broke][unfinished?, with ${unfinished:REQ} that had no end]['error'?, the last one so: ${'error'}]",
	}),
	results.CodeStops: check("ends on SIGTERM", texts{
		results.CauseForced: "it did not end within the ${s:number} s that it had for SIGTERM, and was killed",
		whenPassed:          "it ended on SIGTERM in time",
	}),
	results.CodeProcesses: check("leaves no process that cannot be ended", texts{
		whenPassed: "nothing of it ran on",
		otherwise:  "${processes:process} could not be ended: ${'names'}",
	}),
	results.CodeAccepts: check("accepts what a compliant relay keeps", texts{
		whenPassed: "every event that a compliant relay keeps was accepted[rightly refused?; ${rightly refused} refused that it does not keep: superseded, deleted or expired]",
		otherwise:  "of ${of} events that a compliant relay keeps: [refused?${refused} refused|unanswered?${unanswered} never answered]",
	}),
	results.CodeAcceptsSingle:  check("accepts single events", texts{otherwise: "${accepted} of ${of} accepted"}),
	results.CodeAcceptsPaced:   check("accepts events on a schedule", texts{otherwise: "${accepted} of ${of} accepted at ${rate} events/s"}),
	results.CodeAcceptsOneMore: check("accepts one more event", texts{otherwise: `one more event was refused: ${"reason"}`}),
	results.CodeQueryable: check("accepted events become queryable", texts{
		otherwise: "${of - never} of ${of} accepted events came back by id within ${within s:number} s"}),
	results.CodeUnseenBefore: check("had not seen the events before", texts{otherwise: "${duplicates} of ${of} events were answered as duplicates"}),
	results.CodeOnlySent:     check("answers only what was sent", texts{otherwise: "${oks:OK} named an event that was not waiting for one"}),
	results.CodeAcknowledgedKept: check("nothing acknowledged is missing", texts{
		whenPassed: "all ${of - excused} acknowledged events were found again" + excusedText + lateText,
		otherwise:  "${what is lost}" + lateText,
	}),
	results.CodeRemembers: check("answers after a clean stop as before", texts{
		results.CauseNoStart: "it did not start over what it left when it was stopped: ${'error'}",
		whenPassed:           "${of} questions that it answered right before it was stopped were answered right over what it left",
		otherwise:            "${wrong} of ${of} questions that it answered right before it was stopped are answered wrong over what it Left: " + faultsText,
	}),
	results.CodeForgedRefused: check("refuses forged events in each boot", texts{
		whenPassed: "${of} forged events among the others were refused",
		whenFailed: "of ${of} forged events among the others [accepted?${accepted} were accepted|returned?${returned} are returned to readers]",
	}),
	results.CodeUnaltered: check("events come back as they were sent", texts{otherwise: "${altered} of ${of} events came back with other fields"}),
	results.CodeOnlyAsked: check("returns only what was asked for", texts{otherwise: "${events:event} came that had not been asked for" + besidesElsewhere}),
	results.CodeEOSE:      check("is answered with EOSE", texts{otherwise: "${closed} of ${of} queries were ended by CLOSED"}),
	results.CodeModel: check("returns what the model returns", texts{
		whenPassed: "all ${of} answers are right, ${events:event}",
		otherwise:  "[wrong?${wrong} of ${of} answers are wrong: ${faults}][elsewhere?; ${elsewhere:event} came under a subscription id that nobody asked under][missing?${fates}]",
	}),
	results.CodeUncapped: check("answers in full", texts{
		otherwise: "${capped} of ${of} answers hold the newest ${events} events and no more: the relay caps below the limit asked for"}),
	results.CodeImported: check("holds what was imported", texts{
		"asked":   "[;of ${file} events in the file it ${holding}|asked for every id|${rightly}]",
		otherwise: "[;of ${file} events in the file it ${holding}|counted by negentropy|${rightly}]",
	}),
	results.CodeReturnsNamed: check("returns what it names", texts{
		whenPassed: "asked for ${of} events by id, it returned what it had named" + lateText,
		otherwise: "asked for ${of} events by id[missing?, ${missing} did not come that it had named in a reconciliation]" +
			"[unnamed?, ${unnamed} came that it had not named]" + lateText,
	}),
	results.CodeComplete: check("is complete", completeTexts),
	results.CodeOnlyRequested: check("sends nothing else", texts{
		whenPassed: "0 events came that had not been asked for",
		otherwise:  "[;events?${events:event} came that had not been asked for|" + elsewhereText + "|duplicates?${duplicates} came twice]",
	}),

	// Of probes.
	results.CodeAnswered: check("answers to the end", texts{
		whenPassed:                "the answer came to its end",
		results.CauseAuthRequired: `it wants to know who asks, which relaybench does not tell: ${"reason"}`,
		results.CauseClosed:       `it ended the answer by CLOSED: ${"reason"}`,
		results.CauseNotReached:   "it could not be reached again: ${'reason'}",
		results.CauseNotAsked:     "it was not asked, since no author is known to ask for",
		otherwise:                 "${'reason'}",
	}),
	results.CodeGenuine: check("sends events that verify", texts{
		whenPassed: "all that came verifies",
		otherwise:  "of ${of:event} [bad id?${bad id} under an id that is not their hash|bad signature?${bad signature} whose signature does not verify|malformed?${malformed} malformed]",
	}),
	results.CodeEndsOnce:    check("sends nothing after the end of an answer", texts{otherwise: "${events:event} came after the end of the answer"}),
	results.CodeAsksWho:     check("asks nobody who they are", texts{otherwise: "it wants to know who asks (AUTH, NIP-42), which relaybench does not tell"}),
	results.CodeNotices:     check("says nothing beside its answers", texts{otherwise: `it said ${"notice"} (NOTICE, ${notices} in all)`}),
	results.CodeCompression: check("agrees to compression", texts{otherwise: "['extensions'?it agreed to ${'extensions'}|!'extensions'?it agreed to no extension]"}),

	// Of relays that are reconciled with each other, or fill each other.
	results.CodeHoldsSeeded: check("holds its share after seeding", texts{otherwise: "${holding}"}),
	results.CodeDifference:  check("finds exactly the difference", texts{otherwise: "${have} and ${need} were named"}),
	results.CodeOnlyKnown: check("names only events that were published", texts{
		otherwise: "[ids?it named ${ids} ids of no event that was published|twice?it named ${twice} of the events on both sides as its alone]"}),
	results.CodeCarried: check("every event is carried over", texts{otherwise: "${asked} asked for, ${fetched} fetched, ${missing} not sent by the source, " +
		"${accepted} accepted, ${refused} refused, ${unanswered} never answered" + besidesElsewhere}),
	results.CodeHoldsUnion: check("converges", texts{
		whenStated: "${holding}[!own?; it holds all that it was given]",
		otherwise:  "${holding}",
	}),
	results.CodeSteady: check("stays the same without writes", texts{
		whenPassed: "no id differs where nothing was written",
		otherwise:  "[times?up to ${ids:id} differ where nothing was written, in ${times} of ${of} reconciliations]",
	}),
	results.CodeSetRebuilt: check("keeps its set between reconciliations", texts{
		whenStated: setRebuiltText + ": its set is built anew at each NEG-OPEN",
		otherwise:  setRebuiltText,
	}),
	results.CodeAtOnce: check("knows an event as soon as it is acknowledged", texts{
		whenPassed: "it named the event that the client lacked, and nothing else",
		otherwise:  "[ids?${ids:id} named wrongly, or not at all, after one more event]",
	}),
	results.CodeNamesLeft: check("names an event that the client lacks", texts{
		whenPassed: "it named the event that was left out of the client's set, each time",
		otherwise:  "[missing?in ${missing} of ${of} reconciliations it did not name the event that was left out of the client's set]",
	}),
	results.CodeScattered: check("finds scattered differences", texts{otherwise: "${missing} of ${of} ids taken at random were not named"}),
	results.CodeHasWay:    check("has a way", texts{otherwise: "${why}"}),
	results.CodeWatched:   check("is watched second by second", texts{otherwise: "${why}"}),
	results.CodeHoldsSource: check("holds what the source held", texts{
		otherwise: "[;${holding}|not held by the source?${not held by the source} more of the corpus were not held by the source]"}),
	results.CodeSendsHeld: check("sends what it holds", texts{
		whenPassed: "every event that was asked for came",
		otherwise: "[;withheld?${withheld} events that it holds, or acknowledged, did not come when ${'to'} was to get them|" +
			"left out?${left out} came only when they were asked for again, by answers that were not capped|" +
			"altered?${altered} came with other fields than they were signed with|" + elsewhereText + "]",
	}),
	results.CodeServesSource: check("serves as a source", texts{otherwise: "${'error'}"}),
	results.CodeSecondsPaged: check("no second holds more than a page", texts{
		otherwise: "${seconds:second} hold as many events as are asked for, or sent, at once (the newest is ${newest:%.0f}); what else they hold cannot be asked for by time"}),
	results.CodeSyncCommand: check("its sync command succeeds", endedByTexts),

	// Of the preflight.
	results.CodeStores:   check("stores and returns a valid event", storedTexts),
	results.CodeText:     check("returns text unaltered", storedTexts),
	results.CodeEmptyTag: check("returns an empty tag", texts{results.CauseRefused: `a valid event with an empty tag is refused: ${"reason"}`}, storedTexts),
	results.CodeControl: check("takes control characters beyond the seven escapes", texts{
		results.CauseCharacters: "control characters [;refused?refused: ${'refused'}${refusal}|altered?altered: ${'altered'}|lost?acknowledged and not returned: ${'lost'}|" +
			"unanswered?left without an answer: ${'unanswered'}|accepted?accepted and returned: ${'accepted'}]",
		whenPassed: "all control characters are accepted and returned as they were sent",
	}),
	results.CodeBadSignature: check("refuses a bad signature", forgedTexts),
	results.CodeBadID:        check("refuses a bad id", forgedTexts),
	results.CodeMalformed:    check("refuses malformed events", forgedTexts),
	results.CodeCorpusTime:   check("accepts events of the corpus' time", ofTimeTexts, storedTexts),
	results.CodeYear2020:     check("accepts events of 2020", ofTimeTexts, storedTexts),
	results.CodePrivateKinds: check("returns kinds 4 and 1059", storedTexts),
	results.CodeDuplicate: check("answers a duplicate", texts{
		results.CauseNoOK:    "an event that was sent twice got no second OK in ${ms:ms}",
		results.CauseUnnamed: `the answer to a duplicate does not carry the event's id: ${"reason"}`,
		otherwise:            `a duplicate gets OK ${accepted:true} ${"reason"}`,
	}),

	results.CodeFilterIDs:     check("filters by ids", answeredTexts),
	results.CodeFilterAuthors: check("filters by authors", answeredTexts),
	results.CodeFilterKinds:   check("filters by kinds", answeredTexts),
	results.CodeFilterTagE:    check("filters by #e", answeredTexts),
	results.CodeFilterTagP:    check("filters by #p", answeredTexts),
	results.CodeFilterTagT:    check("filters by #t", answeredTexts),
	results.CodeLimit:         check("keeps to the limit", texts{results.CauseAnswer: "${got:event} came instead of ${want} to a limit of ${limit}" + answerMore}, answeredTexts),
	results.CodeOrder:         check("answers newest first", answeredTexts),
	results.CodeInclusive: check("takes since and until as inclusive", texts{
		otherwise: "[&since?since does not return exactly the events from that very second on|" +
			"until?until does not return exactly the events up to that very second]",
	}),
	results.CodeFilterMore: check("filters by ids together with other conditions", texts{
		whenPassed: "ids together with an author return what meets both",
		otherwise:  "ids together with an author do not return what meets both${answer}",
	}),
	results.CodeSeveral: check("takes several filters in one REQ", texts{
		"":                  "[twice?two filters return the union, and an event that matches both comes twice]",
		results.CauseAnswer: "two filters do not return their union: " + answerText,
	}, answeredTexts),
	results.CodeStale: check("answers a repeated filter anew after a write", texts{
		results.CauseCached: "an identical filter was answered from before a write until ${ms:ms} after it, when another filter showed it",
		results.CauseNever:  "an identical filter was still answered from before a write ${ms:ms} after it, when another filter showed it",
	}, answeredTexts),

	results.CodeReplaceable: check("replaces replaceable events", replacedTexts, answeredTexts),
	results.CodeAddressable: check("replaces addressable events", replacedTexts, answeredTexts),
	results.CodeLateVersion: check("keeps out versions that are superseded", texts{
		results.CauseAnswer: "after an older version that came late " + answerText,
		"":                  `an older version that comes late gets OK ${accepted:true} ${"reason"} and is not served`,
	}, answeredTexts),
	results.CodeEphemeral: check("passes ephemeral events on and stores none", texts{
		results.CauseRefused: `an ephemeral event (kind 20001) was refused: ${"reason"}`,
		"":                   "",
		otherwise:            "an ephemeral event (kind 20001) [&stored?is still returned ${ms:ms} later|!delivered?did not reach an open subscription|!answered?got no OK]",
	}),
	results.CodeDeletion: check("leaves other authors' events alone when deleting", texts{
		results.CauseForeign: "a deletion request (kind 5) also deletes the events of other authors, so that anybody can delete anything",
		otherwise:            "a deletion request (kind 5) [/own?deletes its author's event and leaves that of another|'reason'?is refused: ${\"reason\"}|deletes nothing]",
	}),
	results.CodeLive:       check("sends live events after EOSE", liveTexts),
	results.CodeLiveFilter: check("filters live events", liveTexts),
	results.CodeClose: check("ends a subscription on CLOSE", texts{
		results.CauseAnswer:     "events still come for a subscription that was closed",
		results.CauseEndedEarly: `a subscription that was left open was ended by CLOSED ${"reason"}`,
	}),

	results.CodeNIP77: check("reconciles (NIP-77)", reconciledTexts),
	results.CodeAdvertised: check("speaks the NIPs that it names", texts{
		results.CauseNotSpoken: "its NIP-11 document names NIPs that were not found by asking: ${'nips'}" + unnamedText,
		whenPassed:             "of the NIPs that it names, all ${asked} that were asked for are spoken" + unnamedText,
	}),
	results.CodeNagle: check("sends answers without waiting for acknowledgements", texts{
		results.CauseHeldBack: "in ${held} of ${answers:answer} the last frame came about ${ms:ms} after the one before, as Nagle's algorithm " +
			"holds it back until TCP acknowledges: set TCP_NODELAY, or write an answer in one piece"}),
	results.CodeFsyncEach: check("takes several events to one fsync", texts{
		results.CauseHeldBack: "each event seems to wait for an fsync of its own: ${alone:ms} to an OK one by one, ${each:ms} for each " +
			"with ${window} in flight, and an fsync of this disk takes ${fsync:ms}"}),
	results.CodeThrottles: check("does not throttle", texts{
		results.CauseRates:      `[;'publishing'?it limits the rate of events: ${"publishing"}|'asking'?it limits the rate of REQs: ${"asking"}]`,
		results.CauseRefused:    `in a flood of small events one was refused after ${taken:event}: ${"reason"}`,
		results.CauseHungUp:     "in a flood of small events it ended the connection after ${taken:event}, and took another at once['error'?: ${'error'}]",
		results.CauseUnanswered: `in a flood of small events some got no OK after ${taken:event}, while other questions were answered['notice'?, and NOTICE ${"notice"} came]`,
		whenPassed:              "${taken:event} in ${ms:ms} on one connection, and none was held back",
	}),
	results.CodeSurvives: check("survives the preflight", texts{whenFailed: "it died while it was asked['error'?: ${'error'}]"}),
}

// Parts that several sentences have.
const (
	excusedText      = "[excused?; ${excused} more were superseded, deleted or expired since]"
	lateText         = "[late?; ${late} came only when they were asked for again, up to ${late ms:number} ms after an answer without them]"
	elsewhereText    = "elsewhere?${elsewhere} came under a subscription id that was never asked under"
	besidesElsewhere = "[elsewhere?; ${elsewhere} came under a subscription id that was never asked under]"
	faultsText       = "[missing?${missing} events missing|extra?${extra} that must not be there|misordered?${misordered} out of order|" +
		"duplicate?${duplicate} sent twice|no id?${no id} without a readable id]"
	fatesText = "[missing.acknowledged?${missing.acknowledged} acknowledged|missing.refused?${missing.refused} refused|" +
		"missing.unanswered?${missing.unanswered} never answered|missing." + results.MissingNotImported + "?${missing." + results.MissingNotImported + "} not imported]"
	ofKind         = "[kind - 1? of kind ${kind:%.0f}]" // where it is no note
	setRebuiltText = "a repeated reconciliation takes ${ms:number} ms where the first took ${first ms:number} ms"
	answerText     = "${got:event} came instead of ${want}" + answerMore
	answerMore     = "[missing?, ${missing} missing][extra?, ${extra} not asked for]"
	unnamedText    = "['unnamed'?: it also speaks ${'unnamed'}, which it does not name]"
	namesNIP77     = "[advertised?, though its NIP-11 document names NIP-77]"
)

// Tables that several checks have, or that are no check's.
var (
	leftOpenTexts = texts{
		results.CauseSilent: `no answer came in time['notice'?, but NOTICE ${"notice"}][/binary?, but ${binary:binary frame}|${frame}]`,
		results.CauseLost:   "the connection was lost['doing'? while ${'doing'}]: ${'error'}",
		results.CauseSetup:  `a valid event of kind ${kind:%.0f}, which the question needs, was refused: ${"reason"}`,
		results.CauseClosed: `the REQ was answered with CLOSED ${"reason"}`,
		results.CauseSlow:   "an answer took ${ms:ms}, so that silence means nothing",
		results.CauseTime:   "the time for asking ran out",
		results.CauseNeeds:  "what the question rests on does not hold",
		results.CausePlain:  "an event of plain text does not come back as it was sent either",
		results.CauseFew:    "only ${answers:answer} came",
	}
	// Of an event that was published and read back.
	storedTexts = texts{
		results.CauseRefused:                    "a valid event" + ofKind + ` was refused: ${"reason"}`,
		results.CauseUnnamed:                    "the OK of an accepted event does not carry the event's id",
		results.CauseNotReturned:                "an acknowledged event" + ofKind + " did not come back by its id within ${ms:ms}",
		results.CauseNotReturned + " elsewhere": "an acknowledged event" + ofKind + " came back under a subscription id that nobody asked under",
		results.CauseUnreadable:                 "the event came back as something that is no event['error'?: ${'error'}]",
		results.CauseTrimmed:                    "white space at the ends of the content is stripped: ${'sent'} came back as ${'returned'}",
		results.CauseTagsDropped:                "empty tags are dropped, so that the event is not the one that was signed",
		results.CauseAltered:                    "the event came back with another ${fields}['sent'?: ${'sent'} came back as ]${'returned'}",
	}
	ofTimeTexts = texts{
		results.CauseRefused:     `a valid event of ${date} was refused: ${"reason"}`,
		results.CauseNotReturned: "an acknowledged event of ${date} did not come back by its id within ${ms:ms}",
	}
	forgedTexts = texts{
		results.CauseAccepted: `${forgery} gets OK true ${"reason"}`,
		results.CauseServed:   "${forgery} gets no OK true, and yet is returned to readers",
		otherwise:             "${refusals}",
	}
	// Of a REQ and what came.
	answeredTexts = texts{
		results.CauseAnswer:     answerText,
		results.CauseDisorder:   "${got:event} came in the order ${order}, numbered as they should have come",
		results.CauseUnreadable: "${unreadable:event} came without a readable id",
		results.CauseFlood:      "one REQ was answered with more than ${got:event}, of which a few were published",
	}
	replacedTexts = texts{results.CauseAnswer: "of kind ${kind:%.0f}, after newer versions, " + answerText}
	liveTexts     = texts{
		results.CauseNotDelivered: "an event published after EOSE did not reach the subscription within ${ms:ms}, while other questions were answered",
		results.CauseAnswer:       "a subscription with a tag filter gets live events without that tag",
		results.CauseEndedEarly:   `the subscription was ended by CLOSED ${"reason"}`,
	}
	reconciledTexts = texts{
		results.CauseAnswered:    "NEG-OPEN is answered" + namesNIP77,
		results.CauseUnsupported: "it does not speak NIP-77: NEG-OPEN is ${how}" + namesNIP77,
		results.CauseRefused:     `it refuses to reconcile: ${"reason"}` + namesNIP77,
		results.CauseBreaks:      "it answers NEG-OPEN and then breaks NIP-77: ${'error'}" + namesNIP77,
		results.NIP77External:    "it runs already, and cannot be given what a pair needs" + namesNIP77,
	}
	// How far a transfer came.
	completeTexts = texts{
		whenPassed: "[/expected?all ${expected} records came|${delivered} records came, which is all that was asked for]",
		results.CauseEnded: "${ended by}[of?, after ${came} of ${of} events][left MB?, with about ${left MB:%.1f} MB of the page still to come]" +
			"[lost - 1?, ${lost} connections lost][waited?; relaybench had been waiting for the sink: the source does not wait for slow readers]",
		otherwise: "[/missing?${missing} of ${expected} records never came|${delivered} records came]${because}",
	}
	// Who ended a transfer, where that is known.
	endedByTexts = texts{
		results.EndedBySource:  "stopped by the source: ${'error'}",
		results.EndedBySink:    "stopped by the sink: ${'error'}",
		results.EndedByUnknown: "${'error'}; nobody saw whether the source or the sink ended it",
		whenStated:             "${'error'}, and yet everything came",
		otherwise:              "${'error'}",
	}
	waitedForTexts = texts{
		results.EndedBySource:  "it waited for the source",
		results.EndedBySink:    "it waited for the sink",
		results.EndedByUnknown: "nobody saw whether it waited for the source or for the sink",
	}
	// Why a transfer brought less than it set out to bring.
	whyTexts = texts{
		results.CauseCapped:      "the relay caps [/events?an answer at its newest ${events:event}|answers at their newest events]",
		results.CauseFullSeconds: "seconds hold more events than came in one answer (${seconds}, the newest is ${newest:%.0f}[asked?; ${asked} were asked for at most])",
		results.CauseWithheld:    "the source did not send them",
		results.WhyMore:          "in all the relay sent ${events:event}",
		results.WhyUnnamed:       "the reconciliation did not name ${unnamed:event}",
		results.WhyFlood:         "answers had not come to their end after ${sent:event} where ${asked:event} had been asked for",
		results.WhyTime:          "it was ended after ${s:number} s, far longer than whatever was measured before",
		results.CauseEndAsSaid:   "the end is where the relay says that there is no more",
	}
	// Why something was not measured, or cannot be.
	reasonTexts = texts{
		results.ExternalKill:           "a relay that runs already is nobody's to kill",
		results.ExternalDisk:           "it ran already, and its disk is out of sight",
		results.KeepsNothing:           "it had no events on disk, and lost them when it was stopped, as a relay may that promises nothing",
		results.KeptElsewhere:          "its folder is too small to hold the events that it returns: they are kept elsewhere",
		results.ExternalBulk:           "it runs already, and relaybench fetch reads from such a relay without publishing to it",
		results.ExternalSync:           "a relay that runs already is not to be filled",
		results.WithoutNIP:             "the relay was not found to speak NIP-${nip}",
		results.NothingToAsk:           "the corpus has nothing to ask about",
		results.NothingToPublish:       "no event of the corpus is left that can be published alone",
		results.NoCommand:              "['why'?${'relay'}: ${'why'}]",
		results.NoDirection:            "${'relay'}: its sync command does not go ${'direction'}",
		results.StoppedBoth:            "${'relay'}: its sync command works on a relay that does not run, and so has no share to begin with",
		results.OneWay:                 "pages go one way",
		results.NotWatched:             "the relay does not tell how much it holds (NIP-45)['text'?: ${'text'}]",
		results.UnsignedSize:           "it needs really signed events, and takes part up to ${most:item} a side",
		results.StoppedUnseen:          "the relay does not serve while its command works",
		results.CauseNoCompression:     "the relay does not agree to compression",
		results.CauseNoIDs:             "no ids are known to ask for: fetch.paged, which lists them, was not measured or brought none",
		results.CauseNoMatch:           "no event of the corpus matches the filter",
		results.CauseSubscriptionLimit: "${source} says that a connection may have ${most:REQ} open",
		results.CauseEventLimit:        "${source} says that an answer holds ${most:event} at most",
		results.CauseGivenUp:           "given up before: ${'text'}",
		otherwise:                      "${'text'}",
	}
)

// forgeries are the forged events by their names.
var forgeries = map[string]string{
	results.ForgedSignature: "an event with a bad signature", results.ForgedContent: "an event that was changed after it was signed",
	results.ForgedID: "an event under another id", results.NoSignature: "an event without sig", results.NoCreatedAt: "an event without created_at",
	results.ContentNumber: "an event whose content is a number", results.ShortSignature: "an event whose sig is too short",
}

// missingWords say why an event is not where it must be, by the cause of its count.
var missingWords = []struct{ cause, text string }{
	{results.MissingNeverDelivered, "never delivered to it"}, {results.MissingUnanswered, "delivered and never answered"}, {results.MissingRefused, "refused"},
	{results.MissingLost, "acknowledged and not found"}, {results.MissingNamed, "acknowledged, and not returned though it is named"},
	{results.MissingNotImported, "in the file and not in the relay"},
}

// goneReasons are why the model does not hold an event, as it names them.
var goneReasons = []string{"superseded", "deleted", "expired", "vanished", "ephemeral", "not offered"}
