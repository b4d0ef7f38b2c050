package relays

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestTheCatalogsCommandsAreRendered(t *testing.T) {
	byName := catalogByName(t)
	b := blanks{port: "4711", dir: "/w/my data", program: "/bin/x", settings: Settings{MaxEventBytes: 70000, MaxTags: 10},
		native: nativeBlanks{file: "/c/events.ndjson", url: "ws://127.0.0.1:80", direction: "down"}}
	for _, test := range []struct {
		name string
		verb Verb
		want []string
	}{
		{"strfry", Import, []string{"/bin/x", "--config", "/w/my data/strfry.conf", "import"}},
		{"strfry", Sync, []string{"/bin/x", "--config", "/w/my data/strfry.conf", "sync", "ws://127.0.0.1:80", "--dir", "down"}},
		{"geode", Import, []string{"/bin/x", "import", "--db", "/w/my data/geode.sqlite", "/c/events.ndjson"}},
		{"ref-bolt", Import, []string{"/bin/x", "import", "--store", "bolt", "--dir", "/w/my data", "--max-event-bytes", "135536"}},
		{"ref-sqlite", Sync, []string{"/bin/x", "sync", "--store", "sqlite", "--dir", "/w/my data", "--max-event-bytes", "135536", "--direction", "down", "ws://127.0.0.1:80"}},
	} {
		got, err := byName[test.name].nativeArgv(test.verb, b)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s %s: %q, %v", test.name, test.verb, got, err)
		}
	}
	for _, test := range []struct {
		name       string
		verb       Verb
		can        bool
		stop, must bool
	}{
		{"strfry", Import, true, false, false},
		{"strfry", Sync, true, false, false},
		{"geode", Import, true, true, false},
		{"geode", Sync, false, false, false},
		{"ref-bolt", Sync, true, true, false},
		{"ref-memory", Import, false, false, false},
		{"ref-null", Sync, false, false, false},
		{"wisp", Import, false, false, false},
	} {
		d := byName[test.name]
		if can, why := d.Can(test.verb); can != test.can || can == (why != "") || d.NeedsStop(test.verb) != test.stop || d.NeedsRun(test.verb) != test.must {
			t.Errorf("%s can %s: %v %q", test.name, test.verb, can, why)
		}
	}
	if got := byName["strfry"].Directions(); !slices.Equal(got, []Direction{Down, Up, Both}) {
		t.Errorf("strfry's sync goes %v", got)
	}
	if external, err := FromTemplate("x", "ws://127.0.0.1:80"); err != nil {
		t.Fatal(err)
	} else if can, why := external.Can(Import); can || why == "" {
		t.Error("a relay that runs already can be filled")
	}
}

func TestBulkRaisesWhatStandsInTheWay(t *testing.T) {
	byName := catalogByName(t)
	stock := byName["strfry"]
	bulk := stock.Bulk()
	if bulk == stock || bulk.Name != "strfry" || bulk.Bulk() != bulk {
		t.Fatal("there is no bulk form of strfry, or one of that")
	}
	b := blanks{port: "4711", dir: "/w/data", settings: Settings{MaxEventBytes: 70000, MaxTags: 10}}
	was, is := stock.config(b)["strfry.conf"], bulk.config(b)["strfry.conf"]
	for _, change := range [][2]string{
		{"maxFilterLimit = 500\n", "maxFilterLimit = 10000000\n"},
		{"maxReqFilterSize = 200\n", "maxReqFilterSize = 10000\n"},
		{"maxPendingOutboundBytes = 33554432\n", "maxPendingOutboundBytes = 4294967296\n"},
		{"maxSyncEvents = 10000000\n", "maxSyncEvents = 100000000\n"},
	} {
		if !strings.Contains(was, change[0]) || !strings.Contains(is, change[1]) {
			t.Errorf("%q does not become %q", change[0], change[1])
		}
		was = strings.Replace(was, change[0], change[1], 1)
	}
	if was != is {
		t.Error("something else has changed as well")
	}
	d := bulk.Describe(t.Context(), "", Settings{})
	if !strings.Contains(strings.Join(d.Notes, "\n"), "raised for bulk transfers: maxFilterLimit = 10000000; ") || strings.Contains(strings.Join(d.Notes, "\n"), "clamped to 500") {
		t.Errorf("notes %q", d.Notes)
	}
	if bulk.Limits.FilterLimit != 10000000 || stock.Limits.FilterLimit != 500 || bulk.Limits.Subscriptions != stock.Limits.Subscriptions {
		t.Errorf("limits %+v", bulk.Limits)
	}
	if d := byName["ref-bolt"]; d.Bulk() != d {
		t.Error("the reference relay has something to raise")
	}
	for name, flag := range map[string]string{"geode": "geode.sqlite", "geode-nosearch": "--no-search"} {
		d := byName[name].Bulk()
		words, err := d.argv(b)
		if text := d.config(b)["bulk.toml"]; err != nil || !strings.Contains(text, "max_sync_events = 100000000") || !slices.Contains(words, "/w/data/bulk.toml") || !strings.HasSuffix(words[len(words)-1], flag) {
			t.Errorf("%s: %q with %q, %v", name, words, text, err)
		}
	}
	for _, name := range []string{"rnostr", "wisp"} {
		if d := byName[name]; d.Bulk().Limits.FilterLimit <= d.Limits.FilterLimit {
			t.Errorf("%s: its bulk form answers with %d events at most", name, d.Bulk().Limits.FilterLimit)
		}
	}
}

func TestCommandsThatCannotBeCarriedOutAreRefused(t *testing.T) {
	const good = "name = 'x'\ncommand = '{program} {port}'\n"
	for _, test := range []struct{ name, text, want string }{
		{"no command", "[import]\nrunning = true", "[import] has no command"},
		{"running unsaid", "[sync]\ncommand = '{program} pull {url}'", `add running = true, false or "either"`},
		{"running unknown", "[sync]\ncommand = '{program} pull {url}'\nrunning = 'sometimes'", `write true, false or "either"`},
		{"quotes", "[sync]\ncommand = '''{program} 'a'''\nrunning = true", "single quote is opened"},
		{"no program", "[sync]\ncommand = 'pull {url}'\nrunning = true", "[sync] command has no {program}"},
		{"no events", "[import]\ncommand = '{program} import'\nrunning = true", "add stdin = true"},
		{"events twice", "[import]\ncommand = '{program} import {file}'\nstdin = true\nrunning = true", "one way or the other"},
		{"placeholder of another verb", "[import]\ncommand = '{program} {file} {url}'\nrunning = true", "unknown placeholder {url}"},
		{"no address", "[sync]\ncommand = '{program} sync'\nrunning = true", "[sync] command has no {url}"},
		{"directions untold", "[sync]\ncommand = '{program} {url}'\nrunning = true\ndirections = ['down', 'up']", "no {direction}"},
		{"direction unknown", "[sync]\ncommand = '{program} {url} {direction}'\nrunning = true\ndirections = ['left']", "use down, up or both"},
		{"direction twice", "[sync]\ncommand = '{program} {url} {direction}'\nrunning = true\ndirections = ['up', 'up']", "twice"},
		{"placeholder of a command in the relay's", "", "unknown placeholder {file}"},
		{"empty bulk", "[bulk]\nnotes = ['x']", "[bulk] replaces nothing"},
		{"edit of no file", "[bulk]\n[[bulk.edit]]\nfile = 'a'\nfind = 'b'\nreplace = 'c'", `no file "a"`},
		{"edit of nothing", "[files]\na = 'x'\n[bulk]\n[[bulk.edit]]\nfile = 'a'\nfind = 'b'\nreplace = 'c'", "stands 0 times"},
		{"edit in two places", "[files]\na = 'bb'\n[bulk]\n[[bulk.edit]]\nfile = 'a'\nfind = 'b'\nreplace = 'c'", "stands 2 times"},
		{"edit without a text", "[files]\na = 'bb'\n[bulk]\n[[bulk.edit]]\nfile = 'a'\nreplace = 'c'", "find is empty"},
		{"bulk file outside", "[bulk]\nfiles = { '../x' = 'y' }", "does not stay inside {dir}"},
		{"bulk command", "[bulk]\ncommand = '{program}'", "relay x: in its bulk form, {port}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := good + test.text
			if test.text == "" {
				text = "name = 'x'\ncommand = '{program} {port} {file}'"
			}
			_, err := parse("x.toml", text)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "x.toml: ") {
				t.Errorf("error %v, want one of x.toml with %q", err, test.want)
			}
		})
	}
}

func TestVariantsHaveTheirFilesCommandsUnlessTheySayOtherwise(t *testing.T) {
	all, err := parse("x.toml", `
name = "x"
command = "{program} {port}"
import = { command = "{program} import {file}", running = false }
sync = { command = "{program} pull {url}", running = true }
[bulk]
env = { LIMIT = "0" }
[[variant]]
name = "same"
[[variant]]
name = "other"
import = { command = "{program} load", stdin = true, running = true }
sync = {}
bulk = { command = "{program} {port} --unlimited" }
`)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	same, other := all[1], all[2]
	if !reflect.DeepEqual(same.ImportRule, all[0].ImportRule) || !slices.Equal(same.Directions(), []Direction{Down}) || same.Bulk().Env["LIMIT"] != "0" {
		t.Errorf("%+v", same)
	}
	if !other.ImportRule.Stdin || !other.NeedsRun(Import) || other.Directions() != nil || other.Bulk().Command != "{program} {port} --unlimited" || other.Bulk().Env != nil {
		t.Errorf("%+v", other)
	}
}

func TestAVariantIsNotReplacedByItsFilesBulkForm(t *testing.T) {
	const file = `
name = "x"
command = "{program} {port}"
[files]
"a" = "1"
[bulk]
command = "{program} {port} --unlimited"
env = { LIMIT = "0" }
files = { "a" = "2" }
[[variant]]
name = "y"
`
	for _, test := range []struct{ name, variant, want string }{
		{"command", "command = '{program} {port} --no-sync'", "relay y: the file's [bulk] would replace the variant's own command: give it [variant.bulk], or bulk = {}"},
		{"environment", "env = { LIMIT = '5', OTHER = '1' }", "own env LIMIT"},
		{"file", "files = { 'a' = '3' }", `own file "a"`},
		{"nothing in common", "env = { OTHER = '1' }", ""},
		{"bulk form of its own", "command = '{program} {port} --no-sync'\nbulk = { command = '{program} {port} --no-sync --unlimited' }", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := parse("x.toml", file+test.variant)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
	all, err := parse("x.toml", file+"command = '{program} {port} --no-sync'\nbulk = {}")
	if err != nil {
		t.Fatal(err)
	}
	if d := &all[1]; d.Bulk() != d {
		t.Errorf("a variant that raises nothing has the bulk form %+v", d.Bulk())
	}
}
