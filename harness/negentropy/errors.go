package negentropy

import (
	"fmt"
	"strconv"
	"strings"
)

// How is the way in which a relay showed that it does not speak NIP-77.
type How string

// The ways of a relay without NIP-77.
const (
	ByNotice     How = "NOTICE"
	ByClosed     How = "CLOSED"
	ByNegErr     How = "NEG-ERR"
	BySilence    How = "silence"
	ByDisconnect How = "disconnect" // it closed the connection with a close frame
)

// UnsupportedError says that the relay does not speak NIP-77. After ByNotice, BySilence and ByDisconnect the connection has ended.
type UnsupportedError struct {
	How How
	// Text is what the relay said, raw, at most 1,024 bytes; "" where it said nothing.
	Text string
}

func (e *UnsupportedError) Error() string {
	switch {
	case e.How == BySilence:
		return "the relay does not speak NIP-77: it does not answer NEG-OPEN"
	case e.Text == "":
		return fmt.Sprintf("the relay does not speak NIP-77: it answered NEG-OPEN with %s", e.How)
	}
	return fmt.Sprintf("the relay does not speak NIP-77: it answered NEG-OPEN with %s %s", e.How, strconv.Quote(e.Text))
}

// RelayError is a relay's refusal to begin or to go on: a NEG-ERR (NIP-77), or a CLOSED in its place.
type RelayError struct {
	// Reason is the relay's text, raw, at most 1,024 bytes: by convention a word, a colon, and a sentence for people (NIP-01).
	Reason string
	// Max is how many records the relay would reconcile, where a `blocked:` told it; else 0.
	Max int64
}

func (e *RelayError) Error() string {
	text := "the relay refused to reconcile: " + strconv.Quote(e.Reason)
	if e.Max > 0 {
		text += fmt.Sprintf(" (at most %d records)", e.Max)
	}
	return text
}

// Prefix returns the word before the colon, "" where there is none: `blocked`, `closed`, `auth-required`, `error` and so on.
func (e *RelayError) Prefix() string {
	prefix, _, found := strings.Cut(e.Reason, ":")
	if !found || strings.ContainsAny(prefix, " \t\n") {
		return ""
	}
	return prefix
}

// Blocked reports whether the relay finds the query too big, which a smaller time range may cure. Relays of before NIP-77's last form
// say RESULTS_TOO_BIG.
func (e *RelayError) Blocked() bool {
	return e.Prefix() == "blocked" || strings.HasPrefix(e.Reason, "RESULTS_TOO_BIG")
}
