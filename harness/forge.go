package harness

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"relaybench/corpus"
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
	due, begin := context.WithCancel(context.Background())
	ended := make(chan results.Finding, 1)
	go func() {
		<-due.Done()
		ended <- t.forge(ctx)
	}()
	err := publish(func(done, total int) {
		t.Progress(done, total)
		if done >= total/2 {
			begin()
		}
	})
	begin()
	if f := <-ended; err == nil || f.Verdict != results.Undecided {
		t.findForged(ctx, f)
	}
	return err
}

// Forge is Forged where nothing else is published.
func (t *Trial) Forge(ctx context.Context) { t.findForged(ctx, t.forge(ctx)) }

// findForged records what became of forged events, whoever the relay's peer is.
func (t *Trial) findForged(ctx context.Context, f results.Finding) {
	if ctx.Err() == nil {
		alone := t.Alone()
		alone.scenario = cmp.Or(t.scenario, seeding)
		alone.AddFinding(f)
	}
}

// forge sends forged events and finds out what became of them. What cannot be asked is undecided.
func (t *Trial) forge(ctx context.Context) results.Finding {
	f := results.Finding{Code: results.CodeForgedRefused, Verdict: results.Passed, Counts: map[string]float64{"of": forgeries, "accepted": 0, "returned": 0}}
	options := client.Options{URL: t.Relay.URL(), Stall: t.Options.Stall, Answer: 20_000} // whatever else it sends is no matter here
	forged, err := forgedEvents(t.Rand.Uint64(), t.Corpus.Manifest().OldestUnix)
	taken := make(map[corpus.ID]bool)
	var ids []corpus.ID
	for i := 0; i < len(forged) && err == nil; i++ {
		ids = append(ids, forged[i].ID)
		if taken[ids[i]], err = sendForged(ctx, options, &forged[i]); taken[ids[i]] {
			f.Counts["accepted"]++
		}
	}
	if err == nil {
		asking := client.ByID{Options: options, Batch: forgeries, Take: client.Each(func(e *client.Event) {
			f.Counts["returned"]++
			taken[e.ID] = true
		})}
		_, err = asking.Run(ctx, ids)
	}
	if err != nil {
		return results.Finding{Code: f.Code, Verdict: results.Undecided, Texts: map[string]string{"error": err.Error()}}
	}
	for _, id := range ids {
		if taken[id] {
			f.Verdict = results.Failed
			f.Evidence = append(f.Evidence, results.Evidence{Code: results.EvidenceExtra, ID: id.String()})
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

// forgedWait is how long an answer to a forged event is waited for: a relay need not give one.
const forgedWait = 2 * time.Second

// sendForged sends one forged event over a connection of its own, which the relay may end for it. A
// refusal, silence and the end of the connection are all fair.
func sendForged(ctx context.Context, o client.Options, e *corpus.Event) (accepted bool, err error) {
	conn, err := client.Dial(ctx, o)
	if err != nil {
		return false, err
	}
	defer conn.Abort()
	ok, _ := conn.Publish(e.ID, e.AppendJSON(nil), min(o.Stall, forgedWait))
	return ok.Accepted, context.Cause(ctx)
}
