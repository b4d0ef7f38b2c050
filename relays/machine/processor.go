package machine

import (
	"slices"
	"strconv"
	"strings"
)

// Governor returns the CPU frequency governor, several joined by ", " where the processors differ;
// "" where there is none, as in most virtual machines.
func (s System) Governor() string {
	var names []string
	for _, file := range s.glob("/sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor") {
		if name := strings.TrimSpace(s.read(file)); name != "" && len(name) <= 32 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// thermalThrottles is how often the processors have slowed down for heat or power since the machine
// was started. A package's events are seen by all its cores, so that the largest count is the one
// that counts nothing twice.
func (s System) thermalThrottles() (times uint64) {
	for _, what := range []string{"core", "package"} {
		var most uint64
		for _, file := range s.glob("/sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/" + what + "_throttle_count") {
			n, _ := s.count(file)
			most = max(most, n)
		}
		times += most
	}
	return times
}

// siblings groups logical processors by the core that they share.
func (s System) siblings(processors []int) [][]int {
	var order []string
	cores := map[string][]int{}
	for _, p := range processors {
		name := strconv.Itoa(p)
		core := strings.TrimSpace(s.read("/sys/devices/system/cpu/cpu" + name + "/topology/thread_siblings_list"))
		if core == "" {
			core = name
		}
		if cores[core] == nil {
			order = append(order, core)
		}
		cores[core] = append(cores[core], p)
	}
	var groups [][]int
	for _, core := range order {
		groups = append(groups, cores[core])
	}
	return groups
}

// Split divides processors between the harness and the relays, who get the odd one. A core's
// siblings stay together, unless there is but one core. Fewer than two processors cannot be
// divided.
func (s System) Split(processors []int) (harness, relay []int, ok bool) {
	groups := s.siblings(processors)
	if len(groups) == 1 {
		groups = nil
		for _, p := range processors {
			groups = append(groups, []int{p})
		}
	}
	if len(groups) < 2 {
		return nil, nil, false
	}
	half := len(groups) / 2
	return slices.Sorted(slices.Values(slices.Concat(groups[:half]...))), slices.Sorted(slices.Values(slices.Concat(groups[half:]...))), true
}
