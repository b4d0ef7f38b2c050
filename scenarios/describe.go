package scenarios

import (
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

// transferMetrics are those of whatever moves events in bulk.
var transferMetrics = []results.Metric{
	figure("records/s", "records/s"), figure("wall time", "wall time"), figure("delivered", "delivered"), figure("expected", "expected"),
	figure("missing", "missing"),
}
