package delegating

import (
	"context"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// RightPorts are the dependencies of Rights. All fields are required.
type RightPorts struct {
	Transactions transaction.Runner
	Requests     registrystore.RightRequests
	Stored       registrystore.Grants
	Grants       *GrantOperator
	Makers       authority.Makers
	Recorder     authority.Recorder
	Notifier     authority.ReviewNotifier
	Clock        clock.Clock
	Entropy      secrets.Entropy
}

// Rights are the requests of people for rights, which operators grant or decline. It is safe for concurrent use.
type Rights struct{ ports RightPorts }

// NewRights returns the requests.
func NewRights(p RightPorts) *Rights { return &Rights{p} }

// RightDraft is a request for a right as a person writes it.
type RightDraft struct{ Action, Resource, Reason string }

// Parse returns the request of a person. It returns fault.Invalid, with the name of the field.
func (d RightDraft) Parse(who registry.Holder) (r registry.RightRequest, err error) {
	if r.Grant, err = registry.ParseRight(who, d.Action, d.Resource); err != nil {
		return r, err
	}
	r.Reason, err = review.ParseReason(d.Reason)
	return r, fault.In("reason", err)
}

// Ask stores a request of the caller, who needs the trust level for changes of the registry. It returns fault.Conflict if
// the caller has the right, and the errors of RightDraft.Parse and of registrystore.RightRequests.
func (s *Rights) Ask(ctx context.Context, who authority.Caller, d RightDraft) error {
	holder, err := who.RequireWriter()
	if err == nil && who.IsToken() {
		err = fault.New(fault.Forbidden, "a token cannot ask for a right: sign in")
	}
	if err != nil {
		return err
	}
	r, err := d.Parse(holder)
	if err != nil {
		return err
	}
	r.ID, r.AskedAt = secrets.NewUUID[registry.RightRequestID](s.ports.Entropy), s.ports.Clock.Now()
	return s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		has, err := s.has(ctx, r.Grant)
		if err == nil && has {
			err = fault.In("resource", fault.Newf(fault.Conflict, "you may %s %s already", r.Action, r.Pattern))
		}
		if err == nil {
			err = s.ports.Requests.Add(ctx, r)
		}
		if err != nil {
			return err
		}
		change := newRightChange("right_ask", r, r.Reason)
		change.Subject, change.ByOperator = audit.Subject(holder), false
		return s.ports.Recorder.RecordChanges(ctx, change)
	})
}

// has reports whether the holder of a grant has it, or one that covers it.
func (s *Rights) has(ctx context.Context, g registry.Grant) (bool, error) {
	held, err := s.ports.Stored.Of(ctx, g.Holder)
	return slices.ContainsFunc(held, func(h registry.Grant) bool {
		return h.Action == g.Action && h.Pattern.Covers(g.Pattern)
	}), err
}

// Own returns the requests of the caller.
func (s *Rights) Own(ctx context.Context, who authority.Caller) ([]registry.RightRequest, error) {
	holder, err := who.RequireReader()
	if err != nil {
		return nil, err
	}
	return s.ports.Requests.List(ctx, registrystore.RightQuery{
		Who: holder, Limit: registry.MaxOpenRights + registry.MaxDecidedRights + registry.MaxOpenRights,
	})
}

// Waiting returns the requests that were made first of those that are open, for operators.
func (s *Rights) Waiting(ctx context.Context, limit int) ([]registry.RightRequest, error) {
	return s.ports.Requests.List(ctx, registrystore.RightQuery{Open: true, Limit: limit})
}

// Find returns the request with an ID, for operators, or fault.NotFound.
func (s *Rights) Find(ctx context.Context, id registry.RightRequestID) (registry.RightRequest, error) {
	var found []registry.RightRequest
	var err error
	if id != "" && registry.IsText(string(id)) {
		found, err = s.ports.Requests.List(ctx, registrystore.RightQuery{ID: id, Limit: 1})
	}
	if err == nil && len(found) == 0 {
		err = fault.New(fault.NotFound, "there is no such request")
	}
	if err != nil {
		return registry.RightRequest{}, err
	}
	return found[0], nil
}

// RightDecision is the decision of an operator about a request, as it is written.
type RightDecision struct {
	By       registry.Holder
	Grant    bool   // else it is declined
	Resource string // what is granted: the pattern that was asked for, or one within it
	Comment  string // required to decline
}

// Decide grants or declines a request, in one transaction with the grant, and notifies the person. It returns fault.Forbidden
// for the own request of the operator, fault.Conflict if it is decided or the person is disabled, and fault.Invalid, with
// the name of the field, for a pattern that is not within the one that was asked for, and without a comment.
func (s *Rights) Decide(ctx context.Context, id registry.RightRequestID, d RightDecision) error {
	r, err := transaction.Do(transaction.Exclusive(ctx), s.ports.Transactions,
		func(ctx context.Context) (registry.RightRequest, error) {
			r, err := s.Find(ctx, id)
			if err == nil {
				r, err = d.decide(r)
			}
			if err != nil {
				return r, err
			}
			r.DecidedAt = s.ports.Clock.Now()
			if err := s.ports.Requests.Decide(ctx, r); err != nil {
				return r, err
			}
			if d.Grant {
				return r, s.give(ctx, r)
			}
			return r, s.ports.Recorder.RecordChanges(ctx, newRightChange("right_decline", r, r.Comment))
		})
	if err == nil {
		s.ports.Notifier.NotifyAsker(r)
	}
	return err
}

// decide returns a request with the decision.
func (d RightDecision) decide(r registry.RightRequest) (registry.RightRequest, error) {
	switch {
	case r.Holder == d.By:
		return r, fault.New(fault.Forbidden, "this is your own request: another operator decides about it")
	case r.State != registry.RightOpen:
		return r, fault.New(fault.Conflict, "somebody has decided about this request already")
	}
	var err error
	r.State, r.DecidedBy = registry.RightDeclined, d.By
	if d.Grant {
		r.State = registry.RightGranted
		if r.Given, err = registry.ParsePattern(d.Resource); err == nil && !r.Pattern.Covers(r.Given) {
			err = fault.Newf(fault.Invalid, "resource pattern must be within %s, which was asked for", r.Pattern)
		}
		if err != nil {
			return r, fault.In("resource", err)
		}
	}
	if !d.Grant && strings.TrimSpace(d.Comment) == "" {
		return r, fault.In("comment", fault.New(fault.Invalid, "comment is required: say why, for the person who asked"))
	}
	r.Comment, err = review.ParseComment(strings.TrimSpace(d.Comment), false)
	return r, fault.In("comment", err)
}

// give gives the person of a request what was granted.
func (s *Rights) give(ctx context.Context, r registry.RightRequest) error {
	active, err := s.ports.Makers.IsActive(ctx, string(r.Holder))
	if err == nil && !active {
		err = fault.New(fault.Conflict, "the person is disabled: enable the account first, or decline the request")
	}
	if err != nil {
		return err
	}
	g := registry.Grant{Holder: r.Holder, Action: r.Action, Pattern: r.Given}
	has, err := s.has(ctx, g)
	if err == nil && !has {
		_, err = s.ports.Grants.Create(ctx, registry.GrantRecord{Grant: g})
	}
	if err != nil {
		return err
	}
	return s.ports.Recorder.RecordChanges(ctx, newRightChange("right_grant", r, r.Comment))
}

// newRightChange returns the audit event of a request.
func newRightChange(action audit.Action, r registry.RightRequest, note string) audit.Change {
	change := newGrantChange(action, registry.Grant{Holder: r.Holder, Action: r.Action, Pattern: r.Shown()})
	change.Details.Set("note", note)
	return change
}
