package scenarios

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/corpus/model"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/relays/negentropy"
	"relaybench/results"
)

// heldSample is how many events of a corpus are asked for by id where a relay was reconciled
// with and said nothing that cannot be; of fewer, and of a relay that was not, all are.
const heldSample = 20_000

// mostUnexpected is how many ids a relay may claim beside those of the corpus before it is not
// listened to any longer: they take memory.
const mostUnexpected = 100_000

// holding is the question what a relay holds of the corpus. It is reconciled with where it speaks
// NIP-77, and asked by id for all or for a sample. Where the two disagree, that is said, and what
// was returned is believed.
type holding struct {
	url    string
	stall  time.Duration // without progress for so long, the relay is given up
	corpus *corpus.Corpus
	of     []int // which events, in corpus order; nil: all
	// against are the events, in corpus order, that the relay is reconciled with; nil: it is not.
	// The nearer to what it holds, the less it costs.
	against []int
	// reconciled is told what the reconciliation came to, before anything is asked for by id. It
	// may be nil.
	reconciled func(negentropy.Result)
	// must says which events have to be there: they, and those that the relay named, are asked for
	// again where they are not there at once. nil: none.
	must     func(i int) bool
	sample   int                   // 0: heldSample
	draw     func(n int) int       // a number from 0 to n-1, for the sample
	progress func(done, total int) // may be nil
}

// found is what a relay was found to hold.
type found struct {
	events     []int  // of the corpus, in its order: what was returned, and what was named and not asked for
	holds      []bool // the same, by corpus index
	reconciled bool   // it was reconciled with to the end
	named      []bool // then, by corpus index: what it holds by its own account
	// trouble is why it was not, where it was asked to: any error of negentropy.ReconcileSplit.
	trouble error

	unexpected map[corpus.ID]bool // ids that it named as its own, of no event of the corpus
	twice      map[corpus.ID]bool // events that it named as its own, though they stand in against
	asked      int                // events asked for by id
	// unreturned were named and did not come when they were asked for, unnamed came and had not
	// been named.
	unreturned, unnamed []int

	client.LookedUp // of all that was asked for; Came is nil
	returned        comparison
}

// disagrees reports whether the relay said otherwise in the reconciliation than it answers when it
// is asked by id. Which of the events may rightly do so (that have expired, say) is the caller's to
// know.
func (h *found) disagrees() bool {
	return len(h.unexpected)+len(h.twice)+len(h.unreturned)+len(h.unnamed) > 0
}

// find finds out what the relay holds of the corpus. The error says why it could not be asked by
// id; that it could not be reconciled with is none, since what is returned is believed anyway.
func (q *holding) find(ctx context.Context) (*found, error) {
	n, first, rest := q.corpus.Len(), q.of, []int(nil)
	if first == nil {
		first = where(q.corpus, func(int) bool { return true })
	}
	h := &found{holds: make([]bool, n), unexpected: map[corpus.ID]bool{}, twice: map[corpus.ID]bool{}, returned: comparison{corpus: q.corpus}}
	h.Stats = client.NewStats()
	if q.against != nil {
		var result negentropy.Result
		if result, h.named, h.trouble = q.reconcile(ctx, h); ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if h.reconciled = h.trouble == nil; h.reconciled && q.reconciled != nil {
			q.reconciled(result)
		}
	}
	if h.reconciled && n > q.size() && !h.disagrees() {
		first, rest = q.parts(n)
	}
	if err := q.ask(ctx, h, first); err != nil {
		return nil, err
	}
	if len(h.unnamed)+len(h.unreturned) > 0 { // perhaps what it held changed after it was reconciled with
		if _, again, err := q.reconcile(ctx, h); err == nil {
			h.named = again
			h.unnamed = slices.DeleteFunc(h.unnamed, func(i int) bool { return again[i] })
			h.unreturned = slices.DeleteFunc(h.unreturned, func(i int) bool { return !again[i] })
		} else if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
	if len(rest) > 0 && h.disagrees() { // what it says of itself is worth nothing
		if err := q.ask(ctx, h, rest); err != nil {
			return nil, err
		}
		rest = nil
	}
	for _, i := range rest {
		h.holds[i] = h.named[i]
	}
	h.events = where(q.corpus, func(i int) bool { return h.holds[i] })
	return h, nil
}

// reconcile says of each event of the corpus whether the relay has it by its own account.
func (q *holding) reconcile(ctx context.Context, h *found) (result negentropy.Result, named []bool, err error) {
	named, ours := among(q.corpus, q.against), among(q.corpus, q.against)
	have := eachID(func(id corpus.ID) {
		if i, ok := q.corpus.Find(id); ok {
			named[i] = false
		}
	})
	need := eachID(func(id corpus.ID) {
		switch i, ok := q.corpus.Find(id); {
		case !ok:
			h.unexpected[id] = true
		case ours[i]:
			h.twice[id] = true
		default:
			named[i] = true
		}
	})
	result, err = differ(ctx, q.url, q.corpus, q.against, negentropy.Options{Stall: q.stall, Have: have, Need: need})
	return result, named, err
}

func (q *holding) size() int { return cmp.Or(q.sample, heldSample) }

// parts draws one event of each part of the corpus, so that none is drawn twice.
func (q *holding) parts(n int) (drawn, rest []int) {
	next := 0
	size := q.size()
	for k := range size {
		low, high := k*n/size, (k+1)*n/size
		i := low + q.draw(high-low)
		drawn = append(drawn, i)
		for ; next < high; next++ {
			if next != i {
				rest = append(rest, next)
			}
		}
	}
	return drawn, rest
}

// ask asks for events, keeps which of them are there, and holds those that come against the corpus.
func (q *holding) ask(ctx context.Context, h *found, indexes []int) error {
	ids := idsOf(q.corpus, indexes)
	a := client.Lookup{URL: q.url, Stall: q.stall, OnEvent: func(e *client.Event) { h.returned.see(e.ID, e.Raw) }}
	a.Must = func(k int) bool {
		i := indexes[k]
		return h.reconciled && h.named[i] || q.must != nil && q.must(i)
	}
	if q.progress != nil {
		a.Progress = func(came int) { q.progress(min(came, len(ids)), len(ids)) }
	}
	got, err := a.Run(ctx, ids)
	if err != nil {
		return err
	}
	h.asked += len(ids)
	h.Late, h.LateBy, h.Longest = h.Late+got.Late, max(h.LateBy, got.LateBy), max(h.Longest, got.Longest)
	h.Stats = client.Sum(h.Stats, got.Stats)
	for k, i := range indexes {
		switch h.holds[i] = got.Came[k]; {
		case !h.reconciled || h.holds[i] == h.named[i]:
		case h.named[i]:
			h.unreturned = append(h.unreturned, i)
		default:
			h.unnamed = append(h.unnamed, i)
		}
	}
	return nil
}

// findHeld finds out what a relay holds of the corpus, as far as of names events: nil are all. It
// is reconciled with what stands in against, where that is not nil.
func findHeld(ctx context.Context, t *harness.Trial, against, of []int, must func(i int) bool,
	reconciled func(negentropy.Result)) (*found, error) {
	n := t.Corpus.Len()
	if of != nil {
		n = len(of)
	}
	ctx, cancel := t.Budget.Within(ctx, 0, n)
	defer cancel()
	q := holding{url: t.Relay.URL(), stall: t.Options.Stall, corpus: t.Corpus, of: of, against: against, reconciled: reconciled,
		must: must, draw: t.Rand.IntN, progress: t.Progress}
	h, err := q.find(ctx)
	if err == nil {
		t.Ledger.Saw(h.Longest)
	}
	return h, err
}

// certainly says of an event whether the model holds it, and the protocol leaves no doubt of that.
func certainly(m *model.Model) func(i int) bool {
	return func(i int) bool { return m.Holds(i) && !m.Optional(i) }
}

// findings are what was seen on the way. What the protocol leaves open may be named and not
// returned.
func (h *found) findings(c *corpus.Corpus, m *model.Model) []results.Finding {
	all := []results.Finding{unexpected(h.Stats), h.returned.finding()}
	if broken := harness.Breach(h.trouble); broken != nil {
		all = append(all, *broken)
	}
	if !h.reconciled {
		return all
	}
	missing, unnamed := slices.DeleteFunc(slices.Clone(h.unreturned), m.Optional), slices.DeleteFunc(slices.Clone(h.unnamed), m.Optional)
	f := check(results.CodeReturnsNamed, len(missing)+len(unnamed) == 0,
		counts("missing", len(missing), "unnamed", len(unnamed), "of", h.asked))
	f.Evidence = append(firstEvents(results.EvidenceMissing, c, missing), firstEvents(results.EvidenceUnexpected, c, unnamed)...)
	late(&f, &h.LookedUp)
	return append(all, f, onlyKnown(c, h.unexpected, h.twice))
}

// late tells of events that came only when they were asked for again, which bars nothing.
func late(f *results.Finding, a *client.LookedUp) {
	if a.Late == 0 {
		return
	}
	f.Counts["late"], f.Counts["late ms"] = float64(a.Late), harness.Milliseconds(a.LateBy)
	if f.Verdict == results.Passed {
		f.Verdict = results.Stated
	}
}

// recordLate keeps how many events a relay returned only when it was asked for them again, and by
// how much the last of them was late.
func recordLate(t *harness.Trial, a *client.LookedUp) {
	t.Value("late", "events", results.None, float64(a.Late))
	t.Value("late by", "ms", results.None, harness.Milliseconds(a.LateBy))
}

// unexpected is the finding on events that came and had not been asked for.
func unexpected(s *client.Stats) results.Finding {
	f := check(results.CodeOnlyAsked, s.Unexpected == 0, counts("events", s.Unexpected, "elsewhere", s.Elsewhere))
	for _, id := range s.UnexpectedIDs {
		f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceUnexpected, ID: id.String()})
	}
	return f
}

// checkStored looks again for every event that the relay acknowledged (METHOD: nothing acknowledged
// may be missing), and returns how many came and how many are lost. Excused is only what the
// protocol takes away again, given what this relay was sent and did not refuse: superseded,
// deleted, expired or vanished events. required says whether a loss is held against the relay.
func checkStored(ctx context.Context, t *harness.Trial, required bool) (came, lost int, err error) {
	acknowledged := where(t.Corpus, t.Ledger.Acknowledged)
	held, err := model.NewStatuses(t.Corpus, t.Ledger.Acknowledged, t.Now)
	if err != nil {
		return 0, 0, err
	}
	// What was sent and never answered may be stored as well, and supersede or delete what was
	// acknowledged.
	perhaps := held
	if t.Ledger.Count(load.Unanswered) > 0 {
		sent := func(i int) bool { return t.Ledger.Acknowledged(i) || t.Ledger.Get(i) == load.Unanswered }
		if perhaps, err = model.NewStatuses(t.Corpus, sent, t.Now); err != nil {
			return 0, 0, err
		}
	}
	must := func(i int) bool { return certainly(held)(i) && certainly(perhaps)(i) }
	h, err := findHeld(ctx, t, nil, acknowledged, must, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("looking again for what was acknowledged: %w", err)
	}
	missing := where(t.Corpus, func(i int) bool { return t.Ledger.Acknowledged(i) && !h.holds[i] })
	gone := slices.DeleteFunc(slices.Clone(missing), func(i int) bool { return !must(i) })
	t.AddFinding(h.returned.finding())
	t.AddFinding(unexpected(h.Stats))
	excused := len(missing) - len(gone)
	f := check(results.CodeAcknowledgedKept, len(gone) == 0, counts("lost", len(gone), "of", len(acknowledged), "excused", excused),
		firstEvents(results.EvidenceMissing, t.Corpus, gone)...)
	if f.Verdict == results.Failed && !required {
		f.Verdict = results.Stated
	}
	late(&f, &h.LookedUp)
	t.AddFinding(f)
	return len(h.events), len(gone), nil
}

// comparison holds the events that a relay sends against those that it was given.
type comparison struct {
	corpus            *corpus.Corpus
	compared, changed int
	evidence          []results.Evidence
}

// see is a load.Querier's OnEvent. Parsing what is not byte for byte the same takes time: it has
// no place on timed paths.
func (x *comparison) see(id corpus.ID, text []byte) {
	i, ok := x.corpus.Find(id)
	if !ok {
		return
	}
	x.compared++
	if problem := load.Altered(x.corpus, i, text); problem != "" {
		if x.changed++; x.changed <= examples {
			e := eventEvidence(results.EvidenceAltered, x.corpus, i)
			e.Text = problem
			x.evidence = append(x.evidence, e)
		}
	}
}

func (x *comparison) finding() results.Finding {
	return check(results.CodeUnaltered, x.changed == 0, counts("altered", x.changed, "of", x.compared), x.evidence...)
}

// difference is how what a relay holds departs from what it must hold, by kind and reason. What the
// protocol leaves open does not count.
type difference struct {
	corpus   *corpus.Corpus
	expected int
	held     int
	groups   map[departure][]int // corpus indexes
}

// departure is one way to depart.
type departure struct {
	missing bool // else extra
	cause   string
	kind    int
}

func (d departure) code() string {
	if d.missing {
		return results.EvidenceMissing
	}
	return results.EvidenceExtra
}

// compare sets what a relay holds against a model, and explains each event by what the relay said
// of it and by what the protocol demands. Named are the events that it named in a reconciliation
// and did not return.
func compare(t *harness.Trial, m *model.Model, held, named []int) difference {
	kept := among(t.Corpus, named)
	return compareWith(t.Corpus, m, held, func(i int) string { return missingBecause(t.Ledger.Get(i), kept[i]) })
}

// compareWith is compare where missing says why an event that must be held is not there.
func compareWith(c *corpus.Corpus, m *model.Model, held []int, missing func(i int) string) difference {
	d := difference{corpus: c, held: len(held), groups: make(map[departure][]int)}
	for i, holds := range among(c, held) {
		must := m.Holds(i)
		if must {
			d.expected++
		}
		if must == holds || m.Optional(i) {
			continue
		}
		cause := m.Why(i).String()
		if must {
			cause = missing(i)
		}
		key := departure{must, cause, int(c.Entry(i).Kind)}
		d.groups[key] = append(d.groups[key], i)
	}
	return d
}

// missingBecause says why an event that a relay must hold is not there.
func missingBecause(a load.Answer, named bool) string {
	why := map[load.Answer]string{load.NotOffered: results.MissingNeverDelivered, load.Unanswered: results.MissingUnanswered,
		load.Refused: results.MissingRefused, load.NotImported: results.MissingNotImported}[a]
	if named {
		why = cmp.Or(why, results.MissingNamed)
	}
	return cmp.Or(why, results.MissingLost)
}

func (d difference) none() bool { return len(d.groups) == 0 }

// count is how many events depart in one of some ways.
func (d difference) count(ways func(departure) bool) (n int) {
	for key, group := range d.groups {
		if ways(key) {
			n += len(group)
		}
	}
	return n
}

// isLost tells whether an event was acknowledged, and is missing.
func isLost(cause string) bool { return cause == results.MissingLost || cause == results.MissingNamed }

// lost is how many events the relay had acknowledged and does not return.
func (d difference) lost() int {
	return d.count(func(key departure) bool { return key.missing && isLost(key.cause) })
}

// own is how many of the departures are the relay's own doing: all but what was never delivered to
// it.
func (d difference) own() int {
	return d.count(func(key departure) bool { return !key.missing || key.cause != results.MissingNeverDelivered })
}

// counts are the numbers of a finding: held, must, and missing and extra by cause.
func (d difference) counts() map[string]float64 {
	all := counts("held", d.held, "must", d.expected)
	for key, group := range d.groups {
		all[key.code()+"."+key.cause] += float64(len(group))
	}
	return all
}

// evidence names examples of each departure, missing ones first, and how many there are in all.
func (d difference) evidence() (all []results.Evidence) {
	for _, key := range slices.SortedFunc(maps.Keys(d.groups), func(a, b departure) int {
		return cmp.Or(cmp.Compare(b.code(), a.code()), cmp.Compare(a.cause, b.cause), cmp.Compare(a.kind, b.kind))
	}) {
		for _, e := range firstEvents(key.code(), d.corpus, d.groups[key]) {
			e.Cause, e.Count = key.cause, int64(len(d.groups[key]))
			all = append(all, e)
		}
	}
	return all
}

// finding is the check that nothing departs.
func (d difference) finding(code string) results.Finding {
	return check(code, d.none(), d.counts(), d.evidence()...)
}

// findLost records where a relay lost what it had acknowledged, which bars everything of it.
func (d difference) findLost(t *harness.Trial) {
	if n := d.lost(); n > 0 {
		evidence := slices.DeleteFunc(d.evidence(), func(e results.Evidence) bool { return !isLost(e.Cause) })
		acknowledged := t.Ledger.Count(load.Accepted) + t.Ledger.Count(load.Duplicate)
		t.AddFinding(check(results.CodeAcknowledgedKept, false, counts("lost", n, "of", acknowledged), evidence...))
	}
}

// sealed is a set of events of the corpus, and of others, to reconcile with.
func sealed(c *corpus.Corpus, indexes []int, others ...corpus.Event) (negentropy.Storage, error) {
	set := negentropy.NewSet(len(indexes) + len(others))
	for _, i := range indexes {
		e := c.Entry(i)
		set.Add(uint64(e.CreatedAt), (*negentropy.ID)(&e.ID))
	}
	for i := range others {
		set.Add(uint64(others[i].CreatedAt), (*negentropy.ID)(&others[i].ID))
	}
	return set, set.Seal()
}

// reconcileOn compares what a relay has with a set (NIP-77). Each answer may take o.Stall.
func reconcileOn(ctx context.Context, conn *client.Conn, c *corpus.Corpus, set negentropy.Storage,
	o negentropy.Options) (negentropy.Result, error) {
	o.FirstAnswer, o.MaxNeed = o.Stall, c.Len()+mostUnexpected
	return negentropy.ReconcileSplit(ctx, conn.Wire(), []byte("{}"), set, o)
}

// differ compares what a relay has, over a connection of its own, with events of the corpus.
func differ(ctx context.Context, url string, c *corpus.Corpus, indexes []int, o negentropy.Options) (result negentropy.Result, err error) {
	set, err := sealed(c, indexes)
	if err != nil {
		return result, err
	}
	conn, err := client.Dial(ctx, client.Options{URL: url, Stall: o.Stall})
	if err != nil {
		return result, err
	}
	defer conn.Abort()
	return reconcileOn(ctx, conn, c, set, o)
}

// eachID takes the ids that a reconciliation hands over one by one.
func eachID(do func(id corpus.ID)) func([]negentropy.ID) {
	return func(ids []negentropy.ID) {
		for _, id := range ids {
			do(corpus.ID(id))
		}
	}
}

// onlyKnown judges whether a relay named only events that somebody published to it: unknown are the
// ids that it named as its alone, twice those that it named though they are on both sides.
func onlyKnown(c *corpus.Corpus, unknown, twice map[corpus.ID]bool) results.Finding {
	invented := maps.Clone(unknown)
	maps.DeleteFunc(invented, func(id corpus.ID, _ bool) bool { return index(c, id) >= 0 })
	return check(results.CodeOnlyKnown, len(invented)+len(twice) == 0, counts("ids", len(invented), "twice", len(twice)),
		append(idEvidence(c, results.EvidenceUnexpected, "", invented), idEvidence(c, results.EvidenceUnexpected, "twice", twice)...)...)
}

// idSet is a set of ids.
func idSet(ids ...corpus.ID) map[corpus.ID]bool {
	set := make(map[corpus.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}

// without returns the ids of the events in one list and not in the other.
func without(c *corpus.Corpus, list, other []int) map[corpus.ID]bool {
	return minus(idSet(idsOf(c, list)...), idSet(idsOf(c, other)...))
}

// minus returns a without what is in b.
func minus(a, b map[corpus.ID]bool) map[corpus.ID]bool {
	left := maps.Clone(a)
	maps.DeleteFunc(left, func(id corpus.ID, _ bool) bool { return b[id] })
	return left
}

// idEvidence names examples of a set of ids, in corpus order, with the kinds of those that are
// known, and how many others there are.
func idEvidence(c *corpus.Corpus, code, cause string, ids map[corpus.ID]bool) []results.Evidence {
	return firstIDs(c, code, cause, examples, slices.SortedFunc(maps.Keys(ids), func(a, b corpus.ID) int {
		return cmp.Or(cmp.Compare(index(c, a), index(c, b)), bytes.Compare(a[:], b[:]))
	}))
}

// index is an event's place in the corpus, -1 for one that is not in it.
func index(c *corpus.Corpus, id corpus.ID) int {
	if i, ok := c.Find(id); ok {
		return i
	}
	return -1
}
