package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"relaybench/results"
)

// relaybenchIn runs the program from a shell script that ends in exec "$@".
func relaybenchIn(t *testing.T, script string, env []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, t.Context(), env, args...)
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell: ", err)
	}
	cmd.Args = append([]string{sh, "-c", script + `; exec "$@"`, "sh", cmd.Path}, args...)
	cmd.Path = sh
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errOut.String()
}

// blamed lists the failed checks of a relay.
func blamed(r *results.Record, name string) (codes []string) {
	for _, f := range r.Findings {
		if f.Verdict == results.Failed && (f.Blames == name || f.Relay == name) {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// theMachines checks that a relay's turn was cut short by the machine, which is said first, and
// that the honest one's was not.
func theMachines(t *testing.T, r *results.Record, stdout, name, shortage string) {
	t.Helper()
	if failed := blamed(r, name); len(failed) > 0 {
		t.Errorf("%s failed %q", name, failed)
	}
	told := relay(t, r, name).Shortage == shortage || slices.ContainsFunc(r.Findings, func(f results.Finding) bool {
		return f.Relay == name && f.Verdict == results.Undecided && f.Cause == shortage
	})
	if !told {
		t.Errorf("%s: %+v, want it told that the machine was short: %s", name, relay(t, r, name), shortage)
	}
	if _, first, _ := strings.Cut(stdout, "✗"); !strings.HasPrefix(strings.TrimSpace(first), "While relaybench measured "+name+",") {
		t.Errorf("the report does not say it first:\n%.2000s", stdout)
	}
	for _, m := range r.Measurements {
		if s := m.Is(results.StatusIncomplete); m.Relay == "honest" && s != nil && s.Cause == results.CauseShortage {
			t.Errorf("%s of honest: %+v", m.Metric, s)
		}
	}
	complete(t, r, "honest", "ingest.throughput")
	if failed := blamed(r, "honest"); relay(t, r, "honest").Outcome != results.OutcomeOK || len(failed) > 0 {
		t.Errorf("honest: %+v, failed %q", relay(t, r, "honest"), failed)
	}
}

// A relay that finds the disk full in mid-ingest refuses events or dies; the next one finds room
// again.
func TestAFullWorkDiskIsTheMachinesFault(t *testing.T) {
	t.Parallel()
	work, out := smallDisk(t, 8<<20), t.TempDir()
	fills := "--relay=fills=sh -c 'mkdir -p \"$1\"; head -c 6900000 /dev/zero > \"$1/fill\"; exec " + refrelayProgram +
		" --listen 127.0.0.1:$0 --store bolt --dir \"$1\" --durability none' {port} {dir}"
	code, stdout, stderr := relaybenchWith(t, withHonest, "--quick", "--events=2000", "--only=ingest.throughput,storage", "--skip=calibration,preflight",
		"--out", out, "--work", work, fills, honest())
	if code != exitUsage {
		t.Errorf("exit code %d, want %d\n%s", code, exitUsage, stderr)
	}
	theMachines(t, recorded(t, out), stdout, "fills", results.ShortageDisk)
}

func TestAWorkDiskThatIsTooSmallIsToldBeforeTheRun(t *testing.T) {
	t.Parallel()
	// The corpus is prepared first, since preparing it may spill to the disk that is too small.
	if code, _, stderr := relaybench(t, "corpus", "build", "--events=2000"); code != exitDone {
		t.Fatal(stderr)
	}
	for _, size := range []int{512 << 10, 1500 << 10} {
		work, out := smallDisk(t, size), t.TempDir()
		code, _, stderr := relaybenchWith(t, withHonest, "--quick", "--events=2000", "--only=storage", "--skip=calibration,preflight", "--out", out, "--work", work, honest())
		if code != exitUsage || !strings.Contains(stderr, "iB are free in "+work) {
			t.Errorf("%d bytes: exit code %d\n%s", size, code, stderr)
		}
		nothingBooted(t, out)
	}
}

func nothingBooted(t *testing.T, out string) {
	t.Helper()
	if left, _ := filepath.Glob(filepath.Join(out, "*")); len(left) > 0 {
		t.Errorf("left %q", left)
	}
}

func TestWhatTheShellAllowsIsToldBeforeTheRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ limit, want string }{
		{"ulimit -f 10", "raise ulimit -f"},
		{"ulimit -n 40", "raise ulimit -n"},
		{"ulimit -v 3000000", "raise ulimit -v"},
	} {
		if strings.Contains(test.limit, "-v") && raceDetected() {
			continue // the detector itself maps more than that
		}
		out := t.TempDir()
		code, _, stderr := relaybenchIn(t, test.limit, withHonest, "--quick", "--events=200", "--only=storage", "--out", out, honest())
		if lines := strings.Count(stderr, "\n"); code != exitUsage || lines != 1 || !strings.Contains(stderr, test.want) {
			t.Errorf("%s: exit code %d\n%s", test.limit, code, stderr)
		}
		nothingBooted(t, out)
	}
}

// A shell's limit on open files that it could raise itself bounds no relay.
func TestRelaysMayOpenAsManyFilesAsRelaybench(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	counts := "--relay=counts=sh -c 'ulimit -n >&2; exit 1' {port}"
	_, _, stderr := relaybenchIn(t, "ulimit -S -n 70", withHonest, "--quick", "--events=100", "--only=storage", "--skip=calibration,preflight", "--out", out, counts)
	tail := relay(t, recorded(t, out), "counts").LogTail
	if len(tail) != 1 {
		t.Fatalf("log %q\n%s", tail, stderr)
	}
	if n, err := strconv.Atoi(tail[0]); tail[0] != "unlimited" && (err != nil || n <= 70) {
		t.Errorf("a relay may open %s files", tail[0])
	}
}

func raceDetected() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// ports is the beginning of a script in a network of its own, which has so many local ports.
func ports(t *testing.T, n int) string {
	t.Helper()
	script := fmt.Sprintf("ip link set lo up && echo 40000 %d > /proc/sys/net/ipv4/ip_local_port_range", 40000+n-1)
	if out, err := exec.Command("unshare", "-n", "sh", "-c", script).CombinedOutput(); err != nil {
		t.Skipf("no network of its own can be made here: %v %s", err, out)
	}
	return `if [ -z "$INSIDE" ]; then INSIDE=1 exec unshare -n sh -c "$SCRIPT" sh "$@"; fi; ` + script
}

func inNetwork(script string) []string {
	return append(slices.Clone(withHonest), "SCRIPT="+script+`; exec "$@"`, "PATH=/usr/sbin:/sbin:/usr/bin:/bin")
}

func TestTooFewLocalPortsAreToldBeforeTheRun(t *testing.T) {
	t.Parallel()
	script, out := ports(t, 10), t.TempDir()
	code, _, stderr := relaybenchIn(t, script, inNetwork(script), "--quick", "--events=200", "--only=storage", "--out", out, honest())
	if code != exitUsage || !strings.Contains(stderr, "this machine has 10") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	nothingBooted(t, out)
}

func TestNoFreeLocalPortIsTheMachinesFault(t *testing.T) {
	t.Parallel()
	script, out := ports(t, 40), t.TempDir()
	code, stdout, stderr := relaybenchIn(t, script, append(inNetwork(script), portsMode+"=1"), "--quick", "--events=200", "--only=storage", "--skip=calibration", "--out", out, honest())
	if code != exitUsage || !strings.Contains(stderr, "there was no free local port") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	r := recorded(t, out)
	if got := relay(t, r, "honest"); got.Outcome != results.OutcomeUnmeasured || got.Shortage != results.ShortagePorts || len(blamed(r, "honest")) > 0 {
		t.Errorf("%+v, failed %q\n%s", got, blamed(r, "honest"), stdout)
	}
	code, stdout, stderr = relaybenchIn(t, script, append(inNetwork(script), portsMode+"=1"), "check", "--work", t.TempDir(), honest(), "honest")
	if code != exitUsage || !strings.Contains(stderr, "this machine is short of what it takes to ask honest") {
		t.Errorf("check: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// memoryGroup makes a control group with a limit in bytes, and returns the command that has a shell
// join it.
func memoryGroup(t *testing.T, limit int) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip("no control groups: ", err)
	}
	set := map[string]string{}
	dir := ""
	for line := range strings.Lines(string(text)) {
		switch parts := strings.SplitN(strings.TrimSpace(line), ":", 3); {
		case len(parts) != 3:
		case slices.Contains(strings.Split(parts[1], ","), "memory"):
			dir = "/sys/fs/cgroup/" + parts[1] + parts[2]
			set = map[string]string{"memory.limit_in_bytes": fmt.Sprint(limit)}
		case parts[1] == "" && dir == "":
			dir = "/sys/fs/cgroup" + parts[2]
			set = map[string]string{"memory.max": fmt.Sprint(limit), "memory.swap.max": "0"}
		}
	}
	group, err := os.MkdirTemp(dir, "relaybench-test-")
	if err != nil {
		t.Skip("no control group can be made here: ", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) })
	for name, value := range set {
		if err := os.WriteFile(filepath.Join(group, name), []byte(value), 0); err != nil {
			t.Skip("no memory can be limited here: ", err)
		}
	}
	return "echo $$ > " + filepath.Join(group, "cgroup.procs")
}

func TestKilledForMemoryIsTheMachinesFault(t *testing.T) {
	t.Parallel()
	const limit = 512 << 20
	join, out := memoryGroup(t, limit), t.TempDir()
	code, stdout, stderr := relaybenchIn(t, join, withHonest, "--quick", "--events=600", "--only=ingest.throughput", "--skip=calibration,preflight",
		"--out", out, hostile(t, "eats", "eats"), honest())
	if code != exitUsage {
		t.Errorf("exit code %d, want %d\n%s", code, exitUsage, stderr)
	}
	r := recorded(t, out)
	if r.Environment.MemoryLimit != limit {
		t.Errorf("the record's limit is %d", r.Environment.MemoryLimit)
	}
	theMachines(t, r, stdout, "eats", results.ShortageMemory)
}

func TestAMemoryLimitBelowWhatTheCorpusTakesIsToldBeforeTheRun(t *testing.T) {
	t.Parallel()
	if raceDetected() {
		t.Skip("the race detector alone takes more")
	}
	join, out := memoryGroup(t, 60<<20), t.TempDir()
	if code, _, stderr := relaybench(t, "corpus", "build", "--events=200"); code != exitDone { // outside of the group
		t.Fatal(stderr)
	}
	code, _, stderr := relaybenchIn(t, join, withHonest, "--quick", "--events=200", "--only=storage", "--out", out, honest())
	if code != exitUsage || !strings.Contains(stderr, "the control group allows 60.0 MiB") {
		t.Errorf("exit code %d\n%s", code, stderr)
	}
	nothingBooted(t, out)
}
