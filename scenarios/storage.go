package scenarios

import (
	"context"
	"errors"
	"fmt"

	"relaybench/harness"
	"relaybench/harness/measure"
	"relaybench/relays"
)

// Storage stops the relay cleanly and looks at what it left on disk.
type Storage struct{}

// Describe implements harness.Scenario.
func (Storage) Describe() harness.Description {
	return harness.Description{Needs: harness.Loaded, Scenario: measure.Scenario{
		Key: "storage", Title: "On disk after a clean stop", Section: sectionStorage, Order: orderStorage, Primary: "allocated", Unit: "bytes/event",
		Layout: measure.LayoutBars, Headlines: []measure.Headline{{Metric: "allocated", Title: "disk/event"}, {Metric: "write amplification", Title: "written"}},
	}, Metrics: []measure.Metric{
		figure("allocated", "disk blocks"), figure("apparent", "file lengths"), figure("write amplification", "bytes written for each corpus byte"),
		figure("allocated in all", "disk blocks in all"),
	}}
}

// Run implements harness.Scenario.
func (Storage) Run(ctx context.Context, t *harness.Trial) error {
	if t.Relay.External() {
		t.NotMeasured(measure.ExternalDisk, nil)
		return nil
	}
	used, err := t.Stop(ctx)
	if err != nil {
		return fmt.Errorf("stopping the relay: %w", err)
	}
	disk, err := t.Relay.Disk()
	if errors.Is(err, relays.ErrExternal) {
		return nil
	}
	if err != nil {
		return err
	}
	var events, bytes int64
	for i := range t.Corpus.Len() {
		if t.Ledger.Acknowledged(i) {
			events++
			bytes += int64(t.Corpus.Entry(i).Length)
		}
	}
	if events == 0 {
		return errors.New("nothing was accepted, so that there is nothing to divide by")
	}
	t.Value("allocated", "bytes/event", measure.Lower, float64(disk.Allocated)/float64(events))
	t.Value("apparent", "bytes/event", measure.Lower, float64(disk.Apparent)/float64(events))
	t.Value("allocated in all", "MiB", measure.None, float64(disk.Allocated)/(1<<20))
	t.Value("write amplification", "bytes/byte", measure.Lower, float64(used.WriteBytes)/float64(bytes))
	return nil
}
