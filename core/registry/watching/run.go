package watching

import (
	"context"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Run queries remotes when they are due until the context ends, and returns when all questions have ended.
// Without an interval it only counts what has changed.
func (w *Watcher) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	every := searchEvery
	if w.config.Interval > 0 {
		every = min(every, w.config.Interval)
		for range atOnce {
			all.Go(func() { w.repeat(ctx, every, w.askNext) })
		}
	}
	var seen registrystore.Revision
	var refreshed time.Time
	w.repeat(ctx, every, func(ctx context.Context) (bool, error) { return false, w.refresh(ctx, &seen, &refreshed) })
}

// repeat calls do until the context ends, at once if it reports that there may be more to do, and reports
// its errors.
func (w *Watcher) repeat(ctx context.Context, every time.Duration, do func(context.Context) (bool, error)) {
	for {
		more, err := do(ctx)
		if err != nil && ctx.Err() == nil {
			w.ports.Reporter.Report(WatchFailed{err})
		}
		if ctx.Err() != nil || (!more || err != nil) && !w.ports.Waiter.Wait(ctx, every) {
			return
		}
	}
}

// refresh compares what is watched with what is listed, if that has changed since the last time or it was
// long ago, and counts what waits.
func (w *Watcher) refresh(ctx context.Context, seen *registrystore.Revision, at *time.Time) error {
	revision, err := w.ports.Changes.Revision(ctx)
	now := w.now()
	if err != nil || revision == *seen && now.Sub(*at) < refreshEvery {
		return err
	}
	if w.config.Interval > 0 {
		if err := w.ports.Watches.Refresh(ctx, now, w.config.Interval); err != nil {
			return err
		}
	}
	changed, err := w.ports.Watches.CountChanged(ctx)
	if err == nil {
		*seen, *at = revision, now
		w.ports.Reporter.Report(Counted{changed})
	}
	return err
}

// askNext queries the remote that is due for the longest time, and reports whether there was one.
func (w *Watcher) askNext(ctx context.Context) (bool, error) {
	q, err := transaction.Do(transaction.Exclusive(ctx), w.ports.Transactions, func(ctx context.Context) (*question, error) {
		return w.claim(ctx, registrystore.WatchClaim{Most: atOnce})
	})
	if err != nil || q == nil {
		return false, err
	}
	if err := w.ask(ctx, q); err != nil {
		w.end(ctx, q)
		return false, err
	}
	if _, err = w.finish(ctx, authority.Watcher(), q, registry.Version{}); err == q.err { //nolint:errorlint // the same one
		err = nil
	}
	return true, err
}
