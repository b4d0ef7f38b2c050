package model

import (
	"strconv"
	"testing"

	"relaybench/corpus"
)

// Each case is a story of a few events, told in the order of their created_at (1000, 1001, …), by
// one author unless the story says so.
func TestRulesByNIP(t *testing.T) {
	alice, bob := corpus.PubKey{0xa}, corpus.PubKey{0xb}
	id := func(n int) string { return corpus.ID{byte(n + 1)}.String() }
	address := func(kind int, pk corpus.PubKey, d string) corpus.Tag {
		return corpus.Tag{"a", strconv.Itoa(kind) + ":" + pk.String() + ":" + d}
	}
	event := func(kind int, tags ...corpus.Tag) corpus.Event {
		return corpus.Event{PubKey: alice, Kind: kind, Tags: tags}
	}
	by := func(pk corpus.PubKey, e corpus.Event) corpus.Event { e.PubKey = pk; return e }
	at := func(n int64, e corpus.Event) corpus.Event { e.CreatedAt = 1000 + n; return e }

	for name, c := range map[string]struct {
		events []corpus.Event
		want   string // a letter each, small where it is optional: S stored, O superseded, D deleted, X expired, V vanished, E ephemeral
	}{
		"NIP-01: newest profile":                     {[]corpus.Event{event(0), event(0), event(0)}, "OOS"},
		"NIP-01: each author's profile":              {[]corpus.Event{event(0), by(bob, event(0))}, "SS"},
		"NIP-01: lowest id among equals":             {[]corpus.Event{event(3), at(0, event(3))}, "SO"},
		"NIP-01: one version for each d":             {[]corpus.Event{event(30023, corpus.Tag{"d", "x"}), event(30023, corpus.Tag{"d", "y"}), event(30023, corpus.Tag{"d", "x"})}, "OSS"},
		"NIP-01: no d is an empty d":                 {[]corpus.Event{event(30023), event(30023, corpus.Tag{"d"}), event(30023, corpus.Tag{"d", ""}, corpus.Tag{"d", "x"})}, "OOS"},
		"NIP-01: d means nothing to replaceables":    {[]corpus.Event{event(10002, corpus.Tag{"d", "x"}), event(10002, corpus.Tag{"d", "y"})}, "OS"},
		"NIP-01: ephemeral":                          {[]corpus.Event{event(20000), event(29999)}, "EE"},
		"NIP-01: the rest is kept":                   {[]corpus.Event{event(1), event(1), event(40000), event(40000)}, "SSSS"},
		"NIP-09: by id":                              {[]corpus.Event{event(1), event(1), event(5, corpus.Tag{"e", id(0)})}, "DSS"},
		"NIP-09: by id, whatever is older":           {[]corpus.Event{event(5, corpus.Tag{"e", id(1)}), event(1)}, "SD"},
		"NIP-09: another author's event":             {[]corpus.Event{by(bob, event(1)), event(5, corpus.Tag{"e", id(0)})}, "Ss"},
		"NIP-09: not of a deletion":                  {[]corpus.Event{event(1), event(5, corpus.Tag{"e", id(0)}), event(5, corpus.Tag{"e", id(1)})}, "DSS"},
		"NIP-09: not of a request to vanish":         {[]corpus.Event{event(62, corpus.Tag{"relay", "ALL_RELAYS"}), event(5, corpus.Tag{"e", id(0)})}, "sS"},
		"NIP-09: by address, up to the request":      {[]corpus.Event{event(30023), at(1, event(5, address(30023, alice, ""))), at(1, event(30023, corpus.Tag{"d", ""})), event(30023)}, "DSDS"},
		"NIP-09: by address, the d has colons":       {[]corpus.Event{event(30023, corpus.Tag{"d", "a:b"}), event(30023, corpus.Tag{"d", "a"}), event(5, address(30023, alice, "a:b"))}, "DSS"},
		"NIP-09: a profile by address":               {[]corpus.Event{event(0), event(5, address(0, alice, ""))}, "DS"},
		"NIP-09: another author's address":           {[]corpus.Event{by(bob, event(0)), event(5, address(0, bob, ""))}, "Ss"},
		"NIP-09: address of a regular kind":          {[]corpus.Event{event(1), event(5, address(1, alice, ""))}, "SS"},
		"NIP-09: address with a needless d":          {[]corpus.Event{event(0), event(5, address(0, alice, "x"))}, "sS"},
		"NIP-09: address without its last colon":     {[]corpus.Event{event(0), event(5, corpus.Tag{"a", "0:" + alice.String()})}, "sS"},
		"NIP-09: newest version deleted by id":       {[]corpus.Event{event(0), event(0), event(0), event(5, corpus.Tag{"e", id(2)})}, "osDS"},
		"NIP-09: a middle version deleted":           {[]corpus.Event{event(0), event(0), event(0), event(5, corpus.Tag{"e", id(1)})}, "ODSS"},
		"NIP-09: gift wrap by its recipient":         {[]corpus.Event{by(bob, event(1059, corpus.Tag{"p", alice.String()})), event(5, corpus.Tag{"e", id(0)}, corpus.Tag{"k", "1059"})}, "sS"},
		"NIP-28: channel metadata":                   {[]corpus.Event{event(41), event(41)}, "sS"},
		"NIP-40: expired":                            {[]corpus.Event{event(1, corpus.Tag{"expiration", strconv.Itoa(testNow)})}, "X"},
		"NIP-40: may expire during the run":          {[]corpus.Event{event(1, corpus.Tag{"expiration", strconv.Itoa(testNow + 1)}), event(1, corpus.Tag{"expiration", strconv.Itoa(testNow + ExpiryMargin)})}, "ss"},
		"NIP-40: outlasts the run":                   {[]corpus.Event{event(1, corpus.Tag{"expiration", strconv.Itoa(testNow + ExpiryMargin + 1)})}, "S"},
		"NIP-40: unreadable":                         {[]corpus.Event{event(1, corpus.Tag{"expiration", "-5"}), event(1, corpus.Tag{"expiration"}), event(1, corpus.Tag{"expiration", "1e3"}), event(1, corpus.Tag{"expiration", "0"})}, "ssss"},
		"NIP-40: two that disagree":                  {[]corpus.Event{event(1, corpus.Tag{"expiration", "1"}, corpus.Tag{"expiration", "9999999999"})}, "s"},
		"NIP-40: newest version expired":             {[]corpus.Event{event(0), event(0, corpus.Tag{"expiration", "1"})}, "sX"},
		"NIP-40: newest version may expire":          {[]corpus.Event{event(0), event(0, corpus.Tag{"expiration", strconv.Itoa(testNow + 5)})}, "os"},
		"NIP-40: deletion expired":                   {[]corpus.Event{event(1), event(5, corpus.Tag{"e", id(0)}, corpus.Tag{"expiration", "1"})}, "sX"},
		"NIP-62: everything up to the request":       {[]corpus.Event{event(1), event(5, corpus.Tag{"e", id(0)}), event(0), event(62, corpus.Tag{"relay", "ALL_RELAYS"}), at(3, event(1)), event(1), by(bob, at(0, event(1)))}, "VVVsVSS"},
		"NIP-62: not by this relay, perhaps":         {[]corpus.Event{event(1), event(62, corpus.Tag{"relay", "wss://elsewhere.example"}), event(1)}, "ssS"},
		"NIP-62: asks it of nobody":                  {[]corpus.Event{event(1), event(62)}, "Ss"},
		"NIP-62: nor with a relay tag without one":   {[]corpus.Event{event(1), event(62, corpus.Tag{"relay"})}, "Ss"},
		"NIP-40: nines and zeros":                    {[]corpus.Event{event(1, corpus.Tag{"expiration", "9999999990"}), event(1, corpus.Tag{"expiration", "0000000009"})}, "SX"},
		"NIP-40: of 18 digits, and of 19":            {[]corpus.Event{event(1, corpus.Tag{"expiration", "999999999999999999"}), event(1, corpus.Tag{"expiration", "9999999999999999999"})}, "Ss"},
		"NIP-62: gift wraps to the author":           {[]corpus.Event{by(bob, event(1059, corpus.Tag{"p", alice.String()})), by(bob, event(1059)), event(62, corpus.Tag{"relay", "ALL_RELAYS"}), by(bob, event(1059, corpus.Tag{"p", alice.String()}))}, "VSss"},
		"NIP-62: what a vanished deletion deleted":   {[]corpus.Event{event(5, corpus.Tag{"e", id(2)}), event(62, corpus.Tag{"relay", "ALL_RELAYS"}), event(1)}, "Vss"},
		"NIP-62: an older request":                   {[]corpus.Event{event(62, corpus.Tag{"relay", "ALL_RELAYS"}), event(62, corpus.Tag{"relay", "ALL_RELAYS"})}, "ss"},
		"NIP-70: protected":                          {[]corpus.Event{event(1, corpus.Tag{"-"}), event(0), event(0, corpus.Tag{"-"})}, "sos"},
		"NIP-70: protected deletion":                 {[]corpus.Event{event(1), event(5, corpus.Tag{"e", id(0)}, corpus.Tag{"-"})}, "ss"},
		"two kinds never share an address":           {[]corpus.Event{event(30023, corpus.Tag{"d", "x"}), event(30024, corpus.Tag{"d", "x"})}, "SS"},
		"a reference to an event that is not there":  {[]corpus.Event{event(1), event(5, corpus.Tag{"e", id(77)})}, "SS"},
		"a deletion that refers to nothing readable": {[]corpus.Event{event(5, corpus.Tag{"e"}, corpus.Tag{"e", "xyz"}, corpus.Tag{"a"}, corpus.Tag{"a", ":"}, corpus.Tag{"a", "x:y:z"}, corpus.Tag{})}, "S"},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.events {
				c.events[i].ID = corpus.ID{byte(i + 1)}
				if c.events[i].CreatedAt == 0 {
					c.events[i].CreatedAt = 1000 + int64(i)
				}
			}
			corpus, m := modelOf(t, c.events, nil)
			got := make([]byte, len(c.events))
			for n, e := range c.events {
				i, _ := corpus.Find(e.ID)
				got[n] = "SODXVEN"[m.Why(i)]
				if m.Optional(i) {
					got[n] += 'a' - 'A'
				}
			}
			if string(got) != c.want {
				t.Errorf("got %s, want %s\n%s", got, c.want, listing(corpus, m))
			}
		})
	}
}
