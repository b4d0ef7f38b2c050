package results

// The causes of the preflight's findings. Counts and Texts that go with one are named beside it.
const (
	// Of what a relay does otherwise.
	CauseRefused      = "refused"       // a valid event: Counts["kind"], Counts["createdAt"], Texts["reason"]
	CauseUnnamed      = "unnamed"       // an OK that does not carry the event's id
	CauseNotReturned  = "not-returned"  // acknowledged, and not found by its id within Counts["ms"]; Counts["kind"], Counts["elsewhere"] where it came under a subscription that there was not
	CauseAltered      = "altered"       // came back otherwise: Texts["fields"], Texts["sent"], Texts["returned"]
	CauseTrimmed      = "trimmed"       // of altered: white space at the ends of the content is gone
	CauseTagsDropped  = "tags-dropped"  // of altered: empty tags are gone
	CauseUnreadable   = "unreadable"    // came back as something that is no event
	CauseAnswer       = "answer"        // events are missing or too many: Counts["got", "want", "missing", "extra", "limit"]
	CauseDisorder     = "order"         // the right events in another order
	CauseFlood        = "flood"         // one REQ brought more than Counts["got"] events, and nobody published that many
	CauseAccepted     = "accepted"      // a forged event got OK true: Texts["forgery"], Texts["reason"]
	CauseServed       = "served"        // a forged event is returned to readers: Texts["forgery"]
	CauseStored       = "stored"        // what is to be passed on alone is returned later
	CauseNotDelivered = "not-delivered" // it reached no open subscription
	CauseNoOK         = "no-ok"         // an event was taken without an OK
	CauseCharacters   = "characters"    // Counts["accepted", "refused", "altered", ...] and Texts of the same names
	CauseEndedEarly   = "closed-live"   // a live subscription was ended by CLOSED: Texts["reason"]
	CauseRates        = "rates"         // it speaks of too many in too short a time: Texts["publishing"], Texts["asking"], Counts["taken"]
	CauseUnanswered   = "unanswered"    // events of many in flight got no OK: Counts["taken"], Texts["notice"]
	CauseHungUp       = "hung-up"       // it closed the connection in a flood: Counts["taken"], Texts["error"]
	CauseNever        = "never"         // not once within Counts["ms"]
	CauseCached       = "cached"        // an answer of before the write came until Counts["ms"] after it
	CauseHeldBack     = "held-back"     // Counts["answers"], Counts["held"], Counts["ms"]
	CauseForeign      = "foreign"       // of another author: his events were deleted
	CauseNotSpoken    = "not-spoken"    // advertised, and not found by asking: Texts["nips"]
	CauseAnswered     = "answered"      // NEG-OPEN
	CauseUnsupported  = "unsupported"   // NEG-OPEN is not known: Texts["how"], Texts["reason"]
	CauseBreaks       = "breaks"        // NIP-77 was begun, and then broken: Texts["error"]

	CauseNotice = "notice" // of a forged event: a NOTICE came in place of an OK

	// Of what could not be found out.
	CauseSilent = "silent" // no answer in time: Texts["notice"], Texts["error"]
	CauseLost   = "lost"   // no connection, or one that ended: Texts["error"], Texts["doing"] what it was for last
	CauseSetup  = "setup"  // a valid event that the question needs was refused: Counts["kind"], Texts["reason"]
	CauseClosed = "closed" // a REQ was answered with CLOSED: Texts["reason"]
	CauseSlow   = "slow"   // other answers were so slow that silence means nothing: Counts["ms"]
	CauseTime   = "time"   // the time for asking ran out
	CauseNeeds  = "needs"  // what the question rests on does not hold
	CausePlain  = "plain"  // what is asked of special events happens to plain ones too: none comes back as it was sent
	CauseFew    = "few"    // too few answers to judge by: Counts["answers"]
)

// The forgeries that a preflight sends, as Texts["forgery"] names them.
const (
	ForgedSignature = "signature"     // a signature with one changed bit
	ForgedContent   = "content"       // changed after it was signed
	ForgedID        = "id"            // under another id
	NoSignature     = "no-sig"        // a field is absent
	NoCreatedAt     = "no-created-at" // a field is absent
	ContentNumber   = "content-number"
	ShortSignature  = "short-sig"
)
