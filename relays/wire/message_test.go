package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

var (
	idA = strings.Repeat("a1", 32)
	idB = strings.Repeat("b2", 32)
)

func event(id, content string) string {
	quoted, _ := json.Marshal(content)
	return `{"id":"` + id + `","pubkey":"` + idB + `","created_at":1780000000,"kind":1,"tags":[["e","` + idB + `","","reply"],["p","` + idA +
		`"]],"content":` + string(quoted) + `,"sig":"` + strings.Repeat("c3", 64) + `"}`
}

// parsed is a Message in a form that a table can hold.
type parsed struct {
	typ                      Type
	sub, id, reason, payload string
	accepted                 bool
	event                    string
}

func parse(frame string) parsed {
	var m Message
	Parse([]byte(frame), &m)
	p := parsed{typ: m.Type, sub: string(m.Sub), reason: string(m.Reason), payload: string(m.Payload), accepted: m.Accepted, event: string(m.Event)}
	if m.HasID {
		p.id = hex.EncodeToString(m.ID[:])
	}
	return p
}

func TestParseRecognisesEveryMessage(t *testing.T) {
	plain := event(idA, "hello")
	embedding := event(idA, `{"id":"`+idB+`"} and \ and "`)
	for _, c := range []struct {
		name, frame string
		want        parsed
	}{
		{"EVENT", `["EVENT","s",` + plain + `]`, parsed{typ: Event, sub: "s", id: idA, event: plain}},
		{"an event that embeds another in its content", `["EVENT","s",` + embedding + `]`, parsed{typ: Event, sub: "s", id: idA, event: embedding}},
		{"white space everywhere", " [ \"EVENT\" , \"s\" ,\n" + `{ "kind" : 1 , "id" : "` + idA + `" }` + "\t] ",
			parsed{typ: Event, sub: "s", id: idA, event: `{ "kind" : 1 , "id" : "` + idA + `" }`}},
		{"id last, after an object with an id of its own", `["EVENT","s",{"x":{"id":"` + idB + `"},"y":["id",":","` + idB + `"],"id":"` + idA + `"}]`,
			parsed{typ: Event, sub: "s", id: idA, event: `{"x":{"id":"` + idB + `"},"y":["id",":","` + idB + `"],"id":"` + idA + `"}`}},
		{"two ids are none", `["EVENT","s",{"id":"` + idA + `","id":"` + idB + `"}]`,
			parsed{typ: Event, sub: "s", event: `{"id":"` + idA + `","id":"` + idB + `"}`}},
		{"a second id spelt with escapes", `["EVENT","s",{"id":"` + idA + `","\u0069d":"` + idB + `"}]`,
			parsed{typ: Event, sub: "s", event: `{"id":"` + idA + `","\u0069d":"` + idB + `"}`}},
		{"upper-case id", `["EVENT","s",{"id":"` + strings.ToUpper(idA) + `"}]`, parsed{typ: Event, sub: "s", event: `{"id":"` + strings.ToUpper(idA) + `"}`}},
		{"id of another type", `["EVENT","s",{"id":7}]`, parsed{typ: Event, sub: "s", event: `{"id":7}`}},
		{"empty event", `["EVENT","s",{}]`, parsed{typ: Event, sub: "s", event: `{}`}},
		{"subscription id with escapes", `["EOSE","a\u0062\"\/"]`, parsed{typ: EOSE, sub: `ab"/`}},
		{"label with escapes", `["\u0045OSE","s"]`, parsed{typ: EOSE, sub: "s"}},
		{"accepted", `["OK","` + idA + `",true,""]`, parsed{typ: OK, id: idA, accepted: true}},
		{"refused", `["OK","` + idA + `",false,"blocked: \"no\""]`, parsed{typ: OK, id: idA, reason: `blocked: \"no\"`}},
		{"OK without an id", `["OK","",false,"invalid: what?"]`, parsed{typ: OK, reason: "invalid: what?"}},
		{"OK without a reason", `["OK","` + idA + `",true]`, parsed{typ: OK, id: idA, accepted: true}},
		{"EOSE", `["EOSE","s"]`, parsed{typ: EOSE, sub: "s"}},
		{"CLOSED", `["CLOSED","s","error: shut down"]`, parsed{typ: Closed, sub: "s", reason: "error: shut down"}},
		{"NOTICE", `["NOTICE","rate-limited: slow down"]`, parsed{typ: Notice, reason: "rate-limited: slow down"}},
		{"AUTH", `["AUTH","challenge"]`, parsed{typ: Auth, payload: "challenge"}},
		{"COUNT", `["COUNT","s",{"count":238,"approximate":true}]`, parsed{typ: Count, sub: "s", payload: `{"count":238,"approximate":true}`}},
		{"NEG-MSG", `["NEG-MSG","s","6100"]`, parsed{typ: NegMsg, sub: "s", payload: "6100"}},
		{"NEG-ERR", `["NEG-ERR","s","blocked: too many"]`, parsed{typ: NegErr, sub: "s", reason: "blocked: too many"}},
		{"an element too many", `["EOSE","s",{"took":1}]`, parsed{typ: EOSE, sub: "s"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(c.frame); got != c.want {
				t.Errorf("%s\n got %+v\nwant %+v", c.frame, got, c.want)
			}
		})
	}
}

func TestParseCallsAnythingElseUnknown(t *testing.T) {
	good := `["EVENT","s",` + event(idA, "hello") + `]`
	frames := []string{
		"", " ", "[", "[]", "null", "7", `"EVENT"`, `{"EVENT":1}`, `["HELLO","s"]`, `["event","s",{}]`, `["EVENT"]`, `["EVENT","s"]`, `["EVENT","s",[]]`,
		`["EVENT",7,{}]`, `["EVENT","s",{"id":"` + idA + `",}]`, `["EVENT","s",{,}]`, `["EVENT","s",{"a":01}]`, `["EVENT","s",{"a":1.}]`, `["EVENT","s",{"a":tru}]`,
		`["EVENT","s",{"a":"\x"}]`, `["EVENT","s",{"a":"\u12g4"}]`, "[\"EVENT\",\"s\",{\"a\":\"\\u\x10234\"}]", "[\"EVENT\",\"s\",{\"a\":\"line\nbreak\"}]",
		`["OK",7,true,""]`, `["OK","` + idA + `","true",""]`, `["OK","` + idA + `",true,7]`, `["EOSE"]`, `["EOSE",null]`, `["NOTICE",{}]`, `["COUNT","s",7]`,
		good + "x", good + good, `["EVENT","s",{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}]`, strings.Repeat("[", 100_000),
	}
	for i := range good { // every truncation
		frames = append(frames, good[:i])
	}
	for _, frame := range frames {
		if got := parse(frame); got != (parsed{}) {
			t.Errorf("%.200q is taken for %+v", frame, got)
		}
	}
}

func TestReasonTextDecodesAndBounds(t *testing.T) {
	m := Message{Reason: []byte(`a \"b\"\n\u00e9`)}
	if got := m.ReasonText(); got != "a \"b\"\né" {
		t.Errorf("got %q", got)
	}
	m.Reason = bytes.Repeat([]byte("é"), 4000)
	if got := m.ReasonText(); len(got) > 1024+len("…") || strings.Trim(got, "é") != "…" {
		t.Errorf("%d bytes: %q", len(got), got)
	}
	if got := (&Message{}).ReasonText(); got != "" {
		t.Errorf("no reason reads %q", got)
	}
}

func TestCountedReadsTheCount(t *testing.T) {
	for frame, want := range map[string]int64{`["COUNT","s",{"count":238}]`: 238, `["COUNT","s",{"count":-1}]`: -1, `["COUNT","s",{"n":1}]`: -1, `["COUNT","s",{"count":"2"}]`: -1,
		`["COUNT","s",{"count":7,"approximate":true}]`: 7} {
		var m Message
		Parse([]byte(frame), &m)
		n, approximate, ok := m.Counted()
		if ok != (want >= 0) || ok && n != want || approximate != strings.Contains(frame, "approximate") {
			t.Errorf("%s counts %d, approximate %v, %v", frame, n, approximate, ok)
		}
	}
}

func TestParseAllocatesNothing(t *testing.T) {
	for _, frame := range messages() {
		data := []byte(frame)
		var m Message
		if n := testing.AllocsPerRun(100, func() { Parse(data, &m) }); n != 0 {
			t.Errorf("%v allocations for %s", n, frame)
		}
	}
}

// messages returns one frame of each type.
func messages() []string {
	return []string{
		`["EVENT","sub",` + event(idA, strings.Repeat(`a note with "quotes" `, 10)) + `]`, `["OK","` + idA + `",true,""]`, `["EOSE","sub"]`, `["CLOSED","sub","error: x"]`,
		`["NOTICE","text"]`, `["AUTH","challenge"]`, `["COUNT","sub",{"count":1}]`, `["NEG-MSG","sub","6100"]`, `["NEG-ERR","sub","closed: x"]`,
	}
}

// FuzzParse holds Parse against encoding/json.
func FuzzParse(f *testing.F) {
	for _, frame := range messages() {
		f.Add([]byte(frame))
	}
	for _, frame := range []string{
		` [ "EVENT" , "s" , { "x" : { "id" : "` + idB + `" } , "id" : "` + idA + `" } ] `, `["EVENT","\u0073",{"\u0069d":"` + idA + `"}]`,
		`["EVENT","s",{"id":"` + idA + `","id":"` + idA + `"}]`, `["EVENT","s",{"content":"{\"id\":\"` + idB + `\"}","id":"` + idA + `"}]`,
		`["OK","` + idA + `",true]`, `["OK","",false,"\ud83d\ude00"]`, `["EOSE","\ud83d"]`, `["EVENT","s",{"a":-0.5e+7,"b":[],"c":[{},[null,true,false]]}]`,
		"[\"EOSE\",\"\xff\\n\"]", `["EOSE","s",1,2]`, `["EOSE","s",]`, `["CLOSED","s"]`,
	} {
		f.Add([]byte(frame))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		want := oracle(frame)
		got := parse(string(frame))
		var m Message
		switch Parse(frame, &m); {
		case (m.Fault == NotUTF8) != !utf8.Valid(frame), (m.Fault == WrongField) != (m.Field != ""), m.Fault == NotJSON && json.Valid(frame):
			t.Errorf("%q: fault %v %v", frame, m.Fault, m.Field)
		case m.Type != Unknown && m.Fault != Sound && m.Fault != NotUTF8 && m.Fault != WrongField:
			t.Errorf("%q: %v with fault %v", frame, m.Type, m.Fault)
		}
		// A subscription id that is not UTF-8 stays as it was sent; the oracle cannot say that.
		got.sub, got.payload = strings.ToValidUTF8(got.sub, "\ufffd"), strings.ToValidUTF8(got.payload, "\ufffd")
		want.sub, want.payload = strings.ToValidUTF8(want.sub, "\ufffd"), strings.ToValidUTF8(want.payload, "\ufffd")
		squeeze := func(s string) string {
			for strings.Contains(s, "\ufffd\ufffd") {
				s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
			}
			return s
		}
		got.sub, got.payload, want.sub, want.payload = squeeze(got.sub), squeeze(got.payload), squeeze(want.sub), squeeze(want.payload)
		if got != want {
			t.Errorf("%q\n got %+v\nwant %+v", frame, got, want)
		}
	})
}

// oracle reads a message with encoding/json, slowly.
func oracle(frame []byte) (p parsed) {
	var parts []json.RawMessage
	if json.Unmarshal(frame, &parts) != nil || len(parts) == 0 {
		return parsed{}
	}
	for _, part := range parts {
		if tooDeep(part) {
			return parsed{}
		}
	}
	ok := true
	text := func(i int) string {
		var s *string
		if i >= len(parts) || json.Unmarshal(parts[i], &s) != nil || s == nil {
			ok = false
			return ""
		}
		return *s
	}
	reason := func(i int) string {
		if i >= len(parts) || text(i) == "" && !ok {
			return ""
		}
		return string(parts[i][1 : len(parts[i])-1])
	}
	object := func(i int) string {
		if i >= len(parts) || parts[i][0] != '{' {
			ok = false
			return ""
		}
		return string(parts[i])
	}
	label := text(0)
	for typ, name := range typeNames {
		if typ > 0 && name == label {
			p.typ = Type(typ)
		}
	}
	switch p.typ {
	case Unknown:
		return parsed{}
	case Event:
		p.sub, p.event = text(1), object(2)
		if ok {
			p.id = oracleID(parts[2])
		}
	case OK:
		p.id = lowerHex(text(1))
		ok = ok && len(parts) > 2 && (string(parts[2]) == "true" || string(parts[2]) == "false")
		p.accepted = ok && string(parts[2]) == "true"
		p.reason = reason(3)
	case EOSE:
		p.sub = text(1)
	case Closed, NegErr:
		p.sub, p.reason = text(1), reason(2)
	case Notice:
		p.reason = reason(1)
	case Auth:
		p.payload = text(1)
	case Count:
		p.sub, p.payload = text(1), object(2)
	case NegMsg:
		p.sub, p.payload = text(1), text(2)
	}
	if !ok {
		return parsed{}
	}
	return p
}

// oracleID walks the tokens of an object to its own keys, which a map would merge.
func oracleID(object []byte) string {
	d := json.NewDecoder(bytes.NewReader(object))
	d.Token()
	id, ids := "", 0
	for d.More() {
		key, _ := d.Token()
		var value any
		d.Decode(&value)
		if key == "id" {
			ids++
			text, _ := value.(string)
			id = lowerHex(text)
		}
	}
	if ids != 1 {
		return ""
	}
	return id
}

func lowerHex(s string) string {
	if raw, err := hex.DecodeString(s); err != nil || len(raw) != 32 || strings.ToLower(s) != s {
		return ""
	}
	return s
}

// tooDeep applies Parse's limit: 64 levels in a value, or in a member of an event.
func tooDeep(value []byte) bool {
	d := json.NewDecoder(bytes.NewReader(value))
	depth, deepest := 0, 0
	for {
		token, err := d.Token()
		if err == io.EOF {
			return deepest > 64 // approximate at the boundary by a level: fuzzed inputs do not sit there
		}
		if err != nil {
			return true
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
			deepest = max(deepest, depth)
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

func BenchmarkParse(b *testing.B) {
	frames := messages()
	tags := strings.Repeat(`["p","`+idB+`","wss://relay.example.com"],`, 500)
	special := map[int]string{len(frames): "-500-tags", len(frames) + 1: "-Japanese"}
	frames = append(frames, strings.Replace(frames[0], `"tags":[`, `"tags":[`+tags, 1), `["EVENT","sub",`+event(idA, strings.Repeat("日本語の文章です。", 10))+`]`)
	for i, frame := range frames {
		data := []byte(frame)
		var m Message
		Parse(data, &m)
		name := m.Type.String() + special[i]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				Parse(data, &m)
			}
		})
	}
}

func TestParseReadsTheTimeOfTheEventItself(t *testing.T) {
	for _, c := range []struct {
		event string
		at    int64
		dated bool
	}{
		{event(idA, `"created_at":99`), 1780000000, true},
		{`{"created_at":0}`, 0, true},
		{`{"created_at": -5 }`, -5, true},
		{`{"x":{"created_at":7},"content":"\"created_at\":8","created_at":9}`, 9, true},
		{`{"created_at":1,"created_at":2}`, 0, false},
		{`{"created_at":1.5}`, 0, false},
		{`{"created_at":1e9}`, 0, false},
		{`{"created_at":"1"}`, 0, false},
		{`{"created_at":9223372036854775807}`, 0, false},
		{`{"created_at":null}`, 0, false},
		{`{}`, 0, false},
	} {
		var m Message
		Parse([]byte(`["EVENT","s",`+c.event+`]`), &m)
		if m.Type != Event || m.CreatedAt != c.at || m.Dated != c.dated {
			t.Errorf("%.120s: type %v, %d, %v", c.event, m.Type, m.CreatedAt, m.Dated)
		}
	}
}

func TestReasonPrefix(t *testing.T) {
	for text, want := range map[string]string{
		"blocked: not on the list":             "blocked",
		"rate-limited: slow down":              "rate-limited",
		"error":                                "other",
		"":                                     "other",
		": nothing before":                     "other",
		"Blocked: capitals":                    "other",
		"\x1b[31mred: escape":                  "other",
		"averyveryveryverylongprefixindeed: x": "other",
	} {
		if got := ReasonPrefix([]byte(text)); got != want {
			t.Errorf("ReasonPrefix(%q) = %q, want %q", text, got, want)
		}
	}
}
