package preflight

// check is one question about how a relay behaves.
type check struct {
	name string
	// required is set where a relay that fails does another work than the others, so that its figures do not compare: it takes forged
	// events, loses or alters what it acknowledged, or returns something other than what was asked for. What breaks a NIP's word without that, as
	// relays in wide use do here and there, is informative.
	required bool
	ask      func(*asking) (detail string, err error)
}

// probe is one question about what a relay can do. Its answer is stated and never held against the relay.
type probe struct {
	name string
	ask  func(*asking) (value string, err error)
}

// throttles is the check that the flood of events is for.
const throttles = "does not throttle"

// table lists the checks. The first decides whether the others can be asked at all; the one on throttling comes last, alone.
var table []check

// probes lists what is found out by asking, beyond what the flood of the last check tells.
var probes []probe

func init() { // the table names functions that look into it
	table = []check{
		{"stores and returns a valid event", true, storesAndReturns},
		{"returns text unchanged", true, returnsText},
		{"refuses a bad signature", true, refusesBadSignature},
		{"refuses a bad id", true, refusesBadID},
		{"refuses malformed events", true, refusesMalformed},
		{"accepts events of the corpus' time", true, acceptsCorpusTime},
		{"accepts events of 2020", false, accepts2020},
		{"returns kinds 4 and 1059", true, returnsPrivateKinds},
		{"answers a duplicate", false, answersDuplicate},
		{"filters by id, author, kind and tag", true, filters},
		{"keeps to the limit", true, keepsLimit},
		{"answers newest first", true, newestFirst},
		{"since and until are inclusive", false, inclusive},
		{"takes several filters in one REQ", false, severalFilters},
		{"replaces replaceable events", true, replacesReplaceable},
		{"replaces addressable events", true, replacesAddressable},
		{"keeps out superseded versions", false, keepsOutSuperseded},
		{"passes ephemeral events on and stores none", false, ephemeral},
		{"sends live events after EOSE", true, sendsLive},
		{"filters live events", false, filtersLive},
		{"ends a subscription on CLOSE", false, endsOnClose},
		{throttles, true, doesNotThrottle},
	}
	probes = []probe{
		{"NIP-77", probeNegentropy},
		{"subscription cap", probeSubscriptions},
		{"message size", probeMessageSize},
		{"NIP-45", probeCount},
		{"NIP-09", probeDeletion},
		{"NIP-40", probeExpiration},
		{"NIP-62", probeVanish},
		{"NIP-70", probeProtected},
		{"NIP-50", probeSearch},
		{"NIP-11", probeInformation},
		{"order of ties", probeTies},
		{"compression", probeCompression},
	}
}
