package report

import (
	"fmt"

	"relaybench/results"
)

// pairWords are those of relays that are reconciled with each other, or fill each other.
var pairWords = map[string]words{
	results.CodeHoldsSeeded: {"holds its share after seeding", holdingText},
	results.CodeDifference: {"finds exactly the difference", func(f *results.Finding) string {
		return differenceText(f, "have") + " and " + differenceText(f, "need") + " were named"
	}},
	results.CodeOnlyKnown: {"names only events that were published", func(f *results.Finding) string {
		return listed(some1(f, "ids", "it named %s ids of no event that was published"), some1(f, "twice", "it named %s of the events on both sides as its alone"))
	}},
	results.CodeCarried: {"every event is carried over", say("${asked} asked for, ${fetched} fetched, ${missing} not sent by the source, ${accepted} accepted, ${refused} refused, ${unanswered} never answered" +
		"${?elsewhere ; # came under a subscription id that was never asked under}")},
	results.CodeHoldsUnion: {"converges", func(f *results.Finding) string {
		text := holdingText(f)
		if f.Verdict == results.Stated && f.Counts["own"] == 0 {
			text += "; it holds all that it was given"
		}
		return text
	}},
	results.CodeSteady: {"stays the same without writes", func(f *results.Finding) string {
		if f.Counts["times"] == 0 {
			return passing(f, "no id differs where nothing was written")
		}
		return fmt.Sprintf("up to %s differ where nothing was written, in %s of %s reconciliations", counted(f.Counts["ids"], "id"), n(f, "times"), n(f, "of"))
	}},
	results.CodeSetRebuilt: {"keeps its set between reconciliations", func(f *results.Finding) string {
		text := fmt.Sprintf("a repeated reconciliation takes %s ms where the first took %s ms", number(f.Counts["ms"]), number(f.Counts["first ms"]))
		if f.Verdict == results.Stated {
			text += ": its set is built anew at each NEG-OPEN"
		}
		return text
	}},
	results.CodeAtOnce: {"knows an event as soon as it is acknowledged", func(f *results.Finding) string {
		if f.Counts["ids"] == 0 {
			return passing(f, "it named the event that the client lacked, and nothing else")
		}
		return counted(f.Counts["ids"], "id") + " named wrongly, or not at all, after one more event"
	}},
	results.CodeNamesLeft: {"names an event that the client lacks", func(f *results.Finding) string {
		if f.Counts["missing"] == 0 {
			return passing(f, "it named the event that was left out of the client's set, each time")
		}
		return fmt.Sprintf("in %s of %s reconciliations it did not name the event that was left out of the client's set", n(f, "missing"), n(f, "of"))
	}},
	results.CodeScattered: {"finds scattered differences", say("${missing} of ${of} ids taken at random were not named")},
	results.CodeHasWay:    {"has a way", func(f *results.Finding) string { return reasonText(f.Cause, f.Counts, f.Texts) }},
	results.CodeWatched: {"is watched second by second", func(f *results.Finding) string {
		return reasonText(f.Cause, f.Counts, f.Texts)
	}},
	results.CodeHoldsSource: {"holds what the source held", func(f *results.Finding) string {
		return clauses(holdingText(f), some1(f, "not held by the source", "%s more of the corpus were not held by the source"))
	}},
	results.CodeSendsHeld: {"sends what it holds", func(f *results.Finding) string {
		if f.Verdict == results.Passed {
			return "every event that was asked for came"
		}
		return clauses(some1(f, "withheld", "%s events that it holds, or acknowledged, did not come when "+f.Texts["to"]+" was to get them"),
			some1(f, "left out", "%s came only when they were asked for again, by answers that were not capped"),
			some1(f, "altered", "%s came with other fields than they were signed with"), elsewhere(f))
	}},
	results.CodeServesSource: {"serves as a source", say("${'error'}")},
	results.CodeSecondsPaged: {"no second holds more than a page", func(f *results.Finding) string {
		return fmt.Sprintf("%s hold as many events as are asked for, or sent, at once (the newest is %.0f); what else they hold cannot be asked for by time",
			counted(f.Counts["seconds"], "second"), f.Counts["newest"])
	}},
	results.CodeSyncCommand: {"its sync command succeeds", func(f *results.Finding) string {
		if f.Verdict == results.Stated && f.Cause == "" {
			return f.Texts["error"] + ", and yet everything came"
		}
		return endedBy(f.Cause, f.Texts["error"])
	}},
}

// differenceText says how many of the ids that one side lacks were named, and how many others.
func differenceText(f *results.Finding, side string) string {
	named, must := f.Counts[side], f.Counts["must "+side]
	extra := max(f.Counts["extra "+side], named-must) // an old record says no more
	text := fmt.Sprintf("%s of %s ids to %s", amount(named-extra), n(f, "must "+side), side)
	if extra > 0 {
		text += " with " + amount(extra) + " others"
	}
	return text
}

// holdingText compares what a relay holds with what it must hold.
func holdingText(f *results.Finding) string {
	var parts []string
	for _, w := range missingWords {
		parts = append(parts, some1(f, "missing."+w.cause, "%s missing: "+w.text))
	}
	for _, reason := range goneReasons {
		parts = append(parts, some1(f, "extra."+reason, "%s kept though "+reason))
	}
	text := listed(parts...)
	switch {
	case text == "" && (f.Verdict == results.Failed || f.Verdict == results.Undecided):
		return ""
	case text == "":
		return "holds the " + n(f, "must") + " events that it must"
	}
	return "holds " + n(f, "held") + " where it must hold " + n(f, "must") + ": " + text
}

// missingWords say why an event is not where it must be, by the cause of its count.
var missingWords = []struct{ cause, text string }{
	{results.MissingNeverDelivered, "never delivered to it"}, {results.MissingUnanswered, "delivered and never answered"}, {results.MissingRefused, "refused"},
	{results.MissingLost, "acknowledged and not found"}, {results.MissingNamed, "acknowledged, and not returned though it is named"},
	{results.MissingNotImported, "in the file and not in the relay"},
}

// goneReasons are why the model does not hold an event, as it names them.
var goneReasons = []string{"superseded", "deleted", "expired", "vanished", "ephemeral", "not offered"}

// rightly says what a compliant relay does not hold either.
func rightly(f *results.Finding) string {
	var parts []string
	for _, reason := range goneReasons {
		parts = append(parts, some1(f, "rightly."+reason, "%s "+reason))
	}
	return prefixed("a compliant relay does not hold ", listed(parts...))
}
