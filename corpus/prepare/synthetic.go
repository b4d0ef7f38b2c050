package prepare

import (
	"cmp"
	"context"
	"fmt"

	"relaybench/corpus"
	"relaybench/corpus/synthetic"
)

// Synthetic generates the corpus of spec and applies the preparation's rules to it. Signatures,
// which it has just made, are not checked. The result is kept in cacheDir under a key of generator,
// version, spec and options, and opened from there the next time. Nothing is left behind on an
// error.
func Synthetic(ctx context.Context, spec synthetic.Spec, o Options, cacheDir string, p corpus.Progress) (*corpus.Corpus, error) {
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	m := corpus.Manifest{
		Format:    corpus.ManifestFormat,
		Source:    fmt.Sprintf("synthetic: %s %d, %d events, seed %d, base time %d", synthetic.Name, synthetic.Version, spec.Events, spec.Seed, spec.BaseTime),
		Generator: synthetic.Name, GeneratorVersion: synthetic.Version, Spec: (*corpus.SyntheticSpec)(&spec),
		Rules: rulesVersion, Options: o.manifest(),
	}
	key := keyOf("synthetic", []any{synthetic.Name, synthetic.Version, spec}, m.Options)
	return cached(ctx, cacheDir, key, &m, p, func(dir string) error {
		return prepareGenerated(ctx, spec.Generate, o, m, dir, p)
	})
}

// prepareGenerated writes what generate emits, in whatever order, and the manifest into dir.
func prepareGenerated(ctx context.Context, generate func(context.Context, corpus.Progress, func(*corpus.Event) error) error, o Options, m corpus.Manifest, dir string, p corpus.Progress) error {
	sorted := newSorter(cmp.Or(o.Spill, dir))
	defer sorted.close()
	var drops dropCounts
	var line []byte
	read := 0
	err := generate(ctx, p, func(e *corpus.Event) error {
		read++
		line = e.AppendJSON(line[:0])
		if reason := o.Drop(e, line); reason != Kept {
			drops[reason]++
			return nil
		}
		return sorted.add(e.CreatedAt, &e.ID, uint16(e.Kind), line)
	})
	if err != nil {
		return fmt.Errorf("generating the synthetic corpus: %w", err)
	}
	return writeSorted(ctx, sorted, &o, m, "the synthetic corpus", drops, read, dir, p)
}
