package model

// Reason says why the model holds an event or does not, and why an answer should not have had it.
type Reason uint8

const (
	Stored      Reason = iota // held
	Superseded                // a newer version of a replaceable or addressable event is held (NIP-01)
	Deleted                   // its author asked for its deletion (NIP-09)
	Expired                   // its expiration has passed (NIP-40)
	Vanished                  // its author, or the recipient of a gift wrap, asked to vanish (NIP-62)
	Ephemeral                 // never stored (NIP-01)
	NotOffered                // in the corpus, but the relay was not given it
	Unknown                   // no event of the corpus has this id
	NoMatch                   // held, but the filter does not ask for it
	BeyondLimit               // held and asked for, but newer events fill the filter's limit
)

var reasonNames = [...]string{
	"stored", "superseded", "deleted", "expired", "vanished", "ephemeral", "not offered",
	"not in the corpus", "does not match the filter", "beyond the limit",
}

// String returns a few words for people.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown reason"
}

// Ambiguity says why compliant relays may differ over an event: to have it or not is no fault.
type Ambiguity uint8

const (
	// Unambiguous: every compliant relay does as Reason says.
	Unambiguous Ambiguity = iota

	// AmbiguousExpiry: the event expires within ExpiryMargin of the model's time, so perhaps during
	// the run; or its expiration is not a positive decimal number, or its several expirations
	// disagree: NIP-40 does not say which then counts or whether to refuse it.
	AmbiguousExpiry

	// AmbiguousDeletion: a NIP-09 request for it may or may not count: its a tag is no clean
	// kind:pubkey:d or its e tag no lower-case id; the request is itself expired, vanished or
	// ambiguous, so that its effect depends on what came first; the request also names another
	// author's event, for which NIP-09 lets a relay refuse it; or the request comes from the
	// recipient of a gift wrap (kind 1059), which newer texts of NIP-09 honour. A request that
	// names another author's event is itself ambiguous in this way.
	AmbiguousDeletion

	// AmbiguousVanish: a NIP-62 request names particular relays, and whether this is one cannot be
	// known; or the request is expired or is ambiguous; or the event is a gift wrap newer than its
	// recipient's request; or it is a request, which a relay MAY keep.
	AmbiguousVanish

	// AmbiguousVersion: the best version of the replaceable or addressable event is deleted,
	// expired or ambiguous. If it came first, this one was refused or replaced; if it was gone or
	// refused before this one came, this one is held. That goes for all versions, but only one of
	// them can be held. Kind 41 (NIP-28) is ambiguous in this way where there is a newer one of the
	// same author: NIP-01 gives it no special place, strfry replaces it.
	AmbiguousVersion

	// AmbiguousProtected: the event carries a "-" tag, so that a relay with NIP-70 refuses it
	// unless its author has authenticated.
	AmbiguousProtected
)

var ambiguityNames = [...]string{"none", "expiration", "deletion", "vanishing", "order of versions", "protected event"}

// String returns a few words for people.
func (d Ambiguity) String() string {
	if int(d) < len(ambiguityNames) {
		return ambiguityNames[d]
	}
	return "unknown ambiguity"
}

// status is what the model knows of one event: Reason in the low half, Ambiguity in the high half.
// Only Stored and Superseded events carry an ambiguity: everything else is certain.
type status uint8

func newStatus(r Reason, d Ambiguity) status { return status(r) | status(d)<<4 }

func (f status) reason() Reason       { return Reason(f & 15) }
func (f status) ambiguity() Ambiguity { return Ambiguity(f >> 4) }

// possible reports whether a compliant relay may hold the event.
func (f status) possible() bool { return f.reason() == Stored || f.ambiguity() != Unambiguous }

// certain reports whether every compliant relay holds the event.
func (f status) certain() bool { return f == newStatus(Stored, Unambiguous) }
