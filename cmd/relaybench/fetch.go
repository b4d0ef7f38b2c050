package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"relaybench/corpus"
	"relaybench/harness"
	"relaybench/relays"
	"relaybench/results"
	"relaybench/scenarios"
)

// fetchFlags say how a relay's events are downloaded.
type fetchFlags struct {
	on       bool
	target   string // of the verb
	filter   string
	matrix   string
	adaptive bool
	time     time.Duration
	events   int
	page     int
	shards   int

	parsed corpus.Filter // the filter
}

func newFetch(stdout, stderr io.Writer) *cobra.Command {
	f := runFlags{fetch: fetchFlags{on: true}}
	cmd := &cobra.Command{
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
		Args: exactArgs(1, "one relay: ws://… or wss://…, a name of the catalog, or NAME=COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := apply(cmd.Flags(), fetchDefaults); err != nil {
				return err
			}
			f.fetch.target = args[0]
			return f.fetchOne(cmd, stdout, stderr)
		},
	}
	f.register(cmd)
	f.registerSeed(cmd)
	f.fetch.register(cmd)
	cmd.Flags().IntVar(&f.fetch.page, "page", scenarios.DefaultPage, "events asked for in a page, or as many as the relay says that it sends at once (NIP-11); the same as run's --page")
	preset(cmd.Flags(), fetchDefaults)
	for _, name := range notOfFetch {
		_ = cmd.Flags().MarkHidden(name)
	}
	cmd.Flags().Lookup("quick").Usage = "a short run: 2,000 events (synthetic or downloaded; of a relay that runs already so many in each way to fetch), where not set otherwise"
	return cmd
}

// notOfFetch are flags of run that bear on other scenarios alone.
var notOfFetch = []string{"samples", "rate", "query-rounds", "query-conns", "neg-scattered"}

// fetchDefaults are what the verb does where its flags say nothing else.
var fetchDefaults = map[string]string{"trials": "1", "only": scenarios.FetchFamily}

// register adds the flags that say how to fetch. The verb and run share them.
func (f *fetchFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.filter, "filter", "{}", "what is fetched: a filter (NIP-01) without limit")
	flags.StringVar(&f.matrix, "matrix", "small", "settings of fetch.by-id: small (8 of them) or full (connections 1 to 16 × REQs in flight 1 to 20 × batches 50 to 250: 75)")
	flags.BoolVar(&f.adaptive, "adaptive", false, "also fetch by id with as many REQs in flight as make it faster, found on the way")
	flags.DurationVar(&f.time, "cell-time", 20*time.Second, "cut each way to fetch after so long (0: ended once it takes far longer than whatever was measured before it)")
	flags.IntVar(&f.events, "cell-events", 0, "cut each way to fetch after so many events (0: never)")
	flags.IntVar(&f.shards, "shards", 4, "connections that the sharded ways divide the time over")
}

func (f *fetchFlags) check(flags *pflag.FlagSet) (err error) {
	if f.filter != "" {
		if f.parsed, err = corpus.ParseFilter([]byte(f.filter)); err != nil {
			return usagef("--filter %s: %w", f.filter, err)
		}
	}
	switch {
	case f.parsed.Limit != nil:
		return usagef("--filter %s: leave the limit out; --cell-events N takes so many", f.filter)
	case f.matrix != "" && f.matrix != "small" && f.matrix != "full":
		return usagef("--matrix %s: give small or full", f.matrix)
	case f.time < 0:
		return usagef("--cell-time %v: give a duration from 0", f.time)
	case f.events < 0:
		return usagef("--cell-events %d: give a number from 0", f.events)
	case f.on && f.target != "" && (f.page < 1 || f.page > 1_000_000):
		return usagef("--page %d: give a number from 1 to 1,000,000", f.page)
	case flags.Lookup("shards") != nil && (f.shards < 1 || f.shards > 64):
		return usagef("--shards %d: give a number from 1 to 64", f.shards)
	}
	return nil
}

// fetches are what the flags measure. Of run, --page is for sync's mode req and for these.
func (f *runFlags) fetches() []harness.Scenario {
	page := f.fetch.page
	if page == 0 {
		page = f.sync.page
	}
	return scenarios.Fetches(scenarios.FetchOptions{Filter: f.fetch.parsed, Time: f.fetch.time, Events: f.fetch.events,
		Page: max(1, page), Shards: f.fetch.shards, Full: f.fetch.matrix == "full", Adaptive: f.fetch.adaptive})
}

// fetchOne is the verb.
func (f *runFlags) fetchOne(cmd *cobra.Command, stdout, stderr io.Writer) error {
	if i := slices.IndexFunc(notOfFetch, cmd.Flags().Changed); i >= 0 {
		return usagef("fetch has no use for --%s: nothing that it measures depends on that", notOfFetch[i])
	}
	f.quicken(cmd.Flags())
	f.options.Seed = f.corpus.seed
	target := f.fetch.target
	name, command, err := relays.SplitName(target, f.relays.environment)
	if err != nil {
		return usagef("fetch: %w", err)
	}
	if name == "" && isAddress(target) {
		u, err := url.Parse(target)
		if err != nil || u.Host == "" {
			return usagef("fetch %s: not an address of a relay; write ws://host:port or wss://host", target)
		}
		target = nameOf(u.Host) + "=" + target
	}
	if scheme, _, ok := strings.Cut(command, "://"); ok && !isAddress(command) && regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`).MatchString(scheme) {
		return usagef("fetch %s: not an address of a relay; write ws://host:port or wss://host", command)
	}
	f.readOnly = isAddress(command)
	if f.readOnly {
		if !slices.ContainsFunc([]string{"events", "corpus", "real", "download", "seed", "base-time"}, cmd.Flags().Changed) {
			f.blind = "what the relay holds is not known beforehand"
		}
		if !slices.Contains(f.skip, "preflight") { // which publishes
			f.skip = append(f.skip, "preflight")
		}
		if f.blind != "" {
			f.skip = append(f.skip, "calibration")
			if f.quick && !cmd.Flags().Changed("cell-events") {
				f.fetch.events = quickEvents
			}
		}
	}
	f.relays.extra = []string{target}
	chosen, err := f.check(cmd)
	if err != nil {
		return err
	}
	for _, key := range chosen {
		if !isStage(key) && !strings.HasPrefix(key, scenarios.FetchFamily+".") {
			return usagef("fetch measures fetch.* alone; %s is for relaybench run", key)
		}
	}
	catalog, err := f.relays.catalog()
	if err != nil {
		return err
	}
	contenders, err := f.relays.added(catalog)
	if err != nil {
		return err
	}
	if f.readOnly {
		fmt.Fprintf(stderr, "%s: events are only read from it, none is published\n", visible(contenders[0].Definition.Name))
	}
	return f.run(cmd.Context(), stdout, stderr, cmd.Flags(), chosen, contenders, func(r *results.Record) error {
		r.Options["args"] = fetchArgs(r, contenders[0])
		return nil
	})
}

// fetchArgs are the words that repeat the verb: never those of run, which would publish to a relay
// that is only to be read from.
func fetchArgs(r *results.Record, c harness.Target) []string {
	words := []string{"fetch", c.Definition.Name}
	args, _ := r.Options["args"].([]string)
	for i := 0; i < len(args); i++ {
		if args[i] == "--relay" && i+1 < len(args) {
			if strings.Contains(args[i+1], "=") {
				words[1] = args[i+1]
			}
			i++
			continue
		}
		words = append(words, args[i])
	}
	return words
}

func isAddress(text string) bool {
	return strings.HasPrefix(text, "ws://") || strings.HasPrefix(text, "wss://")
}

// nameOf is a host as a relay's name.
func nameOf(host string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(host, "-")
	name = strings.Trim(name[:min(len(name), 32)], "-")
	if name == "" {
		return "relay"
	}
	return name
}

// noCorpus is what the record says of the corpus where there is none.
func noCorpus(why string) results.Corpus {
	nothing := sha256.Sum256(nil)
	return results.Corpus{Source: "none: " + why, Fingerprint: hex.EncodeToString(nothing[:]), Kinds: map[string]int{}}
}
