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

// status is what the model knows of one event: its Reason, and whether it is optional. Only Stored
// and Superseded events are: everything else is certain.
type status uint8

// optional marks an event over which compliant relays may differ.
const optional status = 1 << 4

func (f status) reason() Reason { return Reason(f &^ optional) }

// possible reports whether a compliant relay may hold the event.
func (f status) possible() bool { return f.reason() == Stored || f&optional != 0 }

// certain reports whether every compliant relay holds the event.
func (f status) certain() bool { return f == status(Stored) }
