package report

import (
	"slices"
	"strings"
	"testing"

	"relaybench/harness/measure"
)

// Each way in which a check of the preflight can end says what was seen: a check that did not pass
// must not read like its title.
func TestThePreflightSaysWhatWasSeen(t *testing.T) {
	type facts = map[string]float64
	type said = map[string]string
	answer := facts{"got": 3, "want": 2, "extra": 1, "limit": 1, "kind": 10002}
	for _, test := range []struct {
		code    string
		verdict measure.Verdict
		cause   string
		counts  facts
		texts   said
		says    string
	}{
		{measure.CodeStores, measure.Failed, measure.CauseRefused, facts{"kind": 1}, said{"reason": "blocked: no"}, `a valid event was refused: "blocked: no"`},
		{measure.CodeStores, measure.Failed, measure.CauseUnnamed, nil, nil, "does not carry the event's id"},
		{measure.CodeStores, measure.Failed, measure.CauseNotReturned, facts{"kind": 4, "ms": 2500}, nil, "an acknowledged event of kind 4 did not come back by its id within 2.5 s"},
		{measure.CodeStores, measure.Failed, measure.CauseNotReturned, facts{"kind": 1, "ms": 2500, "elsewhere": 1}, nil, "came back under a subscription id that nobody asked under"},
		{measure.CodeStores, measure.Failed, measure.CauseUnreadable, nil, said{"error": "no JSON"}, "is no event: no JSON"},
		{measure.CodeText, measure.Failed, measure.CauseAltered, nil, said{"fields": "tags, content", "sent": `"<"`, "returned": `"&"`}, `another tags and another content: "<" came back as "&"`},
		{measure.CodeText, measure.Failed, measure.CauseTrimmed, nil, said{"sent": `" a"`, "returned": `"a"`}, `stripped: " a" came back as "a"`},
		{measure.CodeEmptyTag, measure.Failed, measure.CauseTagsDropped, nil, nil, "empty tags are dropped"},
		{measure.CodeEmptyTag, measure.Stated, measure.CauseRefused, nil, nil, "a valid event with an empty tag is refused: without a reason"},
		{measure.CodeControl, measure.Passed, "", nil, nil, "all control characters are accepted"},
		{measure.CodeControl, measure.Stated, measure.CauseCharacters, facts{"refused": 1, "accepted": 27}, said{"refused": "U+007F", "accepted": "U+0000", "reason": "bad event id"},
			`control characters refused: U+007F ("bad event id"); accepted and returned: U+0000`},
		{measure.CodeBadSignature, measure.Failed, measure.CauseAccepted, nil, said{"forgery": measure.ForgedSignature}, "an event with a bad signature gets OK true"},
		{measure.CodeBadID, measure.Failed, measure.CauseServed, nil, said{"forgery": measure.ForgedID}, "an event under another id gets no OK true, and yet is returned to readers"},
		{measure.CodeMalformed, measure.Stated, measure.CauseAccepted, nil, said{"forgery": measure.ContentNumber}, "whose content is a number gets OK true"},
		{measure.CodeCorpusTime, measure.Failed, measure.CauseRefused, facts{"createdAt": 1577836800}, said{"reason": "too old"}, `of 2020-01-01 was refused: "too old"`},
		{measure.CodeYear2020, measure.Stated, measure.CauseNotReturned, facts{"createdAt": 1577836800}, nil, "of 2020-01-01 did not come back"},
		{measure.CodePrivateKinds, measure.Failed, measure.CauseNotReturned, facts{"kind": 1059}, nil, "of kind 1,059"},
		{measure.CodeDuplicate, measure.Passed, "", facts{"accepted": 1}, said{"reason": "duplicate: have it"}, `a duplicate gets OK true "duplicate: have it"`},
		{measure.CodeDuplicate, measure.Stated, measure.CauseNoOK, facts{"ms": 5000}, nil, "no second OK in 5.0 s"},
		{measure.CodeDuplicate, measure.Stated, measure.CauseUnnamed, nil, nil, "does not carry"},
		{measure.CodeFilterTagT, measure.Failed, measure.CauseAnswer, answer, nil, "3 events came instead of 2, 1 not asked for"},
		{measure.CodeFilterIDs, measure.Failed, measure.CauseUnreadable, facts{"unreadable": 1}, nil, "1 event came without a readable id"},
		{measure.CodeLimit, measure.Failed, measure.CauseAnswer, answer, nil, "3 events came instead of 2 to a limit of 1"},
		{measure.CodeOrder, measure.Failed, measure.CauseDisorder, facts{"got": 2}, nil, "came in the order 2 1"},
		{measure.CodeOrder, measure.Failed, measure.CauseFlood, facts{"got": 5000}, nil, "more than 5,000 events"},
		{measure.CodeInclusive, measure.Failed, measure.CauseAnswer, facts{"until": 1}, nil, "until does not return"},
		{measure.CodeSeveral, measure.Stated, measure.CauseAnswer, answer, nil, "two filters do not return their union"},
		{measure.CodeStale, measure.Stated, measure.CauseCached, facts{"ms": 950}, nil, "until 950 ms after it"},
		{measure.CodeStale, measure.Stated, measure.CauseNever, facts{"ms": 3010}, nil, "still answered from before a write 3.0 s after it"},
		{measure.CodeReplaceable, measure.Failed, measure.CauseAnswer, answer, nil, "of kind 10002, after newer versions, 3 events came"},
		{measure.CodeLateVersion, measure.Stated, measure.CauseAnswer, answer, nil, "after an older version that came late 3 events came"},
		{measure.CodeEphemeral, measure.Stated, measure.CauseStored, facts{"stored": 1, "delivered": 1, "answered": 0, "ms": 300}, nil, "is still returned 300 ms later, and got no OK"},
		{measure.CodeEphemeral, measure.Stated, measure.CauseRefused, nil, nil, "was refused"},
		{measure.CodeDeletion, measure.Stated, measure.CauseForeign, facts{"own": 1, "foreign": 1}, nil, "events of other authors"},
		{measure.CodeLive, measure.Failed, measure.CauseNotDelivered, facts{"ms": 5000}, nil, "did not reach the subscription within 5.0 s"},
		{measure.CodeLive, measure.Failed, measure.CauseEndedEarly, nil, nil, "ended by CLOSED"},
		{measure.CodeLiveFilter, measure.Failed, measure.CauseAnswer, nil, nil, "without that tag"},
		{measure.CodeClose, measure.Stated, measure.CauseAnswer, nil, nil, "events still come"},
		{measure.CodeClose, measure.Stated, measure.CauseEndedEarly, nil, nil, "ended by CLOSED"},
		{measure.CodeNIP77, measure.Stated, measure.CauseUnsupported, nil, said{"how": "silence"}, "NEG-OPEN is not answered"},
		{measure.CodeNIP77, measure.Stated, measure.CauseUnsupported, nil, said{"how": "CLOSED", "reason": "what?"}, `answered with CLOSED "what?"`},
		{measure.CodeNIP77, measure.Stated, measure.CauseRefused, nil, said{"reason": "blocked: no"}, "refuses to reconcile"},
		{measure.CodeNIP77, measure.Failed, measure.CauseBreaks, nil, said{"error": "no hexadecimal digits"}, "breaks NIP-77: no hexadecimal digits"},
		{measure.CodeAdvertised, measure.Stated, measure.CauseNotSpoken, nil, said{"nips": "45, 77", "unnamed": "40"}, "not found by asking: 45, 77: it also speaks 40"},
		{measure.CodeNagle, measure.Stated, measure.CauseHeldBack, facts{"answers": 20, "held": 19, "ms": 41}, nil, "in 19 of 20 answers the last frame came about 41 ms after"},
		{measure.CodeFsyncEach, measure.Stated, measure.CauseHeldBack, facts{"alone": 5, "each": 4.5, "fsync": 4, "window": 32}, nil, "5 ms to an OK one by one, 4.5 ms for each with 32 in flight"},
		{measure.CodeThrottles, measure.Failed, measure.CauseRates, nil, said{"publishing": "slow down", "asking": "ask less"}, `the rate of events: "slow down"; it limits the rate of REQs: "ask less"`},
		{measure.CodeThrottles, measure.Stated, measure.CauseRefused, facts{"taken": 130}, said{"reason": "error: busy"}, `refused after 130 events: "error: busy"`},
		{measure.CodeThrottles, measure.Stated, measure.CauseHungUp, facts{"taken": 1}, nil, "ended the connection after 1 event"},
		{measure.CodeThrottles, measure.Stated, measure.CauseUnanswered, facts{"taken": 10}, nil, "got no OK after 10 events"},
		{measure.CodeSurvives, measure.Failed, "", nil, said{"error": "signal: killed"}, "it died while it was asked: signal: killed"},
		{measure.CodeLive, measure.Undecided, measure.CauseSilent, facts{"binary": 2}, said{"notice": "busy"}, `no answer came in time, but NOTICE "busy", but 2 binary frames`},
		{measure.CodeLive, measure.Undecided, measure.CauseLost, nil, said{"error": "reset"}, "the connection was lost: reset"},
		{measure.CodeLive, measure.Undecided, measure.CauseLost, nil, said{"error": "reset", "doing": "asking"}, "the connection was lost while asking: reset"},
		{measure.CodeLive, measure.Undecided, measure.CauseSetup, facts{"kind": 7}, nil, "a valid event of kind 7, which the question needs, was refused"},
		{measure.CodeLive, measure.Undecided, measure.CauseClosed, nil, nil, "answered with CLOSED"},
		{measure.CodeLive, measure.Undecided, measure.CauseSlow, facts{"ms": 2000}, nil, "an answer took 2.0 s"},
		{measure.CodeLive, measure.Undecided, measure.CauseTime, nil, nil, "ran out"},
		{measure.CodeLive, measure.Undecided, measure.CauseNeeds, nil, nil, "rests on"},
		{measure.CodeControl, measure.Undecided, measure.CausePlain, nil, nil, "an event of plain text does not come back"},
		{measure.CodeNagle, measure.Undecided, measure.CauseFew, facts{"answers": 1}, nil, "only 1 answer came"},
	} {
		f := measure.Finding{Code: test.code, Verdict: test.verdict, Cause: test.cause, Counts: test.counts, Texts: test.texts}
		if test.cause == measure.CauseDisorder {
			f.Evidence = []measure.Evidence{{Code: measure.EvidenceOrder, Text: "2 1"}}
		}
		got := findingText(&f)
		if !strings.Contains(got, test.says) || strings.HasSuffix(got, ".") {
			t.Errorf("%s %s %s: %q, want %q", test.code, test.verdict, test.cause, got, test.says)
		}
		if got == checkTitle(test.code) {
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
	telling := []string{measure.CodeConnections, measure.CodeAcknowledgedKept, measure.CodeModel, measure.CodeSteady, measure.CodeSendsHeld, measure.CodeStops, measure.CodeProcesses,
		measure.CodeAccepts, measure.CodeForgedRefused, measure.CodeComplete, measure.CodeHoldsSeeded, measure.CodeHoldsUnion, measure.CodeControl, measure.CodeThrottles, measure.CodeAdvertised}
	for code := range dictionary {
		for _, counts := range []map[string]float64{nil, totals} {
			if counts != nil && !slices.Contains(telling, code) {
				continue
			}
			text := func(v measure.Verdict, cause string) string {
				return findingText(&measure.Finding{Code: code, Verdict: v, Cause: cause, Counts: counts})
			}
			passed := text(measure.Passed, "")
			for _, verdict := range []measure.Verdict{measure.Failed, measure.Undecided} {
				for _, cause := range []string{"", measure.StatusText, "a cause to come"} {
					if got := text(verdict, cause); got == passed || got == checkTitle(code) || got == "" {
						t.Errorf("%s, %s, cause %q: %q", code, verdict, cause, got)
					}
				}
			}
			if got := text(measure.Stated, measure.StatusText); got == checkTitle(code) || got == "" {
				t.Errorf("%s, stated: %q", code, got)
			}
		}
	}
}
