package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/relays/machine"
	"relaybench/report"
	"relaybench/results"
)

func newCheck(f *runFlags) *cobra.Command {
	return f.command(ofCheck, &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Ask relays whether they do what their figures would be taken to mean, and what they can do",
		Args:  cobra.ArbitraryArgs,
		Long: `check boots each relay and asks it, over real connections, what every run asks before its first trial: are forged events refused, does what is
acknowledged come back unchanged, are filters, limits, order and the kinds' rules kept, and what are the relay's own limits.

Without names it asks every relay on this machine, as run does, and those added with --relay. It exits with 1 where a check fails, or where one could not be judged.
A relay given as ws://host:port is asked too, which publishes about 1,200 small events of throwaway keys to it.`,
	}, f.checkAll)
}

// named returns the relays of these names, all that take part where there is none.
func (f *runFlags) named(ctx context.Context, names []string) ([]harness.Target, error) {
	for _, name := range names {
		if strings.Contains(name, "=") {
			return nil, usagef("check %q: to add a relay, write --relay '%s'", name, name)
		}
		added := slices.ContainsFunc(f.relays, func(text string) bool {
			given, _, err := relays.SplitName(text, f.environment)
			return err == nil && given == name || text == name
		})
		if !added {
			f.relays = append(f.relays, name)
		}
	}
	if len(names) == 0 {
		return f.contenders(ctx, f.stderr)
	}
	all, err := f.contenders(ctx, io.Discard) // what else is on this machine is of no interest
	return slices.DeleteFunc(all, func(c harness.Target) bool { return !slices.Contains(names, c.Definition.Name) }), err
}

func (f *runFlags) checkAll(ctx context.Context, names []string) (err error) {
	if err := (machine.System{}).Allows(8); err != nil {
		return usagef("%w", err)
	}
	contenders, err := f.named(ctx, names)
	if err != nil {
		return err
	}
	settings := relays.Settings{MaxEventBytes: f.rules.MaxEventBytes, MaxTags: f.rules.MaxTags}
	if settings.WorkDir, err = relays.OpenWork(f.work, false); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, relays.CloseWork(settings.WorkDir)) }()
	var found []harness.Inspection
	all := []report.Checked{}
	for _, c := range contenders {
		if f.ready > 0 {
			c.Definition.ReadyTimeout = relays.Duration(f.ready)
		}
		if c.Definition.External() {
			fmt.Fprintf(f.stderr, "%s: about 1,200 small events of throwaway keys are published to it\n", visible(c.Definition.Name))
		}
		i, err := inspect(ctx, c, settings)
		if err != nil {
			return err
		}
		if found = append(found, i); len(found) > 1 && !f.json {
			fmt.Fprintln(f.stdout)
		}
		all = append(all, report.Checked{Relay: i.Relay, Findings: i.Result.Findings, Passed: checked(found[len(all):]) == nil})
		if !f.json {
			if err := report.Checks(f.stdout, all[len(all)-1:], terminalOptions(f.stdout)); err != nil {
				return fmt.Errorf("writing the checks: %w", err)
			}
		}
	}
	if f.json {
		err = writeJSON(f.stdout, map[string]any{"tool": "relaybench " + harness.Version, "relays": all})
	}
	return cmp.Or(err, checked(found))
}

// checked turns what was found into the exit code and one sentence.
func checked(found []harness.Inspection) error {
	says := []string{"checks failed: ", "nothing could be found out of ", "checks that could not be judged: ", "this machine is short of what it takes to ask "}
	who := make([][]string, len(says))
	for _, i := range found {
		switch name, open := i.Relay.Name, len(i.Result.AskAgain); {
		case i.Relay.Outcome == results.OutcomeUnmeasured:
			who[3] = append(who[3], name)
		case i.Relay.Outcome != results.OutcomeOK || !i.Result.Passed():
			who[0] = append(who[0], name)
		case !i.Result.Known():
			who[1] = append(who[1], name)
		case open > 0:
			who[2] = append(who[2], fmt.Sprintf("%s (%d)", name, open))
		}
	}
	var said []string
	code := exitUsage
	for at, names := range who {
		if len(names) == 0 {
			continue
		}
		if said = append(said, says[at]+visible(strings.Join(names, ", "))); at < 3 {
			code = exitFailed
		}
	}
	if len(said) == 0 {
		return nil
	}
	return &exitError{code, errors.New(strings.Join(said, "; "))}
}

// inspect asks a relay, and once more what could not be found out of it: it or the machine may have
// been busy.
func inspect(ctx context.Context, c harness.Target, settings relays.Settings) (harness.Inspection, error) {
	o := preflight.Options{MaxEventBytes: settings.MaxEventBytes}
	i, err := harness.Inspect(ctx, c, settings, o)
	if err != nil || i.Relay.Outcome != results.OutcomeOK || !i.Result.Known() || len(i.Result.AskAgain) == 0 {
		return i, err
	}
	o.Only = i.Result.AskAgain
	again, err := harness.Inspect(ctx, c, settings, o)
	if err != nil {
		return i, err
	}
	i.Result.Merge(&again.Result)
	if again.Relay.Outcome != results.OutcomeOK {
		i.Relay = again.Relay
	}
	return i, nil
}
