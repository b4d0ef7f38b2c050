package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"relaybench/corpus/scan"
)

const (
	hex64  = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	hex128 = hex64 + hex64
)

// eventText is a well-formed event with one piece replaced.
func eventText(old, replacement string) string {
	const text = `{"id":"` + hex64 + `","pubkey":"` + hex64 + `","created_at":1700000000,"kind":1,"tags":[["e","x"],[]],"content":"hi","sig":"` + hex128 + `"}`
	return strings.Replace(text, old, replacement, 1)
}

func TestParseEventAcceptsWhatNIP01Allows(t *testing.T) {
	for name, text := range map[string]string{
		"canonical":              eventText("", ""),
		"white space":            eventText(`"kind":1`, " \"kind\" :\t1\n"),
		"another order of keys":  `{"sig":"` + hex128 + `","tags":[],` + strings.Replace(eventText(`"tags":[["e","x"],[]],`, ""), `,"sig":"`+hex128+`"`, "", 1)[1:],
		"unknown fields":         eventText(`"kind":1`, `"x":[{"a":[-1.5e+3,true,false,null,"\ud83d\ude00"]},{}],"kind":1`),
		"the highest kind":       eventText(`"kind":1`, `"kind":65535`),
		"created_at zero":        eventText("1700000000", "0"),
		"escapes":                eventText("hi", `\"\\\/\b\f\n\r\t\u0000\u00e9\uD83D\uDE00`),
		"a surrogate by itself":  eventText("hi", `\ud83d and \ude00`),
		"control chars escaped":  eventText("hi", `\u0001\u001f`),
		"text beyond the BMP":    eventText("hi", "😀 \u2028 العربية"),
		"a key with an escape":   eventText(`"kind"`, `"\u006bind"`),
		"an event inside it":     eventText("hi", `{\"id\":\"`+hex64+`\"}`),
		"two unknown equal keys": eventText(`"kind":1`, `"x":1,"x":2,"kind":1`),
	} {
		t.Run(name, func(t *testing.T) {
			e, err := ParseEvent([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			compareWithJSON(t, []byte(text), &e)
		})
	}
}

func TestParseEventRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, message string }{
		"nothing":                    {"", `"{" expected`},
		"an array":                   {"[]", `"{" expected`},
		"text after it":              {eventText("", "") + "x", "text after the value"},
		"a missing field":            {eventText(`"kind":1,`, ""), `"kind" is missing`},
		"a field twice":              {eventText(`"kind":1`, `"kind":1,"kind":1`), `"kind" twice`},
		"upper-case digits":          {eventText("aabbcc", "AABBCC"), "lower-case hexadecimal"},
		"a short id":                 {eventText("001122", "1122"), "64 lower-case"},
		"a fraction":                 {eventText(`"kind":1`, `"kind":1.0`), "kind is not an integer"},
		"an exponent":                {eventText("1700000000", "17e8"), "created_at is not an integer"},
		"a negative number":          {eventText("1700000000", "-1"), "created_at is not an integer"},
		"a leading zero":             {eventText("1700000000", "01"), "created_at is not an integer"},
		"an overflowing number":      {eventText("1700000000", "99999999999999999999"), "created_at is over"},
		"a kind too high":            {eventText(`"kind":1`, `"kind":65536`), "kind is over 65535"},
		"a number as text":           {eventText(`"kind":1`, `"kind":"1"`), "kind is not an integer"},
		"null in a tag":              {eventText(`"x"`, "null"), `"\"" expected`},
		"a tag that is text":         {eventText(`[]]`, `"a"]`), `"[" expected`},
		"a raw newline":              {eventText("hi", "a\nb"), "control character"},
		"a raw newline behind a \\":  {eventText("hi", "a\\\nb"), "unknown escape"},
		"an unknown escape":          {eventText("hi", `\x41`), "unknown escape"},
		"a broken \\u":               {eventText("hi", `\u12g4`), `broken \u`},
		"bytes that are not UTF-8":   {eventText("hi", "\xff"), "not UTF-8"},
		"an encoded surrogate":       {eventText("hi", "\xed\xa0\x80"), "not UTF-8"},
		"a trailing comma":           {eventText(`"x"]`, `"x",]`), `"\"" expected`},
		"a skipped word":             {eventText(`"kind":1`, `"x":nil,"kind":1`), "value expected"},
		"a skipped bad number":       {eventText(`"kind":1`, `"x":01,"kind":1`), `"," expected`},
		"a skipped bad escape":       {eventText(`"kind":1`, `"x":"\q","kind":1`), "unknown escape"},
		"nesting without end":        {eventText(`"kind":1`, `"x":`+strings.Repeat("[", 1e6)), "nested deeper"},
		"an end inside an escape":    {`{"\`, "string without end"},
		"an end inside a \\u escape": {`{"\u00`, `broken \u`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseEvent([]byte(c.text))
			if err == nil || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("got error %v, want one that says %q", err, c.message)
			}
		})
	}
}

func TestParseEventTellsAMissingSignatureApart(t *testing.T) {
	for _, text := range []string{
		eventText(`,"sig":"`+hex128+`"`, ""), eventText(hex128, ""), eventText(hex128, hex64), eventText(`"`+hex128+`"`, "null"),
	} {
		if _, err := ParseEvent([]byte(text)); !errors.Is(err, ErrNoSignature) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// compareWithJSON takes encoding/json as the oracle for an accepted event.
func compareWithJSON(t *testing.T, text []byte, e *Event) {
	t.Helper()
	var fields map[string]json.RawMessage // keys exactly, unlike a struct
	if err := json.Unmarshal(text, &fields); err != nil {
		t.Fatalf("accepted what is not a JSON object: %v\n%s", err, text)
	}
	into := func(key string, v any) {
		if err := json.Unmarshal(fields[key], v); err != nil {
			t.Fatalf("%s: %v\n%s", key, err, text)
		}
	}
	var id, pubKey, sig, content string
	var createdAt int64
	var kind int
	var tags [][]string
	into("id", &id)
	into("pubkey", &pubKey)
	into("created_at", &createdAt)
	into("kind", &kind)
	into("tags", &tags)
	into("content", &content)
	into("sig", &sig)
	got := make([][]string, len(e.Tags))
	for i, tag := range e.Tags {
		got[i] = tag
	}
	if e.ID.String() != id || e.PubKey.String() != pubKey || e.Sig.String() != sig || e.CreatedAt != createdAt || e.Kind != kind ||
		e.Content != content || !reflect.DeepEqual(got, tags) {
		t.Fatalf("read %+v\nfrom %s", e, text)
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add([]byte(eventText("", "")))
	f.Add([]byte(eventText("hi", `\"\\\/\b\f\n\r\t\u0000\u00e9\uD83D\uDE00\ud83d\ud83d\ude00`)))
	f.Add([]byte(eventText(`"kind":1`, `"x":[{"a":[-1.5e+3,true,false,null]},{}],"kind":1`)))
	f.Add([]byte(eventText(`"x"`, `"\u0065","","\ud800"],["\u0065"],["-"`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := ParseEvent(text)
		if err != nil {
			return
		}
		compareWithJSON(t, text, &e)
		canonical := e.AppendJSON(nil)
		again, err := ParseEvent(canonical)
		if err != nil {
			t.Fatalf("%v in canonical %s", err, canonical)
		}
		if !reflect.DeepEqual(e, again) {
			t.Fatalf("%+v came back as %+v", e, again)
		}
		if twice := again.AppendJSON(nil); !bytes.Equal(canonical, twice) {
			t.Fatalf("not a fixpoint:\n%s\n%s", canonical, twice)
		}
		if !json.Valid(e.AppendSerialization(nil)) {
			t.Fatalf("serialized as %s", e.AppendSerialization(nil))
		}
		n := 0
		err = ScanTags(text, func(name, value []byte, elements int) {
			if tag := e.Tags[n]; elements != len(tag) || string(name) != tag.Name() || string(value) != tag.Value() {
				t.Fatalf("tag %q scanned as %q %q and %d elements", tag, name, value, elements)
			}
			n++
		})
		if err != nil || n != len(e.Tags) {
			t.Fatalf("scanned %d of %d tags, then %v", n, len(e.Tags), err)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	f.Add("a\u00e9\x00\"\\")
	f.Fuzz(func(t *testing.T, text string) {
		if back, err := scan.String(AppendString(nil, text)); utf8.ValidString(text) && (err != nil || back != text) {
			t.Fatalf("%q came back as %q, %v", text, back, err)
		}
	})
}

func TestAppendStringEscapesAsNIP01Says(t *testing.T) {
	got := string(AppendString(nil, "\"\\\n\r\t\b\f\x00\x1f/<>&\x7f\u2028é😀"))
	want := `"\"\\\n\r\t\b\f\u0000\u001f/<>&` + "\x7f\u2028é😀" + `"`
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEventsReadIntoTheSameMemoryAreReadAsAlone(t *testing.T) {
	var reader EventReader
	var texts [][]byte
	for _, tags := range [][]Tag{{{"e", "a\nb", "😀"}, {}, {"p"}}, {}, {{"t", "x"}}, slices.Repeat([]Tag{{"d", "", "y"}}, 100), {{`"\`}},
		{{"a", `],"content":"`, ","}, {`,"content":`, "content", ":"}}} {
		e := Event{CreatedAt: 5, Kind: 1, Tags: tags, Content: "\x01 \"long enough for more than one word\" é"}
		texts = append(texts, e.AppendJSON(nil))
	}
	for _, text := range texts {
		got, gotErr := reader.Read(text)
		want, err := ParseEvent(text)
		if err != nil || gotErr != nil || string(got.AppendJSON(nil)) != string(text) || len(got.Tags) != len(want.Tags) {
			t.Errorf("%v, %v: %+v, want %+v", err, gotErr, got, want)
		}
	}
}
