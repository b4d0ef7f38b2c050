package scenarios

import (
	"slices"

	"relaybench/corpus"
	"relaybench/results"
)

// The sections of a report, and the places of scenarios in reading order.
const (
	sectionIngest     = "Ingest"
	sectionQueries    = "Queries"
	sectionStorage    = "Storage"
	sectionCrash      = "Crash"
	sectionImport     = "Import"
	sectionNegentropy = "Negentropy"
	sectionSync       = "Sync"
	sectionFetch      = "Fetch"
	sectionReconcile  = "Reconcile"
	sectionProbe      = "Probe"
)

// Reading order. A family begins at a round number, so that another scenario of it, or a family
// between two, finds a place.
const (
	orderThroughput = 1
	orderVisibility = 2
	orderPaced      = 3
	orderQueries    = 100 // and two for each
	orderStorage    = 200
	orderCrash      = 210
	orderImport     = 220
	orderNegentropy = 300
	orderSync       = 400
	orderFetch      = 500
	orderReconcile  = 600
	orderProbe      = 700
)

func figure(key, title string) results.Metric {
	return results.Metric{Key: key, Title: title, Role: results.RoleFigure}
}

func stated(key, title string) results.Metric {
	return results.Metric{Key: key, Title: title, Role: results.RoleStated}
}

func resource(key, title string) results.Metric {
	return results.Metric{Key: key, Title: title, Role: results.RoleResource}
}

// counts makes the counts of a finding from names and numbers by turns.
func counts(pairs ...any) map[string]float64 {
	all := make(map[string]float64, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		all[pairs[i].(string)] = float64(pairs[i+1].(int))
	}
	return all
}

// eventEvidence names an event of the corpus.
func eventEvidence(code string, c *corpus.Corpus, i int) results.Evidence {
	e := c.Entry(i)
	kind := int(e.Kind)
	return results.Evidence{Code: code, ID: e.ID.String(), Kind: &kind}
}

// figures describes metrics by keys and titles by turns. A report on a terminal shows those of a
// pair, a sync or a download that are described, and leaves the others to files.
func figures(pairs ...string) (all []results.Metric) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, figure(pairs[i], pairs[i+1]))
	}
	return all
}

// meant adds what metrics are by keys and meanings by turns.
func meant(all []results.Metric, pairs ...string) []results.Metric {
	for i := 0; i+1 < len(pairs); i += 2 {
		all[slices.IndexFunc(all, func(m results.Metric) bool { return m.Key == pairs[i] })].Meaning = pairs[i+1]
	}
	return all
}

// explained describes metrics whose titles are their keys by keys and meanings by turns.
func explained(pairs ...string) (all []results.Metric) {
	for i := 0; i+1 < len(pairs); i += 2 {
		all = append(all, figure(pairs[i], pairs[i]))
	}
	return meant(all, pairs...)
}

// The metrics of pairs, of reconciliations in layers, of probes, of syncs and of downloads.
var (
	pairMetrics = figures("time", "time", "events/s", "events/s", "events", "events", "duration", "duration", "have", "have", "need", "need",
		"bytes per difference", "B/differing", "rounds", "rounds", "bytes up", "up", "bytes down", "down", "harness share", "harness share")
	reconcileMetrics = explained("warm", "the median of the reconciliations after the first, to which the shares belong",
		"cold", "the first after the relay was filled, in a harness without memory to reuse", "engine", "the protocol",
		"coding", "hexadecimal digits and JSON", "rest", "sockets, the kernel and, for a process, all that the relay does",
		"rounds", "", "up", "frames sent (in memory, the bare messages)", "down", "frames received",
		"have", "ids that only the harness holds", "need", "ids that only the peer holds")
	probeMetrics = explained("connect", "TCP, TLS and the WebSocket handshake, name look-up included", "REQ sent", "from the beginning of connecting to the first REQ",
		"first event", "from the REQ to the first event", "EOSE", "from the REQ to the end of the answer", "events", "",
		"new", "verified, asked for, and not brought by another relay before", "duplicates", "brought before, by this relay or another",
		"only here", "sent by no other relay", "frame p50", "", "frame p99", "", "frame max", "the longest frame of an event",
		"unasked", "verified, and not asked for", "after the end", "events that came after EOSE or CLOSED", "malformed", "no event, or without an id",
		"bad id", "an id that is not the event's hash", "bad signature", "", "received", "",
		"delay", "from the socket until the consumer had the verified event", "busy", "the consumer's share of the time from the first event until it was done with the last, checks included if inline",
		"span", "that time", "checking", "time of processor cores for parsing and verifying", "verified", "", "refused", "")
	syncMetrics = figures("records/s", "records/s", "wall time", "wall time", "missing", "missing", "reconcile time", "reconciled in",
		"reconcile rounds", "in rounds", "transfers", "transfers", "stragglers", "stragglers", "transfer events/s", "transfer/s", "pages", "pages",
		"response bytes", "received", "REQ to EOSE", "REQ to EOSE", "source cpu", "source cpu", "sink cpu", "sink cpu", "tool cpu", "tool cpu",
		"tool's share of the sink's cpu", "tool / sink cpu", "tool peak rss", "tool rss", "refused", "refused")
	fetchMetrics = meant(figures("records/s", "records/s", "MB/s", "MB/s", "missing", "missing", "retried", "retried", "failed", "failed",
		"duplicates", "duplicates", "overfetch", "overfetch", "requests", "REQs", "request latency", "REQ time",
		"in flight by Little's law", "in flight", "in flight configured", "in flight at most", "tool cpu per event", "tool cpu/event",
		"parsed of raw", "of raw"), "retried", "ids asked for again", "failed", "ids that were never answered",
		"duplicates", "events that came more than once", "overfetch", "bytes on the socket for each byte of a distinct event",
		"in flight by Little's law", "REQs on average by Little's law (their rate × their latency)",
		"tool cpu per event", "of relaybench itself", "parsed of raw", "the rate of verified events as a share of that of raw ones")
)
