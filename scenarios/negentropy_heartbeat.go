package scenarios

import (
	"context"
	"fmt"
	"slices"
	"time"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/harness/load"
	"relaybench/relays/negentropy"
	"relaybench/results"
)

// heartbeat repeats the reconciliation of what is the same on both sides at once, with no writes
// between: what a periodic mirror pays. Some with one event less stand among them, not counted: who
// calls any sets identical is found out.
func (s *side) heartbeat(ctx context.Context) error {
	t := s.Under(describePhase(phaseHeartbeat))
	set, err := sealed(s.Corpus, s.held)
	if err != nil {
		return err
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Abort()
	times := results.NewHistogram()
	var last, worst negentropy.Result // worst named the most ids that nobody knows
	differing, differed := 0, 0       // ids at most, and how often
	var left leftOut
	if err := left.draw(s); err != nil {
		return err
	}
	check := s.Rand.Perm(heartbeats)[:leftOutBeats]
	for beat := range heartbeats {
		if slices.Contains(check, beat) {
			if err := left.ask(ctx, s, conn); err != nil {
				return fmt.Errorf("reconciling %s with one event less: %w", s.Relay.Name(), err)
			}
		}
		if last, err = s.reconcile(ctx, conn, set, negentropy.Options{}); err != nil {
			return fmt.Errorf("reconciling %s again: %w", s.Relay.Name(), err)
		}
		times.Record(last.Duration)
		if last.Unexpected > worst.Unexpected {
			worst = last
		}
		if n := last.Have + last.Need; n > 0 {
			differing, differed = max(differing, n), differed+1
		}
	}
	t.OwnPart()
	recordTraffic(t, last, last.Refused == 0)
	t.AddFinding(results.Finding{Code: results.CodeSteady, Verdict: results.Holds(differed == 0), Counts: counts("ids", differing, "times", differed, "of", heartbeats)})
	left.find(t)
	findForeign(t, worst)
	s.findRebuilt(t, times)
	return t.Latency("time", results.Lower, times)
}

// rebuiltShare is from which share of the first reconciliation on a repeated one costs what
// building the set anew does: where the set is kept, it takes a few hundredths.
const rebuiltShare = 1.0 / 3

// rebuiltFrom is the least that a reconciliation must take to tell.
const rebuiltFrom = 5 * time.Millisecond

// findRebuilt states whether a relay builds its set anew at each NEG-OPEN.
func (s *side) findRebuilt(t *harness.Trial, times *results.Histogram) {
	beat := times.Quantile(0.5)
	if s.first < rebuiltFrom {
		return
	}
	t.AddFinding(results.Finding{Code: results.CodeSetRebuilt, Verdict: results.States(float64(beat) < rebuiltShare*float64(s.first)),
		Counts: map[string]float64{"ms": harness.Milliseconds(beat), "first ms": harness.Milliseconds(s.first)}})
}

// afterWrite publishes one event and reconciles once more with a client that lacks it, so that it
// has to be named: a relay that builds its structure anew after each write pays here.
func (s *side) afterWrite(ctx context.Context) error {
	t := s.Under(describePhase(phaseAfterWrite))
	event, err := freshEvent(s)
	if err != nil {
		return err
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Abort()
	ok, err := conn.Publish(event.ID, event.AppendJSON(nil), s.Options.Stall)
	if err != nil {
		return fmt.Errorf("publishing one more event to %s: %w", s.Relay.Name(), err)
	}
	if !ok.Accepted {
		t.AddFinding(results.Finding{Code: results.CodeAcceptsOneMore, Verdict: results.Stated, Texts: map[string]string{"reason": ok.Reason}})
		return nil
	}
	s.more = event.ID
	set, err := sealed(s.Corpus, s.held)
	if err != nil {
		return err
	}
	named := make(map[corpus.ID]bool)
	result, err := s.reconcile(ctx, conn, set, negentropy.Options{Need: collect(named)})
	if err != nil {
		return fmt.Errorf("reconciling %s after one more event: %w", s.Relay.Name(), err)
	}
	record(t, result, false)
	findForeign(t, result)
	differ := result.Have + result.Need + 1
	if named[event.ID] {
		differ -= 2
	}
	if result.Unexpected > 0 { // what it says in a reconciliation is worth nothing: it is asked for the event
		differ = 1
		querier, err := load.NewQuerier(ctx, s.Relay.URL(), s.Options.Stall)
		if err != nil {
			return err
		}
		defer querier.Close()
		filter := corpus.Filter{IDs: []corpus.ID{event.ID}}
		var reply load.Reply
		if err := querier.Query(filter.AppendJSON(nil), &reply); err != nil {
			return fmt.Errorf("asking %s for one more event: %w", s.Relay.Name(), err)
		}
		if slices.Contains(reply.IDs, event.ID) {
			differ = 0
		}
	}
	t.AddFinding(results.Finding{Code: results.CodeAtOnce, Verdict: results.Holds(differ == 0), Counts: counts("ids", differ)})
	return nil
}

// freshEvent makes a note that is in no corpus. It is dated a minute back, so that no relay takes
// it for one from the future.
func freshEvent(s *side) (corpus.Event, error) {
	key, aux, err := harness.NewKey(s.Rand)
	if err != nil {
		return corpus.Event{}, err
	}
	e := corpus.Event{Kind: 1, CreatedAt: time.Now().Unix() - 60, Tags: []corpus.Tag{}, Content: "one more"}
	return e, key.Sign(&e, aux)
}

// scattered reconciles with a set from which one event in a hundred was taken at random: the
// algorithm's worst case.
func (s *side) scattered(ctx context.Context) error {
	t := s.Under(describePhase(phaseScattered))
	var left []int
	removed := make(map[corpus.ID]bool)
	for _, i := range s.held {
		if s.Rand.IntN(100) == 0 {
			removed[s.Corpus.Entry(i).ID] = true
		} else {
			left = append(left, i)
		}
	}
	result, _, need, err := s.against(ctx, left)
	if err != nil {
		return fmt.Errorf("reconciling %s with a scattered difference: %w", s.Relay.Name(), err)
	}
	record(t, result, false)
	findForeign(t, result)
	lost := minus(removed, need)
	t.AddFinding(results.Finding{Code: results.CodeScattered, Verdict: results.Holds(len(lost) == 0), Counts: counts("missing", len(lost), "of", len(removed)),
		Evidence: idEvidence(s.Corpus, results.EvidenceMissing, "", lost)})
	return nil
}
