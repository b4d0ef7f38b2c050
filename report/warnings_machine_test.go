package report

import (
	"strings"
	"testing"

	"relaybench/results"
)

func TestMachineWarningsSayWhatIsWrongAndWhatToDo(t *testing.T) {
	v := func(x float64) *float64 { return &x }
	during := func(c results.Conditions) results.Environment { return results.Environment{Cores: 2, During: &c} }
	checks := func(one, all float64) []results.Calibration {
		return []results.Calibration{{Name: results.ChecksOneCore, Value: one}, {Name: results.ChecksAllCores, Value: all}}
	}
	own := func(share float64) []results.Measurement {
		return []results.Measurement{{Relay: "a", Scenario: "query.thread.hot", Metric: "harness cpu", Unit: "%", Better: results.None, Trials: []float64{share}}}
	}
	for _, test := range []struct {
		name string
		r    results.Record
		want string // words of the one warning, separated by |; "" for none
	}{
		{"nothing known", results.Record{}, ""},
		{"quiet", results.Record{Environment: results.Environment{Cores: 2, LoadBefore: v(0.3), BusyBefore: v(0.05), Governor: "performance", FileSystem: "ext4", MemoryBytes: 8 << 30,
			During: &results.Conditions{Seconds: 60, BackgroundCores: 0.1, StolenCores: 0.01, SwapUsedBytes: 1 << 20, SwappedBytes: 4096}}, Calibration: checks(10, 19), Measurements: own(30)}, ""},
		{"load", results.Record{Environment: results.Environment{Cores: 2, LoadBefore: v(4.5)}}, "load 4.50 on 2 cores|Stop"},
		{"load of work that is over", results.Record{Environment: results.Environment{Cores: 2, LoadBefore: v(4.5), BusyBefore: v(0.01)}}, ""},
		{"busy before", results.Record{Environment: results.Environment{Cores: 2, BusyBefore: v(1.5)}}, "1.50 of 2 cores|before|Stop"},
		{"busy during", results.Record{Environment: during(results.Conditions{BackgroundCores: 0.5})}, "0.500 of 2 cores|during|Stop"},
		{"stolen", results.Record{Environment: during(results.Conditions{StolenCores: 0.5})}, "hypervisor|0.500 of 2 cores|not shared"},
		{"governor", results.Record{Environment: results.Environment{Governor: "powersave"}}, "powersave|cpupower"},
		{"quota", results.Record{Environment: results.Environment{Cores: 4, QuotaCores: 1.5, During: &results.Conditions{ThrottledPeriods: 7, ThrottledSeconds: 0.25}}}, "quota of 1.50 cores|7 periods|0.250 s|Raise"},
		{"heat", results.Record{Environment: during(results.Conditions{ThermalThrottles: 1})}, "heat|1 time.|cool"},
		{"swapping", results.Record{Environment: during(results.Conditions{SwappedBytes: 5e6})}, "4.77 MiB|swap|memory"},
		{"swap in use", results.Record{Environment: results.Environment{Cores: 1, MemoryBytes: 1e9, During: &results.Conditions{SwapUsedBytes: 2e8}}}, "191 MiB|swap"},
		{"tmpfs", results.Record{Environment: results.Environment{FileSystem: "tmpfs"}, Calibration: []results.Calibration{{Name: results.SyncMedian, Value: 0.001}}}, "memory|tmpfs|--work"},
		{"fsync of nothing", results.Record{Environment: results.Environment{FileSystem: "ext4"}, Calibration: []results.Calibration{{Name: results.SyncMedian, Value: 0.004}}}, "fsync takes 0.004 ms|--work"},
		{"noisy cores", results.Record{Environment: results.Environment{Cores: 2}, Calibration: checks(2000, 1500)}, "1,500|2,000|quieter"},
		{"one core", results.Record{Environment: results.Environment{Cores: 1}, Calibration: checks(2000, 1990)}, ""},
		{"a quota of one core", results.Record{Environment: results.Environment{Cores: 8, QuotaCores: 1}, Calibration: checks(2000, 1990)}, ""},
		{"pinned to one core", results.Record{Environment: results.Environment{Cores: 2, HarnessCores: []int{0}, RelayCores: []int{1}}, Calibration: checks(2000, 1990), Measurements: own(60)}, ""},
		{"the harness's share", results.Record{Environment: results.Environment{Cores: 2}, Measurements: own(60)}, "60 %|with a in query.thread.hot|--pin"},
		{"the harness's share of its own", results.Record{Environment: results.Environment{Cores: 2, HarnessCores: []int{0}}, Measurements: own(95)}, "95 %|its own cores|more cores"},
		{"text that acts on a terminal", results.Record{Environment: results.Environment{Governor: "\x1b[2J"}}, "governor"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := MachineWarnings(&test.r)
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("%q", got)
				}
				return
			}
			if len(got) != 1 || !strings.HasSuffix(got[0], ".") || strings.ContainsRune(got[0], '\x1b') {
				t.Fatalf("%q, want one sentence or two", got)
			}
			for word := range strings.SplitSeq(test.want, "|") {
				if !strings.Contains(got[0], word) {
					t.Errorf("%q lacks %q", got[0], word)
				}
			}
		})
	}
}

func TestMachineTextTellsWhatIsKnown(t *testing.T) {
	r := results.Record{Environment: results.Environment{OS: "linux", CPU: "a CPU", Cores: 4, QuotaCores: 1.5, Governor: "performance", MemoryBytes: 8 << 30, Kernel: "6.8",
		Virtualization: "kvm", Container: "docker", FileSystem: "ext4", Disk: "SCSI or SATA", Rotational: true, HarnessCores: []int{0, 1}, RelayCores: []int{2, 3}}}
	want := "a CPU · 4 cores with a quota of 1.50 · relaybench on 0,1, relays on 2,3 · governor performance · 8.0 GiB · linux · 6.8 · kvm · docker · ext4 on SCSI or SATA (turning)"
	if got := strings.Join(machineParts(&r.Environment), " · "); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := strings.Join(machineParts(&results.Environment{}), " · "); got != "" {
		t.Errorf("of nothing: %q", got)
	}
}
