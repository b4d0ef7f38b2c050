package report

import (
	"slices"
	"strings"
)

// What is known by name: order and friendly words. A scenario or metric that is not in these tables is
// rendered all the same, under its own key, after those that are.

var sectionTitles = []struct{ prefix, title string }{
	{"ingest", "Ingest"},
	{"query", "Queries"},
	{"storage", "Storage"},
	{"crash", "Crash"},
	{"import", "Import"},
	{"negentropy", "Negentropy"},
	{"sync", "Sync"},
	{"fetch", "Fetch"},
}

var scenarioTitles = []struct{ key, title string }{
	{"ingest.throughput", "Publishing at full speed"},
	{"ingest.visibility", "From publish to readable"},
	{"ingest.paced", "On a schedule, whatever the answers"},
	{"query.firehose", "firehose: the newest events of all kinds"},
	{"query.global-feed", "global-feed: the newest notes"},
	{"query.profiles", "profiles: of the 50 busiest authors"},
	{"query.author-archive", "author-archive: everything by the 3 quietest"},
	{"query.follow-feed", "follow-feed: notes of 150 followed authors"},
	{"query.thread", "thread: under the most referenced note"},
	{"query.notifications", "notifications: of the most mentioned key"},
	{"query.conversation", "conversation: between two people"},
	{"query.reactions-watch", "reactions-watch: on the 150 busiest notes"},
	{"query.hashtag", "hashtag: notes under the top one"},
	{"query.by-ids", "by-ids: 100 events by their ids"},
	{"query.recent-window", "recent-window: the last fifth of the time"},
	{"query.empty", "empty: nothing matches, the floor"},
	{"query.deep-page", "deep-page: in the middle of the past"},
	{"storage", "On disk after a clean stop"},
	{"crash", "Killed in the middle of publishing, and started again"},
	{"import", "Filled by its own import command, and counted by asking"},
}

var metricTitles = []struct{ key, title string }{
	{"accepted", "accepted"},
	{"ok latency", "EVENT to OK"},
	{"unacknowledged", "never acknowledged"},
	{"visible", "EVENT to visible for another reader"},
	{"ok", "EVENT to OK, one at a time"},
	{"queryable by ok", "queryable when its OK arrives"},
	{"ok from intended", "intended sending to OK"},
	{"ready again", "from start to ready, over what was left"},
	{"acknowledged before", "acknowledged before"},
	{"send delay", "sent late by (the harness)"},
	{"eose", "time to EOSE"},
	{"first event", "time to first event"},
	{"events/s", "events/s from all connections"},
	{"queries/s", "answers/s from all connections"},
	{"events", "events in the answer"},
	{"allocated", "disk blocks"},
	{"apparent", "file lengths"},
	{"write amplification", "bytes written for each corpus byte"},
	{"stored", "stored"},
	{"held afterwards", "held afterwards"},
	{"rejected", "rejected"},
	{"duplicates", "duplicates"},
	{"poll round trip", "poll round trip (the resolution)"},
}

// headlines are the columns of the head-to-head summary. A key that ends in ".*.form" or ".*" stands for all its scenarios.
var headlines = []struct{ scenario, metric, title string }{
	{"ingest.throughput", "accepted", "accepted/s"},
	{"ingest.throughput", "ok latency", "OK latency"},
	{"ingest.visibility", "visible", "visible"},
	{"query.*.hot", "eose", "hot queries"},
	{"query.*.varied", "eose", "varied queries"},
	{"query.*", "events/s", "query events/s"},
	{"storage", "allocated", "disk/event"},
	{"storage", "write amplification", "written"},
	{"negentropy.initial", "time", "first reconcile"},
	{"fetch.giant.raw", metricRecords, "giant REQ"},
	{"fetch.paged.raw", metricRecords, "paged REQs"},
	{"negentropy.heartbeat", "time", "heartbeat"},
}

// resourceMetrics are gathered in one table instead of a block each; a metric whose name starts so belongs there.
var resourceMetrics = []string{"cpu", "peak rss", "read", "written", "open files", "context switches", "harness cpu"}

// statedMetrics are better one way, but all relays should be at their best: they are a line of figures and no bars.
var statedMetrics = []string{"unacknowledged", "queryable by ok"}

func sectionOf(scenario string) (rank int, title string) {
	prefix, _, _ := strings.Cut(scenario, ".")
	i := slices.IndexFunc(sectionTitles, func(s struct{ prefix, title string }) bool { return s.prefix == prefix })
	if i < 0 {
		return len(sectionTitles), prefix
	}
	return i, sectionTitles[i].title
}

// form splits a query key: "query.thread.hot" is "query.thread" in the form "hot".
func form(scenario string) (key, form string) {
	for _, f := range []string{"hot", "varied"} {
		if k, ok := strings.CutSuffix(scenario, "."+f); ok {
			return k, f
		}
	}
	return scenario, ""
}

func scenarioTitle(key string) (rank int, title string) {
	base, _ := form(key)
	for i, s := range scenarioTitles {
		if s.key == base {
			return i, s.title
		}
	}
	return len(scenarioTitles), base
}

func metricTitle(metric string) (rank int, title string) {
	for i, m := range metricTitles {
		if m.key == metric {
			return i, m.title
		}
	}
	return len(metricTitles), metric
}

func isResource(metric string) bool {
	return slices.ContainsFunc(resourceMetrics, func(p string) bool {
		return metric == p || strings.HasPrefix(metric, p+" ")
	})
}

// covers tells whether a headline's key stands for the scenario.
func covers(pattern, scenario string) bool {
	if head, tail, ok := strings.Cut(pattern, "*"); ok {
		return len(scenario) > len(head)+len(tail) && strings.HasPrefix(scenario, head) && strings.HasSuffix(scenario, tail)
	}
	return pattern == scenario
}

// durabilityDecides tells whether a scenario is one in which syncing before the OK costs what others do not pay.
func durabilityDecides(scenario string) bool { return strings.HasPrefix(scenario, "ingest.") }
