// Package watching has the use cases that ask remotes for their tools (contract W-2, W-3, W-6, W-7): when
// a reviewer wants it, and again and again, to notice what differs from the approved lists. Package tools
// has the rules, and package receiving stores the lists.
package watching

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/remotetools"
	"github.com/tollgate-dev/tollgate/ports/report"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Config holds the settings of a Watcher.
type Config struct {
	Interval time.Duration // between two questions to a remote; zero for questions by hand only
	OnChange toolserver.OnChange
}

// The bounds of Config.Interval, if it is not zero.
const (
	minInterval = time.Second
	maxInterval = 30 * 24 * time.Hour
)

// Validate returns an error that begins with the name of the first field that is out of range.
func (c Config) Validate() error {
	if c.Interval != 0 && (c.Interval < minInterval || c.Interval > maxInterval) {
		return fmt.Errorf("Interval: %s is neither 0 nor between %s and %s", c.Interval, minInterval, maxInterval)
	}
	return nil
}

const (
	// atOnce is how many remotes are asked at once because they are due, on all instances, and how many
	// by hand on one.
	atOnce = 4
	// leaseTime is how long a remote is asked by one instance. A question ends after 15 seconds; what is
	// stored then takes no longer than this without them.
	leaseTime = time.Minute
	// searchEvery is the time between two searches for what is due, at most.
	searchEvery = 5 * time.Second
	// refreshEvery is the time between two comparisons of what is watched with what is listed, at most.
	refreshEvery = time.Minute
)

// Ports are the dependencies of a Watcher. All fields are required.
type Ports struct {
	change.Ports

	Watches  registrystore.ToolWatches
	Sources  management.Store[tools.RemoteSourceName, tools.RemoteSource]
	Receiver *receiving.Receiver
	Reader   registrystore.ServerReader
	Reviews  registrystore.Reviews
	Grants   registrystore.Grants
	Changes  registrystore.Changes
	Asker    remotetools.Asker
	Sealer   secrets.Sealer
	Events   *announce.Recorder
	Notifier authority.ReviewNotifier
	Reporter report.Reporter
	Clock    clock.Clock
	Waiter   clock.Waiter
	Entropy  secrets.Entropy
}

// The events of a Watcher.
type (
	// Asked is a question to a remote; its watch has the problem, if there was one.
	Asked struct {
		tools.Watch

		Changed bool // of a version at least
	}
	// Counted has of how many versions a list waits that was asked for and differs from the approved one.
	Counted struct{ Changed int }
	// WatchFailed is an error of the database. What was to be done is done later.
	WatchFailed struct{ Err error }
)

// Watcher queries remotes for their tools. It is safe for concurrent use, also by several instances.
type Watcher struct {
	config Config
	ports  Ports
	byHand chan struct{} // the slots of questions by hand
}

// New returns a watcher.
func New(c Config, p Ports) *Watcher { return &Watcher{c, p, make(chan struct{}, atOnce)} }

// errAsking is the error of a question to a remote while another one has not ended.
var errAsking = fault.New(fault.Conflict, "the remote is being asked at this moment; try again").After(time.Second)

// question is a question to a remote, whose lease this instance has until the answer is stored.
type question struct {
	watch  tools.Watch
	holder string
	list   tools.List
	err    error // of the remote
}

// claim returns the question to a remote, or to the one that is due for the longest time. It is nil if
// another one has its lease, or no remote is due.
func (w *Watcher) claim(ctx context.Context, c registrystore.WatchClaim) (*question, error) {
	now := w.now()
	c.Lease = registrystore.Lease{Holder: secrets.NewUUID[string](w.ports.Entropy), Now: now, Until: now.Add(leaseTime)}
	watch, ok, err := w.ports.Watches.Claim(ctx, c)
	if err != nil || !ok {
		return nil, err
	}
	return &question{watch: watch, holder: c.Holder}, nil
}

// ask queries the remote. It returns an error of the database; that of the remote is in the question.
func (w *Watcher) ask(ctx context.Context, q *question) error {
	all, err := w.ports.Sources.List(ctx, "", tools.SourceKind.Most)
	if err != nil {
		return err
	}
	wanted := remotetools.Question{URL: q.watch.Remote}
	if source := find(all, q.watch.Name, q.watch.Remote); source != nil {
		if wanted.Headers, err = open(w.ports.Sealer, source); err != nil {
			return err
		}
	}
	q.list, q.err = w.ports.Asker.Ask(ctx, wanted)
	return ctx.Err()
}

// end ends a question that was not answered because the service stops, so that another instance goes on.
// Without a database, its lease ends by itself.
func (w *Watcher) end(ctx context.Context, q *question) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = w.ports.Watches.Save(ctx, q.watch, q.holder) // it ends by itself
}

// finish stores what a remote has answered in all versions that have it, and in one more, which may be the
// zero version, and when it is asked again. It returns the lists of that version, and the error of the
// remote.
func (w *Watcher) finish(
	ctx context.Context, by authority.Caller, q *question, also registry.Version,
) ([]tools.Shown, error) {
	var done received
	next, failed := q.watch, q.err
	now := w.now()
	if failed == nil {
		next = next.Answer(q.list, now, w.config.Interval)
		done, failed = w.receiveAll(ctx, sent{by: by, watch: next, list: q.list, at: now}, also)
		next.Received = next.Receipt()
	}
	switch {
	case failed == nil:
	case failed == q.err, fault.Is(failed, fault.Conflict): //nolint:errorlint // the same one
		next = q.watch.Fail(fault.PublicMessage(failed), now, w.config.Interval)
	default:
		w.end(ctx, q)
		return nil, failed
	}
	if done.notice != nil && next.MayNotify(now) {
		next.NotifiedAt = now
		w.notify(ctx, done.notice)
	}
	w.ports.Reporter.Report(Asked{next, done.notice != nil})
	if err := w.ports.Watches.Save(ctx, next, q.holder); err != nil && !fault.Is(err, fault.Conflict) {
		return nil, err
	}
	return done.lists, failed
}

// receiveAll stores a list in the versions that do not have it yet. It returns the lists of the version also,
// and a notice about all of them. A version that was changed meanwhile is left out, unless it is also.
func (w *Watcher) receiveAll(ctx context.Context, s sent, also registry.Version) (all received, err error) {
	for _, v := range versionsFor(s.watch, also) {
		one, err := w.receive(ctx, s, v)
		changed := fault.Is(err, fault.NotFound) || fault.Is(err, fault.Forbidden) || fault.Is(err, fault.Invalid)
		if err != nil && (v == also || !changed) {
			return all, err
		}
		if v == also {
			all.lists = one.lists
		}
		all.notice = joined(all.notice, one.notice)
	}
	return all, nil
}

// versionsFor returns the versions that get a list: empty if all have it already, but in any case another
// one that is not the zero version.
func versionsFor(of tools.Watch, also registry.Version) []registry.Version {
	var all []registry.Version
	if of.Received != of.Receipt() {
		all = slices.Clone(of.Versions)
	}
	if also != (registry.Version{}) && !slices.Contains(all, also) {
		all = append(all, also)
	}
	return all
}

func (w *Watcher) now() time.Time { return w.ports.Clock.Now().UTC().Truncate(time.Microsecond) }

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
