package corpus

// Progress is told how far a long step has come: stage names the step in a word ("hash", "prepare",
// "generate", "write", "verify", "download", "wait"), done and total count bytes of input for
// "hash", "prepare" and "download" and events for the others. total is 0 while it is not known. A
// Progress may be nil, and may be called from any goroutine, so a non-nil one must be safe for
// that.
type Progress func(stage string, done, total int64)

// Report calls p, or does nothing if p is nil.
func (p Progress) Report(stage string, done, total int64) {
	if p != nil {
		p(stage, done, total)
	}
}
