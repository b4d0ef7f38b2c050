package results

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed results.schema.json
var schemaJSON []byte

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemaJSON))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("results.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("results.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON is the record as a validator and a mutation see it.
func asJSON(t *testing.T, r *Record) map[string]any {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any)
}

func TestRecordsMeetTheSchema(t *testing.T) {
	s := compileSchema(t)
	barest := NewRecorder(&Record{Corpus: Corpus{Fingerprint: strings.Repeat("0", 64)}}, nil)
	barest.SetRelay(Relay{Name: "a"})
	barest.Add(Measurement{Relay: "a", Scenario: "storage", Metric: "m", Better: None})
	barest.AddFinding(Finding{Code: "c", Verdict: Passed})
	barest.Update(func(*Record) {})
	bare := barest.Snapshot()
	for name, r := range map[string]*Record{"every field set": fullRecord(t), "the barest": &bare} {
		t.Run(name, func(t *testing.T) {
			if err := s.Validate(asJSON(t, r)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTheSchemaRefusesWhatIsNotARecord(t *testing.T) {
	s := compileSchema(t)
	first := func(r map[string]any, list string) map[string]any { return r[list].([]any)[0].(map[string]any) }
	for name, mutate := range map[string]func(map[string]any){
		"another schema id":         func(r map[string]any) { r["schema"] = "relaybench/results/1" },
		"an unknown field":          func(r map[string]any) { r["extra"] = true },
		"an unknown relay field":    func(r map[string]any) { first(r, "relays")["extra"] = true },
		"an unknown finding field":  func(r map[string]any) { first(r, "findings")["extra"] = true },
		"a missing list":            func(r map[string]any) { delete(r, "findings") },
		"a null list":               func(r map[string]any) { r["measurements"] = nil },
		"null trials":               func(r map[string]any) { first(r, "measurements")["trials"] = nil },
		"a trial that is text":      func(r map[string]any) { first(r, "measurements")["trials"] = []any{"1"} },
		"an unknown direction":      func(r map[string]any) { first(r, "measurements")["better"] = "faster" },
		"a scenario with a blank":   func(r map[string]any) { first(r, "measurements")["scenario"] = "ingest throughput" },
		"a histogram not in base64": func(r map[string]any) { first(r, "measurements")["histogram"] = "<b>" },
		"a negative sample count":   func(r map[string]any) { first(r, "measurements")["samples"] = -1 },
		"an unknown outcome":        func(r map[string]any) { first(r, "relays")["outcome"] = "fine" },
		"a failure without reason":  func(r map[string]any) { delete(first(r, "relays"), "reason") },
		"an unknown durability":     func(r map[string]any) { first(r, "relays")["durability"] = "safe" },
		"a short fingerprint":       func(r map[string]any) { r["corpus"].(map[string]any)["fingerprint"] = "abc" },
		"a kind that is no number":  func(r map[string]any) { r["corpus"].(map[string]any)["kinds"] = map[string]any{"note": 1} },
		"an unknown verdict":        func(r map[string]any) { first(r, "findings")["verdict"] = "ok" },
		"a finding without a code":  func(r map[string]any) { delete(first(r, "findings"), "code") },
		"a count that is text":      func(r map[string]any) { first(r, "findings")["counts"] = map[string]any{"n": "1"} },
		"an unknown layout":         func(r map[string]any) { first(r, "scenarios")["layout"] = "pie" },
		"an unknown role":           func(r map[string]any) { first(r, "metrics")["role"] = "hero" },
		"a date that is none":       func(r map[string]any) { r["startedAt"] = "yesterday" },
		"half a core":               func(r map[string]any) { r["environment"].(map[string]any)["cores"] = 0.5 },
		"a calibration without unit": func(r map[string]any) {
			delete(first(r, "calibration"), "unit")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := asJSON(t, fullRecord(t))
			mutate(r)
			if s.Validate(r) == nil {
				t.Error("it was accepted")
			}
		})
	}
}

// The schema and the Go types describe the same form: names, which fields may be absent, and JSON
// types.
func TestSchemaAndTypesAgree(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(schemaJSON, &root); err != nil {
		t.Fatal(err)
	}
	defs := root["$defs"].(map[string]any)
	var check func(at string, typ reflect.Type, schema map[string]any)
	check = func(at string, typ reflect.Type, schema map[string]any) {
		if ref, ok := schema["$ref"].(string); ok {
			schema = defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
		} else if schema["description"] == nil {
			t.Errorf("%s has no description", at)
		}
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		want := map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint64: "integer",
			reflect.Float64: "number", reflect.Slice: "array", reflect.Map: "object", reflect.Struct: "object"}[typ.Kind()]
		if typ == reflect.TypeFor[time.Time]() {
			want = "string"
		}
		if schema["enum"] == nil && schema["const"] == nil && schema["type"] != want {
			t.Errorf("%s is %v in the schema and %s in Go", at, schema["type"], want)
		}
		switch {
		case typ.Kind() == reflect.Slice && typ.Elem().Kind() == reflect.Struct:
			check(at+"[]", typ.Elem(), schema["items"].(map[string]any))
		case typ.Kind() == reflect.Struct && want == "object":
			if schema["additionalProperties"] != false {
				t.Errorf("%s takes unknown fields", at)
			}
			properties := schema["properties"].(map[string]any)
			var names, required []string
			for f := range typ.Fields() {
				name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
				names = append(names, name)
				if rest != "omitempty" {
					required = append(required, name)
				}
				p, ok := properties[name].(map[string]any)
				if !ok {
					t.Errorf("%s.%s is not in the schema", at, name)
					continue
				}
				check(at+"."+name, f.Type, p)
			}
			var asked []string
			for _, v := range schema["required"].([]any) {
				asked = append(asked, v.(string))
			}
			if slices.Sort(required); !slices.Equal(slices.Sorted(slices.Values(asked)), required) {
				t.Errorf("%s requires %v, Go always writes %v", at, asked, required)
			}
			for name := range maps.Keys(properties) {
				if !slices.Contains(names, name) {
					t.Errorf("%s.%s is in the schema alone", at, name)
				}
			}
		}
	}
	check("record", reflect.TypeFor[Record](), root)
}

// TestGivenResultsMatchSchema validates the file that RELAYBENCH_VALIDATE names: results of a real
// run, in CI.
func TestGivenResultsMatchSchema(t *testing.T) {
	path := os.Getenv("RELAYBENCH_VALIDATE")
	if path == "" {
		t.Skip("RELAYBENCH_VALIDATE is not set: no results file to validate")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := compileSchema(t).Validate(doc); err != nil {
		t.Error(err)
	}
}
