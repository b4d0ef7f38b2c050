package preflight

import (
	"strconv"

	"relaybench/corpus"
	"relaybench/results"
)

// check is one question about how a relay behaves.
type check struct {
	code string
	// stated is set where a relay that does otherwise does the same work as the others all the
	// same: what breaks a NIP's word without changing what a figure means, as relays in wide use do
	// here and there.
	stated bool
	alone  bool // it asks when nothing else does, and in the order of the table
	ask    func(*checker)
}

// probe is one question about what a relay can do. Its answer is told to people and never held
// against the relay.
type probe struct {
	name string
	nip  int // what it asks of, 0 for none
	ask  func(*checker) (spoken bool, text string)
}

// NIP is the name of the probe of a NIP, for Options.Only.
func NIP(number int) string { return "NIP-" + strconv.Itoa(number) }

// table lists the checks. The first decides whether the others can be asked at all; the one on
// throttling comes last, since what it does may set off a limit.
var table []check

// probes lists what is found out by asking, beyond what the flood of the last check tells.
var probes []probe

func init() { // the table names functions that look into it
	table = []check{
		// An event is acknowledged, found by its id, and every field is as it was signed (NIP-01).
		{code: results.CodeStores, ask: func(c *checker) {
			c.roundTrip(c.event(1, c.recent(0), "A plain note.", corpus.Tag{"t", "relaybench"}, corpus.Tag{"p", c.key.PubKey.String(), "", "mention"}))
		}},
		// Content and tags come back to the byte, white space at the ends, empty values and tags of
		// one item included.
		{code: results.CodeText, ask: func(c *checker) {
			c.roundTrip(c.event(1, c.recent(0), " \t\n"+text+"\n  ", corpus.Tag{"t", "żółć"}, corpus.Tag{"subject", " " + text + " "}, corpus.Tag{"x", ""},
				corpus.Tag{"y", "", "between", ""}, corpus.Tag{"alone"}))
		}},
		{code: results.CodeEmptyTag, ask: returnsEmptyTag},
		{code: results.CodeControl, stated: true, ask: controlCharacters},
		{code: results.CodeBadSignature, ask: refusesBadSignature},
		{code: results.CodeBadID, ask: refusesBadID},
		{code: results.CodeMalformed, stated: true, ask: refusesMalformed},
		{code: results.CodeCorpusTime, ask: acceptsCorpusTime},
		// No window keeps old events out.
		{code: results.CodeYear2020, stated: true, ask: func(c *checker) {
			const newYear2020 = 1577836800
			c.accepts(c.event(1, newYear2020, "an old note"))
		}},
		// Relays may keep encrypted messages (NIP-04, NIP-59) from readers who are not
		// authenticated; then part of the corpus cannot be read back.
		{code: results.CodePrivateKinds, ask: func(c *checker) {
			to := corpus.Tag{"p", newKey().PubKey.String()}
			c.accepts(c.event(4, c.recent(0), "c2VjcmV0?iv=AAAAAAAAAAAAAAAAAAAAAA==", to), c.event(1059, c.recent(1), "c2VjcmV0", to))
		}},
		{code: results.CodeDuplicate, stated: true, ask: answersDuplicate},
		{code: results.CodeFilterIDs, ask: filters(byID)},
		{code: results.CodeFilterAuthors, ask: filters(byAuthor)},
		{code: results.CodeFilterKinds, ask: filters(byKind)},
		{code: results.CodeFilterTagE, ask: filters(byE)},
		{code: results.CodeFilterTagP, ask: filters(byP)},
		{code: results.CodeFilterTagT, ask: filters(byT)},
		{code: results.CodeFilterMore, stated: true, ask: filters(byMore)},
		// A limit returns as many, and the newest.
		{code: results.CodeLimit, ask: func(c *checker) {
			s, newest := c.series(5)
			for _, n := range []int{50, 1, 3} {
				s.expect(ids(newest[:min(n, len(newest))]...), limited(c.mine(1), n))
			}
		}},
		{code: results.CodeOrder, ask: newestFirst},
		{code: results.CodeInclusive, ask: inclusive},
		// The answer to several filters is the union, and each limit is its filter's own. An event
		// that matches both may come twice.
		{code: results.CodeSeveral, stated: true, ask: func(c *checker) {
			s, newest := c.series(5)
			want := ids(newest[0], newest[1], newest[4])
			r := s.expect(want, limited(c.mine(1), 2), corpus.Filter{IDs: ids(newest[4], newest[0])})
			c.seen.Counts = counts{"twice": number(len(r.ids) > len(want))}
		}},
		{code: results.CodeStale, stated: true, ask: answersAnew},
		// Of kinds 0, 3 and 10002 only the newer event is left (NIP-01).
		{code: results.CodeReplaceable, ask: func(c *checker) {
			s := c.dial()
			for _, kind := range []int{0, 3, 10002} {
				older, newer := c.version(kind, 0, 1), c.version(kind, 5, 2)
				s.replaced(kind, []*corpus.Event{older, newer}, newer)
			}
		}},
		// Of one d tag only the newer event is left, and others stay (NIP-01).
		{code: results.CodeAddressable, ask: func(c *checker) {
			older, other, newer := c.article(0, "one", "Before"), c.article(2, "two", "Another"), c.article(5, "one", "After")
			c.dial().replaced(30023, []*corpus.Event{older, other, newer}, newer, other)
		}},
		{code: results.CodeLateVersion, stated: true, ask: keepsOutSuperseded},
		{code: results.CodeEphemeral, stated: true, ask: ephemeral},
		{code: results.CodeDeletion, stated: true, ask: deletesOwnAlone},
		{code: results.CodeLive, ask: sendsLive},
		{code: results.CodeLiveFilter, ask: filtersLive},
		{code: results.CodeClose, stated: true, ask: endsOnClose},
		{code: results.CodeNIP77, ask: reconciles},
		{code: results.CodeAdvertised, stated: true, alone: true, ask: speaksWhatItNames},
		{code: results.CodeNagle, stated: true, alone: true, ask: holdsBack},
		{code: results.CodeFsyncEach, stated: true, alone: true, ask: syncsEach},
		{code: results.CodeOnlyMessage, stated: true, alone: true, ask: onlyMessages},
		{code: results.CodeThrottles, alone: true, ask: doesNotThrottle},
	}
	probes = []probe{
		{"subscription cap", 0, probeSubscriptions},
		{"message size", 0, probeMessageSize},
		{"NIP-45", 45, probeCount},
		{"NIP-40", 40, probeExpiration},
		{"NIP-62", 62, probeVanish},
		{"NIP-70", 70, probeProtected},
		{"NIP-50", 50, probeSearch},
		{"NIP-11", 11, probeInformation},
		{"order of ties", 0, probeTies},
		{"compression", 0, probeCompression},
	}
}
