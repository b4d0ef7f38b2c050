package harness

import (
	"errors"
	"strings"

	"relaybench/relays"
	"relaybench/results"
)

// ended states how a relay took the signal to end, and whether anything of it ran on. Neither is an
// error of the trial: what is left of err is returned.
func (t *Trial) ended(err error) error {
	whole := *t
	whole.scenario, whole.labels, whole.peer = "", nil, ""
	forced, left := (*relays.StopError)(nil), (*relays.LeftoverError)(nil)
	stops := results.Finding{Code: results.CodeStops, Verdict: results.Passed}
	if errors.As(err, &forced) && !forced.Interrupted {
		stops.Verdict, stops.Cause = results.Stated, results.CauseForced
		stops.Counts = map[string]float64{"s": forced.Grace.Seconds()}
	}
	whole.Find(stops)
	processes := results.Finding{Code: results.CodeProcesses, Verdict: results.Passed}
	if errors.As(err, &left) {
		var names []string
		for _, p := range left.Processes {
			names = append(names, p.Command)
		}
		processes.Verdict, processes.Counts = results.Stated, map[string]float64{"processes": float64(len(left.Processes))}
		processes.Texts = map[string]string{"names": strings.Join(names, ", ")}
	}
	whole.Find(processes)
	if forced != nil || left != nil {
		return nil
	}
	return err
}
