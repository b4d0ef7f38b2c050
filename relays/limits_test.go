package relays

import (
	"strings"
	"testing"
)

func TestAcceptsTellsWhatTheCorpusMustNotExceed(t *testing.T) {
	catalog := catalogByName(t)
	for _, c := range []struct {
		name  string
		bytes int
		ok    bool
	}{
		{"khatru-lmdb", 0, true}, {"khatru-lmdb", 512_000 - 10, true}, {"khatru-lmdb", 512_000 - 9, false}, {"khatru-badger", 600_000, false}, {"khatru-sqlite", 600_000, false},
		{"haven", 600_000, false}, {"orly", 600_000, true}, {"orly", 1_000_000, false}, {"nostr-relay-npm", 102_400, true}, {"nostr-relay-npm", 102_401, false},
		{"strfry", 10_000_000, true}, {"geode", 10_000_000, true}, {"ref-bolt", 65_536, true},
	} {
		ok, why := catalog[c.name].Accepts(c.bytes)
		if ok != c.ok || ok != (why == "") || strings.Contains(why, c.name) {
			t.Errorf("%s, %d bytes: %v, %q", c.name, c.bytes, ok, why)
		}
	}
	for _, d := range catalog {
		if ok, why := d.Accepts(0); !ok {
			t.Errorf("%s does not take the default ceiling: %s", d.Name, why)
		}
		if ranked := d.NeverRanked == ""; ranked == (d.Name == "ref-null") {
			t.Errorf("%s: never_ranked %q", d.Name, d.NeverRanked)
		}
	}
}
