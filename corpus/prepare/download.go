package prepare

import (
	"context"

	"relaybench/corpus"
)

// Download is File for a file of events that came from relays: people know the corpus by source, one line that says from where and
// which, and not by the file's name.
func Download(ctx context.Context, path, source string, o Options, cacheDir string, p corpus.Progress) (*corpus.Corpus, error) {
	return buildFile(ctx, path, source, o, cacheDir, p)
}

// Drops says why preparation with these options would leave a verified event out, as far as the event alone decides that; ok is false where
// it would. line is its canonical JSON.
func (o Options) Drops(e *corpus.Event, line []byte) (why DropReason, ok bool) {
	if o.MaxEventBytes == 0 {
		o.MaxEventBytes = DefaultMaxEventBytes
	}
	if o.MaxTags == 0 {
		o.MaxTags = DefaultMaxTags
	}
	why = o.formReason(e, line)
	return why, why == kept
}

// Lock takes an exclusive lock on the file name, which it creates and unlock removes, for work in a cache folder that two processes must not do at
// once. It waits for the holder, and reports "wait" meanwhile. The lock of a process that dies is free.
func Lock(ctx context.Context, name string, p corpus.Progress) (unlock func(), err error) {
	return lock(ctx, name, p)
}
