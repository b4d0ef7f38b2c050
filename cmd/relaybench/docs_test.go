package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/kballard/go-shellquote"

	"relaybench/relays"
	"relaybench/results"
)

var updateDocs = flag.Bool("update", false, "write what is generated in README.md and docs anew")

// maxReadme is how many bytes of README.md a person reads before giving up.
const maxReadme = 10_240

const checkout = "../.."

// page is a Markdown file of the documentation.
type page struct {
	path, text string // the path is relative to the checkout
}

// docs are README.md and the pages in docs.
func docs(t *testing.T) (all []page) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(checkout, "docs", "*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages in docs: %v", err)
	}
	for _, file := range append([]string{filepath.Join(checkout, "README.md")}, files...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		path, _ := filepath.Rel(checkout, file)
		all = append(all, page{filepath.ToSlash(path), string(text)})
	}
	return all
}

func docPage(t *testing.T, path string) page {
	t.Helper()
	all := docs(t)
	i := slices.IndexFunc(all, func(p page) bool { return p.path == path })
	if i < 0 {
		t.Fatalf("there is no %s", path)
	}
	return all[i]
}

// renew holds a page against what it has to be, and writes that with -update.
func (p page) renew(t *testing.T, want string) {
	t.Helper()
	if p.text == want {
		return
	}
	if *updateDocs {
		if err := os.WriteFile(filepath.Join(checkout, p.path), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, wanted := strings.Split(p.text, "\n"), strings.Split(want, "\n")
	i := 0
	for i < len(got) && i < len(wanted) && got[i] == wanted[i] {
		i++
	}
	line := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return "(its end)"
	}
	t.Errorf("%s is stale from line %d on; go test ./cmd/relaybench -run '^TestDocs' -update writes it anew:\n"+
		" it has %q\nnot yet %q", p.path, i+1, line(got), line(wanted))
}

func TestDocsReadmeIsShort(t *testing.T) {
	if n := len(docPage(t, "README.md").text); n > maxReadme {
		t.Errorf("README.md has %d bytes, and %d at most are read: what is more belongs into docs", n, maxReadme)
	}
}

func TestDocsReadmeNamesEveryVerb(t *testing.T) {
	readme := docPage(t, "README.md").text
	for _, cmd := range newRoot(new(pipe), io.Discard).Commands() {
		if name := cmd.Name(); name != "help" && !strings.Contains(readme, "| [`"+name+"`](docs/cli.md#") {
			t.Errorf("the table of verbs in README.md lacks %s", name)
		}
	}
}

// TestDocsTestCommandIsThatOfCI holds the command that people are told to the one that is run
// before a change lands.
func TestDocsTestCommandIsThatOfCI(t *testing.T) {
	command := regexp.MustCompile("Tests: `(.+)`").FindStringSubmatch(docPage(t, "README.md").text)
	if command == nil {
		t.Fatal("README.md does not say how to test")
	}
	for _, file := range []string{".ci/run", "docs/contributing.md"} {
		if text, err := os.ReadFile(filepath.Join(checkout, file)); err != nil || !strings.Contains(string(text), command[1]) {
			t.Errorf("%s does not run %q: %v", file, command[1], err)
		}
	}
}

// generatedMark stands between what people write in docs/cli.md and what is generated.
const generatedMark = "<!-- From here on generated: go test ./cmd/relaybench -run '^TestDocs' -update -->\n"

var (
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	inlined   = regexp.MustCompile("`[^`\n]+`")
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
)

func TestDocsLinksResolve(t *testing.T) {
	anchors := map[string][]string{} // by path
	for _, p := range docs(t) {
		for _, h := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(p.text, ""), -1) {
			if slices.Contains(anchors[p.path], anchor(h[1])) {
				t.Errorf("%s has two headings %q: a link can name one of them", p.path, h[1])
			}
			anchors[p.path] = append(anchors[p.path], anchor(h[1]))
		}
	}
	for _, p := range docs(t) {
		text := inlined.ReplaceAllString(codeBlock.ReplaceAllString(p.text, ""), "x")
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target := found[1]
			if strings.Contains(target, "://") {
				continue
			}
			file, name, named := strings.Cut(target, "#")
			if file = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), file)); strings.HasPrefix(target, "#") {
				file = p.path
			}
			if _, err := os.Stat(filepath.Join(checkout, file)); err != nil {
				t.Errorf("%s links to %s: %v", p.path, target, err)
			} else if named && !slices.Contains(anchors[file], name) {
				t.Errorf("%s links to %s, and there is no such heading", p.path, target)
			}
		}
	}
	for _, p := range docs(t) {
		if name := filepath.Base(p.path); p.path != "README.md" && !strings.Contains(docPage(t, "README.md").text, "(docs/"+name) {
			t.Errorf("README.md does not link to docs/%s", name)
		}
	}
}

// anchor is what GitHub makes of a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// TestDocsCommandsAreUnderstood holds every example of a command to the verbs and flags that there
// are.
func TestDocsCommandsAreUnderstood(t *testing.T) {
	n := 0
	for _, p := range docs(t) {
		for _, block := range shellBlock.FindAllStringSubmatch(p.text, -1) {
			for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", " ")) {
				command, _, _ := strings.Cut(line, " # ")
				command, _, _ = strings.Cut(command, " | ")
				command, _, _ = strings.Cut(command, " && ")
				words, err := shellquote.Split(command)
				if err != nil {
					t.Errorf("%s: %s: %v", p.path, line, err)
				}
				if len(words) == 0 || words[0] != "relaybench" && words[0] != "./run.sh" {
					continue
				}
				n++
				if words = words[1:]; len(words) == 0 || strings.HasPrefix(words[0], "-") {
					words = append([]string{"run"}, words...)
				}
				cmd, rest, err := newRoot(new(pipe), io.Discard).Find(joinDownload(words))
				if err == nil {
					err = cmd.ParseFlags(rest)
				}
				if err != nil || cmd.Parent() == nil {
					t.Errorf("%s: %s: %v", p.path, strings.TrimSpace(line), err)
				}
			}
		}
	}
	if n == 0 {
		t.Error("the pages hold no command")
	}
}

// TestDocsTellTheWholeDefinition holds docs/relays.md to every key that a definition may have, and
// its examples to what is read.
func TestDocsTellTheWholeDefinition(t *testing.T) {
	text := docPage(t, "docs/relays.md").text
	var keys func(of reflect.Type)
	keys = func(of reflect.Type) {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		for i := range of.NumField() {
			if key := of.Field(i).Tag.Get("toml"); key != "" && key != "-" {
				if !regexp.MustCompile("(?m)([`\\[.]" + key + "[`\\]]|(^|\\{ )" + key + " =)").MatchString(text) {
					t.Errorf("docs/relays.md does not tell of the key %s of %s", key, of.Name())
				}
				keys(of.Field(i).Type)
			}
		}
	}
	keys(reflect.TypeFor[relays.Definition]())
	for _, p := range []page{docPage(t, "README.md"), docPage(t, "docs/relays.md")} {
		dir := t.TempDir()
		block := regexp.MustCompile("(?ms)^```toml\n(.*?)^```$").FindStringSubmatch(p.text)
		if block == nil {
			t.Errorf("%s has no definition of a relay", p.path)
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "mine.toml"), []byte(block[1]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := relays.LoadDir(dir); err != nil {
			t.Errorf("%s: %v", p.path, err)
		}
	}
}

// TestDocsTellWhatIsMeasured holds docs/scenarios.md to the keys of all scenarios, and the pages to
// the metrics in the records of the samples.
func TestDocsTellWhatIsMeasured(t *testing.T) {
	scenarios, all := docPage(t, "docs/scenarios.md").text, ""
	for _, p := range docs(t) {
		all += p.text
	}
	code, _, stderr := relaybench(t, "run", "--only", "no-such-scenario")
	_, keys, ok := strings.Cut(stderr, "the keys are: ")
	if code != exitUsage || !ok {
		t.Fatalf("exit code %d, no list of keys:\n%s", code, stderr)
	}
	for key := range strings.SplitSeq(strings.TrimSpace(keys), ", ") {
		name, isQuery := strings.CutPrefix(key, "query.")
		if isQuery { // the pages tell of the two forms once
			name = strings.TrimSuffix(strings.TrimSuffix(name, ".hot"), ".varied")
		}
		if !strings.Contains(scenarios, "`"+name+"`") {
			t.Errorf("docs/scenarios.md does not tell of %s", key)
		}
	}
	records, err := filepath.Glob(filepath.Join(checkout, "docs", "samples", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range records {
		r, err := results.ReadRecord(file)
		if err != nil {
			continue // what another verb writes
		}
		untold := map[string]bool{}
		for _, m := range r.Measurements {
			if n++; !strings.Contains(all, "`"+m.Metric+"`") {
				untold[m.Metric] = true
			}
		}
		for metric := range untold {
			t.Errorf("no page tells of the metric %s, which is in %s", metric, file)
		}
	}
	if n == 0 {
		t.Error("no record in docs/samples")
	}
}
