package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// street is the order of the folders: a package imports those of its own folder and of folders that
// stand before it, and no others.
var street = []string{"corpus", "results", "relays", "harness", "scenarios", "cmd"}

// reports is the same within report.
var reports = []string{"relaybench/report", "relaybench/report/compare", "relaybench/report/gate"}

// TestImportsGoOneWay holds the imports of all that is not a test to the street. report, beside it,
// needs the record alone, and only cmd imports it; compare imports report, and gate both. Package
// corpus is the ground of its own folder, and what serves as a relay does not know the model that
// judges relays.
func TestImportsGoOneWay(t *testing.T) {
	list, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{join .Imports \" \"}}", "relaybench/...").CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v: %s", err, list)
	}
	folder := func(path string) string {
		name, _, _ := strings.Cut(strings.TrimPrefix(path, "relaybench/"), "/")
		return name
	}
	seen := map[string]bool{}
	for line := range strings.Lines(string(list)) {
		paths := strings.Fields(line)
		from := folder(paths[0])
		seen[from] = true
		for _, path := range paths[1:] {
			to := folder(path)
			switch ours := strings.HasPrefix(path, "relaybench/"); {
			case paths[0] == "relaybench/corpus" && ours && path != "relaybench/corpus/scan",
				from == "relays" && path == "relaybench/corpus/model",
				from == "report" && slices.Index(reports, path) >= 0 && slices.Index(reports, path) >= slices.Index(reports, paths[0]):
				t.Errorf("%s imports %s", paths[0], path)
			case !ours || from == to:
			case from == "report" && to != "results", to == "report" && from != "cmd",
				from != "report" && to != "report" && slices.Index(street, to) > slices.Index(street, from),
				from == "results" && to == "corpus":
				t.Errorf("%s imports %s", paths[0], path)
			}
		}
	}
	for _, name := range append([]string{"report"}, street...) {
		if delete(seen, name); !strings.Contains(string(list), "relaybench/"+name) {
			t.Errorf("no folder %s", name)
		}
	}
	for name := range seen {
		t.Errorf("%s has no place in the street", name)
	}
}
