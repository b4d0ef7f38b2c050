package receive

import (
	"bytes"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

const (
	scanHead = `["EVENT","`
	scanID   = `"id":"`
	// scanSub is the longest subscription id that is scanned; NIP-01 allows 64 characters.
	scanSub = 256
	// scanMembers is how many fields of an event are passed over in search of its id.
	scanMembers = 8
)

// Scan reads the head of an EVENT frame up to the event's id and sets m as wire.Parse does, at a fraction of its cost and whatever the event's
// length. It returns false, and m means nothing, for other messages and on any doubt: white space, an escape in what it has to read,
// or a field before the id that is neither a string without escapes nor a number. The caller then asks wire.Parse.
//
// What follows the id is not read, so that m.Event is only where an event should be, and may be none, and that m.Dated is false. What holds is this: every
// reading of the whole frame, wire.Parse's and corpus.ParseEvent's of m.Event, finds m.ID, or else no event with an id.
func Scan(frame []byte, m *wire.Message) bool {
	if len(frame) < len(scanHead) || string(frame[:len(scanHead)]) != scanHead || !bytes.HasSuffix(frame, []byte("}]")) {
		return false
	}
	rest := frame[len(scanHead):]
	end := bytes.IndexByte(rest[:min(len(rest), scanSub+1)], '"')
	if end < 0 || !plain(rest[:end]) {
		return false
	}
	sub := rest[:end]
	rest = rest[end+1:]
	if len(rest) < 2 || rest[0] != ',' {
		return false
	}
	event := rest[1 : len(rest)-1]
	id, ok := scanEvent(event)
	if !ok {
		return false
	}
	*m = wire.Message{Type: wire.Event, Sub: sub, ID: id, HasID: true, Event: event}
	return true
}

// scanEvent finds the id among an object's own fields. It walks over the fields before the id instead of looking for `"id":"`, which may as well
// be the end of a longer key, a field of an object within, or part of another event in the content.
func scanEvent(event []byte) (id corpus.ID, ok bool) {
	if len(event) == 0 || event[0] != '{' {
		return id, false
	}
	rest := event[1:]
	for range scanMembers {
		if bytes.HasPrefix(rest, []byte(scanID)) {
			rest = rest[len(scanID):]
			const digits = 2 * len(id)
			if len(rest) < digits+2 || rest[digits] != '"' || rest[digits+1] != ',' && rest[digits+1] != '}' {
				return id, false
			}
			return corpus.ParseID(rest[:digits])
		}
		if rest = skipMember(rest); rest == nil {
			return id, false
		}
	}
	return id, false
}

// skipMember returns what follows a field and its comma, nil on any doubt.
func skipMember(rest []byte) []byte {
	key, rest := skipString(rest)
	// Another spelling of "id" has an escape, and an id that is no string leaves no doubt about the event but is left to the full pass.
	if key == nil || string(key) == "id" || len(rest) < 2 || rest[0] != ':' {
		return nil
	}
	rest = rest[1:]
	if rest[0] == '"' {
		var value []byte
		if value, rest = skipString(rest); value == nil {
			return nil
		}
	} else {
		digits := 0
		for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		if digits == 0 {
			return nil
		}
		rest = rest[digits:]
	}
	if len(rest) == 0 || rest[0] != ',' {
		return nil
	}
	return rest[1:]
}

// skipString returns what stands between the quotes of a string without escapes, nil for anything else, and what follows.
func skipString(text []byte) (value, rest []byte) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil
	}
	end := bytes.IndexByte(text[1:], '"')
	if end < 0 {
		return nil, nil
	}
	value = text[1 : 1+end : 1+end]
	if bytes.IndexByte(value, '\\') >= 0 {
		return nil, nil
	}
	return value, text[end+2:]
}

// plain reports whether a text without quotes stands for itself in a JSON string.
func plain(text []byte) bool {
	for _, c := range text {
		if c < ' ' || c == '\\' {
			return false
		}
	}
	return true
}
