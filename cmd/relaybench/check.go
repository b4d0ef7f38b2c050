package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/harness/preflight"
	"relaybench/relays"
	"relaybench/report"
	"relaybench/results"
)

// checkFlags are the flags of check.
type checkFlags struct {
	relays   relayFlags
	settings relays.Settings
	ready    time.Duration
	work     string
	asJSON   bool
}

func newCheck(stdout, stderr io.Writer) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [NAME...]",
		Short: "Ask relays whether they do what their figures would be taken to mean, and what they can do",
		Long: `check boots each relay and asks it, over real connections, what every run asks before its first trial: are forged events refused, does what is
acknowledged come back unchanged, are filters, limits, order and the kinds' rules kept, and what are the relay's own limits.

Without names it asks every relay on this machine, as run does, and those added with --relay. It exits with 1 where a check fails, or where one could not be judged.
A relay given as ws://host:port is asked too, which publishes about 1,200 small events of throwaway keys to it.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if f.settings.MaxEventBytes < 1024 {
				return usagef("--max-event-bytes %d: give at least 1024", f.settings.MaxEventBytes)
			}
			if f.ready < 0 {
				return usagef("--ready-timeout %v: give a duration from 0", f.ready)
			}
			return f.run(cmd.Context(), stdout, stderr, names)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.relays.extra, "relay", nil, "add a `RELAY`: NAME=COMMAND with {port} and {dir}, or NAME=ws://host:port (repeatable)")
	flags.StringVar(&f.relays.dir, "relays-dir", "", "folder with relay definitions of your own (TOML)")
	flags.IntVar(&f.settings.MaxEventBytes, "max-event-bytes", 65536, "set relays up to accept events up to this size, and probe up to it")
	flags.IntVar(&f.settings.MaxTags, "max-tags", 2000, "set relays up to accept events with up to so many tags")
	flags.DurationVar(&f.ready, "ready-timeout", 0, "how long a relay may take to become ready (default: what its definition says, 30s)")
	flags.StringVar(&f.work, "work", "", "folder for the relays' data while they are asked (default: the system's temporary folder)")
	flags.BoolVar(&f.asJSON, "json", false, "write findings and capabilities as JSON")
	return cmd
}

// choose returns the relays that are named, all that take part where none is.
func (f *checkFlags) choose(ctx context.Context, stderr io.Writer, names []string) ([]harness.Target, error) {
	for _, name := range names {
		if strings.Contains(name, "=") {
			return nil, usagef("check %q: to add a relay, write --relay '%s'", name, name)
		}
		added := slices.ContainsFunc(f.relays.extra, func(text string) bool {
			given, _, err := relays.SplitName(text, f.relays.environment)
			return err == nil && given == name || text == name
		})
		if !added {
			f.relays.extra = append(f.relays.extra, name)
		}
	}
	if len(names) > 0 {
		stderr = io.Discard // what else is on this machine is of no interest
	}
	all, err := f.relays.contenders(ctx, stderr)
	if err != nil || len(names) == 0 {
		return all, err
	}
	return slices.DeleteFunc(all, func(c harness.Target) bool { return !slices.Contains(names, c.Definition.Name) }), nil
}

func (f *checkFlags) run(ctx context.Context, stdout, stderr io.Writer, names []string) (err error) {
	if err := checkLimits(8); err != nil {
		return err
	}
	contenders, err := f.choose(ctx, stderr, names)
	if err != nil {
		return err
	}
	if f.settings.WorkDir, err = openWork(ctx, f.work); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(f.settings.WorkDir)) }()
	var found []harness.Inspection
	var trouble, unknown, unjudged, unmeasured []string
	for _, c := range contenders {
		if f.ready > 0 {
			c.Definition.ReadyTimeout = relays.Duration(f.ready)
		}
		if c.Definition.External() {
			fmt.Fprintf(stderr, "%s: about 1,200 small events of throwaway keys are published to it\n", visible(c.Definition.Name))
		}
		i, err := f.inspect(ctx, c)
		if err != nil {
			return err
		}
		if i.Relay.Outcome == results.OutcomeUnmeasured {
			unmeasured = append(unmeasured, i.Relay.Name)
		} else if i.Relay.Outcome != results.OutcomeOK || !i.Result.Passed() {
			trouble = append(trouble, i.Relay.Name)
		} else if !i.Result.Known() {
			unknown = append(unknown, i.Relay.Name)
		} else if n := len(i.Result.AskAgain); n > 0 {
			unjudged = append(unjudged, fmt.Sprintf("%s (%d)", i.Relay.Name, n))
		}
		found = append(found, i)
		if !f.asJSON { // each as soon as it is known
			if len(found) > 1 {
				fmt.Fprintln(stdout)
			}
			if err := report.Checks(stdout, []report.Checked{{Relay: i.Relay, Findings: i.Result.Findings}}, terminalOptions(stdout)); err != nil {
				return fmt.Errorf("writing the checks: %w", err)
			}
		}
	}
	if f.asJSON {
		if err := writeJSON(stdout, found); err != nil {
			return fmt.Errorf("writing the checks: %w", err)
		}
	}
	var said []string
	if len(trouble) > 0 {
		said = append(said, "checks failed: "+visible(strings.Join(trouble, ", ")))
	}
	if len(unknown) > 0 {
		said = append(said, "nothing could be found out of "+visible(strings.Join(unknown, ", ")))
	}
	if len(unjudged) > 0 {
		said = append(said, "checks that could not be judged: "+visible(strings.Join(unjudged, ", ")))
	}
	code := exitFailed
	if len(unmeasured) > 0 {
		if len(said) == 0 {
			code = exitUsage
		}
		said = append(said, "this machine is short of what it takes to ask "+visible(strings.Join(unmeasured, ", ")))
	}
	if len(said) > 0 {
		return &exitError{code: code, err: errors.New(strings.Join(said, "; "))}
	}
	return nil
}

// inspect asks a relay, and once more what could not be found out of it: it or the machine may have
// been busy.
func (f *checkFlags) inspect(ctx context.Context, c harness.Target) (harness.Inspection, error) {
	o := preflight.Options{MaxEventBytes: f.settings.MaxEventBytes}
	i, err := harness.Inspect(ctx, c, f.settings, o)
	if err != nil || i.Relay.Outcome != results.OutcomeOK || !i.Result.Known() || len(i.Result.AskAgain) == 0 {
		return i, err
	}
	o.Only = i.Result.AskAgain
	again, err := harness.Inspect(ctx, c, f.settings, o)
	if err != nil {
		return i, err
	}
	i.Result.Merge(&again.Result)
	if again.Relay.Outcome != results.OutcomeOK {
		i.Relay = again.Relay
	}
	return i, nil
}

// writeJSON writes the findings in ASCII alone: what a relay said can neither act on a terminal nor
// hide on one.
func writeJSON(w io.Writer, found []harness.Inspection) error {
	type check struct {
		Title string `json:"title"`
		Text  string `json:"text"`
		results.Finding
	}
	type relay struct {
		Name         string            `json:"name"`
		Version      string            `json:"version"`
		Durability   string            `json:"durability"`
		Outcome      results.Outcome   `json:"outcome"`
		Reason       string            `json:"reason,omitempty"`
		Passed       bool              `json:"passed"` // every check could be judged, and none failed
		Capabilities map[string]string `json:"capabilities"`
		Checks       []check           `json:"checks"`
	}
	document := struct {
		Tool   string  `json:"tool"`
		Relays []relay `json:"relays"`
	}{"relaybench " + harness.Version, []relay{}}
	for _, i := range found {
		r, checks := i.Relay, []check{}
		for _, f := range i.Result.Findings {
			title, text := report.Words(&f)
			checks = append(checks, check{title, text, f})
		}
		document.Relays = append(document.Relays, relay{r.Name, r.Version, r.Durability, r.Outcome, r.Reason,
			r.Outcome == results.OutcomeOK && i.Result.Passed() && i.Result.Known() && len(i.Result.AskAgain) == 0, i.Result.Capabilities, checks})
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(ascii(text), '\n'))
	return err
}

// ascii writes JSON with all else escaped: the same JSON, in which nothing acts on a terminal or
// hides on one.
func ascii(text []byte) []byte {
	var b bytes.Buffer
	for _, r := range string(text) {
		switch {
		case r == 0x7f:
			b.WriteString(`\u007f`)
		case r < 0x80:
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		}
	}
	return b.Bytes()
}
