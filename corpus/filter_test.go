package corpus

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestParseFilterKeepsEveryCondition(t *testing.T) {
	const text = `{"ids":["` + hex64 + `"],"authors":[],"kinds":[1,65535],"#E":[],"#e":["x","\n"],"since":0,"until":5,"limit":0}`
	f, err := ParseFilter([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(f.AppendJSON(nil)); got != text {
		t.Errorf("came back as %s", got)
	}
	if empty, err := ParseFilter([]byte(" { } ")); err != nil || !reflect.DeepEqual(empty, Filter{}) {
		t.Errorf("the empty filter is %+v, %v", empty, err)
	}
}

func TestParseFilterRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, message string }{
		"an unknown field":       {`{"search":"x"}`, `unknown filter field "search"`},
		"a long tag name":        {`{"#alt":["x"]}`, `unknown filter field "#alt"`},
		"a field twice":          {`{"limit":1,"limit":2}`, `"limit" twice`},
		"a negative limit":       {`{"limit":-1}`, "limit is not an integer"},
		"half an id":             {`{"ids":["0011"]}`, "64 lower-case"},
		"a list that is not one": {`{"kinds":1}`, `"[" expected`},
		"null":                   {`null`, `"{" expected`},
		"a number as tag value":  {`{"#e":[1]}`, `"\"" expected`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseFilter([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.message) {
				t.Fatalf("got error %v, want one that says %q", err, c.message)
			}
		})
	}
}

func TestFilterMatches(t *testing.T) {
	e := Event{ID: ID{1}, PubKey: PubKey{2}, CreatedAt: 100, Kind: 1, Tags: []Tag{{"t", "go"}, {"e", "x", "y"}, {"t"}, {}, {"tt", "z"}}}
	for text, want := range map[string]bool{
		`{}`:                           true,
		`{"since":100,"until":100}`:    true,
		`{"since":101}`:                false,
		`{"until":99}`:                 false,
		`{"kinds":[0,1]}`:              true,
		`{"kinds":[]}`:                 false,
		`{"ids":["` + hex64 + `"]}`:    false,
		`{"#t":["no","go"]}`:           true,
		`{"#t":[""]}`:                  false,
		`{"#t":[]}`:                    false,
		`{"#T":["go"]}`:                false,
		`{"#e":["y"]}`:                 false,
		`{"#e":["x"],"#t":["go"]}`:     true,
		`{"#e":["x"],"#t":["z"]}`:      false,
		`{"limit":0}`:                  true,
		`{"authors":[],"kinds":[1]}`:   false,
		`{"kinds":[1],"#t":["other"]}`: false,
	} {
		f, err := ParseFilter([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Matches(&e); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"ids":["` + hex64 + `"],"authors":["` + hex64 + `"],"kinds":[1],"#e":["x"],"#a":["\u0000"],"since":1,"until":2,"limit":3}`))
	f.Add([]byte(`{"\u0023e":[],"#\u0001":[""]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		filter, err := ParseFilter(text)
		if err != nil {
			return
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatalf("accepted %q: %v", text, err)
		}
		for _, tag := range filter.Tags {
			var values []string
			if err := json.Unmarshal(fields["#"+string(rune(tag.Name))], &values); err != nil || !reflect.DeepEqual(values, tag.Values) {
				t.Fatalf("#%c is %q in %s", tag.Name, tag.Values, text)
			}
		}
		canonical := filter.AppendJSON(nil)
		again, err := ParseFilter(canonical)
		if err != nil || !reflect.DeepEqual(filter, again) {
			t.Fatalf("%s came back as %+v, %v", canonical, again, err)
		}
		if twice := again.AppendJSON(nil); !bytes.Equal(canonical, twice) {
			t.Fatalf("not a fixpoint:\n%s\n%s", canonical, twice)
		}
	})
}
