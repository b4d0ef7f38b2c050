package corpus

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// InParallel calls work(0) … work(n-1) on all cores, each once.
func InParallel(n int, work func(i int)) {
	_ = TryInParallel(context.Background(), n, func(i int) error { work(i); return nil })
}

// TryInParallel does so until one fails or ctx ends, and returns the error of the lowest i: all
// below it have been worked on.
func TryInParallel(ctx context.Context, n int, work func(i int) error) error {
	var next atomic.Int64
	var workers sync.WaitGroup
	var mu sync.Mutex
	var first error
	failed := n
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				err := context.Cause(ctx)
				if err == nil {
					err = work(i)
				}
				if err == nil {
					continue
				}
				next.Store(int64(n))
				mu.Lock()
				if i < failed {
					failed, first = i, err
				}
				mu.Unlock()
				return
			}
		})
	}
	workers.Wait()
	return first
}
