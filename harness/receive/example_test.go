package receive_test

import (
	"context"
	"fmt"

	"relaybench/corpus"
	"relaybench/harness/receive"
	"relaybench/relays/wire"
)

// Two relays send the same note, and one of them forges another. In a program the events come from
// wire.Conn.ReadMessage, one goroutine for each connection.
func Example() {
	key, _ := corpus.NewSecretKey([32]byte{31: 1})
	note := corpus.Event{CreatedAt: 1_700_000_000, Kind: 1, Content: "hello"}
	key.Sign(&note, [32]byte{})
	forged := note
	forged.Content = "goodbye"

	pipeline := receive.New(context.Background(), receive.Options{}, func(b *receive.Batch) error {
		for _, e := range b.Events {
			fmt.Printf("relay %d: %s\n", e.Feeder, e.Parsed.Content)
		}
		for _, e := range b.Refused {
			fmt.Printf("relay %d: refused: %v\n", e.Feeder, e.Err)
		}
		return nil
	})
	first, second := pipeline.Feeder(), pipeline.Feeder()
	for _, arrival := range []struct {
		from  *receive.Feeder
		event corpus.Event
	}{{second, forged}, {first, note}, {second, note}} {
		if _, err := arrival.from.Event(arrival.event.ID, arrival.event.AppendJSON(nil), wire.Now()); err != nil {
			fmt.Println(err)
		}
		arrival.from.Wait() // for this example's order of lines; readers do not wait
	}
	if err := pipeline.Close(); err != nil {
		fmt.Println(err)
	}
	counts := pipeline.Stats().Counts
	fmt.Printf("%d events received, %d delivered, %d known before, %d refused\n", counts.Events, counts.Delivered, counts.Duplicates, counts.Refused())
	// Output:
	// relay 1: refused: id is not the hash of the event
	// relay 0: hello
	// 3 events received, 1 delivered, 1 known before, 1 refused
}
