// Package reviewing holds the use cases of people and operators who decide what is listed: they read
// what was submitted, approve or reject it, and make rules that approve without a person (contract
// C-10 to C-18). Package review has the rules, package publishing submits.
package reviewing

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/notifying"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// The names of actions in the audit log (contract R-38).
const (
	actApprove = "approve"
	actReject  = "reject"
)

// OperatorPorts are the dependencies of an Operator. All fields are required.
type OperatorPorts struct {
	Transactions transaction.Runner
	Reviews      registrystore.Reviews
	Rules        registrystore.ReviewRules
	Reader       registrystore.ServerReader
	Writer       registrystore.ServerWriter
	Quarantine   registrystore.Quarantine
	Mirrors      registrystore.Mirrors
	Mirrored     registrystore.MirroredVersions
	Ender        MirrorEnder
	Recorder     authority.Recorder
	Events       *notifying.Recorder
	Cursors      *page.Sealer
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// Operator reads and decides reviews, and keeps the rules, for operator commands. It is safe for
// concurrent use.
type Operator struct{ ports OperatorPorts }

// NewOperator returns an operator.
func NewOperator(p OperatorPorts) *Operator { return &Operator{p} }

// List returns a page of all reviews in a state.
func (o *Operator) List(ctx context.Context, q Query) (Page, error) {
	return o.list(ctx, q, func(*registrystore.ReviewQuery) {})
}

// Get returns a review, or fault.NotFound.
func (o *Operator) Get(ctx context.Context, id review.ID) (review.Shown, error) {
	r, err := o.find(ctx, id)
	if err != nil {
		return review.Shown{}, err
	}
	return o.show(ctx, r)
}

// Approve approves a pending review, so that its document is served. It returns fault.NotFound,
// fault.Conflict when it is not pending any more or when another server has one of its remote URLs
// now, and fault.Invalid for a comment that is too long.
func (o *Operator) Approve(ctx context.Context, id review.ID, comment string) (review.Shown, error) {
	return o.decideAsOperator(ctx, id, true, comment)
}

// Reject rejects a pending review. Errors as of Approve; a comment is required.
func (o *Operator) Reject(ctx context.Context, id review.ID, comment string) (review.Shown, error) {
	return o.decideAsOperator(ctx, id, false, comment)
}

func (o *Operator) decideAsOperator(ctx context.Context, id review.ID, approve bool, comment string) (review.Shown, error) {
	comment, err := review.ParseComment(comment, !approve)
	if err != nil {
		return review.Shown{}, err
	}
	d := review.Decision{Approve: approve, By: review.Operator, Comment: comment}
	return o.decide(ctx, id, d, func(ctx context.Context, r review.Review) error {
		return o.ports.Recorder.RecordChanges(ctx, authority.ReviewDecision{
			Review: r.ID, ServerName: r.Name.String(), Version: r.Version.String(), Approved: approve,
		})
	})
}

// find returns a review, or fault.NotFound with a sentence for the caller.
func (o *Operator) find(ctx context.Context, id review.ID) (review.Review, error) {
	r, err := o.ports.Reviews.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return review.Review{}, fault.New(fault.NotFound, "there is no review with this id")
	}
	return r, err
}

// decide stores a decision, together with what it changes in the registry and its record in the
// audit log. Other changes of the server wait until then, so that each review is decided once.
func (o *Operator) decide(ctx context.Context, id review.ID, d review.Decision, record func(context.Context, review.Review) error) (review.Shown, error) {
	var decided review.Review
	err := o.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		r, err := o.find(ctx, id)
		if err != nil {
			return err
		}
		releases, err := o.ports.Writer.Lock(ctx, r.Name)
		if err != nil {
			return err
		}
		if r, err = o.find(ctx, id); err != nil { // as the last writer left it
			return err
		}
		d.At = o.ports.Clock.Now()
		if decided, err = r.Decide(d); err != nil {
			return err
		}
		if decided.Replaced, err = Compared(ctx, o.ports.Reader, r); err != nil {
			return err
		}
		var served *registry.Release
		if d.Approve {
			quarantined, err := o.ports.Quarantine.Entries(ctx, r.Name)
			if err != nil {
				return err
			}
			if served, err = o.serve(ctx, registry.NewLineage(r.Name, releases, quarantined...), r, d); err != nil {
				return err
			}
		}
		if err := o.ports.Reviews.Decide(ctx, decided); err != nil {
			return err
		}
		if err := o.recordEvents(ctx, decided, served); err != nil {
			return err
		}
		return record(ctx, decided)
	})
	if err != nil {
		return review.Shown{}, err
	}
	return o.show(ctx, decided)
}

// recordEvents records the events of a decision (contract C-50). served is the release of the
// document; nil for a rejection.
func (o *Operator) recordEvents(ctx context.Context, r review.Review, served *registry.Release) error {
	if served == nil {
		return o.ports.Events.RecordReview(ctx, event.Rejected, r)
	}
	if err := o.ports.Events.RecordReview(ctx, event.Approved, r); err != nil {
		return err
	}
	return o.ports.Events.RecordVersions(ctx, notifying.TypeOf(r.Kind), registry.Record{Release: *served, Document: r.Document})
}

// serve stores the document of an approved review and returns its release. It returns fault.Conflict
// for a version in quarantine (contract C-22), and for one that was deleted or published meanwhile.
func (o *Operator) serve(ctx context.Context, l *registry.Lineage, r review.Review, d review.Decision) (*registry.Release, error) {
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
		return o.serveMirrored(ctx, l, r, mirrored{name, doc, d.At})
	}
	var release registry.Release
	var taken *registry.Takeover
	if r.Kind == review.Replacement {
		release, err = l.Replace(r.Version, d.At)
		if fault.Is(err, fault.NotFound) {
			return nil, fault.New(fault.Conflict, "the version was deleted meanwhile, so that its document cannot be replaced: reject the review")
		}
	} else if taken, err = l.TakeOver(r.Version, d.At); err == nil {
		release, err = l.Publish(r.Version, d.At)
	}
	if err != nil {
		return nil, conflictOf(l, err)
	}
	return &release, o.ports.Ender.Publish(ctx, l, &doc, taken, r.Submitter.People()...)
}

// show returns a review with what it is compared with: what is served now, or what was when it was
// decided.
func (o *Operator) show(ctx context.Context, r review.Review) (review.Shown, error) {
	if r.State != review.Pending {
		return r.Show(r.Replaced)
	}
	replaces, err := Compared(ctx, o.ports.Reader, r)
	if err != nil {
		return review.Shown{}, err
	}
	return r.Show(replaces)
}

// Supersede ends a pending review in the transaction that the context carries. It returns
// fault.Conflict if the review is not pending.
func Supersede(ctx context.Context, store registrystore.Reviews, reader registrystore.ServerReader, waiting review.Review, now time.Time) error {
	r, err := waiting.Supersede(now)
	if err != nil {
		return err
	}
	if r.Replaced, err = Compared(ctx, reader, r); err != nil {
		return err
	}
	return store.Decide(ctx, r)
}

// Compared returns the document with which a pending review is compared: the one that a replacement
// replaces, or the latest one that a new version follows; nil if there is none.
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
