package report

import (
	"slices"
	"strings"
	"testing"

	"relaybench/results"
)

// Each way in which a check of the preflight can end says what was seen: a check that did not pass
// must not read like its title.
func TestThePreflightSaysWhatWasSeen(t *testing.T) {
	type facts = map[string]float64
	type said = map[string]string
	answer := facts{"got": 3, "want": 2, "extra": 1, "limit": 1, "kind": 10002}
	for _, test := range []struct {
		code    string
		verdict results.Verdict
		cause   string
		counts  facts
		texts   said
		says    string
	}{
		{results.CodeStores, results.Failed, results.CauseRefused, facts{"kind": 1}, said{"reason": "blocked: no"}, `a valid event was refused: "blocked: no"`},
		{results.CodeStores, results.Failed, results.CauseUnnamed, nil, nil, "does not carry the event's id"},
		{results.CodeStores, results.Failed, results.CauseNotReturned, facts{"kind": 4, "ms": 2500}, nil, "an acknowledged event of kind 4 did not come back by its id within 2.5 s"},
		{results.CodeStores, results.Failed, results.CauseNotReturned, facts{"kind": 1, "ms": 2500, "elsewhere": 1}, nil, "came back under a subscription id that nobody asked under"},
		{results.CodeStores, results.Failed, results.CauseUnreadable, nil, said{"error": "no JSON"}, "is no event: no JSON"},
		{results.CodeText, results.Failed, results.CauseAltered, nil, said{"fields": "tags, content", "sent": `"<"`, "returned": `"&"`}, `another tags and another content: "<" came back as "&"`},
		{results.CodeText, results.Failed, results.CauseTrimmed, nil, said{"sent": `" a"`, "returned": `"a"`}, `stripped: " a" came back as "a"`},
		{results.CodeEmptyTag, results.Failed, results.CauseTagsDropped, nil, nil, "empty tags are dropped"},
		{results.CodeEmptyTag, results.Stated, results.CauseRefused, nil, nil, "a valid event with an empty tag is refused: without a reason"},
		{results.CodeControl, results.Passed, "", nil, nil, "all control characters are accepted"},
		{results.CodeControl, results.Stated, results.CauseCharacters, facts{"refused": 1, "accepted": 27}, said{"refused": "U+007F", "accepted": "U+0000", "reason": "bad event id"},
			`control characters refused: U+007F ("bad event id"); accepted and returned: U+0000`},
		{results.CodeBadSignature, results.Failed, results.CauseAccepted, nil, said{"forgery": results.ForgedSignature}, "an event with a bad signature gets OK true"},
		{results.CodeBadID, results.Failed, results.CauseServed, nil, said{"forgery": results.ForgedID}, "an event under another id gets no OK true, and yet is returned to readers"},
		{results.CodeMalformed, results.Stated, results.CauseAccepted, nil, said{"forgery": results.ContentNumber}, "whose content is a number gets OK true"},
		{results.CodeCorpusTime, results.Failed, results.CauseRefused, facts{"createdAt": 1577836800}, said{"reason": "too old"}, `of 2020-01-01 was refused: "too old"`},
		{results.CodeYear2020, results.Stated, results.CauseNotReturned, facts{"createdAt": 1577836800}, nil, "of 2020-01-01 did not come back"},
		{results.CodePrivateKinds, results.Failed, results.CauseNotReturned, facts{"kind": 1059}, nil, "of kind 1059"},
		{results.CodeDuplicate, results.Passed, "", facts{"accepted": 1}, said{"reason": "duplicate: have it"}, `a duplicate gets OK true "duplicate: have it"`},
		{results.CodeDuplicate, results.Stated, results.CauseNoOK, facts{"ms": 5000}, nil, "no second OK in 5.0 s"},
		{results.CodeDuplicate, results.Stated, results.CauseUnnamed, nil, nil, "does not carry"},
		{results.CodeFilterTagT, results.Failed, results.CauseAnswer, answer, nil, "3 events came instead of 2, 1 not asked for"},
		{results.CodeFilterIDs, results.Failed, results.CauseUnreadable, facts{"unreadable": 1}, nil, "1 event came without a readable id"},
		{results.CodeLimit, results.Failed, results.CauseAnswer, answer, nil, "3 events came instead of 2 to a limit of 1"},
		{results.CodeOrder, results.Failed, results.CauseDisorder, facts{"got": 2}, nil, "came in the order 2 1"},
		{results.CodeOrder, results.Failed, results.CauseFlood, facts{"got": 5000}, nil, "more than 5,000 events"},
		{results.CodeInclusive, results.Failed, results.CauseAnswer, facts{"until": 1}, nil, "until does not return"},
		{results.CodeSeveral, results.Stated, results.CauseAnswer, answer, nil, "two filters do not return their union"},
		{results.CodeStale, results.Stated, results.CauseCached, facts{"ms": 950}, nil, "until 950 ms after it"},
		{results.CodeStale, results.Stated, results.CauseNever, facts{"ms": 3010}, nil, "still answered from before a write 3.0 s after it"},
		{results.CodeReplaceable, results.Failed, results.CauseAnswer, answer, nil, "of kind 10002, after newer versions, 3 events came"},
		{results.CodeLateVersion, results.Stated, results.CauseAnswer, answer, nil, "after an older version that came late 3 events came"},
		{results.CodeEphemeral, results.Stated, results.CauseStored, facts{"stored": 1, "delivered": 1, "answered": 0, "ms": 300}, nil, "is still returned 300 ms later, and got no OK"},
		{results.CodeEphemeral, results.Stated, results.CauseRefused, nil, nil, "was refused"},
		{results.CodeDeletion, results.Stated, results.CauseForeign, facts{"own": 1, "foreign": 1}, nil, "events of other authors"},
		{results.CodeLive, results.Failed, results.CauseNotDelivered, facts{"ms": 5000}, nil, "did not reach the subscription within 5.0 s"},
		{results.CodeLive, results.Failed, results.CauseEndedEarly, nil, nil, "ended by CLOSED"},
		{results.CodeLiveFilter, results.Failed, results.CauseAnswer, nil, nil, "without that tag"},
		{results.CodeClose, results.Stated, results.CauseAnswer, nil, nil, "events still come"},
		{results.CodeClose, results.Stated, results.CauseEndedEarly, nil, nil, "ended by CLOSED"},
		{results.CodeNIP77, results.Stated, results.CauseUnsupported, nil, said{"how": "silence"}, "NEG-OPEN is not answered"},
		{results.CodeNIP77, results.Stated, results.CauseUnsupported, nil, said{"how": "CLOSED", "reason": "what?"}, `answered with CLOSED "what?"`},
		{results.CodeNIP77, results.Stated, results.CauseRefused, nil, said{"reason": "blocked: no"}, "refuses to reconcile"},
		{results.CodeNIP77, results.Failed, results.CauseBreaks, nil, said{"error": "no hexadecimal digits"}, "breaks NIP-77: no hexadecimal digits"},
		{results.CodeAdvertised, results.Stated, results.CauseNotSpoken, nil, said{"nips": "45, 77", "unnamed": "40"}, "not found by asking: 45, 77: it also speaks 40"},
		{results.CodeNagle, results.Stated, results.CauseHeldBack, facts{"answers": 20, "held": 19, "ms": 41}, nil, "in 19 of 20 answers the last frame came about 41 ms after"},
		{results.CodeFsyncEach, results.Stated, results.CauseHeldBack, facts{"alone": 5, "each": 4.5, "fsync": 4, "window": 32}, nil, "5 ms to an OK one by one, 4.5 ms for each with 32 in flight"},
		{results.CodeThrottles, results.Failed, results.CauseRates, nil, said{"publishing": "slow down", "asking": "ask less"}, `the rate of events: "slow down"; it limits the rate of REQs: "ask less"`},
		{results.CodeThrottles, results.Stated, results.CauseRefused, facts{"taken": 130}, said{"reason": "error: busy"}, `refused after 130 events: "error: busy"`},
		{results.CodeThrottles, results.Stated, results.CauseHungUp, facts{"taken": 1}, nil, "ended the connection after 1 event"},
		{results.CodeThrottles, results.Stated, results.CauseUnanswered, facts{"taken": 10}, nil, "got no OK after 10 events"},
		{results.CodeSurvives, results.Failed, "", nil, said{"error": "signal: killed"}, "it died while it was asked: signal: killed"},
		{results.CodeLive, results.Undecided, results.CauseSilent, facts{"binary": 2}, said{"notice": "busy"}, `no answer came in time, but NOTICE "busy", but 2 binary frames`},
		{results.CodeLive, results.Undecided, results.CauseLost, nil, said{"error": "reset"}, "the connection was lost: reset"},
		{results.CodeLive, results.Undecided, results.CauseLost, nil, said{"error": "reset", "doing": "asking"}, "the connection was lost while asking: reset"},
		{results.CodeLive, results.Undecided, results.CauseSetup, facts{"kind": 7}, nil, "a valid event of kind 7, which the question needs, was refused"},
		{results.CodeLive, results.Undecided, results.CauseClosed, nil, nil, "answered with CLOSED"},
		{results.CodeLive, results.Undecided, results.CauseSlow, facts{"ms": 2000}, nil, "an answer took 2.0 s"},
		{results.CodeLive, results.Undecided, results.CauseTime, nil, nil, "ran out"},
		{results.CodeLive, results.Undecided, results.CauseNeeds, nil, nil, "rests on"},
		{results.CodeControl, results.Undecided, results.CausePlain, nil, nil, "an event of plain text does not come back"},
		{results.CodeNagle, results.Undecided, results.CauseFew, facts{"answers": 1}, nil, "only 1 answer came"},
	} {
		f := results.Finding{Code: test.code, Verdict: test.verdict, Cause: test.cause, Counts: test.counts, Texts: test.texts}
		if test.cause == results.CauseDisorder {
			f.Evidence = []results.Evidence{{Code: results.EvidenceOrder, Text: "2 1"}}
		}
		got := findingText(&f)
		if !strings.Contains(got, test.says) || strings.HasSuffix(got, ".") {
			t.Errorf("%s %s %s: %q, want %q", test.code, test.verdict, test.cause, got, test.says)
		}
		if got == CheckTitle(test.code) {
			t.Errorf("%s %s %s reads like its title", test.code, test.verdict, test.cause)
		}
	}
}

// A record need not tell why a check did not pass, or in numbers that do not say so; its sentence
// never is that of a check that passed.
func TestNoSentenceOfAFailureReadsAsAPass(t *testing.T) {
	totals := map[string]float64{"of": 20, "must": 20, "held": 20, "taken": 20, "expected": 20, "delivered": 20, "asked": 20, "excused": 2, "must have": 3, "must need": 4}
	// Of these the totals alone say nothing of how it ended; of others they are a sentence that is
	// no praise: "0 of 20 accepted".
	telling := []string{results.CodeConnections, results.CodeAcknowledgedKept, results.CodeModel, results.CodeSteady, results.CodeSendsHeld, results.CodeStops, results.CodeProcesses,
		results.CodeAccepts, results.CodeForgedRefused, results.CodeComplete, results.CodeHoldsSeeded, results.CodeHoldsUnion, results.CodeControl, results.CodeThrottles, results.CodeAdvertised}
	for code := range words().Checks {
		for _, counts := range []map[string]float64{nil, totals} {
			if counts != nil && !slices.Contains(telling, code) {
				continue
			}
			text := func(v results.Verdict, cause string) string {
				return findingText(&results.Finding{Code: code, Verdict: v, Cause: cause, Counts: counts})
			}
			passed := text(results.Passed, "")
			for _, verdict := range []results.Verdict{results.Failed, results.Undecided} {
				for _, cause := range []string{"", results.StatusText, "a cause to come"} {
					if got := text(verdict, cause); got == passed || got == CheckTitle(code) || got == "" {
						t.Errorf("%s, %s, cause %q: %q", code, verdict, cause, got)
					}
				}
			}
			if got := text(results.Stated, results.StatusText); got == CheckTitle(code) || got == "" {
				t.Errorf("%s, stated: %q", code, got)
			}
		}
	}
}
