package relays

// verdict says whose a listening socket is.
type verdict int

const (
	undecided verdict = iota // the system does not tell; that the child lives has to do
	own
	foreign
)
