package watching

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// sent is a list that a remote has shown.
type sent struct {
	by    authority.Caller
	watch tools.Watch // after it
	list  tools.List
	at    time.Time
}

// received is what became of it in a version.
type received struct {
	lists  []tools.Shown
	notice *authority.QuarantineNotice // nil if no one needs to know
}

// errSame ends a transaction that has nothing to store.
var errSame = errors.New("the version has the list already")

// receive stores a list in a version, with what a difference does. The errors are those of
// receiving.Receiver.
func (w *Watcher) receive(ctx context.Context, s sent, v registry.Version) (done received, err error) {
	err = change.Commit(ctx, w.ports.Ports, s.watch.Name, func(ctx context.Context, server change.Server) (change.Decision, error) {
		r, err := w.ports.Receiver.Receive(ctx, server, receiving.Sent{
			Name: s.watch.Name, Version: v, Place: tools.Place{Remote: string(s.watch.Remote)}, Source: tools.Asked, List: s.list,
			At: s.at, Unstable: s.watch.Unstable,
		})
		if err != nil {
			return change.Decision{}, err
		}
		done = received{lists: r.Lists}
		if r.Put == nil && !r.Remove {
			return change.Decision{}, errSame
		}
		d := change.Decision{Store: r.Store, Announce: r.Announce, Act: authority.Act{
			Caller: s.by, Action: actRecord, ServerName: s.watch.Name.String(), Version: v.String(),
			Part: registry.Clip(string(s.watch.Remote)), ToolState: string(r.State),
		}}
		if r.Approved != nil && !r.First {
			d.Act.Action = actChange
		}
		if differs(&r) {
			done.notice = &authority.QuarantineNotice{ServerName: s.watch.Name, Version: v, At: s.at, Tools: true}
			err = w.announce(&d, &r, server, done.notice)
		}
		return d, err
	})
	if errors.Is(err, errSame) {
		err = nil
	}
	return done, err
}

// differs reports whether a list is another one than the approved one, or unstable, and was not before.
func differs(r *receiving.Received) bool {
	if r.Put == nil || r.After == nil || r.After.Review != "" {
		return false
	}
	return r.After.State == tools.Differs || r.After.State == tools.Unstable && (r.Before == nil || r.Before.State != tools.Unstable)
}

// announce adds to a decision what a difference does: its event, its notice, and the quarantine of the
// version.
func (w *Watcher) announce(d *change.Decision, r *receiving.Received, s change.Server, n *authority.QuarantineNotice) error {
	before := tools.List{}
	if r.Approved != nil {
		before = r.Approved.List
	} else if r.Before != nil {
		before = r.Before.List
	}
	n.Reason = tools.Summarize(before, r.After.List)
	steps, events := []func(context.Context) error{d.Store}, []func(context.Context) error{d.Announce}
	steps = append(steps, func(ctx context.Context) error {
		people, failed := w.ports.Writer.Responsible(ctx, n.ServerName, n.Version)
		n.People = people
		return failed
	})
	events = append(events, func(ctx context.Context) error {
		return w.ports.Events.RecordOtherTools(ctx, n.ServerName, n.Version, describe(before, r))
	})
	_, hidden := registry.FindQuarantine(s.Quarantined, n.Version)
	if w.config.OnChange == toolserver.Quarantine && r.Approved != nil && !hidden {
		q, prior, err := s.Quarantine(registry.Quarantined{Version: n.Version, Reason: reasonOf(n.Reason), By: tools.Service}, n.At)
		if err != nil {
			return err
		}
		steps = append(steps, func(ctx context.Context) error { return w.ports.Quarantine.Add(ctx, q, prior) },
			func(ctx context.Context) error { return s.Save(ctx, w.ports.Writer) })
		events = append(events, func(ctx context.Context) error { return w.ports.Events.RecordQuarantined(ctx, q) })
	}
	d.Store, d.Announce = inOrder(steps), inOrder(events)
	return nil
}

// inOrder returns a function that calls others until one fails.
func inOrder(all []func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, do := range all {
			if err := do(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

// reasonOf returns the reason of a quarantine. Names of tools may be no text for it.
func reasonOf(summary string) registry.Reason {
	const otherTools = "it shows other tools than the approved ones"
	reason, err := registry.ParseReason(otherTools + ": " + summary)
	if err != nil {
		return otherTools
	}
	return reason
}

// describe returns the data of the event of a difference.
func describe(before tools.List, r *receiving.Received) jsonvalue.Object {
	after := r.After.List
	added, changed, removed := tools.Names(before, after)
	return jsonvalue.Object{
		"remote": jsonvalue.Text(r.Part.Remote), "state": jsonvalue.Text(r.After.State), "new": jsonvalue.Texts(added),
		"changed": jsonvalue.Texts(changed), "removed": jsonvalue.Texts(removed),
		"approvedMark": jsonvalue.Text(before.Mark), "mark": jsonvalue.Text(after.Mark),
		"approvedContextMark": jsonvalue.Text(before.ContextMark), "contextMark": jsonvalue.Text(after.ContextMark),
	}
}

// joined returns one notice of those of two versions of a server: about the server.
func joined(a, b *authority.QuarantineNotice) *authority.QuarantineNotice {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	both := *a
	both.Version = registry.Version{}
	for _, person := range b.People {
		if !slices.Contains(both.People, person) {
			both.People = append(both.People, person)
		}
	}
	return &both
}

// notify sends a notice to the people who have published a version, and to who may review it. Without a
// database, only the first get it.
func (w *Watcher) notify(ctx context.Context, n *authority.QuarantineNotice) {
	for next := (registrystore.GrantQuery{Limit: 500}); ; {
		grants, err := w.ports.Grants.Records(ctx, next)
		for _, g := range grants {
			next.After = g
			_, isService := g.Holder.Service()
			if g.Action == registry.ActionReview && g.Pattern.Matches(n.ServerName) && !isService && !slices.Contains(n.People, g.Holder) {
				n.People = append(n.People, g.Holder)
			}
		}
		if err != nil || len(grants) < next.Limit {
			break
		}
	}
	w.ports.Notifier.NotifyPublishers(*n)
}
