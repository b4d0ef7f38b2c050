package harness

import (
	"slices"
	"strings"
	"testing"
)

func TestPlanInterleavesAndAlternates(t *testing.T) {
	want := []Turn{{0, 0}, {1, 0}, {2, 0}, {2, 1}, {1, 1}, {0, 1}, {0, 2}, {1, 2}, {2, 2}}
	if got := Plan(3, 3); !slices.Equal(got, want) {
		t.Errorf("Plan(3, 3) = %v, want %v", got, want)
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
