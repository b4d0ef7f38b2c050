package relays

import (
	"os"
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
