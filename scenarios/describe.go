package scenarios

import (
	"slices"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/results"
)

// Reading order. A family begins at a round number, so that another scenario of it, or a family
// between two, finds a place.
const (
	orderThroughput = 1
	orderVisibility = 2
	orderPaced      = 3
	orderQueries    = 100 // and two for each
	orderCounts     = 150
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

// sampled records a figure that rests on so many samples.
func sampled[N int | int64](t *harness.Trial, metric, unit string, better results.Better, value float64, samples N) {
	t.Measure(results.Measurement{Metric: metric, Unit: unit, Better: better, Trials: []float64{value}, Samples: int64(samples)})
}

// check is a finding that bars figures where it does not hold.
func check(code string, ok bool, counts map[string]float64, evidence ...results.Evidence) results.Finding {
	return results.Finding{Code: code, Verdict: results.Holds(ok), Counts: counts, Evidence: evidence}
}

// counts makes the counts of a finding from names and numbers by turns.
func counts(pairs ...any) map[string]float64 {
	all := make(map[string]float64, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		switch n := pairs[i+1].(type) {
		case int:
			all[pairs[i].(string)] = float64(n)
		case int64:
			all[pairs[i].(string)] = float64(n)
		}
	}
	return all
}

// where lists the corpus indexes of which a condition holds; none is not nil.
func where(c *corpus.Corpus, holds func(i int) bool) []int {
	all := []int{}
	for i := range c.Len() {
		if holds(i) {
			all = append(all, i)
		}
	}
	return all
}

// among says of each event of the corpus whether it stands in one of the lists.
func among(c *corpus.Corpus, lists ...[]int) []bool {
	in := make([]bool, c.Len())
	for _, list := range lists {
		for _, i := range list {
			in[i] = true
		}
	}
	return in
}

// bytesOf is the size of events of the corpus, as JSON.
func bytesOf(c *corpus.Corpus, indexes []int) (bytes int64) {
	for _, i := range indexes {
		bytes += int64(c.Entry(i).Length)
	}
	return bytes
}

// idsOf are the ids of events of the corpus.
func idsOf(c *corpus.Corpus, indexes []int) []corpus.ID {
	ids := make([]corpus.ID, len(indexes))
	for k, i := range indexes {
		ids[k] = c.Entry(i).ID
	}
	return ids
}

// spread picks n of the indexes, evenly.
func spread(indexes []int, n int) []int {
	n = min(n, len(indexes))
	picked := make([]int, n)
	for k := range picked {
		picked[k] = indexes[k*len(indexes)/n]
	}
	return picked
}

// examples is how many events of each kind and reason stand as evidence.
const examples = 5

// evidenceOf names an event, with its kind where it is of the corpus.
func evidenceOf(c *corpus.Corpus, code, cause string, id corpus.ID) results.Evidence {
	e := results.Evidence{Code: code, Cause: cause, ID: id.String()}
	if i, ok := c.Find(id); ok {
		kind := int(c.Entry(i).Kind)
		e.Kind = &kind
	}
	return e
}

// eventEvidence names an event of the corpus.
func eventEvidence(code string, c *corpus.Corpus, i int) results.Evidence {
	return evidenceOf(c, code, "", c.Entry(i).ID)
}

// firstEvents names the first few of some events of the corpus.
func firstEvents(code string, c *corpus.Corpus, indexes []int) (all []results.Evidence) {
	for _, i := range indexes[:min(len(indexes), examples)] {
		all = append(all, eventEvidence(code, c, i))
	}
	return all
}

// firstIDs names the first few of some events, and says how many others there are.
func firstIDs(c *corpus.Corpus, code, cause string, few int, ids []corpus.ID) (all []results.Evidence) {
	for _, id := range ids[:min(len(ids), few)] {
		all = append(all, evidenceOf(c, code, cause, id))
	}
	return andOthers(all, code, cause, len(ids)-few)
}

// andOthers tells of n more events that are like those named as evidence.
func andOthers(all []results.Evidence, code, cause string, n int) []results.Evidence {
	if n <= 0 {
		return all
	}
	return append(all, results.Evidence{Code: code, Cause: cause, Count: int64(n)})
}
