package watching

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// The names of actions in the audit log (contract W-12).
const (
	actAsk    audit.Action = "tools_ask" // that was refused, or got no answer
	actRecord audit.Action = "tools_record"
	actChange audit.Action = "tools_change"
)

// Target is a version whose remotes are asked, by texts that are not validated.
type Target struct {
	Name, Version string
	Remote        string // the URL of one of them; empty for all, at most 4
}

// Ask queries remotes of a version now, also of one that waits for review or is in quarantine because of its
// tools, and returns the lists of the version. Versions with the same remotes get the lists, too.
//
// Errors, in the order of the checks: fault.Unauthenticated, fault.Forbidden without the grant to review
// the server at FULL_TRUST, fault.NotFound for a version that is neither listed nor waits, fault.Invalid for
// a remote that it does not have, or too many, fault.Exhausted if too many are asked by hand at once,
// fault.Conflict if a remote is being asked, fault.Unavailable with the code fault.UpstreamWrong or
// fault.UpstreamSlow for a remote that gives no list, and fault.Conflict if the lists of the version
// would be too large. fault.Unavailable without a code when a dependency fails.
func (w *Watcher) Ask(ctx context.Context, who authority.Caller, t Target) ([]tools.Shown, error) {
	if _, err := who.Person(); fault.Is(err, fault.Unauthenticated) {
		return nil, err
	}
	lists, err := w.askTarget(ctx, who, t)
	return lists, permit.Refuse(ctx, w.ports.Acts, authority.Act{
		Caller: who, Action: actAsk, ServerName: registry.Clip(t.Name), Version: registry.Clip(t.Version), Part: registry.Clip(t.Remote),
	}, err)
}

func (w *Watcher) askTarget(ctx context.Context, who authority.Caller, t Target) ([]tools.Shown, error) {
	if err := permit.RequireReviewer(ctx, w.ports.Grants, who, t.Name); err != nil {
		return nil, err
	}
	name, noName := registry.ParseName(t.Name)
	version, noVersion := registry.ParseVersion(t.Version)
	if noName != nil || noVersion != nil {
		return nil, errNoVersion()
	}
	remotes, err := w.remotesOf(ctx, name, version, t.Remote)
	if err != nil {
		return nil, err
	}
	select {
	case w.byHand <- struct{}{}:
		defer func() { <-w.byHand }()
	default:
		return nil, fault.New(fault.Exhausted, "too many remotes are asked by hand at this moment; try again").After(time.Second)
	}
	all, err := w.askAll(ctx, name, remotes)
	var lists []tools.Shown
	var wrong error
	for _, q := range all {
		if err != nil {
			w.end(ctx, q)
			continue
		}
		var found []tools.Shown
		if found, err = w.finish(ctx, who, q, version); fault.Is(err, fault.Unavailable) && err == q.err { //nolint:errorlint // the same one
			wrong, err = err, nil
		} else {
			lists = found
		}
	}
	if err == nil {
		err = wrong
	}
	return lists, err
}

// askAll queries remotes at once. With an error, the questions that it returns have no answers.
func (w *Watcher) askAll(ctx context.Context, name registry.Name, remotes []registry.RemoteURL) (all []*question, err error) {
	for _, remote := range remotes {
		q, err := w.claim(ctx, registrystore.WatchClaim{Name: name, Remote: remote})
		if err == nil && q == nil {
			err = errAsking
		}
		if err != nil {
			return all, err
		}
		all = append(all, q)
	}
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, q := range all {
		group.Go(func() { errs[i] = w.ask(ctx, q) })
	}
	group.Wait()
	for _, one := range errs {
		if err == nil {
			err = one
		}
	}
	return all, err
}

// remotesOf returns the remotes of a version that are asked: of what is listed, or in quarantine, and of
// what waits.
func (w *Watcher) remotesOf(
	ctx context.Context, name registry.Name, version registry.Version, wanted string,
) (remotes []registry.RemoteURL, err error) {
	found := false
	record, err := w.ports.Reader.Version(ctx, name, version, true)
	if err == nil {
		entries, err := w.ports.Quarantine.Entries(ctx, name)
		if err != nil {
			return nil, err
		}
		if found = record.Status != registry.StatusDeleted || registry.CheckQuarantine(entries, version) != nil; found {
			remotes = registry.RemotesOf(record.Document)
		}
	} else if !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	waiting, err := w.ports.Reviews.PendingOf(ctx, name, version)
	if err == nil {
		found, remotes = true, append(remotes, registry.RemotesOf(waiting.Document)...)
	} else if !fault.Is(err, fault.NotFound) {
		return nil, err
	}
	if !found {
		return nil, errNoVersion()
	}
	return choose(remotes, registry.ComparableURL(wanted))
}

// choose returns the remotes that can be asked, or the wanted one, if it is not empty.
func choose(remotes []registry.RemoteURL, wanted registry.RemoteURL) ([]registry.RemoteURL, error) {
	slices.Sort(remotes)
	all := slices.DeleteFunc(slices.Compact(remotes), func(u registry.RemoteURL) bool {
		return !tools.CanBeAsked(u) || wanted != "" && u != wanted
	})
	switch {
	case len(all) == 0 && wanted != "":
		return nil, fault.In("remote", fault.Violated("remote: the version has no remote %.200q that can be asked", wanted))
	case len(all) == 0:
		return nil, fault.Violated("the version has no remote that can be asked")
	case len(all) > atOnce:
		return nil, fault.In("remote", fault.Violated("remote: the version has %d remotes; name the one to ask", len(all)))
	}
	return all, nil
}

func errNoVersion() error { return fault.New(fault.NotFound, "server version not found") }
