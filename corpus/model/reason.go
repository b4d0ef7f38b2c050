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

// Doubt says why compliant relays may differ over an event, so that neither its presence nor its absence is a fault.
type Doubt uint8

const (
	// NoDoubt: every compliant relay does as Reason says.
	NoDoubt Doubt = iota

	// DoubtExpiry: the event expires within ExpiryMargin of the model's time, so perhaps during the run; or its expiration is not a
	// positive decimal number, or its several expirations disagree: NIP-40 does not say which then counts or whether to refuse it.
	DoubtExpiry

	// DoubtDeletion: a NIP-09 request for it may or may not count: its a tag is no clean kind:pubkey:d or its e tag no lower-case id;
	// the request is itself expired, vanished or in doubt, so that its effect depends on what came first; the request also names
	// another author's event, for which NIP-09 lets a relay refuse it; or the request comes from the recipient of a gift wrap
	// (kind 1059), which newer texts of NIP-09 honour. A request that names another author's event is itself in this doubt.
	DoubtDeletion

	// DoubtVanish: a NIP-62 request names particular relays, and whether this is one cannot be known; or the request is expired or in
	// doubt; or the event is a gift wrap newer than its recipient's request; or it is a request, which a relay MAY keep.
	DoubtVanish

	// DoubtVersion: the best version of the replaceable or addressable event is deleted, expired or in doubt. If it came first, this
	// one was refused or replaced; if it was gone or refused before this one came, this one is held. That goes for all versions, but
	// only one of them can be held. Kind 41 (NIP-28) is in this doubt where there is a newer one of the same author: NIP-01 gives it
	// no special place, strfry replaces it.
	DoubtVersion

	// DoubtProtected: the event carries a "-" tag, so that a relay with NIP-70 refuses it unless its author has authenticated.
	DoubtProtected
)

var doubtNames = [...]string{"none", "expiration", "deletion", "vanishing", "order of versions", "protected event"}

// String returns a few words for people.
func (d Doubt) String() string {
	if int(d) < len(doubtNames) {
		return doubtNames[d]
	}
	return "unknown doubt"
}

// fate is what the model knows of one event: Reason in the low half, Doubt in the high half. Only Stored and Superseded events carry a
// doubt: everything else is certain.
type fate uint8

func newFate(r Reason, d Doubt) fate { return fate(r) | fate(d)<<4 }

func (f fate) reason() Reason { return Reason(f & 15) }
func (f fate) doubt() Doubt   { return Doubt(f >> 4) }

// possible reports whether a compliant relay may hold the event.
func (f fate) possible() bool { return f.reason() == Stored || f.doubt() != NoDoubt }

// certain reports whether every compliant relay holds the event.
func (f fate) certain() bool { return f == newFate(Stored, NoDoubt) }
