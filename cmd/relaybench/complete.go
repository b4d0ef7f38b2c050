package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/scenarios"
)

// What a shell completes beside verbs and flags, which cobra knows, and files, which the shell
// does.

// completeArguments says of every verb what its arguments are. Those of its flags are in the table.
func completeArguments(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		completeArguments(cmd)
		switch cmd.Name() {
		case "check", "fetch":
			cmd.ValidArgsFunction = completeRelays
		case "report", "compare", "man", "info", "verify": // files and folders
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
	}
}

// completion is what completes a flag's value, nil where a file does or nothing can.
func (s *setting) completion() cobra.CompletionFunc {
	_, single := s.to.(*string)
	_, isSwitch := s.to.(*bool)
	switch {
	case s.name == "relay" || s.name == "base" || s.name == "head":
		return completeRelays
	case s.name == "only" && s.of == ofProbe:
		return completeList(scenarios.ProbeShapes()...)
	case s.name == "only" || s.name == "skip":
		return completeList(scenarioNames()...)
	case s.takes != nil && s.takes.words != nil && single:
		return cobra.FixedCompletions(s.takes.words, cobra.ShellCompDirectiveNoFileComp)
	case s.takes != nil && s.takes.words != nil:
		return completeList(s.takes.words...)
	case single || isSwitch: // a name of a file or a folder, for the most part
		return nil
	}
	return cobra.NoFileCompletions
}

// completeRelays gives the names of the catalog, with the user's own where --relays-dir was typed
// before. A shell that asks shows no error: what cannot be read completes nothing.
func completeRelays(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f := runFlags{}
	if flag := cmd.Flags().Lookup("relays-dir"); flag != nil {
		f.relaysDir = flag.Value.String()
	}
	catalog, err := f.catalog()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	var all []cobra.Completion
	for _, d := range catalog {
		all = append(all, cobra.CompletionWithDesc(d.Name, d.Title))
	}
	return all, cobra.ShellCompDirectiveNoFileComp
}

// completeList completes the last of several names separated by commas, without those that stand
// there already.
func completeList(names ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		there := strings.Split(before, ",")
		var all []cobra.Completion
		for _, name := range names {
			if !slices.Contains(there, name) {
				all = append(all, before+name)
			}
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// scenarioNames are the keys that --only and --skip take, and the families that several of them
// share.
func scenarioNames() []string {
	f := runFlags{only: []string{"import"}, fetch: true, sync: true} // import takes part where it is named
	var names []string
	for _, key := range f.scenarioKeys() {
		if family, _, more := strings.Cut(key, "."); more && !slices.Contains(names, family) {
			names = append(names, family)
		}
		if !slices.Contains(names, key) {
			names = append(names, key)
		}
	}
	return names
}

// completing makes "relaybench --relay str<TAB>" mean run, as relaybench --relay strfry does.
func completing(args []string) []string {
	if len(args) > 2 && (args[0] == cobra.ShellCompRequestCmd || args[0] == cobra.ShellCompNoDescRequestCmd) && strings.HasPrefix(args[1], "-") {
		return slices.Concat(args[:1], []string{"run"}, args[1:])
	}
	return args
}
