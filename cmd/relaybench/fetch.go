package main

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"relaybench/harness"
	"relaybench/harness/calibrate"
	"relaybench/relays"
	"relaybench/scenarios"
)

func newFetch(f *runFlags) *cobra.Command {
	f.fetch, f.presets = true, map[string]string{"trials": "1", "only": scenarios.FetchFamily}
	return f.command(ofFetch, &cobra.Command{
		Use:   "fetch URL|NAME|NAME=COMMAND",
		Short: "Measure how a client downloads from one relay: in one REQ, in pages, by time, by id",
		Long: `Everything that matches a filter is downloaded from one relay in every way that a client may choose:
  giant          one REQ for everything
  paged          page by page by until, newest first
  sharded-giant  the time divided over --shards connections, a giant REQ on each
  sharded-paged  the same, in pages
  by-id          REQs for ids, over connections × REQs in flight × ids in a REQ (--matrix)
  negentropy     the ids by a reconciliation with nothing (NIP-77), then by id
and each of them raw (ids are found and counted) and parsed (every event is parsed and verified), with and without permessage-deflate.

A relay that runs already (ws://… or wss://…) is only read from: no event is ever published to it. What it must send is known only where a corpus is
named (--corpus, --real, --download, --events, --seed); else it is listed by paging first. A relay of the catalog, or one given as NAME=COMMAND with {port} and {dir}, is
booted, with the limits raised that stand in the way of a bulk transfer where its definition says which, and given the corpus first.`,
		Example: `  relaybench fetch ref-bolt --events 50000 --matrix full
  relaybench fetch wss://relay.example.com --filter '{"kinds":[1],"since":1780000000}' --cell-time 10s --only fetch.paged,fetch.giant`,
		Args: oneArg("relay: ws://… or wss://…, a name of the catalog, or NAME=COMMAND"),
	}, f.fetchOne)
}

func (f *runFlags) fetchOne(ctx context.Context, args []string) error {
	c, err := f.one("fetch", args[0], hostName(args[0]))
	if err != nil {
		return err
	}
	if f.readOnly = c.Definition.External(); f.readOnly {
		f.skip = append(f.skip, harness.Preflight) // which publishes
		if !slices.ContainsFunc([]string{"events", "corpus", "real", "download", "seed", "base-time"}, f.flags.Changed) {
			f.blind, f.skip = "what the relay holds is not known beforehand", append(f.skip, calibrate.Key)
		}
	}
	chosen, err := f.check()
	if err != nil {
		return err
	}
	for _, key := range chosen {
		if !isStage(key) && !strings.HasPrefix(key, scenarios.FetchFamily+".") {
			return usagef("fetch measures fetch.* alone; %s is for relaybench run", key)
		}
	}
	if f.readOnly {
		fmt.Fprintf(f.stderr, "%s: events are only read from it, none is published\n", visible(c.Definition.Name))
	}
	f.repeatedBy = []string{"fetch", cmp.Or(f.given(ctx, c, relays.Settings{}), c.Definition.Name)}
	return f.run(ctx, chosen, []harness.Target{c})
}

// hostName names a relay that is given by its URL alone after its host; "" for any other.
func hostName(text string) string {
	if scheme, _, ok := strings.Cut(text, "://"); !ok || strings.ContainsAny(scheme, " \t/'\"=") {
		return ""
	}
	name := ""
	if u, err := url.Parse(text); err == nil {
		name = regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(u.Host, "-")
	}
	return cmp.Or(strings.Trim(name[:min(len(name), 32)], "-"), "relay")
}
