package negentropy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"relaybench/relays/wire"
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

// Code says how a relay that speaks NIP-77 breaks it.
type Code string

// The breaches.
const (
	NotHex            Code = "not-hex"            // a NEG-MSG whose payload is not hexadecimal
	Malformed         Code = "malformed"          // no message of negentropy, or NEG-MSG in a form that NIP-77 does not know
	WrongVersion      Code = "wrong-version"      // a message of another version of negentropy
	CountTooLarge     Code = "count-too-large"    // a list of more ids than there are bytes for
	Oversized         Code = "oversized"          // an answer over the connection's read limit
	Endless           Code = "endless"            // rounds that lead nowhere, or more of them than were allowed
	UnexpectedIDs     Code = "unexpected-ids"     // ids where there can be none, or more of them than were to be taken
	Unnamed           Code = "unnamed-ids"        // events that it holds, and the client does not, are not named
	Silent            Code = "silent"             // it began, and then answered no more
	WrongSubscription Code = "wrong-subscription" // it answered under another subscription id, and to ours not at all
)

// ProtocolError says that the relay began to reconcile, or answered NEG-OPEN with what can be
// nothing else, and broke the protocol. It speaks NIP-77, wrongly. After Oversized, Silent,
// WrongSubscription, and Malformed that wraps wire.ErrStalled, the connection has ended.
type ProtocolError struct {
	Code   Code
	Answer int // which answer, from 1
	// Count is how many ids were announced (CountTooLarge), named (UnexpectedIDs) or not (Unnamed),
	// bytes announced (Oversized, 0 where unknown), rounds and refusals, or those in a row that
	// came to nothing (Endless), or answers under another id (WrongSubscription).
	Count uint64
	Limit uint64 // of the Count, where there is one
	Err   error  // the cause: a *FormatError, a *wire.TooLargeError, one that wraps wire.ErrStalled; nil where there is none beside
}

func (e *ProtocolError) Error() string {
	what := fmt.Sprint(e.Err)
	switch {
	case e.Code == Oversized:
		what = fmt.Sprintf("its answer was larger than the limit of %d bytes", e.Limit)
		if e.Count > 0 {
			what += fmt.Sprintf(": %d bytes are announced", e.Count)
		}
	case e.Code == Endless && e.Err == nil && e.Limit > e.Count:
		what = fmt.Sprintf("no progress: it finds that the sets differ, and named no id in %d rounds", e.Count)
	case e.Code == Endless && e.Err == nil:
		what = fmt.Sprintf("no end after %d rounds and refusals", e.Count)
	case e.Code == UnexpectedIDs:
		what = fmt.Sprintf("it names %d ids as its own, of which there can be %d at most", e.Count, e.Limit)
	case e.Code == Unnamed:
		what = fmt.Sprintf("it does not name %d of the events that it holds and the client lacks", e.Count)
	case e.Code == Silent:
		what = "it began, and then answered no more"
	case e.Code == WrongSubscription:
		what = fmt.Sprintf("it sent %d answers under subscription ids that were not asked for", e.Count)
	}
	return fmt.Sprintf("the relay breaks NIP-77 in answer %d: %s", e.Answer, what)
}

// Unwrap returns the cause.
func (e *ProtocolError) Unwrap() error { return e.Err }

// UnsupportedError says that the relay does not speak NIP-77. After ByNotice, BySilence and
// ByDisconnect the connection has ended.
type UnsupportedError struct {
	How How
	// Text is what the relay said, raw, at most 1,024 bytes; "" where it said nothing.
	Text string
}

func (e *UnsupportedError) Error() string {
	text := "the relay does not speak NIP-77: "
	switch {
	case e.How == BySilence:
		return text + "it does not answer NEG-OPEN"
	case e.Text == "":
		return text + "it answered NEG-OPEN with " + string(e.How)
	}
	return fmt.Sprintf("%sit answered NEG-OPEN with %s %q", text, e.How, e.Text)
}

// RelayError is a relay's refusal to begin or to go on: a NEG-ERR (NIP-77), or a CLOSED in its
// place.
type RelayError struct {
	// Reason is the relay's text, raw, at most 1,024 bytes: by convention a word, a colon, and a
	// sentence for people (NIP-01).
	Reason string
	// Max is how many records the relay would reconcile, where a `blocked:` told it; else 0.
	Max int64
	// Answers is how many NEG-MSGs came before: more than 0 where it began.
	Answers int
}

func (e *RelayError) Error() string {
	text := "the relay refused to reconcile: " + strconv.Quote(e.Reason)
	if e.Max > 0 {
		text += fmt.Sprintf(" (at most %d records)", e.Max)
	}
	return text
}

// Prefix returns the word before the colon, "other" where there is none: `blocked`, `closed`,
// `auth-required`, `error` and so on.
func (e *RelayError) Prefix() string { return wire.ReasonPrefix([]byte(e.Reason)) }

// Blocked reports whether the relay finds the query too big, which a smaller time range may cure.
// Relays of before NIP-77's last form say RESULTS_TOO_BIG.
func (e *RelayError) Blocked() bool {
	return e.Prefix() == "blocked" || strings.HasPrefix(e.Reason, "RESULTS_TOO_BIG")
}

// refusal tells a relay that does not speak NIP-77 from one that does and has a reason not to.
func refusal(m *wire.Message, frame []byte, answers int) error {
	e := &RelayError{Reason: m.ReasonText(), Answers: answers}
	if answers == 0 && !e.knownReason() && (m.Type == wire.Closed || contains(e.Reason, absentWords)) {
		return &UnsupportedError{How: How(m.Type.String()), Text: e.Reason}
	}
	if e.Blocked() {
		e.Max = maxRecords(e.Reason, frame)
	}
	return e
}

// knownReason reports whether the reason is one that a relay gives for a query or a client, and not
// for a message that it does not know (NIP-01, NIP-42, NIP-77).
func (e *RelayError) knownReason() bool {
	switch e.Prefix() {
	case "blocked", "closed", "auth-required", "restricted", "rate-limited", "pow":
		return true
	}
	return e.Blocked() || e.Reason == "CLOSED"
}

// Words with which relays say that they do not speak NIP-77, or have it switched off.
var absentWords = []string{"unknown", "unrecogni", "unsupported", "not supported", "not implemented", "disabled", "not enabled"}

// Words with which relays complain of a message that they cannot make sense of.
var confusedWords = []string{"neg", "invalid", "bad ", "parse", "unexpected", "malformed", "error"}

// soundsLikeRefusal reports whether a NOTICE can be taken as the answer to NEG-OPEN. What is missed
// here is still recognised, by what follows: nothing.
func soundsLikeRefusal(text string) bool {
	return contains(text, absentWords) || contains(text, confusedWords)
}

// answersNegOpen reports whether a NOTICE is so clearly about NEG-OPEN that no other answer will
// come. A relay may complain of anything as it greets, and need its time for an answer all the
// same.
func answersNegOpen(text string) bool {
	return contains(text, absentWords) || contains(text, []string{"neg"})
}

func contains(text string, words []string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

var maxInText = regexp.MustCompile(`(?i)max\D{0,20}(\d{1,15})`)

// maxRecords finds how many records a relay would reconcile: NIP-77 has it as the fourth element of
// NEG-ERR; some write it in an object there, or in the text. 0 means that it does not say.
func maxRecords(reason string, frame []byte) int64 {
	var elements []json.RawMessage
	if json.Unmarshal(frame, &elements) == nil && len(elements) > 3 {
		var object struct {
			Max json.Number `json:"max_records"`
		}
		if json.Unmarshal(elements[3], &object) != nil {
			object.Max = json.Number(strings.Trim(string(elements[3]), `"`))
		}
		if n, err := object.Max.Int64(); err == nil && n > 0 {
			return n
		}
	}
	if found := maxInText.FindStringSubmatch(reason); found != nil {
		n, _ := strconv.ParseInt(found[1], 10, 64)
		return n
	}
	return 0
}
