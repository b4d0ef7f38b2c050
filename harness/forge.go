package harness

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"relaybench/corpus"
	"relaybench/harness/load"
	"relaybench/relays/client"
	"relaybench/results"
)

// forgeries is how many forged events each boot is sent: one under a bad signature and one under a
// bad id, twice.
const forgeries = 4

// Forged publishes through publish, and meanwhile sends the relay forged events over a connection
// of its own, once half of the others have their answer. All must be refused, in every boot: a
// relay that checks signatures in its first boot alone would be fast in all others. The error is
// publish's.
func (t *Trial) Forged(ctx context.Context, publish func(progress func(done, total int)) error) error {
	due := make(chan struct{})
	var once sync.Once
	begin := func() { once.Do(func() { close(due) }) }
	ended := make(chan results.Finding, 1)
	go func() {
		<-due
		ended <- t.forge(ctx)
	}()
	err := publish(func(done, total int) {
		t.Progress(done, total)
		if done >= total/2 {
			begin()
		}
	})
	begin()
	if f := <-ended; ctx.Err() == nil && (err == nil || f.Verdict != results.Undecided) {
		t.findForged(f)
	}
	return err
}

// Forge is Forged where nothing else is published.
func (t *Trial) Forge(ctx context.Context) {
	if f := t.forge(ctx); ctx.Err() == nil {
		t.findForged(f)
	}
}

// findForged records what became of forged events, whoever the relay's peer is.
func (t *Trial) findForged(f results.Finding) {
	alone := t.Alone()
	alone.scenario = cmp.Or(t.scenario, seeding)
	alone.AddFinding(f)
}

// forge sends forged events and finds out what became of them. What cannot be asked is undecided.
func (t *Trial) forge(ctx context.Context) results.Finding {
	f := results.Finding{Code: results.CodeForgedRefused, Verdict: results.Passed}
	undecided := func(err error) results.Finding {
		f.Verdict, f.Texts = results.Undecided, map[string]string{"error": err.Error()}
		return f
	}
	forged, err := forgedEvents(t.Rand.Uint64(), t.Corpus.Manifest().OldestUnix)
	if err != nil {
		return undecided(err)
	}
	accepted := make(map[corpus.ID]bool)
	for i := range forged {
		taken, err := sendForged(ctx, t.Relay.URL(), &forged[i], t.Options.Stall)
		if err != nil {
			return undecided(err)
		}
		accepted[forged[i].ID] = taken
	}
	querier, err := load.NewQuerier(ctx, t.Relay.URL(), t.Options.Stall)
	if err != nil {
		return undecided(err)
	}
	defer querier.Close()
	filter := corpus.Filter{Limit: corpus.Int(len(forged))}
	for i := range forged {
		filter.IDs = append(filter.IDs, forged[i].ID)
	}
	var reply load.Reply
	if err := querier.Query(filter.AppendJSON(nil), &reply); err != nil {
		return undecided(err)
	}
	f.Counts = map[string]float64{"of": float64(len(forged)), "accepted": 0, "returned": 0}
	for i := range forged {
		returned := slices.Contains(reply.IDs, forged[i].ID)
		if accepted[forged[i].ID] {
			f.Counts["accepted"]++
		}
		if returned {
			f.Counts["returned"]++
		}
		if returned || accepted[forged[i].ID] {
			f.Verdict = results.Failed
			f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceExtra, ID: forged[i].ID.String()})
		}
	}
	return f
}

// forgedEvents makes notes of a new key, half of them with a signature that does not fit and half
// with an id that is not their hash. They are as old as the oldest of the corpus, whose newest most
// questions ask for: a relay that takes them fails the one check, and not also those of its
// answers.
func forgedEvents(seed uint64, createdAt int64) ([]corpus.Event, error) {
	key, aux, err := NewKey(rand.New(rand.NewPCG(seed, forgeries)))
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	forged := make([]corpus.Event, forgeries)
	for i := range forged {
		e := &forged[i]
		*e = corpus.Event{Kind: 1, CreatedAt: createdAt, Tags: []corpus.Tag{}, Content: fmt.Sprintf("note %d", i)}
		if err := key.Sign(e, aux); err != nil {
			return nil, err
		}
		if i%2 == 0 {
			e.Sig[40] ^= 1
		} else {
			e.ID[31] ^= 1
		}
	}
	return forged, nil
}

// NewKey draws a key, and what a signature is made with beside it.
func NewKey(r *rand.Rand) (key corpus.SecretKey, aux [32]byte, err error) {
	var secret [32]byte
	for i := range secret {
		secret[i], aux[i] = byte(r.Uint64()), byte(r.Uint64())
	}
	secret[0] &= 0x7f // below the order of the group
	key, err = corpus.NewSecretKey(secret)
	return key, aux, err
}

// sendForged sends one forged event over a connection of its own, which the relay may end for it. A
// refusal, silence and the end of the connection are all fair.
func sendForged(ctx context.Context, url string, e *corpus.Event, stall time.Duration) (accepted bool, err error) {
	conn, err := client.Dial(ctx, client.Options{URL: url, Stall: stall})
	if err != nil {
		return false, err
	}
	defer conn.Abort()
	ok, _ := conn.Publish(e.ID, e.AppendJSON(nil), min(stall, forgedWait))
	return ok.Accepted, context.Cause(ctx)
}

// forgedWait is how long an answer to a forged event is waited for: a relay need not give one.
const forgedWait = 2 * time.Second
