package results

import "slices"

// The codes of checks, as they stand in findings. Those of one family share its prefix where they
// need one.
const (
	// Of every scenario.
	CodeMeasurable  = "measurable"   // stated: whether the scenario is one for this relay
	CodeCompletes   = "completes"    // the scenario came to its end
	CodeOnlyMessage = "only-message" // all frames are messages of the protocol
	CodeConnections = "connections"  // connections stay open
	CodeStops       = "stops"        // ends on SIGTERM within the grace
	CodeProcesses   = "processes"    // no process is left that cannot be ended; stated

	// Of publishing.
	CodeAccepts          = "accepts"           // what a compliant relay keeps is accepted
	CodeAcceptsSingle    = "accepts-single"    // events published one by one
	CodeAcceptsPaced     = "accepts-paced"     // events published on a schedule
	CodeAcceptsOneMore   = "accepts-onemore"   // one event after a reconciliation
	CodeQueryable        = "queryable"         // accepted events come back by id
	CodeUnseenBefore     = "unseen-before"     // the relay had not seen the events before
	CodeOnlySent         = "only-sent"         // OKs name what was sent
	CodeAcknowledgedKept = "acknowledged-kept" // nothing acknowledged is missing
	CodeRemembers        = "remembers"         // after a clean stop it answers as right as before
	CodeForgedRefused    = "forged-refused"    // in this boot, a forged event among the others is refused
	CodeUnaltered        = "unaltered"         // events come back as they were sent
	CodeOnlyAsked        = "only-asked"        // nothing comes that was not asked for

	// Of queries.
	CodeEOSE     = "eose"     // every query is answered with EOSE
	CodeCounted  = "counted"  // every COUNT is answered with a count (NIP-45)
	CodeModel    = "model"    // answers are what the model returns
	CodeUncapped = "uncapped" // answers are not capped below the limit asked for
	CodeStale    = "stale"    // a repeated filter is answered anew after a write

	// Of pairs that are reconciled (NIP-77).
	CodeNIP77       = "nip77"        // whether NEG-OPEN is answered; failed where NIP-77 was begun and broken
	CodeHoldsSeeded = "holds-seeded" // holds its share after seeding
	CodeDifference  = "difference"   // names exactly what differs
	CodeCarried     = "carried"      // every event that the sink lacked was carried over
	CodeHoldsUnion  = "holds-union"  // holds what a compliant relay holds
	CodeSteady      = "steady"       // the same without writes
	CodeAtOnce      = "at-once"      // knows an event as soon as it is acknowledged
	CodeScattered   = "scattered"    // finds scattered differences
	CodeOnlyKnown   = "only-known"   // names ids of events that were published
	CodeNamesLeft   = "names-left"   // names an event that was left out of the client's set
	CodeSetRebuilt  = "set-rebuilt"  // stated: its set is built anew at each NEG-OPEN

	// Of imports, syncs and downloads.
	CodeImported      = "imported"       // holds what was imported
	CodeReturnsNamed  = "returns-named"  // returns what it names in a reconciliation, and names what it returns
	CodeHasWay        = "has-way"        // stated: whether a pair can be synced in a mode
	CodeWatched       = "watched"        // stated: whether a sync could be watched second by second
	CodeHoldsSource   = "holds-source"   // holds what the source held
	CodeSendsHeld     = "sends-held"     // sends what it holds, or acknowledged, when it is first asked for it
	CodeServesSource  = "serves-source"  // can be filled and serves as a source
	CodeSecondsPaged  = "seconds-paged"  // stated: seconds that hold more than a page
	CodeSyncCommand   = "sync-command"   // its sync command succeeds
	CodeComplete      = "complete"       // a download or sync brought everything
	CodeOnlyRequested = "only-requested" // a download brings nothing else

	// Of probes.
	CodeAnswered    = "answered"    // an answer comes to its end
	CodeGenuine     = "genuine"     // events are events, and verify
	CodeEndsOnce    = "ends-once"   // stated: nothing comes after the end of an answer
	CodeAsksWho     = "asks-who"    // stated: it sent a challenge (NIP-42)
	CodeNotices     = "notices"     // stated: what it said
	CodeCompression = "compression" // stated: whether it was agreed

	// Of diagnoses, always stated.
	CodeNagle     = "nagle"      // answers wait some 40 ms for an acknowledgement of TCP
	CodeFsyncEach = "fsync-each" // each event takes an fsync of its own

	// Of the preflight.
	CodeStores        = "stores"         // a valid event is stored and returned
	CodeText          = "text"           // text comes back unchanged
	CodeBadSignature  = "bad-signature"  // refused
	CodeBadID         = "bad-id"         // refused
	CodeMalformed     = "malformed"      // refused; stated
	CodeControl       = "control"        // control characters beyond the seven escapes; stated
	CodeCorpusTime    = "corpus-time"    // events of the corpus' time are accepted
	CodeYear2020      = "year-2020"      // stated
	CodePrivateKinds  = "private-kinds"  // kinds 4 and 1059 are returned
	CodeDuplicate     = "duplicate"      // answered; stated
	CodeFilterIDs     = "filter-ids"     // answers hold what matches this condition, and nothing else
	CodeFilterAuthors = "filter-authors" // the same
	CodeFilterKinds   = "filter-kinds"   // the same
	CodeFilterTagE    = "filter-tag-e"   // the same
	CodeFilterTagP    = "filter-tag-p"   // the same
	CodeFilterTagT    = "filter-tag-t"   // the same
	CodeFilterMore    = "filter-more"    // ids together with another condition; stated
	CodeLimit         = "limit"          // no answer is longer than its limit, and the newest stand in it
	CodeOrder         = "order"          // newest first
	CodeInclusive     = "inclusive"      // since and until take in that very second
	CodeSeveral       = "several"        // filters in one REQ; stated
	CodeReplaceable   = "replaceable"    // the newest of an author and kind alone is returned
	CodeAddressable   = "addressable"    // the newest of an author, kind and d tag alone is returned
	CodeLateVersion   = "late-version"   // stated
	CodeEphemeral     = "ephemeral"      // stated
	CodeLive          = "live"           // events after EOSE
	CodeLiveFilter    = "live-filter"    // live events match the filter
	CodeClose         = "close"          // ends a subscription; stated
	CodeThrottles     = "throttles"      // failed where it limits rates
	CodeSurvives      = "survives"       // the preflight
	CodeEmptyTag      = "empty-tag"      // returned; refusing it is stated, dropping it alters the event
	CodeDeletion      = "deletion"       // kind 5 leaves other authors' events alone; stated
	CodeAdvertised    = "advertised"     // the NIPs that it names (NIP-11) are spoken; stated
)

// everything and takesIn are what most failures bear on beside their own scenario.
var (
	everything = []Scope{{Scenario: "*"}}
	// takesIn are the figures of whatever takes events in.
	takesIn = []Scope{{Scenario: "ingest.*"}, {Scenario: "import"}, {Scenario: "crash"}, {Scenario: "storage"}, {Scenario: "sync.*", Role: AsRelay}}
	// keeps are those of whatever stores what a compliant relay would not; queries and pairs have
	// checks of their own.
	keeps = []Scope{{Scenario: "ingest.throughput"}, {Scenario: "import"}, {Scenario: "storage"}}
)

// bearing says on which figures a failed check bears, where that is more or other than its own
// scenario.
var bearing = map[string][]Scope{
	CodeAcknowledgedKept: everything,
	CodeRemembers:        everything,
	CodeUnaltered:        everything,
	CodeStores:           everything,
	CodeText:             everything,
	CodeSurvives:         everything,
	CodeEmptyTag:         everything,
	CodeForgedRefused:    takesIn,
	CodeBadSignature:     takesIn,
	CodeBadID:            takesIn,
	CodeAccepts:          keeps,
	CodeReplaceable:      keeps,
	CodeAddressable:      keeps,
	CodeCorpusTime:       keeps,
	CodePrivateKinds:     keeps,
	CodeNIP77:            {{Scenario: "negentropy.*", Role: AsRelay}, {Scenario: "sync.negentropy"}, {Scenario: "fetch.negentropy"}},
	CodeReturnsNamed:     {{Scenario: "negentropy.*", Role: AsRelay}, {Scenario: "sync.negentropy"}, {Scenario: "fetch.negentropy"}},
	CodeOnlyKnown:        {{Scenario: "negentropy.*", Role: AsRelay}, {Scenario: "sync.negentropy"}, {Scenario: "fetch.negentropy"}},
	// What a relay says of itself in a pair changes nothing of what the other one is asked: the
	// client's set is of what came when it was asked for by id.
	CodeDifference: {{Scenario: "negentropy.initial", Role: AsRelay}},
	CodeSteady:     {{Scenario: "negentropy.heartbeat", Role: AsRelay}},
	CodeAtOnce:     {{Scenario: "negentropy.after-write", Role: AsRelay}},
	CodeScattered:  {{Scenario: "negentropy.scattered", Role: AsRelay}},
	CodeNamesLeft: {{Scenario: "negentropy.identical", Role: AsRelay}, {Scenario: "negentropy.heartbeat", Role: AsRelay},
		{Scenario: "negentropy.after-write", Role: AsRelay}},
	// What it does not hold, the other one is neither reconciled with nor given: less work.
	CodeHoldsSeeded: {{Scenario: "negentropy.*"}},
	CodeHoldsUnion: {{Scenario: "negentropy.identical"}, {Scenario: "negentropy.heartbeat"}, {Scenario: "negentropy.after-write"},
		{Scenario: "negentropy.scattered"}},
	CodeFilterIDs:     usedBy(UsesIDs),
	CodeFilterAuthors: usedBy(UsesAuthors),
	CodeFilterKinds:   usedBy(UsesKinds),
	CodeFilterTagE:    usedBy("#e"),
	CodeFilterTagP:    usedBy("#p"),
	CodeFilterTagT:    usedBy("#t"),
	CodeLimit:         usedBy(UsesLimit),
	CodeOrder:         usedBy(UsesOrder),
	CodeInclusive:     append(usedBy(UsesSince), usedBy(UsesUntil)...),
	CodeLive:          {{Scenario: "live.*"}},
	CodeLiveFilter:    {{Scenario: "live.*"}},
}

// usedBy are the figures of all scenarios whose questions use a condition.
func usedBy(condition string) []Scope { return []Scope{{Scenario: "*", Uses: condition}} }

// Throttled says on what a limit of rates bears: a relay may limit what it takes in, and what it is
// asked.
func Throttled(publishing, asking bool) (scopes []Scope) {
	if publishing {
		scopes = append(scopes, takesIn...)
	}
	if asking {
		scopes = append(scopes, Scope{Scenario: "query.*"}, Scope{Scenario: "fetch.*"}, Scope{Scenario: "sync.*", Role: AsPeer})
	}
	return scopes
}

// BearsOn returns the figures on which a failed check of a scenario bears: what its table says,
// else the scenario itself and all below it, under the finding's labels.
func BearsOn(code, scenario string, labels Labels) []Scope {
	if scopes, ok := bearing[code]; ok {
		return slices.Clone(scopes)
	}
	return []Scope{{Scenario: scenario + ".*", Labels: labels}}
}
