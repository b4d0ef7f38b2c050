package relays

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kballard/go-shellquote"
)

func TestEitherSpellingOfAPlaceholderIsEnough(t *testing.T) {
	b := blanks{port: "4711", dir: "/w/data", program: "/bin/false"}
	for command, want := range map[string][]string{
		"/bin/false --port {port}":                    {"--port", "4711"},
		"/bin/false --port <port>":                    {"--port", "4711"},
		"/bin/false 127.0.0.1:<port>":                 {"127.0.0.1:4711"},
		"/bin/false 127.0.0.1:{port}":                 {"127.0.0.1:4711"},
		"/bin/false '<port>'":                         {"4711"},
		`/bin/false "it's <port>"`:                    {"it's 4711"},
		`/bin/false it\'s{port}`:                      {"it's4711"},
		"/bin/false --listen=[::1]:<port> --db=<dir>": {"--listen=[::1]:4711", "--db=/w/data"},
		"/bin/false --db <dir> {port}":                {"--db", "/w/data", "4711"},
		"/bin/false --db {dir}/a:<dir>/b <port>":      {"--db", "/w/data/a:/w/data/b", "4711"},
		"PORT=<port> /bin/false":                      {"PORT=4711"},
		"PORT={port} /bin/false":                      {"PORT=4711"},
		"ADDR=127.0.0.1:<port> DB=<dir> /bin/false":   {"ADDR=127.0.0.1:4711", "DB=/w/data"},
	} {
		d, err := FromTemplate("a", command)
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		words, err := d.argv(b)
		if err != nil {
			t.Errorf("%s: %v", command, err)
			continue
		}
		if got := append(d.environ(nil, b), words[1:]...); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if got, want := d.usesDir(), strings.Contains(command, "dir"); got != want {
			t.Errorf("%s: told its folder: %v", command, got)
		}
	}
	for _, command := range []string{"/bin/false --port port", "/bin/false '{po'x'rt}'", "PORT=1 /bin/false <dir>", "/bin/false < port >"} {
		if _, err := FromTemplate("a", command); err == nil || !strings.Contains(err.Error(), "no {port}") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// One rule tells a name from a variable, whatever flag takes the command.
func TestANameIsToldFromAVariable(t *testing.T) {
	dir := t.TempDir()
	relay, library := filepath.Join(dir, "relay"), filepath.Join(dir, "lib.so")
	for _, file := range []string{relay, library} {
		if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(name string) string { return map[string]string{"PATH": dir}[name] }
	for text, want := range map[string][2]string{
		"mine=relay --port {port}":              {"mine", "relay --port {port}"},
		"MINE=relay --port {port}":              {"MINE", "relay --port {port}"},
		"MINE=gone --port {port}":               {"MINE", "gone --port {port}"},
		"mine=" + relay + " {port}":             {"mine", relay + " {port}"},
		"mine='" + relay + "' {port}":           {"mine", "'" + relay + "' {port}"},
		"mine=ws://127.0.0.1:7777":              {"mine", "ws://127.0.0.1:7777"},
		"mine=relay relay":                      {"mine", "relay relay"},
		"mine=gone relay":                       {"", "mine=gone relay"},
		"mine=gone too":                         {"mine", "gone too"},
		"a.b=gone relay":                        {"a.b", "gone relay"},
		"DEBUG=1 relay --port {port}":           {"", "DEBUG=1 relay --port {port}"},
		"  DEBUG=1 " + relay + " {port}":        {"", "DEBUG=1 " + relay + " {port}"},
		"DEBUG=1 gone --port {port}":            {"", "DEBUG=1 gone --port {port}"},
		"DEBUG='a b' HOME=/x relay":             {"", "DEBUG='a b' HOME=/x relay"},
		"DATA=" + dir + " relay {port}":         {"", "DATA=" + dir + " relay {port}"},
		"mine=DEBUG=1 relay --port {port}":      {"mine", "DEBUG=1 relay --port {port}"},
		"head=LD_PRELOAD=" + library + " relay": {"head", "LD_PRELOAD=" + library + " relay"},
		"mine='unclosed relay":                  {"mine", "'unclosed relay"},
		"mine=":                                 {"mine", ""},
		"relay --set a=b {port}":                {"", "relay --set a=b {port}"},
		"relay {port}":                          {"", "relay {port}"},
	} {
		name, command, err := SplitName(text, getenv)
		if err != nil || name != want[0] || command != want[1] {
			t.Errorf("%s: name %q, command %q, %v; want %q", text, name, command, err, want)
		}
	}
	if _, _, err := SplitName("LD_PRELOAD="+library+" relay {port}", getenv); err == nil || !strings.Contains(err.Error(), "NAME=LD_PRELOAD=") {
		t.Errorf("a variable whose value is a program: %v", err)
	}
}

func TestARelayThatIsToldByAngleBracketsStarts(t *testing.T) {
	t.Parallel()
	d, err := FromTemplate("angles", "RELAYS_HELPER=good "+shellquote.Join(os.Args[0])+" --port <port> --db <dir>")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(t.Context(), &d, "", Settings{WorkDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Cleanup(); err != nil {
		t.Error(err)
	}
}
