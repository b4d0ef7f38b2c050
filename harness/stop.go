package harness

import (
	"errors"
	"strings"

	"relaybench/harness/measure"
	"relaybench/relays"
)

// ended states how a relay took the signal to end, and whether anything of it ran on. Neither is an
// error of the trial: what is left of err is returned.
func (t *Trial) ended(err error) error {
	whole := *t
	whole.scenario, whole.labels, whole.peer = "", nil, ""
	forced, left := (*relays.StopError)(nil), (*relays.LeftoverError)(nil)
	stops := measure.Finding{Code: measure.CodeStops, Verdict: measure.Passed}
	if errors.As(err, &forced) && !forced.Interrupted {
		stops.Verdict, stops.Cause = measure.Stated, measure.CauseForced
		stops.Counts = map[string]float64{"s": forced.Grace.Seconds()}
	}
	whole.Find(stops)
	processes := measure.Finding{Code: measure.CodeProcesses, Verdict: measure.Passed}
	if errors.As(err, &left) {
		var names []string
		for _, p := range left.Processes {
			names = append(names, p.Command)
		}
		processes.Verdict, processes.Counts = measure.Stated, map[string]float64{"processes": float64(len(left.Processes))}
		processes.Texts = map[string]string{"names": strings.Join(names, ", ")}
	}
	whole.Find(processes)
	if forced != nil || left != nil {
		return nil
	}
	return err
}
