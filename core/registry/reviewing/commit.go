package reviewing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// find returns a review, or fault.NotFound with a sentence for the caller.
func (s *Service) find(ctx context.Context, id registry.ReviewID) (review.Review, error) {
	r, err := s.ports.Reviews.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return review.Review{}, fault.New(fault.NotFound, "there is no review with this id")
	}
	return r, err
}

// commit stores a decision about a review of a server, together with what it changes in the
// registry and its record in the audit log. Other changes of the server wait until then, so that
// each review is decided once.
func (s *Service) commit(
	ctx context.Context, act authority.Act, name registry.Name, d review.Decision,
) (review.Shown, error) {
	var decided review.Review
	err := change.Commit(ctx, s.ports.Ports, name, func(ctx context.Context, l change.Server) (change.Decision, error) {
		r, err := s.find(ctx, act.Review) // as the last writer left it
		if err != nil {
			return change.Decision{}, err
		}
		if err := s.checkCurrent(ctx, r, d); err != nil {
			return change.Decision{}, err
		}
		d.At = s.ports.Clock.Now()
		if err := s.requireTwo(ctx, &r, &d); err != nil {
			return change.Decision{}, err
		}
		if decided, err = r.Decide(d); err != nil {
			return change.Decision{}, err
		}
		if decided.Replaced, err = comparedWith(ctx, s.ports.Reviews, s.ports.Reader, r); err != nil {
			return change.Decision{}, err
		}
		var served *registry.Release
		r.Replaced = decided.Replaced
		store, err := s.decision(ctx, l, r, d, &served)
		if decided.State == review.Pending {
			return s.firstApproval(act, decided), err
		}
		return change.Decision{Act: act, Store: func(ctx context.Context) error {
			if err := store(ctx); err != nil {
				return err
			}
			return s.ports.Reviews.Decide(ctx, decided)
		}, Announce: func(ctx context.Context) error { return s.recordEvents(ctx, decided, served) }}, err
	})
	if err != nil {
		return review.Shown{}, err
	}
	return s.show(ctx, decided)
}

// requireTwo adds to an approval what two people must approve, if the review is dangerous, and forgets a first approval
// of somebody who may not review the server any more. It returns fault.Forbidden for a service account, which is no
// second person, and fault.Conflict for one of many.
func (s *Service) requireTwo(ctx context.Context, r *review.Review, d *review.Decision) error {
	if !d.Approve || !s.config.TwoApprovals || r.State != review.Pending {
		return nil
	}
	shown, err := s.show(ctx, *r)
	if err != nil || !shown.Two {
		return err
	}
	if _, service := registry.Holder(d.By).Service(); service {
		return fault.New(fault.Forbidden, "it is dangerous: two people approve it, and a service account is none")
	}
	if d.Many && !r.IsOwn(registry.Holder(d.By)) {
		return fault.New(fault.Conflict, "it is dangerous, and not approved together with others: open the review and read it")
	}
	d.Two = shown.Text()
	r.First = shown.First
	return nil
}

// firstApproval returns how the first of two approvals is stored. It announces nothing: nothing is decided yet.
func (s *Service) firstApproval(act authority.Act, r review.Review) change.Decision {
	act.Action, act.ToolState = actApproveFirst, ""
	return change.Decision{
		Act: act, Store: func(ctx context.Context) error { return s.ports.Reviews.Decide(ctx, r) },
		Announce: func(context.Context) error { return nil },
	}
}

// decision returns how a decision is stored. After that, served is the release of an approved document.
func (s *Service) decision(
	ctx context.Context, l change.Server, r review.Review, d review.Decision, served **registry.Release,
) (func(ctx context.Context) error, error) {
	_, mirrored := mirror.OfSubmitter(r.Submitter.Key)
	switch {
	case d.Changes && (mirrored || r.Kind == review.Tools):
		return nil, fault.New(fault.Conflict, "nobody can submit it again here with changes: reject it, and say why")
	case r.Kind == review.Tools:
		return s.decideTools(ctx, l, r, d)
	case !d.Approve:
		return func(context.Context) error { return nil }, nil
	}
	waiting, err := s.checkLists(ctx, r, d)
	if err == nil && d.Unread {
		err = checkHarmless(r)
	}
	return func(ctx context.Context) (err error) {
		if *served, err = s.serve(ctx, l.Lineage, r, d); err != nil {
			return err
		}
		return s.approveLists(ctx, waiting)
	}, err
}

// checkHarmless returns fault.Conflict unless all that a document changes is harmless: only that is approved together
// with others.
func checkHarmless(r review.Review) error {
	shown, err := r.Show(r.Replaced)
	if why := shown.Alone(); err == nil && why != "" {
		return fault.Newf(fault.Conflict, "%s is not approved together with others: open the review and read it", why)
	}
	return err
}

// recordEvents records the events of a decision (contract C-50). served is the release of the
// document; nil for a rejection, and for a tool list.
func (s *Service) recordEvents(ctx context.Context, r review.Review, served *registry.Release) error {
	if r.Kind == review.Tools {
		t := event.Rejected
		if r.State == review.Approved {
			t = event.Approved
		}
		shown, err := s.show(ctx, r)
		if err == nil {
			err = s.ports.Events.RecordReview(ctx, t, r, shown.Signs...)
		}
		if err != nil {
			return err
		}
		return s.ports.Events.RecordTools(ctx, r.Name)
	}
	switch {
	case r.State == review.ChangesRequested:
		return s.ports.Events.RecordReview(ctx, event.ChangesRequested, r)
	case served == nil:
		return s.ports.Events.RecordReview(ctx, event.Rejected, r)
	}
	if err := s.ports.Events.RecordReview(ctx, event.Approved, r); err != nil {
		return err
	}
	return s.ports.Events.RecordVersions(ctx, announce.TypeOf(r.Kind), registry.Record{
		Release: *served, Document: r.Document,
	})
}

// serve stores the document of an approved review and returns its release. It returns
// fault.Conflict for a version in quarantine (contract C-22), and for one that was deleted or
// published meanwhile.
func (s *Service) serve(
	ctx context.Context, l *registry.Lineage, r review.Review, d review.Decision,
) (*registry.Release, error) {
	draft, err := registry.ParseDraft(r.Document)
	if err != nil {
		return nil, err
	}
	// The document kept all rules when it was submitted; a later version of the program may have
	// more of them.
	doc, err := draft.ImportedDocument()
	if err != nil {
		return nil, err
	}
	if name, ok := mirror.OfSubmitter(r.Submitter.Key); ok {
		return s.serveMirrored(ctx, l, r, mirrored{name, doc, d.At})
	}
	var release registry.Release
	var taken *registry.Takeover
	if r.Kind == review.Replacement {
		release, err = l.Replace(r.Version, d.At)
		if fault.Is(err, fault.NotFound) {
			return nil, fault.New(fault.Conflict,
				"the version was deleted meanwhile, so that its document cannot be replaced: reject the review")
		}
	} else {
		if !r.IsRequest() { // what a mirror lists meanwhile needs no request
			taken, err = l.TakeOver(r.Version, d.At)
		}
		if err == nil {
			release, err = l.Publish(r.Version, d.At)
		}
	}
	if err != nil {
		return nil, conflictOf(l, err)
	}
	return &release, s.ports.Ender.Publish(ctx, l, &doc, taken, r.Submitter.People()...)
}

// show returns a review with what it is compared with: what is served now, or what was when it was
// decided.
func (s *Service) show(ctx context.Context, r review.Review) (review.Shown, error) {
	replaces, err := r.Replaced, error(nil)
	if r.State == review.Pending {
		replaces, err = comparedWith(ctx, s.ports.Reviews, s.ports.Reader, r)
	}
	if err != nil {
		return review.Shown{}, err
	}
	shown, err := r.Show(replaces)
	if err == nil {
		err = s.addLists(ctx, &shown)
	}
	if err != nil || shown.State != review.Pending || shown.First.By == "" || shown.First.By == review.Operator {
		return shown, err
	}
	may, err := s.mayReview(ctx, registry.Holder(shown.First.By), shown.Name)
	if !may {
		shown.First = review.Approval{}
	}
	return shown, err
}

// mayReview reports whether the account of a person is active, and may review a server.
func (s *Service) mayReview(ctx context.Context, person registry.Holder, name registry.Name) (bool, error) {
	active, err := s.ports.Makers.IsActive(ctx, string(person))
	if err != nil || !active {
		return false, err
	}
	err = s.requireGrant(ctx, person, name)
	if fault.Is(err, fault.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

// RecordSubmitted records the event of a document that waits.
func RecordSubmitted(ctx context.Context, events *announce.Recorder, reader registrystore.ServerReader, r review.Review) (err error) {
	if r.Replaced, err = Compared(ctx, reader, r); err != nil {
		return err
	}
	return events.RecordReview(ctx, event.Submitted, r)
}

// Supersede ends a pending review in the transaction that the context carries. It returns
// fault.Conflict if the review is not pending.
func Supersede(
	ctx context.Context, store registrystore.Reviews, reader registrystore.ServerReader, waiting review.Review,
	now time.Time,
) error {
	r, err := waiting.Supersede(now)
	if err != nil {
		return err
	}
	if r.Replaced, err = comparedWith(ctx, store, reader, waiting); err != nil {
		return err
	}
	return store.Decide(ctx, r)
}

// comparedWith returns what a stored review that is pending is compared with: a document (Compared), or a tool
// list.
func comparedWith(
	ctx context.Context, store registrystore.Reviews, reader registrystore.ServerReader, r review.Review,
) ([]byte, error) {
	if r.Kind != review.Tools {
		return Compared(ctx, reader, r)
	}
	lists, err := store.Compared(ctx, []review.Review{r})
	if err != nil {
		return nil, err
	}
	return lists[0], nil
}

// Compared returns the document with which a pending review is compared: the one that a replacement
// replaces, or the latest one that a new version follows; otherwise nil.
func Compared(ctx context.Context, servers registrystore.ServerReader, r review.Review) ([]byte, error) {
	var record registry.Record
	var err error
	switch r.Kind {
	case review.NewServer:
		return nil, nil
	case review.Replacement:
		record, err = servers.Version(ctx, r.Name, r.Version, true)
	default:
		record, err = servers.Latest(ctx, r.Name, true)
	}
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	return record.Document, err
}
