package report

import (
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"relaybench/results"
)

// codesOfResults are the strings that package results declares, by the name of the constant.
func codesOfResults(t *testing.T) map[string]string {
	codes := map[string]string{}
	_, files := sourceFiles(t, "../results")
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == 1 {
				if lit, ok := spec.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					codes[spec.Names[0].Name], _ = strconv.Unquote(lit.Value)
				}
			}
			return true
		})
	}
	return codes
}

// Words are of codes that there are: each check has a title, and no case is written for nothing.
func TestWordsAreOfTheCodesThatThereAre(t *testing.T) {
	codes, d := codesOfResults(t), words()
	for name, code := range codes {
		if strings.HasPrefix(name, "Code") && d.titles[code] == "" {
			t.Errorf("%s has no title", name)
		}
	}
	known := map[string]bool{otherwise: true, "": true, "asked": true, results.CauseNotReturned + " elsewhere": true}
	for _, code := range codes {
		known[code] = true
	}
	tables := map[string]texts{}
	for _, all := range []map[string]texts{d.Checks, d.Status} {
		for code, table := range all {
			if tables[code] = table; !known[code] {
				t.Errorf("there is no check or status %q", code)
			}
		}
	}
	// Keyed by what others name: frames' faults, options of preparation, this package's warnings.
	others := []string{"fault", "dropped", "machine", "shortage-help", "how"}
	for name, table := range d.Texts {
		if !slices.Contains(others, name) {
			tables["texts."+name] = table
		}
	}
	for name, table := range tables {
		for code := range table {
			if !known[code] {
				t.Errorf("%s: there is no code %q", name, code)
			}
		}
	}
}

// What a template refers to is there.
func TestTemplatesReferToWhatThereIs(t *testing.T) {
	d := words()
	all := []texts{d.Parts}
	for _, tables := range []map[string]texts{d.Checks, d.Status, d.Texts} {
		all = slices.AppendSeq(all, maps.Values(tables))
	}
	refers := regexp.MustCompile(`@([a-z0-9-]+)`)
	n := 0
	for _, table := range all {
		for _, template := range table {
			for _, at := range refers.FindAllStringSubmatch(template, -1) {
				n++
				if _, part := d.Parts[at[1]]; !part && d.Texts[at[1]] == nil {
					t.Errorf("%q: there is no %s", template, at[1])
				}
			}
			if strings.Count(template, "[") != strings.Count(template, "]") || strings.Count(template, "${") != strings.Count(template, "}") {
				t.Errorf("not closed: %q", template)
			}
		}
	}
	if n < 50 {
		t.Errorf("%d references", n)
	}
}
