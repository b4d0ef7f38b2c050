package receive

import (
	"bytes"

	"relaybench/corpus"
	"relaybench/corpus/scan"
	"relaybench/relays/wire"
)

const (
	scanHead = `["EVENT","`
	// scanHeadID is how most events begin.
	scanHeadID = `{"id":"`
	// scanSub is the longest subscription id that is scanned; NIP-01 allows 64 characters.
	scanSub = 256
	// scanMembers is how many fields of an event are passed over in search of its id.
	scanMembers = 8
)

// Scan reads the head of an EVENT frame up to the event's id and sets m as wire.Parse does, at a
// fraction of its cost and whatever the event's length. It returns false, and m means nothing, for
// other messages and on any doubt: white space around the event, an escape in the subscription or
// in a field's name, or many fields before the id. The caller then asks wire.Parse.
//
// What follows the id is not read, so that m.Event is only where an event should be, and may be
// none, and that m.Dated is false. What holds is this: every reading of the whole frame,
// wire.Parse's and corpus.ParseEvent's of m.Event, finds m.ID, or else no event with an id.
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

// scanEvent finds the id among an object's own fields. It walks over the fields before the id
// instead of looking for `"id":"`, which may as well be the end of a longer key, a field of an
// object within, or part of another event in the content.
func scanEvent(event []byte) (id corpus.ID, ok bool) {
	const end = len(scanHeadID) + 2*len(id)
	if len(event) > end+1 && string(event[:len(scanHeadID)]) == scanHeadID && event[end] == '"' && (event[end+1] == ',' || event[end+1] == '}') {
		return corpus.ParseID(event[len(scanHeadID):end]) // nearly always
	}
	return scanFields(event)
}

func scanFields(event []byte) (id corpus.ID, ok bool) {
	s := scan.Scanner{Src: event}
	s.Expect('{')
	for range scanMembers {
		key, escaped := s.Raw()
		s.Expect(':')
		if s.Err != nil || escaped { // perhaps another spelling of "id"
			return id, false
		}
		if string(key) == "id" {
			digits, _ := s.Raw()
			if next := s.Peek(); s.Err != nil || next != ',' && next != '}' {
				return id, false
			}
			return corpus.ParseID(digits)
		}
		s.Skip()
		s.Expect(',')
	}
	return id, false
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
