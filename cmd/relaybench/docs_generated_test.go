package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/report"
	"relaybench/results"
)

// TestDocsAreGenerated holds what is generated to the program: the flags of all verbs, the schema
// of the record, and the list of packages.
func TestDocsAreGenerated(t *testing.T) {
	for path, generate := range map[string]func(*testing.T) string{
		"docs/cli.md":     func(*testing.T) string { return commandLine() },
		"docs/results.md": schemaTables,
		"docs/design.md":  packageTable,
	} {
		p := docPage(t, path)
		written, _, ok := strings.Cut(p.text, generatedMark)
		if !ok {
			t.Errorf("%s lacks the line %q", path, generatedMark)
			continue
		}
		p.renew(t, written+generatedMark+generate(t))
	}
}

// packageTable lists all packages by folder, with the first sentence that each says of itself.
func packageTable(t *testing.T) string {
	t.Helper()
	list, err := exec.Command("go", "list", "-f", "{{.ImportPath}} {{.Doc}}", "relaybench/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	b := "\n| folder | what it is |\n|---|---|\n"
	for line := range strings.Lines(string(list)) {
		path, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		b += fmt.Sprintf("| `%s` | %s |\n", strings.TrimPrefix(path, "relaybench/"), markdownEscape.Replace(strings.TrimSuffix(text, ":")))
	}
	return b
}

// schemaTables are the fields of the record and of all that it holds, as the schema describes them.
func schemaTables(t *testing.T) string {
	t.Helper()
	type property struct {
		Description string          `json:"description"`
		Enum        []string        `json:"enum"`
		Ref         string          `json:"$ref"`
		Items       json.RawMessage `json:"items"`
	}
	type object struct {
		Description string          `json:"description"`
		Required    []string        `json:"required"`
		Properties  json.RawMessage `json:"properties"`
	}
	var b strings.Builder
	table := func(name string, o object) {
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n| field | meaning |\n|---|---|\n", name, markdownEscape.Replace(o.Description))
		for _, field := range members(t, o.Properties) {
			var p, items property
			decode(t, field.value, &p)
			if len(p.Items) > 0 {
				decode(t, p.Items, &items)
			}
			name, text := "`"+field.name+"`", markdownEscape.Replace(p.Description)
			if slices.Contains(o.Required, field.name) {
				name = "**" + name + "**"
			}
			if len(p.Enum) > 0 {
				text += " One of `" + strings.Join(p.Enum, "`, `") + "`."
			}
			if _, of, ok := strings.Cut(p.Ref+items.Ref, "#/$defs/"); ok {
				text = strings.TrimSpace(text + fmt.Sprintf(" See [%s](#the-%s).", of, of))
			}
			fmt.Fprintf(&b, "| %s | %s |\n", name, text)
		}
	}
	text, err := os.ReadFile(filepath.Join(checkout, "results", "results.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		object
		Defs json.RawMessage `json:"$defs"`
	}
	decode(t, text, &schema)
	table("The record", schema.object)
	for _, def := range members(t, schema.Defs) {
		var o object
		if decode(t, def.value, &o); len(o.Properties) > 0 {
			table("The "+def.name, o)
		}
	}
	return b.String()
}

func decode(t *testing.T, text []byte, to any) {
	t.Helper()
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

// member is one member of a JSON object.
type member struct {
	name  string
	value json.RawMessage
}

// members are those of a JSON object in the order in which they stand.
func members(t *testing.T, text []byte) (all []member) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		all = append(all, member{name.(string), value})
	}
	return all
}

// commandLine is the reference of all verbs.
func commandLine() string {
	var b strings.Builder
	root := newRoot(new(pipe), io.Discard)
	run, _, _ := root.Find([]string{"run"})
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() == "help" || cmd.Hidden || cmd.Parent() != nil && cmd.Parent().Name() == "completion" {
			return
		}
		fmt.Fprintf(&b, "## %s\n\n", cmd.CommandPath())
		paragraphs(&b, cmd.Short+".")
		paragraphs(&b, cmd.Long)
		usage := cmd.UseLine()
		if cmd.HasSubCommands() {
			usage = cmd.CommandPath() + " COMMAND"
		}
		fmt.Fprintf(&b, "```text\n%s\n```\n\n", usage)
		if cmd.Example != "" {
			fmt.Fprintf(&b, "```sh\n%s\n```\n\n", strings.ReplaceAll(strings.TrimSpace(cmd.Example), "\n  ", "\n"))
		}
		flagTable(&b, cmd, run)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	return "\n" + strings.TrimSpace(b.String()) + "\n"
}

var markdownEscape = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`, "|", `\|`, "`", "\\`")

// paragraphs writes a help text; lines that are set in become blocks of code.
func paragraphs(b *strings.Builder, text string) {
	text, code := strings.TrimSpace(text), false
	if text == "" {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		in := strings.HasPrefix(line, "  ")
		switch {
		case in && !code:
			b.WriteString("\n```text\n")
		case !in && code:
			b.WriteString("```\n\n")
		}
		if code = in; !code {
			line = markdownEscape.Replace(line)
		}
		b.WriteString(line + "\n")
	}
	if code {
		b.WriteString("```\n")
	}
	b.WriteString("\n")
}

// flagTable writes a command's own flags; those that it has in common with run are only named.
func flagTable(b *strings.Builder, cmd, run *cobra.Command) {
	rows, same := "", []string{}
	cmd.InitDefaultHelpFlag()
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		if o := run.Flags().Lookup(f.Name); cmd != run && o != nil && o.Usage == f.Usage && o.DefValue == f.DefValue {
			same = append(same, "`--"+f.Name+"`")
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		switch {
		case f.Value.Type() != "bool" && f.NoOptDefVal != "":
			name += " [" + kind + "]"
		case kind != "":
			name += " " + kind
		}
		value := ""
		if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) {
			value = "`" + strings.ReplaceAll(f.DefValue, "|", `\|`) + "`"
		}
		rows += fmt.Sprintf("| `%s` | %s | %s |\n", name, value, markdownEscape.Replace(usage))
	})
	if rows != "" {
		b.WriteString("| flag | default | meaning |\n|---|---|---|\n" + rows + "\n")
	}
	if len(same) > 0 {
		fmt.Fprintf(b, "As for [%s](#%s): %s.\n\n", run.CommandPath(), anchor(run.CommandPath()), strings.Join(same, ", "))
	}
}

// sampleMark is the comment before a block that holds a part of what the program prints. It names
// what prints it, and the lines that are shown: "report FILE | INGEST … QUERIES | CHECKS" is the
// output from the line that begins with INGEST up to that before QUERIES, and from CHECKS on.
var sampleMark = regexp.MustCompile("(?m)^<!-- sample: (.+) -->\n```text\n((?s:.*?))^```$")

func TestDocsSamplesAreWhatIsPrinted(t *testing.T) {
	n := 0
	for _, p := range docs(t) {
		want := sampleMark.ReplaceAllStringFunc(p.text, func(block string) string {
			n++
			parts := sampleMark.FindStringSubmatch(block)
			source, ranges, _ := strings.Cut(parts[1], " | ")
			text, err := excerpt(printed(t, source), ranges)
			if err != nil {
				t.Errorf("%s: sample %s: %v", p.path, parts[1], err)
				return block
			}
			return "<!-- sample: " + parts[1] + " -->\n```text\n" + text + "```"
		})
		if strings.Count(p.text, "<!-- sample:") != len(sampleMark.FindAllString(p.text, -1)) {
			t.Errorf("%s: a sample's mark has no block of text after it", p.path)
		}
		p.renew(t, want)
	}
	if n == 0 {
		t.Error("the pages hold no sample")
	}
}

// excerpt takes the lines of a text that ranges name, with … where lines are left out.
func excerpt(text, ranges string) (string, error) {
	if ranges == "" {
		return text, nil
	}
	lines, at, parts := strings.Split(strings.TrimRight(text, "\n"), "\n"), 0, []string{}
	find := func(start int, begins string) (int, error) {
		for i := start; i < len(lines); i++ {
			if strings.HasPrefix(strings.TrimSpace(lines[i]), begins) {
				return i, nil
			}
		}
		return 0, fmt.Errorf("no line begins with %q after line %d", begins, start)
	}
	for part := range strings.SplitSeq(ranges, " | ") {
		from, to, bounded := strings.Cut(part, " … ")
		first, err := find(at, from)
		if err != nil {
			return "", err
		}
		if at = len(lines); bounded {
			if at, err = find(first+1, to); err != nil {
				return "", err
			}
		}
		parts = append(parts, strings.TrimRight(strings.Join(lines[first:at], "\n"), "\n"))
	}
	return strings.Join(parts, "\n…\n") + "\n", nil
}

// printed is what a source of samples prints, without colours and 100 columns wide: relaybench's
// verbs that read files, refrelay's help, a golden file of the reports' tests, and from what the
// other verbs write with --json, what they print without.
func printed(t *testing.T, source string) string {
	t.Helper()
	words := strings.Fields(source)
	var b strings.Builder
	var err error
	switch words[0] {
	case "report":
		cmd := program(t, t.Context(), nil, words...)
		cmd.Dir, cmd.Stdout, cmd.Stderr = checkout, &b, os.Stderr
		err = cmd.Run()
	case "refrelay":
		cmd := exec.CommandContext(t.Context(), refrelayProgram, words[1:]...)
		cmd.Stdout, cmd.Stderr = &b, os.Stderr
		err = cmd.Run()
	case "golden":
		var text []byte
		text, err = os.ReadFile(filepath.Join(checkout, words[1]))
		b.Write(text)
	case "check":
		var found struct {
			Relays []struct {
				results.Relay
				Checks []results.Finding `json:"checks"`
			} `json:"relays"`
		}
		readJSON(t, words[1], &found)
		var all []report.Checked
		for _, r := range found.Relays {
			all = append(all, report.Checked{Relay: r.Relay, Findings: r.Checks})
		}
		err = report.Checks(&b, all, report.TerminalOptions{Width: 100})
	case "calibrate":
		var r results.Record
		readJSON(t, words[1], &r)
		err = report.Calibration(&b, &r, report.TerminalOptions{Width: 100})
	default:
		t.Fatalf("%q is no source of samples", source)
	}
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return b.String()
}

func readJSON(t *testing.T, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(checkout, path))
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}
