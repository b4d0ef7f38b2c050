package results

// Causes of CodeMeasurable, CodeHasWay and CodeWatched: why a scenario is none for a relay.
const (
	ExternalKill     = "external-kill"      // a relay that runs already is nobody's to kill
	ExternalDisk     = "external-disk"      // its disk is out of sight
	KeepsNothing     = "keeps-nothing"      // it had no event on disk, promised none, and lost them
	KeptElsewhere    = "kept-elsewhere"     // its folder is too small to hold the events that it returns
	ExternalBulk     = "external-bulk"      // it is not given the corpus again
	ExternalSync     = "external-sync"      // it is not to be filled
	NoCommand        = "no-command"         // its definition has no such command: Texts relay, why
	NoDirection      = "no-direction"       // its sync command does not go there: Texts relay, direction
	StoppedBoth      = "stopped-both"       // its sync command works on a relay that does not run, and so has no share
	OneWay           = "one-way"            // pages go one way
	WithoutNIP77     = "without-nip77"      // Texts relay, and cause, reason, how and error as of CodeNIP77
	WithoutNIP       = "without-nip"        // it was not found to speak Counts nip, which the scenario asks with: Texts text was seen
	NothingToAsk     = "nothing-to-ask"     // the corpus has nothing to ask about
	NothingToPublish = "nothing-to-publish" // no event of the corpus is left that can be published alone
	NotWatched       = "not-watched"        // NIP-45 is not answered, or cannot be asked: Texts text
	UnsignedSize     = "unsigned-size"      // it needs really signed events, and takes part up to Counts most of them
	StoppedUnseen    = "stopped-unseen"     // the relay does not serve while its command works
)

// What a machine can be short of: Relay.Shortage, Cause of a finding that is undecided for it, and
// Because of a figure that is incomplete for CauseShortage.
const (
	ShortageDisk         = "shortage-disk"          // full, as good as full, or a quota is reached
	ShortageInodes       = "shortage-inodes"        // that file system takes no more files
	ShortageMemory       = "shortage-memory"        // the kernel killed for memory, or gave none
	ShortageDescriptors  = "shortage-descriptors"   // ulimit -n, or the system's
	ShortagePorts        = "shortage-ports"         // no free local port
	ShortageFileSize     = "shortage-file-size"     // ulimit -f
	ShortageAddressSpace = "shortage-address-space" // ulimit -v
	ShortageCPUTime      = "shortage-cpu-time"      // ulimit -t
)

// Causes of CodeStops.
const CauseForced = "forced" // killed after the grace that it had for SIGTERM: Counts s

// Causes of CodeRemembers.
const CauseNoStart = "no-start" // it does not start over what it left: Texts error

// Causes of CodeNIP77, beside those of the preflight.
const (
	NIP77External  = "external"  // a relay that runs already cannot be given what a pair needs
	NIP77Unreached = "unreached" // the relay could not be asked: Texts error
)

// Reasons why a transfer brought less than it set out to bring.
const (
	CauseCapped      = "cap"      // answers are capped at their newest events; Counts events where that is one number
	CauseFullSeconds = "seconds"  // seconds hold more events than came in one answer: Counts seconds, newest, asked
	CauseWithheld    = "withheld" // the source did not send them
	WhyMore          = "more"     // otherwise the relay sent more: Counts events
	WhyUnnamed       = "unnamed"  // a reconciliation did not name Counts unnamed of them
	CauseEndAsSaid   = "end"      // the end is where the relay says that there is no more
	WhyFlood         = "flood"    // an answer went on without end: Counts sent, asked
	WhyTime          = "time"     // it was ended after Counts s, which is far longer than others took
)

// Who ended a transfer before its end, as Texts by of CodeComplete, and Cause of CodeSyncCommand.
const (
	EndedBySource  = "source"
	EndedBySink    = "sink"
	EndedByUnknown = "unknown" // one of them: nobody saw which
)

// Causes of CodeAnswered beside CauseClosed: how an answer ended. Texts reason has the relay's
// words, or an error.
const (
	CauseAuthRequired = "auth-required" // CLOSED, since the relay wants to know who asks (NIP-42)
	CauseStalled      = "stalled"       // nothing that was asked for came for too long
	CauseTooSlow      = "too-slow"      // it came, and no end of it
	CauseFlooded      = "flooded"       // far more came than was asked for
	CauseDisconnected = "disconnected"  // the connection ended
	CauseNotReached   = "not-reached"   // there was no connection
	CauseNotAsked     = "not-asked"     // nobody was known to ask for, or the probe was interrupted
)

// Causes of StatusNotMeasured, for a download.
const (
	CauseNoCompression     = "no-compression"    // the relay does not agree to permessage-deflate
	CauseNoIDs             = "no-ids"            // paging, which lists them, was not measured or brought none
	CauseNoMatch           = "no-match"          // no event of the corpus matches the filter
	CauseNoNIP77           = "nip77-unsupported" // Texts text is what it answered
	CauseSubscriptionLimit = "subscriptions"     // it allows Counts most at a time; Texts source says so
	CauseEventLimit        = "events"            // its answers hold Counts most; Texts source says so
	CauseGivenUp           = "given-up"          // Texts text is the error of a cell before
)

// Sources of a limit, as Texts source names them.
const (
	LimitsDeclared = "definition" // the relay's definition
	LimitsTold     = "nip-11"     // its information document
)

// Causes of an event that had to be there and is not, as Evidence has them, and Counts behind
// "missing.". Of one that must not be there it is the model's reason, behind "extra.".
const (
	MissingNeverDelivered = "never delivered"
	MissingUnanswered     = "unanswered"
	MissingRefused        = "refused"
	MissingLost           = "lost"                   // acknowledged, and not there
	MissingNamed          = "named and not returned" // acknowledged: lost to whoever asks for it
	MissingNotImported    = "not imported"
)
