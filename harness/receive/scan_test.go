package receive

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"relaybench/corpus"
	"relaybench/relays/wire"
)

const (
	idA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	idB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// scanned are messages, and the id that the scan has to find; "" where it must leave the message to
// the full pass.
var scanned = []struct{ name, frame, id string }{
	{"canonical", `["EVENT","s",{"id":"` + idA + `","pubkey":"x","content":"c"}]`, idA},
	{"an event with an id and nothing else", `["EVENT","s",{"id":"` + idA + `"}]`, idA},
	{"empty subscription", `["EVENT","",{"id":"` + idA + `"}]`, idA},
	{"fields in the order of the alphabet", `["EVENT","s",{"content":"c","created_at":17,"id":"` + idA + `","kind":1}]`, idA},
	{"another event's text in the content", `["EVENT","s",{"content":"{\"id\":\"` + idB + `\"}","id":"` + idA + `"}]`, idA},
	{"another event in the content after the id", `["EVENT","s",{"id":"` + idA + `","content":"{\"id\":\"` + idB + `\"}"}]`, idA},
	{"another id in a field before", `["EVENT","s",{"other":{"id":"` + idB + `"},"id":"` + idA + `"}]`, idA},
	{"another id in the tags before", `["EVENT","s",{"tags":[["id","` + idB + `"]],"id":"` + idA + `"}]`, idA},
	{"a key that ends like an id", `["EVENT","s",{"x\"id":"` + idB + `","id":"` + idA + `"}]`, ""},
	{"a key in other spelling", `["EVENT","s",{"\u0069d":"` + idB + `","id":"` + idA + `"}]`, ""},
	{"a value that holds a key", `["EVENT","s",{"content":",","id":"` + idA + `"}]`, idA},
	{"an id that is a number, then an id", `["EVENT","s",{"id":5,"id":"` + idA + `"}]`, ""},
	{"two ids", `["EVENT","s",{"id":"` + idA + `","id":"` + idB + `"}]`, idA}, // no event with an id, says the full pass: see below
	{"white space within", `["EVENT","s",{"id": "` + idA + `"}]`, idA},
	{"white space before", ` ["EVENT","s",{"id":"` + idA + `"}]`, ""},
	{"white space behind", `["EVENT","s",{"id":"` + idA + `"}] `, ""},
	{"white space after the comma", `["EVENT", "s",{"id":"` + idA + `"}]`, ""},
	{"escape in the subscription", `["EVENT","s\"",{"id":"` + idA + `"}]`, ""},
	{"control character in the subscription", "[\"EVENT\",\"s\x01\",{\"id\":\"" + idA + "\"}]", ""},
	{"endless subscription", `["EVENT","` + strings.Repeat("s", 1000) + `",{"id":"` + idA + `"}]`, ""},
	{"upper-case digits", `["EVENT","s",{"id":"` + strings.ToUpper(idA) + `"}]`, ""},
	{"short id", `["EVENT","s",{"id":"` + idA[1:] + `"}]`, ""},
	{"long id", `["EVENT","s",{"id":"` + idA + `a"}]`, ""},
	{"id cut off", `["EVENT","s",{"id":"aaaa}]`, ""},
	{"no id", `["EVENT","s",{"content":"c"}]`, ""},
	{"empty event", `["EVENT","s",{}]`, ""},
	{"no event", `["EVENT","s"]`, ""},
	{"an array for an event", `["EVENT","s",["id","` + idA + `"]]`, ""},
	{"more elements", `["EVENT","s",{"id":"` + idA + `"},{}]`, idA},
	{"another message", `["OK","` + idA + `",true,"{}]`, ""},
	{"too many fields before the id", `["EVENT","s",{` + strings.Repeat(`"a":1,`, 20) + `"id":"` + idA + `"}]`, ""},
	{"nothing", ``, ""},
}

func TestScanFindsTheIdOrLeavesItToTheFullPass(t *testing.T) {
	for _, c := range scanned {
		t.Run(c.name, func(t *testing.T) {
			var m wire.Message
			ok := Scan([]byte(c.frame), &m)
			if ok != (c.id != "") {
				t.Fatalf("scanned: %v", ok)
			}
			if ok && corpus.ID(m.ID).String() != c.id {
				t.Errorf("found %x", m.ID)
			}
			agree(t, []byte(c.frame))
		})
	}
}

// agree asserts what Scan promises: whoever reads the whole frame finds what the scan found, or no
// event with an id.
func agree(t *testing.T, frame []byte) {
	t.Helper()
	var m, full wire.Message
	before := bytes.Clone(frame)
	if !Scan(frame, &m) {
		return
	}
	if !bytes.Equal(before, frame) {
		t.Fatal("the frame was changed")
	}
	wire.Parse(frame, &full)
	switch {
	case m.Type != wire.Event || !m.HasID:
		t.Fatalf("%q: scanned %+v", frame, m)
	case full.Type == wire.Unknown: // not well formed to its end
	case full.Type != wire.Event, !bytes.Equal(full.Sub, m.Sub), full.HasID && full.ID != m.ID, !bytes.HasPrefix(m.Event, full.Event):
		t.Fatalf("%q: scanned %q %x, the full pass found %v %q %x", frame, m.Sub, m.ID, full.Type, full.Sub, full.ID)
	}
	if e, err := corpus.ParseEvent(m.Event); err == nil && (e.ID != corpus.ID(m.ID) || full.Type != wire.Event || !full.HasID) {
		t.Fatalf("%q: scanned %x, parsed %v, the full pass found %v %x", frame, m.ID, e.ID, full.Type, full.ID)
	}
}

// FuzzScan looks for a frame in which the scan finds another id than the full pass.
func FuzzScan(f *testing.F) {
	for _, c := range scanned {
		f.Add([]byte(c.frame))
	}
	for _, e := range frames(signed(f, 2)) {
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		agree(t, frame)
		agree(t, fmt.Appendf(nil, `["EVENT","s",{%s}]`, frame))
		agree(t, fmt.Appendf(nil, `["EVENT","s",{%s,"id":"%s"}]`, frame, idA))
		agree(t, fmt.Appendf(nil, `["EVENT","s",{"content":"%s","id":"%s"%s}]`, frame, idA, frame))
	})
}
