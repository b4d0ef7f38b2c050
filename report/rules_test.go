package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// What a report knows it has from fields of the record. These hold names and words, which are shown
// and never read.
var words1 = map[string]bool{"Scenario": true, "Metric": true, "Key": true, "Text": true, "Texts": true, "Reason": true, "Cause": true,
	"Code": true, "Title": true, "Section": true, "scenario": true, "metric": true, "why": true, "none": true}

// makesWords are functions whose results are sentences.
var makesWords = map[string]bool{"findingText": true, "statusText": true, "CheckTitle": true, "evidenceLines": true, "where": true, "brief": true}

// looksInto are functions that look for something in a string.
var looksInto = regexp.MustCompile(`^(Has(Prefix|Suffix)|Cut|Cut(Prefix|Suffix)|Contains.*|Index.*|LastIndex.*|Split.*|Fields.*|Count|EqualFold|Trim(Prefix|Suffix|Left|Right)?|Replace|Replacer|Sscan.*|Atoi|Parse.*|Match.*)$`)

// sourceFiles are a package's own files, by the folder from here.
func sourceFiles(t *testing.T, folder string) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no files in %s: %v", folder, err)
	}
	set, files := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(set, name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return set, files
}

// lookedInto lists where a file looks into names, words or sentences.
func lookedInto(set *token.FileSet, file *ast.File) (found []string) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		held := map[string]bool{} // variables that hold nothing but such a field
		reads := func(e ast.Node) (is bool) {
			ast.Inspect(e, func(n ast.Node) bool {
				switch x := n.(type) {
				case *ast.SelectorExpr:
					is = is || words1[x.Sel.Name]
				case *ast.CallExpr:
					if id, ok := x.Fun.(*ast.Ident); ok {
						is = is || makesWords[id.Name]
					}
				case *ast.Ident:
					is = is || held[x.Name]
				}
				return !is
			})
			return is
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.AssignStmt:
				for i, right := range x.Rhs {
					switch right.(type) {
					case *ast.SelectorExpr, *ast.IndexExpr, *ast.CallExpr, *ast.Ident:
						if call, ok := right.(*ast.CallExpr); ok {
							if id, named := call.Fun.(*ast.Ident); !named || !makesWords[id.Name] {
								continue
							}
						}
						if id, ok := x.Lhs[min(i, len(x.Lhs)-1)].(*ast.Ident); ok && reads(right) {
							held[id.Name] = true
						}
					}
				}
			case *ast.SliceExpr:
				if sel, ok := x.X.(*ast.SelectorExpr); ok && words1[sel.Sel.Name] {
					found = append(found, set.Position(x.Pos()).String()+": cuts "+sel.Sel.Name)
				}
			case *ast.CallExpr:
				sel, ok := x.Fun.(*ast.SelectorExpr)
				if !ok || !looksInto.MatchString(sel.Sel.Name) {
					return true
				}
				from, ok := sel.X.(*ast.Ident)
				if !ok || from.Name != "strings" && from.Name != "fmt" && from.Name != "strconv" && from.Name != "path" {
					return true
				}
				for _, a := range x.Args {
					if reads(a) {
						found = append(found, set.Position(x.Pos()).String()+": "+from.Name+"."+sel.Sel.Name)
					}
				}
			}
			return true
		})
	}
	return found
}

// Facts are data: no report reads one out of a key, a metric's name or a sentence.
func TestNoReportLooksIntoKeysOrSentences(t *testing.T) {
	set, files := sourceFiles(t, ".")
	for name, file := range files {
		for _, at := range lookedInto(set, file) {
			t.Error(at)
		}
		for _, i := range file.Imports {
			if i.Path.Value == `"regexp"` {
				t.Errorf("%s imports regexp", name)
			}
		}
	}
}

// Nor do the verbs, the scenarios or what marks figures as the harness' own. Only records of form 1
// are taken apart.
func TestNobodyElseLooksIntoKeysOrSentences(t *testing.T) {
	for _, folder := range []string{"../cmd/relaybench", "../scenarios", "../harness", "../results", "../harness/preflight", "compare", "gate"} {
		set, files := sourceFiles(t, folder)
		for name, file := range files {
			switch name {
			case "../results/upgrade.go":
				continue
			case "../cmd/relaybench/complete.go":
				continue // names of families to type
			}
			for _, at := range lookedInto(set, file) {
				t.Error(at)
			}
		}
	}
}

// The tests above find what they should.
func TestLookingIsSeen(t *testing.T) {
	set := token.NewFileSet()
	for _, body := range []string{
		`strings.HasPrefix(m.Scenario, "query.")`, `strings.Cut(m.Metric, ": ")`, `fmt.Sscanf(e.Text, "%d", &n)`, `strings.Contains(findingText(f), "lost")`,
		`k := m.Scenario; strings.Split(k, ".")`, `_ = m.Scenario[5:]`, `s := statusText(x); strings.TrimPrefix(s, "incomplete")`, `strings.Contains(f.Texts["text"], "lost")`,
	} {
		file, err := parser.ParseFile(set, "x.go", "package x\nfunc f() { "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(lookedInto(set, file)) != 1 {
			t.Errorf("%s is not seen", body)
		}
	}
}

// A new scenario needs no line here: reports know none by its key. The gate names the figures that
// it judges.
func TestNoReportKnowsAScenario(t *testing.T) {
	keys := map[string]bool{"preflight": true}
	for _, s := range form1(t).Scenarios {
		keys[s.Key] = true
	}
	below := regexp.MustCompile(`^(ingest|query|negentropy|sync|fetch)\.`)
	for _, folder := range []string{".", "compare", "gate"} {
		set, files := sourceFiles(t, folder)
		for name, file := range files {
			if name == "gate/gate.go" {
				continue
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil && (keys[text] || below.MatchString(text)) {
						t.Errorf("%s: %s", set.Position(lit.Pos()), lit.Value)
					}
				}
				return true
			})
		}
	}
}
