package negentropy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// freshVariable makes the test program measure itself from its start.
const freshVariable = "RELAYBENCH_NEGENTROPY_FRESH"

type fresh struct{ Seal, Open, Client, Server float64 } // ms

func TestMain(m *testing.M) {
	if os.Getenv(freshVariable) == "" {
		os.Exit(m.Run())
	}
	all := benchAll()
	ours, theirs := NewSet(benchItems), NewSet(benchItems)
	for i := range benchItems {
		ours.Add(all[i].time, &all[i].id)
		theirs.Add(all[benchStep+i].time, &all[benchStep+i].id)
	}
	start := time.Now()
	ours.Seal()
	seal := time.Since(start)
	theirs.Seal()
	have, need := []ID{}, []ID{}
	n := NewInitiator(ours, 0, func(ids []ID) { have = append(have, ids...) }, func(ids []ID) { need = append(need, ids...) })
	open, client, server, _, _, _, _, _ := exchangeOnce(n, NewResponder(theirs, benchFrame), ours, theirs, nil, nil)
	if len(have) != benchStep || len(need) != benchStep {
		panic(fmt.Sprint(len(have), " have, ", len(need), " need"))
	}
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	json.NewEncoder(os.Stdout).Encode(fresh{ms(seal), ms(open), ms(client), ms(server)})
}

// BenchmarkFreshProcess counts the page faults in, and the client collects the ids.
func BenchmarkFreshProcess(b *testing.B) {
	program, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	times := timing{}
	for b.Loop() {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), freshVariable+"=1")
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			b.Fatal(err)
		}
		var f fresh
		if err := json.Unmarshal(out, &f); err != nil {
			b.Fatal(err)
		}
		for part, value := range map[string]float64{"seal": f.Seal, "open": f.Open, "client": f.Client, "server": f.Server} {
			times[part] = append(times[part], value)
		}
	}
	times.report(b)
}
