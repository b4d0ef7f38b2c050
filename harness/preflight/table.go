package preflight

import "relaybench/harness/measure"

// check is one question about how a relay behaves.
type check struct {
	code string
	// stated is set where a relay that does otherwise does the same work as the others all the
	// same: what breaks a NIP's word without changing what a figure means, as relays in wide use do
	// here and there.
	stated bool
	alone  bool // it asks when nothing else does, and in the order of the table
	ask    func(*asking) (found, error)
}

// probe is one question about what a relay can do. Its answer is told to people and never held
// against the relay.
type probe struct {
	name string
	nip  int // what it asks of, 0 for none
	ask  func(*asking) (spoken bool, text string, err error)
}

// table lists the checks. The first decides whether the others can be asked at all; the one on
// throttling comes last, since what it does may set off a limit.
var table []check

// probes lists what is found out by asking, beyond what the flood of the last check tells.
var probes []probe

func init() { // the table names functions that look into it
	table = []check{
		{code: measure.CodeStores, ask: storesAndReturns},
		{code: measure.CodeText, ask: returnsText},
		{code: measure.CodeEmptyTag, ask: returnsEmptyTag},
		{code: measure.CodeControl, stated: true, ask: controlCharacters},
		{code: measure.CodeBadSignature, ask: refusesBadSignature},
		{code: measure.CodeBadID, ask: refusesBadID},
		{code: measure.CodeMalformed, stated: true, ask: refusesMalformed},
		{code: measure.CodeCorpusTime, ask: acceptsCorpusTime},
		{code: measure.CodeYear2020, stated: true, ask: accepts2020},
		{code: measure.CodePrivateKinds, ask: returnsPrivateKinds},
		{code: measure.CodeDuplicate, stated: true, ask: answersDuplicate},
		{code: measure.CodeFilterIDs, ask: filtersByID},
		{code: measure.CodeFilterAuthors, ask: filtersByAuthor},
		{code: measure.CodeFilterKinds, ask: filtersByKind},
		{code: measure.CodeFilterTagE, ask: filtersByE},
		{code: measure.CodeFilterTagP, ask: filtersByP},
		{code: measure.CodeFilterTagT, ask: filtersByT},
		{code: measure.CodeFilterMore, stated: true, ask: filtersByMore},
		{code: measure.CodeLimit, ask: keepsLimit},
		{code: measure.CodeOrder, ask: newestFirst},
		{code: measure.CodeInclusive, ask: inclusive},
		{code: measure.CodeSeveral, stated: true, ask: severalFilters},
		{code: measure.CodeStale, stated: true, ask: answersAnew},
		{code: measure.CodeReplaceable, ask: replacesReplaceable},
		{code: measure.CodeAddressable, ask: replacesAddressable},
		{code: measure.CodeLateVersion, stated: true, ask: keepsOutSuperseded},
		{code: measure.CodeEphemeral, stated: true, ask: ephemeral},
		{code: measure.CodeDeletion, stated: true, ask: deletesOwnAlone},
		{code: measure.CodeLive, ask: sendsLive},
		{code: measure.CodeLiveFilter, ask: filtersLive},
		{code: measure.CodeClose, stated: true, ask: endsOnClose},
		{code: measure.CodeNIP77, ask: reconciles},
		{code: measure.CodeAdvertised, stated: true, alone: true, ask: speaksWhatItNames},
		{code: measure.CodeNagle, stated: true, alone: true, ask: holdsBack},
		{code: measure.CodeFsyncEach, stated: true, alone: true, ask: syncsEach},
		{code: measure.CodeOnlyMessage, stated: true, alone: true, ask: onlyMessages},
		{code: measure.CodeThrottles, alone: true, ask: doesNotThrottle},
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
