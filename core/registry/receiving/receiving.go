// Package receiving stores tool lists that were recorded, or asked for (contract W-3 to W-5), with the
// reviews in which they wait. Package tools has the rules; packages publishing and watching, which get the
// lists, call it.
package receiving

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// Reviewed says whether the registry has reviews: then the first list of a part waits, too.
type Reviewed bool

// Ports are the dependencies of a Receiver. All fields are required.
type Ports struct {
	Lists   registrystore.ToolLists
	Reviews registrystore.Reviews
	Backlog registrystore.ReviewBacklog
	Reader  registrystore.ServerReader
	Events  *announce.Recorder
	Entropy secrets.Entropy
}

// Receiver receives tool lists. It is safe for concurrent use.
type Receiver struct {
	reviewed Reviewed
	ports    Ports
}

// New returns a receiver.
func New(reviewed Reviewed, p Ports) *Receiver { return &Receiver{reviewed, p} }

// Sent is a list that was recorded, or asked for.
type Sent struct {
	Name    registry.Name
	Version registry.Version
	Place   tools.Place
	Source  tools.Source
	By      tools.Sender // the zero value for a list that was asked for
	List    tools.List
	At      time.Time
	// Unstable says that the remote showed another list each time: its state is not changed, but unstable.
	Unstable bool
}

// Received is what becomes of a list. Store and Announce do it, in the transaction that has locked the server.
type Received struct {
	tools.Change

	Part          tools.Part
	Lists         []tools.Shown // all of the version afterwards, as readers see them; those that wait, of one that waits
	Before, After *tools.Stored // the list of the part and source that is not approved; nil without one
	Approved      *tools.Stored // the approved one afterwards; nil without one

	Store, Announce func(ctx context.Context) error
}

// Receive decides what becomes of a list of a version of a server that is locked: one that is listed, or
// whose document waits for review and has the part, with which the list then waits. A version in quarantine
// may only be asked. It returns fault.NotFound for any other version, fault.Forbidden for one in quarantine,
// fault.Invalid for a part that the version does not have, and fault.Conflict if all its lists would be too
// large.
func (r *Receiver) Receive(ctx context.Context, s change.Server, sent Sent) (Received, error) {
	of, err := r.find(ctx, s, &sent)
	if err != nil {
		return Received{}, err
	}
	list := tools.Stored{
		Name: sent.Name, Version: sent.Version, Part: of.part.Key, Source: sent.Source,
		At: sent.At.UTC().Truncate(time.Microsecond), By: sent.By, List: sent.List, Review: of.review,
	}
	if sent.Source == tools.Asked {
		list.By = tools.Sender{Key: tools.Service}
	}
	if sent.Unstable {
		list.State = tools.Unstable
	}
	received := Received{
		Change: tools.Receive(of.stored, list, of.review != "" || bool(r.reviewed)), Part: of.part,
		Before: tools.Find(of.stored, list.Part, list.Source, false),
	}
	after, err := received.Apply(of.stored, list)
	if err != nil {
		return Received{}, err
	}
	received.Lists = tools.Show(of.document, after)
	received.After = tools.Find(after, list.Part, list.Source, false)
	received.Approved = tools.Find(after, list.Part, list.Source, true)
	received.Store = func(ctx context.Context) error { return r.store(ctx, list, received.Change) }
	received.Announce = func(ctx context.Context) error {
		if of.review != "" { // only reviewers read it
			return nil
		}
		return r.ports.Events.RecordTools(ctx, sent.Name)
	}
	return received, nil
}

// found is what a list is of.
type found struct {
	document []byte
	part     tools.Part
	review   registry.ReviewID // that waits; empty for a version that is listed
	stored   []tools.Stored
}

// find returns what a list is of: a part of the document that is listed, or else of the one that waits.
func (r *Receiver) find(ctx context.Context, s change.Server, sent *Sent) (f found, err error) {
	release := registry.FindIn(s.Releases, func(x *registry.Release) bool { return x.Version == sent.Version })
	var missing error = fault.New(fault.NotFound, "server version not found")
	if release != nil {
		listed, err := r.ports.Reader.Version(ctx, release.Name, sent.Version, true)
		if err != nil {
			return f, err
		}
		hidden := registry.CheckQuarantine(s.Quarantined, sent.Version)
		switch {
		case hidden != nil && sent.Source != tools.Asked:
			return f, hidden
		case hidden == nil && release.Status == registry.StatusDeleted:
		default:
			f.document = listed.Document
			if f.part, missing = tools.FindPart(f.document, sent.Place); missing == nil {
				f.stored, err = r.ports.Lists.OfVersion(ctx, sent.Name, sent.Version)
				return f, err
			}
		}
	}
	waiting, err := r.ports.Reviews.PendingOf(ctx, sent.Name, sent.Version)
	if err != nil {
		if fault.Is(err, fault.NotFound) {
			err = missing
		}
		return f, err
	}
	f.document, f.review = waiting.Document, waiting.ID
	if f.part, err = tools.FindPart(f.document, sent.Place); err != nil {
		return f, err
	}
	f.stored, err = r.ports.Lists.OfReview(ctx, waiting.ID)
	return f, err
}

// store stores what becomes of a list, with its review: a list that waits has one of its own, unless it
// waits with a document.
func (r *Receiver) store(ctx context.Context, list tools.Stored, c tools.Change) error {
	if c.Put == nil && !c.Remove {
		return nil
	}
	if list.Review == "" {
		if err := r.endReview(ctx, list); err != nil {
			return err
		}
	}
	if c.Remove {
		if err := r.ports.Lists.Withdraw(ctx, list); err != nil {
			return err
		}
	}
	if c.Put == nil {
		return nil
	}
	if err := r.ports.Lists.Put(ctx, *c.Put); err != nil || list.Review != "" || c.Put.State == tools.Approved {
		return err
	}
	waits := review.Review{
		ID: secrets.NewUUID[registry.ReviewID](r.ports.Entropy), Name: list.Name, Version: list.Version, State: review.Pending,
		Kind: review.Tools, Document: list.List.Canonical(), Submitter: review.Submitter(list.By), SubmittedAt: list.At,
		Part: list.Part, Source: list.Source,
	}
	if err := r.ports.Reviews.Add(ctx, waits, 0); err != nil {
		return err
	}
	return r.announce(ctx, waits, list)
}

// announce records the event of a list that waits, with what differs from the approved one.
func (r *Receiver) announce(ctx context.Context, waits review.Review, list tools.Stored) error {
	stored, err := r.ports.Lists.OfVersion(ctx, list.Name, list.Version)
	if err != nil {
		return err
	}
	other, err := r.ports.Lists.Named(ctx, list.Name, list.List.Candidates())
	if err != nil {
		return err
	}
	var before *tools.List
	if approved := tools.Find(stored, list.Part, list.Source, true); approved != nil {
		before = &approved.List
	}
	var shown review.Shown
	shown.Add(tools.Propose(tools.Shown{Stored: list}, before, other))
	return r.ports.Events.RecordReview(ctx, event.Submitted, waits, shown.Signs...)
}

// ApproveSeen approves the lists that remotes of a version have shown last, in the transaction that has locked
// the server: its release from quarantine does that (contract W-7). Those that were rejected stay so.
func (r *Receiver) ApproveSeen(ctx context.Context, name registry.Name, version registry.Version, at time.Time) error {
	stored, err := r.ports.Lists.OfVersion(ctx, name, version)
	for _, l := range stored {
		if err != nil {
			break
		}
		if l.Source != tools.Asked || l.State != tools.Differs && l.State != tools.Unstable {
			continue
		}
		seen := l
		seen.At, seen.State = at.UTC().Truncate(time.Microsecond), tools.Approved
		if err = r.endReview(ctx, seen); err == nil {
			err = r.ports.Lists.Withdraw(ctx, l)
		}
		if err == nil {
			err = r.ports.Lists.Put(ctx, seen)
		}
	}
	return err
}

// endReview ends the review of the list that waited before, if there is one.
func (r *Receiver) endReview(ctx context.Context, list tools.Stored) error {
	waiting, err := r.ports.Backlog.PendingTools(ctx, list)
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return reviewing.Supersede(ctx, r.ports.Reviews, r.ports.Reader, waiting, list.At)
}
