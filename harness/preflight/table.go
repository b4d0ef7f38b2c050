package preflight

import (
	"strconv"

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

// table lists the checks. The first decides whether the others can be asked at all; the one on
// throttling comes last, since what it does may set off a limit.
var table []check

// NIP is the name of the probe of a NIP, for Options.Only.
func NIP(number int) string { return "NIP-" + strconv.Itoa(number) }

// probes lists what is found out by asking, beyond what the flood of the last check tells.
var probes []probe

func init() { // the table names functions that look into it
	table = []check{
		{code: results.CodeStores, ask: storesAndReturns},
		{code: results.CodeText, ask: returnsText},
		{code: results.CodeEmptyTag, ask: returnsEmptyTag},
		{code: results.CodeControl, stated: true, ask: controlCharacters},
		{code: results.CodeBadSignature, ask: refusesBadSignature},
		{code: results.CodeBadID, ask: refusesBadID},
		{code: results.CodeMalformed, stated: true, ask: refusesMalformed},
		{code: results.CodeCorpusTime, ask: acceptsCorpusTime},
		{code: results.CodeYear2020, stated: true, ask: accepts2020},
		{code: results.CodePrivateKinds, ask: returnsPrivateKinds},
		{code: results.CodeDuplicate, stated: true, ask: answersDuplicate},
		{code: results.CodeFilterIDs, ask: filters(byID)},
		{code: results.CodeFilterAuthors, ask: filters(byAuthor)},
		{code: results.CodeFilterKinds, ask: filters(byKind)},
		{code: results.CodeFilterTagE, ask: filters(byE)},
		{code: results.CodeFilterTagP, ask: filters(byP)},
		{code: results.CodeFilterTagT, ask: filters(byT)},
		{code: results.CodeFilterMore, stated: true, ask: filters(byMore)},
		{code: results.CodeLimit, ask: keepsLimit},
		{code: results.CodeOrder, ask: newestFirst},
		{code: results.CodeInclusive, ask: inclusive},
		{code: results.CodeSeveral, stated: true, ask: severalFilters},
		{code: results.CodeStale, stated: true, ask: answersAnew},
		{code: results.CodeReplaceable, ask: replacesReplaceable},
		{code: results.CodeAddressable, ask: replacesAddressable},
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
