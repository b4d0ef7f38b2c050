package negentropy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"relaybench/relays/wire"
)

// refusal tells a relay that does not speak NIP-77 from one that does and has a reason not to.
func refusal(how How, m *wire.Message, frame []byte, answers int) error {
	e := &RelayError{Reason: m.ReasonText(), Answers: answers}
	if answers == 0 && !e.knownReason() && (how == ByClosed || contains(e.Reason, absentWords)) {
		return &UnsupportedError{How: how, Text: e.Reason}
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
		text := strings.Trim(string(elements[3]), `"`)
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return n
		}
		var object struct {
			Max int64 `json:"max_records"`
		}
		if json.Unmarshal(elements[3], &object) == nil && object.Max > 0 {
			return object.Max
		}
	}
	if found := maxInText.FindStringSubmatch(reason); found != nil {
		n, _ := strconv.ParseInt(found[1], 10, 64)
		return n
	}
	return 0
}
