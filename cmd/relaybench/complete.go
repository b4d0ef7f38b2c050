package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/relays"
	"relaybench/scenarios"
)

// What a shell completes beside verbs and flags, which cobra knows, and files, which the shell
// does.

// addCompletions says of every verb what its arguments and flags take.
func addCompletions(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		addCompletions(cmd)
		switch cmd.CommandPath() {
		case "relaybench check", "relaybench fetch":
			cmd.ValidArgsFunction = completeRelays
		case "relaybench report", "relaybench compare", "relaybench man", "relaybench corpus info", "relaybench corpus verify": // files and folders
		default:
			cmd.ValidArgsFunction = cobra.NoFileCompletions
		}
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if complete := completionOf(cmd, flag); complete != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // fails for a flag that is registered twice alone
			}
		})
	}
}

// completionOf is what completes a flag's value, nil where a file does or nothing can.
func completionOf(cmd *cobra.Command, flag *pflag.Flag) cobra.CompletionFunc {
	switch flag.Name {
	case "relay", "base", "head":
		return completeRelays
	case "only", "skip":
		if cmd.Name() == "probe" {
			return completeList("global", "notifications", "metadata")
		}
		return completeList(scenarioNames()...)
	case "sync-modes":
		return completeList(scenarios.SyncModes()...)
	case "dir":
		return cobra.FixedCompletions([]cobra.Completion{string(relays.Down), string(relays.Up), string(relays.Both)}, cobra.ShellCompDirectiveNoFileComp)
	case "seed-by":
		return cobra.FixedCompletions([]cobra.Completion{seedByPublish, seedByImport}, cobra.ShellCompDirectiveNoFileComp)
	case "matrix":
		return cobra.FixedCompletions([]cobra.Completion{"small", "full"}, cobra.ShellCompDirectiveNoFileComp)
	case "verify":
		return cobra.FixedCompletions([]cobra.Completion{"inline", "parallel", "both"}, cobra.ShellCompDirectiveNoFileComp)
	case "format":
		formats := []cobra.Completion{"text", "md"}
		if cmd.Name() == "compare" {
			formats = append(formats, "json", "benchfmt")
		}
		return cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp)
	}
	switch flag.Value.Type() {
	case "bool", "string": // a name of a file or a folder, for the most part
		return nil
	}
	return cobra.NoFileCompletions
}

// completeRelays gives the names of the catalog, with the user's own where --relays-dir was typed
// before. A shell that asks shows no error: what cannot be read completes nothing.
func completeRelays(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	f := relayFlags{}
	if flag := cmd.Flags().Lookup("relays-dir"); flag != nil {
		f.dir = flag.Value.String()
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
	f := runFlags{only: []string{"import"}} // which takes part where it is named
	f.fetch.on, f.sync.on = true, true
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
