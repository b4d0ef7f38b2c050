package prepare

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"relaybench/corpus"
)

// found reads a text as a preparation does, and returns the ids of the genuine events in it, in
// their order.
func found(t testing.TB, text []byte) (ids []corpus.ID, bad []corpus.Failure, copied int, err error) {
	t.Helper()
	o, err := Options{}.filled()
	if err != nil {
		t.Fatal(err)
	}
	pl := &pipeline{options: &o, seen: newTextSet()}
	s := newSplitter(bytes.NewReader(text))
	for {
		one, _, err := s.next(nil)
		if err == io.EOF {
			return ids, bad, copied, nil
		}
		if err != nil {
			return ids, bad, copied, err
		}
		b := &batch{pl: pl}
		b.parseText(one, place{line: s.at})
		for i := range b.items {
			it := &b.items[i]
			switch {
			case it.drop == DropUnparseable:
				bad = append(bad, corpus.Failure{Line: it.at.line, Why: it.why})
				continue
			case it.drop != Kept:
				t.Fatalf("dropped as %s: %q", it.drop, one)
			case it.badID:
				t.Fatalf("a wrong id: %q", it.line)
			}
			if it.copied {
				copied++
			}
			ids = append(ids, it.event.ID)
		}
	}
}

// doubled is a row as psql's COPY writes it.
func doubled(text []byte) []byte { return bytes.ReplaceAll(text, []byte(`\`), []byte(`\\`)) }

func indented(text []byte, by string) []byte {
	var out bytes.Buffer
	if err := json.Indent(&out, text, "", by); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// mixtureEvents have what trips a reader of quotes, brackets and backslashes in their content.
func mixtureEvents() []corpus.Event {
	var events []corpus.Event
	for i, content := range []string{"", `say "hi`, `say "hi" {`, `}{`, `] "`, `C:\new "\`, "a\nb\t", `\"`, `\\"}`, `{"id":"x"}`, "[\"EVENT\"]\n{", "\u2028 é 😀"} {
		events = append(events, signed(corpus.Event{CreatedAt: int64(1_700_000_000 + i), Kind: 1, Tags: []corpus.Tag{{"t", content}, {"e", "x", "y"}, {}}, Content: content}))
	}
	return append(events, someEvents(20)...)
}

func TestEveryMixtureGivesAllEvents(t *testing.T) {
	events := mixtureEvents()
	p := texts(events...)
	for name, c := range map[string]struct {
		text   []byte
		n      int // of the events, in their order
		bad    []corpus.Failure
		copied int
	}{
		"lines with spread out objects":        {ndjson(p[0], indented(p[1], "  "), p[2], indented(p[3], ""), indented(p[4], "\t"), p[5]), 6, nil, 0},
		"spread out first":                     {ndjson(indented(p[0], " "), p[1], p[2]), 3, nil, 0},
		"lines with an array":                  {ndjson(p[0], slices.Concat([]byte("["), p[1], []byte(","), p[2], []byte("]")), p[3]), 4, nil, 0},
		"arrays, one a line":                   {ndjson(jsonArray(p[0], p[1]), []byte("[]"), jsonArray(p[2])), 3, nil, 0},
		"an array, then lines":                 {ndjson(jsonArray(p[0], p[1]), p[2], p[3]), 4, nil, 0},
		"arrays behind each other":             {slices.Concat(jsonArray(p[0]), jsonArray(p[1]), p[2], jsonArray(p[3])), 4, nil, 0},
		"arrays in an array":                   {slices.Concat([]byte("["), jsonArray(p[0], p[1]), []byte(","), jsonArray(p[2]), []byte("]")), 3, nil, 0},
		"a spread out array":                   {indented(jsonArray(p[:6]...), "    "), 6, nil, 0},
		"an array without commas":              {slices.Concat([]byte("["), p[0], p[1], []byte("\n"), p[2], []byte("]")), 3, nil, 0},
		"an array with a comma too many":       {slices.Concat([]byte("["), p[0], []byte(",]")), 1, nil, 0},
		"lines that end in commas":             {ndjson(append(p[0], ','), append(p[1], ','), p[2]), 3, nil, 0},
		"messages":                             {ndjson([]byte(`["EVENT","s",`+string(p[0])+`]`), []byte(`[ "EVENT" , `+string(p[1])+` ]`), p[2]), 3, nil, 0},
		"messages of all kinds":                {ndjson([]byte(`["NOTICE","hi"]`), []byte(`["EVENT","s",`+string(p[0])+`]`), []byte(`["EOSE","s"]`)), 1, []corpus.Failure{{Line: 1, Why: `a message "NOTICE" without an event`}, {Line: 3, Why: `a message "EOSE" without an event`}}, 0},
		"messages in an array":                 {jsonArray([]byte(`["EVENT","s",`+string(p[0])+`]`), []byte(`["EVENT",`+string(p[1])+`]`)), 2, nil, 0},
		"messages without a break":             {[]byte(`["EVENT","s",` + string(p[0]) + `]["EVENT","s",` + string(p[1]) + `]`), 2, nil, 0},
		"records of RFC 7464":                  {slices.Concat([]byte("\x1e"), p[0], []byte("\n\x1e"), p[1], []byte("\n")), 2, nil, 0},
		"a record cut":                         {slices.Concat([]byte("\x1e"), p[0], []byte("\n\x1e"), p[1][:300], []byte("\x1e"), p[1], []byte("\n")), 2, []corpus.Failure{{Line: 2, Why: "at byte 300: string without end"}}, 0},
		"an object of events":                  {[]byte(`{"events":[` + string(p[0]) + "," + string(p[1]) + `]}`), 2, nil, 0},
		"an object of events, spread out":      {indented([]byte(`{"events":[`+string(p[0])+","+string(p[1])+`],"more":{"n":[1]}}`), "  "), 2, nil, 0},
		"an object of events behind a count":   {indented([]byte(`{"n":2,"events":[`+string(p[0])+","+string(p[1])+`]}`), "\t"), 2, nil, 0},
		"objects of events, one a line":        {ndjson([]byte(`{"events":[`+string(p[0])+`]}`), []byte(`{"events":[]}`), []byte(`{ "events" : [`+string(p[1])+`],"n":1}`), p[2]), 3, nil, 0},
		"rows of COPY":                         {ndjson(doubled(p[0]), doubled(p[1]), doubled(p[2]), doubled(p[3]), doubled(p[4]), doubled(p[5]), doubled(p[6]), doubled(p[7])), 8, nil, 6},
		"rows of COPY and their end":           {ndjson(doubled(p[0]), doubled(p[1]), []byte(`\.`)), 2, []corpus.Failure{{Line: 3, Why: "no JSON object"}}, 1},
		"a byte order mark in the midst":       {slices.Concat([]byte("\ufeff"), ndjson(p[0]), []byte("\ufeff"), ndjson(p[1])), 2, nil, 0},
		"a log's beginning before each":        {ndjson(append([]byte("[INFO] "), p[0]...), append([]byte("2026-01-01 got "), p[1]...)), 2, []corpus.Failure{{Line: 1, Why: "no JSON object"}, {Line: 2, Why: "no JSON object"}}, 0},
		"text behind an event":                 {ndjson(append(p[0], " and so on"...), p[1]), 2, []corpus.Failure{{Line: 1, Why: "no JSON object"}}, 0},
		"what is no event, and where, and why": {ndjson(p[0], []byte("\n\n{\"kind\":1}"), p[1]), 2, []corpus.Failure{{Line: 4, Why: `at byte 10: field "id" is missing`}}, 0},
		"an event in a message that is none":   {ndjson(p[0], []byte(`["EVENT","s",{"kind":1}]`)), 1, []corpus.Failure{{Line: 2, Why: `a message "EVENT" without an event`}}, 0},
		"a spread out object that is no event": {ndjson([]byte("{\n\"a\": [\n[\n1\n],\n{\n\"b\": 1\n}\n]\n}"), p[0]), 1, []corpus.Failure{{Line: 1, Why: `at byte 30: field "id" is missing`}}, 0},
		"lines cut, each before another":       {ndjson(p[0][:150], p[0], p[1][:230], p[1], []byte(`{"id":"x",`), p[2], []byte(`["EVENT","s",`), p[3], p[4]), 5, nil, 0},
		"a cut line before a spread out array": {ndjson([]byte(`{"tags":[["t"],`), indented(jsonArray(p[1], p[2]), " "), p[0]), 1, []corpus.Failure{{Line: 1, Why: `at byte 19: "\"" expected`}}, 0},
		"a cut line before a row of COPY":      {ndjson([]byte(`{"tags":`), doubled(p[2]), p[4]), 2, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var want []corpus.ID
			if name == "a cut line before a row of COPY" {
				want = []corpus.ID{events[2].ID, events[4].ID}
			} else {
				for i := range c.n {
					want = append(want, events[i].ID)
				}
			}
			got, bad, copied, err := found(t, c.text)
			if err != nil || !slices.Equal(got, want) || copied != c.copied {
				t.Fatalf("%d events of %d, %d copied, %v, not %v\n%s", len(got), len(want), copied, err, bad, c.text)
			}
			if c.bad != nil && !slices.Equal(bad, c.bad) || c.bad == nil && len(bad) > 0 && !strings.HasPrefix(name, "lines cut") && !strings.HasPrefix(name, "a cut") {
				t.Errorf("unparseable: %+v, not %+v", bad, c.bad)
			}
		})
	}
}

// rubbish are lines that cost no event on another.
func rubbish(p [][]byte) []string {
	return []string{"}{", "]", "[", "{", "}", `"`, `\`, `{"a":`, `{"a":[`, `{"a":[{`, "hello", `["`, `["EVENT","s",`, `{"events":[`, `{"events":[],`, "null", `{"a`, `{"a\`, "\x00\x7f", "[INFO] x",
		string(p[0][:100]), string(p[1][:230]), string(p[2][:250]), string(p[3][:len(p[3])-100]), string(p[4][5:])}
}

// FuzzMixture lays events out in every form, one behind another, with rubbish between them, as its
// input says: every one must be found.
func FuzzMixture(f *testing.F) {
	events := mixtureEvents()
	p := texts(events...)
	junk := rubbish(p)
	for i := range 40 {
		f.Add([]byte{byte(i), byte(i / 2), byte(3 * i), 17, 250, byte(7 * i), 1})
	}
	for i := range junk {
		for form := range byte(16) {
			f.Add([]byte{200, byte(i), form, 0, 200, byte(i), form})
		}
	}
	f.Fuzz(func(t *testing.T, layout []byte) {
		if len(layout) > 60 {
			t.Skip("longer than tells anything")
		}
		var text bytes.Buffer
		var want []corpus.ID
		next := func() []byte {
			i := len(want) % len(p)
			want = append(want, events[i].ID)
			return p[i]
		}
		trash, rows, loose := false, false, false
		for i := 0; i < len(layout); i++ {
			switch form := layout[i]; {
			case form >= 200 && i+1 < len(layout):
				i++
				trash = true
				text.WriteString(junk[int(layout[i])%len(junk)] + "\n")
			default:
				switch form % 16 {
				case 0:
					fmt.Fprintf(&text, "%s\n", next())
				case 1:
					loose = true
					fmt.Fprintf(&text, "%s\n", indented(next(), "  "))
				case 2:
					loose = true
					fmt.Fprintf(&text, "%s\n", indented(next(), ""))
				case 3:
					fmt.Fprintf(&text, "[%s,%s]\n", next(), next())
				case 4:
					loose = true
					fmt.Fprintf(&text, "%s\n", indented(jsonArray(next(), next()), "\t"))
				case 5:
					fmt.Fprintf(&text, "[\"EVENT\",\"s\",%s]\n", next())
				case 6:
					fmt.Fprintf(&text, "[\"EVENT\", %s]\r\n", next())
				case 7:
					fmt.Fprintf(&text, "\x1e%s\n", next())
				case 8:
					fmt.Fprintf(&text, "{\"events\":[%s,%s]}\n", next(), next())
				case 9:
					loose = true
					fmt.Fprintf(&text, "{\"events\": [\n%s,\n%s\n], \"n\": 2}\n", next(), next())
				case 10:
					fmt.Fprintf(&text, "{\"n\":1,\"events\":[%s]}\n", next())
				case 11:
					loose = true
					fmt.Fprintf(&text, "%s%s\n", next(), next())
				case 12:
					fmt.Fprintf(&text, "%s,\r\n", next())
				case 13:
					fmt.Fprintf(&text, "\ufeff%s\n\n", next())
				case 14:
					fmt.Fprintf(&text, "log: %s end\n", next())
				case 15:
					rows = true
					fmt.Fprintf(&text, "%s\n", doubled(next()))
				}
			}
		}
		got, bad, _, err := found(t, text.Bytes())
		// Nothing is lost silently. Behind a bracket without its end, a row of COPY may be lost,
		// since its own brackets say nothing, and so may what is not one value a line.
		if trash && (errors.Is(err, ErrTruncated) || (rows || loose) && err == nil && len(bad) > 0) {
			return
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d events of %d: %v\n%q", len(got), len(want), err, text.Bytes())
		}
	})
}
