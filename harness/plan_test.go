package harness

import (
	"fmt"
	"strings"
	"testing"

	"relaybench/relays"
)

func TestTrialsInterleaveAndAlternate(t *testing.T) {
	var able []Target
	for _, name := range []string{"a", "b", "c"} {
		able = append(able, Target{Definition: &relays.Definition{Name: name}})
	}
	var got []string
	for _, next := range (stage{}).schedule(able, 3) {
		got = append(got, fmt.Sprint(next.label(), next.trial))
	}
	if want := "a0 b0 c0 c1 b1 a1 a2 b2 c2"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestSelect(t *testing.T) {
	all := []string{"ingest.visibility", "ingest.throughput", "query.thread.hot", "query.thread.varied", "storage"}
	for _, test := range []struct {
		name       string
		only, skip []string
		want       string // keys, or the error's text
	}{
		{"everything by default", nil, nil, "ingest.visibility ingest.throughput query.thread.hot query.thread.varied storage"},
		{"one key", []string{"storage"}, nil, "storage"},
		{"a glob", []string{"query.*.hot"}, nil, "query.thread.hot"},
		{"a family by its name", []string{"ingest"}, nil, "ingest.visibility ingest.throughput"},
		{"what stands below a key", []string{"storage.*"}, nil, "storage"},
		{"skip wins", []string{"ingest"}, []string{"*.throughput"}, "ingest.visibility"},
		{"skip alone", nil, []string{"query"}, "ingest.visibility ingest.throughput storage"},
		{"nothing left", []string{"storage"}, []string{"storage"}, ""},
		{"a key that does not exist", []string{"querry"}, nil, `scenario pattern "querry" matches no scenario`},
		{"a skip that does not exist", nil, []string{"storag"}, `scenario pattern "storag" matches no scenario`},
		{"a broken pattern", []string{"[a"}, nil, `scenario pattern "[a" is not a valid pattern`},
	} {
		t.Run(test.name, func(t *testing.T) {
			chosen, err := Select(all, test.only, test.skip)
			got := strings.Join(chosen, " ")
			if err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
