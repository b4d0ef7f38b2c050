package relays

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/BurntSushi/toml"
)

func catalogByName(t *testing.T) map[string]*Definition {
	t.Helper()
	all, err := Catalog()
	if err != nil {
		t.Fatal(err)
	}
	byName := map[string]*Definition{}
	for i := range all {
		byName[all[i].Name] = &all[i]
	}
	return byName
}

func TestCatalogKnowsEveryRelay(t *testing.T) {
	byName := catalogByName(t)
	for _, name := range []string{
		"strfry", "geode", "geode-nosearch", "nostr-rs-relay", "rnostr", "orly", "khatru-lmdb", "khatru-badger", "khatru-sqlite",
		"nostr-relay-npm", "nostream", "wisp", "haven", "ref-bolt", "ref-sqlite", "ref-memory", "ref-null",
	} {
		d := byName[name]
		if d == nil {
			t.Errorf("%s is not in the catalog", name)
			continue
		}
		if d.Title == "" || d.Language == "" || d.Storage == "" || len(d.Notes) == 0 {
			t.Errorf("%s lacks a title, a language, a storage or notes", name)
		}
		for file, text := range d.config(blanks{port: "4711", dir: "/a folder/data", program: "/bin/x", settings: Settings{MaxEventBytes: 200000, MaxTags: 5000}}) {
			if strings.Contains(text, "{port}") || strings.Contains(text, "{dir}") || strings.Contains(text, "{max_") {
				t.Errorf("%s: %s keeps a placeholder:\n%s", name, file, text)
			}
			if strings.HasSuffix(file, ".toml") {
				if _, err := toml.Decode(text, &map[string]any{}); err != nil {
					t.Errorf("%s: %s is no TOML: %v", name, file, err)
				}
			}
		}
	}
	for name, d := range byName {
		if byDefault := d.OnRequest == "" && d.Unsuitable == ""; byDefault == slices.Contains(
			[]string{"geode-nosearch", "haven", "nostream", "ref-memory", "ref-null"}, name) {
			t.Errorf("%s takes part by default: %v", name, byDefault)
		}
	}
}

func TestStrfryIsConfiguredForAFairComparison(t *testing.T) {
	text := catalogByName(t)["strfry"].config(blanks{port: "4711", dir: "/w/data", settings: Settings{MaxEventBytes: 200000, MaxTags: 5000}})["strfry.conf"]
	for _, line := range []string{
		`db = "/w/data/strfry-db/"`, `port = 4711`, `maxEventSize = 200000`, `maxWebsocketPayloadSize = 265536`,
		`rejectEventsOlderThanSeconds = 3155760000`, `maxNumTags = 5000`, `maxTagValSize = 1024`, `nofiles = 0`,
		`restrictedReadKinds = ""`, `maxFilterLimit = 500`, `maxReqFilterSize = 200`, `maxSyncEvents = 10000000`,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("strfry.conf has no %s", line)
		}
	}
	if strings.Count(text, "{") != strings.Count(text, "}") {
		t.Error("braces do not match")
	}
}

func TestParseNamesFileAndKey(t *testing.T) {
	const good = "name = 'x'\ncommand = '{program} {port}'\n"
	cases := []struct{ name, text, want string }{
		{"unknown key", good + "colour = 'red'", `unknown key "colour"`},
		{"unknown key in a table", good + "[find]\npath = 'x'", `unknown key "find.path"`},
		{"syntax", good + "\nnotes = [", "line "},
		{"name", "name = 'a b'\ncommand = '{program} {port}'", `"a b" is no relay name`},
		{"no name", "command = '{program} {port}'", "is no relay name"},
		{"no command", "name = 'x'", "command is empty"},
		{"no port", "name = 'x'\ncommand = '{program}'", "{port}"},
		{"no program", "name = 'x'\ncommand = 'relay {port}'", "{program}"},
		{"quotes", "name = 'x'\ncommand = '''{program} {port} 'a'''", "single quote is opened"},
		{"placeholder", "name = 'x'\ncommand = '{program} {port} {db}'", "unknown placeholder {db}"},
		{"file outside", good + "[files]\n'../x' = ''", "does not stay inside {dir}"},
		{"absolute file", good + "[files]\n'/etc/x' = ''", "does not stay inside {dir}"},
		{"folder outside", good + "dirs = ['a/../../b']", "does not stay inside {dir}"},
		{"durability", good + "durability = 'maybe'", "commit, batch, none or unknown"},
		{"signal", good + "stop_signal = 'SIGKILL'", "SIGTERM"},
		{"duration", good + "ready_timeout = 'soon'", "30s"},
		{"pattern", good + "[version]\npattern = '('", "version.pattern"},
		{"no variant", good + "variants_only = true", "variants_only"},
		{"variant's key", good + "[[variant]]\nname = 'y'\nnips = [1]", `unknown key "variant.nips"`},
		{"variant's table", good + "[[variant]]\nname = 'y'\n[variant.limits]\nfoo = 1", `unknown key "variant.limits.foo"`},
		{"variant's name", good + "[[variant]]\nname = ''", "is no relay name"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse("here/x.toml", c.text)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "here/x.toml: ") {
				t.Errorf("error %v, want one of here/x.toml with %q", err, c.want)
			}
		})
	}
}

func TestVariantsReplaceWhatTheySet(t *testing.T) {
	all, err := parse("x.toml", `
name = "x"
command = "{program} --port {port}"
durability = "commit"
ready_timeout = "2m"
notes = ["base"]
[env]
A = "1"
B = "2"
[[variant]]
name = "x-fast"
durability = "none"
env = { B = "3" }
`)
	if err != nil || len(all) != 2 {
		t.Fatal(all, err)
	}
	base, fast := all[0], all[1]
	if base.Env["B"] != "2" || fast.Env["B"] != "3" || fast.Env["A"] != "1" {
		t.Errorf("env %v and %v", base.Env, fast.Env)
	}
	if fast.Durability != NotDurable || fast.Command != base.Command || fast.Family != "x" || fast.readyTimeout() != 2*time.Minute {
		t.Errorf("%+v", fast)
	}
	if v := fast.variables(); !slices.Equal(v, []string{"X_BIN"}) {
		t.Errorf("the variant is found by %v", v)
	}
}

func TestLoadDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := LoadDir(filepath.Join(dir, "missing")); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("a missing folder: %v", err)
	}
	write("mine.toml", "name = 'mine'\ncommand = '{program} {port}'")
	write("README.md", "not a definition")
	all, err := LoadDir(dir)
	if err != nil || len(all) != 1 || all[0].Name != "mine" || all[0].Durability != DurabilityOpen {
		t.Errorf("%+v, %v", all, err)
	}
	write("other.toml", "name = 'mine'\ncommand = '{program} {port}'")
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), "already defined in") {
		t.Errorf("a name twice: %v", err)
	}
	write("other.toml", strings.Repeat("#", maxDefinitionBytes+1))
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), "other.toml") {
		t.Errorf("a huge file: %v", err)
	}
}

func TestFromTemplate(t *testing.T) {
	bad := []struct{ name, command, want string }{
		{"mine", "", "empty"},
		{"mine", "   ", "empty"},
		{"mine", "A=1", "empty"},
		{"mine", "/bin/relay --db {dir}", "--relay 'mine=/bin/relay --db {dir} --port {port}'"},
		{"mine", "/bin/relay 'unclosed {port}", "single quote is opened"},
		{"mine", `/bin/relay "unclosed {port}`, "double quote is opened"},
		{"mine", `/bin/relay {port} \`, "backslash"},
		{"mine", "/bin/relay {port} {db}", "unknown placeholder {db}"},
		{"", "/bin/relay {port}", "relay name"},
		{"a/b", "/bin/relay {port}", "relay name"},
		{strings.Repeat("n", 33), "/bin/relay {port}", "relay name"},
		{"mine", "http://127.0.0.1", "ws://host:port"},
		{"mine", "ws://", "names no host"},
		{"mine", "ws://user:hush@[::1", "cannot be read"},
	}
	for _, c := range bad {
		_, err := FromTemplate(c.name, c.command)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: error %v, want %q", c.name, c.command, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("a password in %v", err)
		}
	}
	d, err := FromTemplate("mine", `KEY='a b' PORT=<port> ./my\ relay --db "<dir>/my db" --url=http://x {port} '{"a":1}'`)
	if err != nil {
		t.Fatal(err)
	}
	b := blanks{port: "4711", dir: "/w x/data", program: "/abs/my relay", settings: Settings{}}
	words, err := d.argv(b)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"/abs/my relay", "--db", "/w x/data/my db", "--url=http://x", "4711", `{"a":1}`}; !slices.Equal(words, want) {
		t.Errorf("words %q, want %q", words, want)
	}
	if env := d.environ([]string{"HOME=/h"}, b); !slices.Equal(env, []string{"HOME=/h", "KEY=a b", "PORT=4711"}) {
		t.Errorf("environment %q", env)
	}
	if d, err := FromTemplate("live", "wss://relay.example/path"); err != nil || !d.External() || len(d.Notes) == 0 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestResolveFindsATemplatesProgramBeforeAnythingRuns(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	program := filepath.Join(dir, "bin dir", "relay")
	if err := os.MkdirAll(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{program: 0o755, filepath.Join(dir, "plain"): 0o644} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(name string) string {
		if name == "PATH" {
			return "relative:" + filepath.Dir(program)
		}
		return ""
	}
	for command, want := range map[string]string{
		`"bin dir/relay" {port}`: program, "relay {port}": program, `"` + program + `" {port}`: program,
		"./missing {port}": "does not exist", "./plain {port}": "is not executable", "no-such-relay {port}": "is not on the PATH",
		"./ {port}": "is a folder",
	} {
		d, err := FromTemplate("mine", command)
		if err != nil {
			t.Fatal(err)
		}
		path, err := d.Resolve(getenv)
		// The temporary folder itself may lie behind a symbolic link.
		if err == nil && filepath.Base(path) == "relay" && filepath.IsAbs(path) && filepath.Base(want) == "relay" {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "relay mine") {
			t.Errorf("%s: %q, %v; want %q", command, path, err, want)
		}
	}
}

func TestScanSaysWhatItFound(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "strfry")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho strfry 1.2.3-gabc\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{
		"PATH": dir, "NOSTR_RS_RELAY_BIN": plain, "SKIP_REF": "1", "SKIP_WISP": "0", "GEODE_BIN": program, "HAVEN_BIN": program,
		"SKIP_KHATRU_LMDB": "1",
	}
	all, err := Catalog()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		status  Status
		byDeflt bool
		reason  string
	}{
		"strfry":         {Found, true, program},
		"geode":          {Found, true, program},
		"geode-nosearch": {Found, false, "when asked for"},
		"haven":          {Found, false, "only the events of its owner"},
		"nostr-rs-relay": {Broken, false, "$NOSTR_RS_RELAY_BIN: " + plain + " is not executable"},
		"ref-bolt":       {Skipped, false, "SKIP_REF"},
		"ref-sqlite":     {Skipped, false, "SKIP_REF"},
		"khatru-lmdb":    {Skipped, false, "SKIP_KHATRU_LMDB"},
		"khatru-badger":  {Missing, false, "set $KHATRU_BADGER_BIN or put khatru-badger on the PATH"},
		"wisp":           {Missing, false, "set $"},
	}
	for _, s := range Scan(t.Context(), all, func(name string) string { return env[name] }) {
		w, ok := want[s.Definition.Name]
		if !ok {
			continue
		}
		if s.Status != w.status || s.Default != w.byDeflt || !strings.Contains(s.Reason, w.reason) || strings.Contains(s.Reason, "\n") ||
			s.Status == Missing && strings.Contains(s.Reason, "not found") { // which the status says
			t.Errorf("%s: %s, default %v, %q; want %+v", s.Definition.Name, s.Status, s.Default, s.Reason, w)
		}
		if s.Definition.Name == "strfry" && (s.Version != "1.2.3-gabc" || len(s.SHA256) != 64) {
			t.Errorf("strfry: version %q, sha256 %q", s.Version, s.SHA256)
		}
	}
}

func TestVersionDoesNotWaitForAServer(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "serves")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nsleep 100 &\nsleep 100\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := Definition{Name: "x", VersionRule: VersionRule{Command: "{program} --version"}}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if v := d.Version(ctx, program); v != "" {
		t.Errorf("version %q", v)
	}
	if self, err := os.Executable(); err != nil || buildVersion(program) != "" || d.Version(t.Context(), "") != "" {
		t.Error(self, err)
	}
}

func TestDescribeHoldsNothingPrivate(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	program := filepath.Join(home, "my relay")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := FromTemplate("mine", `SECRET_KEY=hush DATA={dir} '`+program+`' --port {port} --config `+home+`/conf/relay.toml --auth-token hush --nsec=hush`)
	if err != nil {
		t.Fatal(err)
	}
	d.Files = map[string]string{"a/conf": "listen {port} in {dir}, {max_event_bytes} {max_message_bytes} {max_tags}"}
	r := d.Describe(t.Context(), program, Settings{MaxTags: 7})
	if want := `DATA={dir} SECRET_KEY=*** 'my relay' --port {port} --config ~/conf/relay.toml --auth-token *** --nsec=***`; r.Command != want {
		t.Errorf("command\n%s, want\n%s", r.Command, want)
	}
	if r.Config["a/conf"] != "listen {port} in {dir}, 65536 131072 7" {
		t.Errorf("config %q", r.Config)
	}
	if len(r.SHA256) != 64 || r.Durability != "unknown" || r.Name != "mine" {
		t.Errorf("%+v", r)
	}
}

func TestEnvironmentLeavesOutWhatTheDefinitionClears(t *testing.T) {
	d := Definition{ClearEnv: []string{"ORLY_*", "EXACT"}, Env: map[string]string{"ORLY_PORT": "{port}"}}
	env := d.environ([]string{"ORLY_ACL_MODE=follows", "EXACT=1", "EXACTLY=1", "ORLY=1"}, blanks{port: "4711"})
	if !slices.Equal(env, []string{"EXACTLY=1", "ORLY=1", "ORLY_PORT=4711"}) {
		t.Errorf("%q", env)
	}
}

func TestPrepareStaysInsideTheFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "conf")); err != nil {
		t.Fatal(err)
	}
	d := Definition{Name: "x", Files: map[string]string{"conf/relay.conf": "{port}"}}
	if err := d.prepare(blanks{dir: dir}); err == nil {
		t.Error("wrote through a symbolic link")
	}
	if left, _ := os.ReadDir(outside); len(left) != 0 {
		t.Errorf("outside: %v", left)
	}
	d.Files = map[string]string{"relay.conf": `db = "{dir}"`}
	if err := d.prepare(blanks{dir: filepath.Join(dir, `a"b`)}); err == nil || !strings.Contains(err.Error(), "--work") {
		t.Errorf("a quote in the path: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	entries, _ := embedded.ReadDir("catalog")
	for _, e := range entries {
		text, _ := embedded.ReadFile("catalog/" + e.Name())
		f.Add(string(text))
	}
	f.Add("name = 'x'\ncommand = '{program} {port}'\n[[variant]]\nname='y'")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parse("f.toml", text)
		if err != nil && !strings.HasPrefix(err.Error(), "f.toml: ") {
			t.Errorf("error without the file: %v", err)
		}
		for _, d := range all {
			if !nameRule.MatchString(d.Name) || !d.usesPort() {
				t.Errorf("accepted %+v", d)
			}
		}
	})
}

func FuzzFromTemplate(f *testing.F) {
	for _, s := range []string{"/bin/relay --port {port}", "A=b relay <port> '{dir}'", "ws://127.0.0.1:80", `relay "{port}`, "relay \\", "://", "wss://[::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		d, err := FromTemplate("x", command)
		if err != nil || d.External() {
			return
		}
		words, err := d.argv(blanks{port: "4711", dir: "/d", program: "/p"})
		if err != nil || len(words) == 0 || words[0] != "/p" {
			t.Errorf("%q became %q, %v", command, words, err)
		}
		_ = d.Describe(t.Context(), "", Settings{})
	})
}
