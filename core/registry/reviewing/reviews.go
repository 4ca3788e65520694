// Package reviewing holds the use cases of people and operators who decide what is listed: they
// read what was submitted, approve or reject it, and make rules that approve without a person
// (contract C-10 to C-18). Package review has the rules, package publishing submits.
package reviewing

import (
	"context"
	"slices"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets"
)

// The names of actions in the audit log (contract R-38).
const (
	actApprove audit.Action = "approve"
	actReject  audit.Action = "reject"
	actMail    audit.Action = "review_mail"

	actApproveFirst   audit.Action = "approve_first"
	actRequestChanges audit.Action = "request_changes"
)

// Ports are the dependencies of a Service. All fields are required.
type Ports struct {
	change.Ports

	Reviews   registrystore.Reviews
	Backlog   registrystore.ReviewBacklog
	Rules     registrystore.ReviewRules
	Reader    registrystore.ServerReader
	ToolLists registrystore.ToolLists
	Mirrors   registrystore.Mirrors
	Mirrored  registrystore.MirroredVersions
	Grants    registrystore.Grants
	Makers    authority.Makers
	Notices   registrystore.ReviewNotices
	Ender     MirrorEnder
	Recorder  authority.Recorder
	Notifier  authority.ReviewNotifier
	Events    *announce.Recorder
	Cursors   *page.Sealer
	Clock     clock.Clock
	Entropy   secrets.Entropy
}

// Service lets people and operators read and decide reviews, and operators keep the rules. The
// methods with a caller return fault.Forbidden for a publisher, and fault.Unavailable when the
// database fails. It is safe for concurrent use.
type Service struct {
	config Config
	ports  Ports
}

// New returns a service.
func New(c Config, p Ports) *Service { return &Service{c, p} }

// List returns a page of the reviews that a person may decide or has submitted; of all for an
// operator. It returns fault.Forbidden below UNVERIFIED, and fault.Invalid, with the name of the
// parameter, for a wrong parameter.
func (s *Service) List(ctx context.Context, who authority.Caller, q Query) (Page, error) {
	holder, err := who.RequireReader()
	if err != nil {
		return Page{}, err
	}
	if who.IsOperator() {
		return s.listNarrowed(ctx, q, func(*registrystore.ReviewQuery) {})
	}
	var patterns []registry.Pattern
	if !q.Own {
		if patterns, err = s.patternsOf(ctx, holder); err != nil {
			return Page{}, err
		}
	}
	return s.listNarrowed(ctx, q, func(selection *registrystore.ReviewQuery) {
		selection.Patterns, selection.Submitter = patterns, string(holder)
	})
}

// Waiting is what a person may decide next.
type Waiting struct {
	Reviews []review.Shown // the oldest, in the order of review.CompareWaiting
	Count   int            // of all
}

// Waiting returns what waits for a person. It returns fault.Forbidden below UNVERIFIED.
func (s *Service) Waiting(ctx context.Context, who authority.Caller) (Waiting, error) {
	holder, err := who.RequireReader()
	if err != nil {
		return Waiting{}, err
	}
	p, err := s.List(ctx, who, Query{})
	waiting := slices.DeleteFunc(p.Reviews, func(r review.Shown) bool { return !r.WaitsFor(holder) })
	slices.SortFunc(waiting, review.CompareWaiting)
	if err != nil || p.NextCursor == "" {
		return Waiting{waiting, len(waiting)}, err
	}
	n, err := s.CountPending(ctx, who)
	return Waiting{waiting, n}, err
}

// After returns the review that follows another one in the order, or else the first of all; empty without one.
func (w *Waiting) After(decided review.Shown) registry.ReviewID {
	if len(w.Reviews) == 0 {
		return ""
	}
	i := slices.IndexFunc(w.Reviews, func(r review.Shown) bool { return decided.ID != "" && review.CompareWaiting(r, decided) > 0 })
	return w.Reviews[max(0, i)].ID
}

// CountPending returns how many documents wait that a person may decide next.
func (s *Service) CountPending(ctx context.Context, who authority.Caller) (int, error) {
	holder, err := who.RequireReader()
	if err != nil {
		return 0, err
	}
	patterns, err := s.patternsOf(ctx, holder)
	if err != nil || len(patterns) == 0 {
		return 0, err
	}
	counts, err := s.ports.Backlog.Count(ctx, registrystore.ReviewQuery{State: review.Pending, Patterns: patterns, For: holder})
	return counts[review.Pending], err
}

// Mail returns how a person wants mail of what waits. It returns fault.Forbidden below UNVERIFIED.
func (s *Service) Mail(ctx context.Context, who authority.Caller) (review.Mail, error) {
	holder, err := who.RequireReader()
	if err != nil {
		return "", err
	}
	last, err := s.ports.Notices.Last(ctx, holder)
	return last.Mail, err
}

// ChooseMail stores how a person wants mail of what waits, with an act. It returns fault.Forbidden below FULL_TRUST: with
// a stolen password no reviewer is silenced; or without a grant to review, and fault.Invalid for another choice.
func (s *Service) ChooseMail(ctx context.Context, who authority.Caller, choice string) error {
	holder, err := who.RequireFullTrust()
	if err != nil {
		return err
	}
	m, err := review.ParseMail(choice)
	if err != nil {
		return err
	}
	patterns, err := s.patternsOf(ctx, holder)
	if err != nil {
		return err
	}
	if len(patterns) == 0 {
		return fault.New(fault.Forbidden, "you have no grant to review, so no such mail comes to you")
	}
	return s.ports.Transactions.Atomically(ctx, func(ctx context.Context) error {
		if err := s.ports.Notices.Choose(ctx, holder, m, s.ports.Clock.Now()); err != nil {
			return err
		}
		return s.ports.Acts.Record(ctx, authority.Act{Caller: who, Action: actMail, Note: choice})
	})
}

// Submitters returns the e-mail addresses of the people who have submitted reviews, by review.Submitter.Key, each read once; the empty string
// for a publisher and for an account that is gone. The caller must have read the reviews: who reads one may decide it, or is that person.
func (s *Service) Submitters(ctx context.Context, all ...review.Shown) (emails map[string]string, err error) {
	emails = map[string]string{}
	for i := range all {
		key := all[i].Submitter.Key
		if _, known := emails[key]; !known && err == nil {
			emails[key], err = s.ports.Makers.EmailOf(ctx, key)
		}
	}
	return emails, err
}

// HistoryOf returns how many documents of the submitter of a review were decided here, in each state.
// The caller must have read the review.
func (s *Service) HistoryOf(ctx context.Context, r review.Review) (map[review.State]int, error) {
	return s.ports.Backlog.Count(ctx, registrystore.ReviewQuery{By: r.Submitter.Key})
}

// pastAtMost is how many decisions Before looks at.
const pastAtMost = 20

// Before returns the last review of another document of the version of a review, which the caller has read, that was
// rejected or whose changes were requested; the zero value without one.
func (s *Service) Before(ctx context.Context, r review.Review) (review.Review, error) {
	past, err := s.ports.Reviews.List(ctx, registrystore.ReviewQuery{
		Name: r.Name, Refused: true, Newest: true, Limit: pastAtMost, Bytes: pageBytes,
	})
	for _, before := range past.Reviews {
		if before.Version == r.Version && before.ID != r.ID && before.Part == r.Part && before.Source == r.Source &&
			before.SubmittedAt.Before(r.SubmittedAt) {
			return before, nil
		}
	}
	return review.Review{}, err
}

// Find returns a review. It returns fault.Forbidden below UNVERIFIED, fault.NotFound if there is
// none, and fault.Forbidden if a person may not review its server and has not submitted it, also
// not through an own policy.
func (s *Service) Find(ctx context.Context, who authority.Caller, id registry.ReviewID) (review.Review, error) {
	holder, err := who.RequireReader()
	if err != nil {
		return review.Review{}, err
	}
	found, err := s.find(ctx, id)
	if err == nil && !who.IsOperator() && !found.IsOwn(holder) {
		err = s.requireGrant(ctx, holder, found.Name)
	}
	if err != nil {
		return review.Review{}, err
	}
	return found, nil
}

// Get returns a review with what it is compared with. Its errors are those of Find.
func (s *Service) Get(ctx context.Context, who authority.Caller, id registry.ReviewID) (review.Shown, error) {
	found, err := s.Find(ctx, who, id)
	if err != nil {
		return review.Shown{}, err
	}
	return s.show(ctx, found)
}

// Approve approves a pending review, so that its document is served, and notifies its submitter. The first of two
// approvals leaves it pending.
//
// Errors, in the order of the checks: fault.NotFound, fault.Forbidden without the grant review or
// below FULL_TRUST, fault.Invalid for a comment that is too long, fault.Conflict when the review is
// not pending any more, fault.Forbidden for what the caller has submitted, fault.Conflict when the
// document cannot be served any more, for example because another server has one of its remote
// URLs.
func (s *Service) Approve(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error) {
	return s.decide(ctx, who, id, review.Decision{Approve: true, Comment: comment})
}

// ApproveUnread approves a pending review as one of many, as Approve does. It returns fault.Conflict for one with
// tools (contract W-4), and for a document that changes more than texts and versions of packages: these are approved
// by those alone who have read them.
func (s *Service) ApproveUnread(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error) {
	return s.decide(ctx, who, id, review.Decision{Approve: true, Many: true, Unread: true, Comment: comment})
}

// ApproveOfMany approves a pending review as one of many, as Approve does, but for one with tools: of that it returns
// fault.Conflict (contract W-4).
func (s *Service) ApproveOfMany(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error) {
	return s.decide(ctx, who, id, review.Decision{Approve: true, Many: true, Comment: comment})
}

// Reject rejects a pending review and notifies its submitter. Errors as of Approve; a comment is
// required.
func (s *Service) Reject(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error) {
	return s.decide(ctx, who, id, review.Decision{Comment: comment})
}

// RequestChanges refuses a pending review until its document is submitted again, and notifies its submitter. Errors as
// of Reject, and fault.Conflict for what no one can submit again: a tool list, and the document of a mirror.
func (s *Service) RequestChanges(ctx context.Context, who authority.Caller, id registry.ReviewID, comment string) (review.Shown, error) {
	return s.decide(ctx, who, id, review.Decision{Changes: true, Comment: comment})
}

// decide decides a review. Every refusal of a person is recorded. A Reminder notifies the
// submitters of what operators decide.
func (s *Service) decide(
	ctx context.Context, who authority.Caller, id registry.ReviewID, d review.Decision,
) (review.Shown, error) {
	act := authority.Act{Caller: who, Action: actReject, Review: id}
	switch {
	case d.Approve:
		act.Action = actApprove
	case d.Changes:
		act.Action = actRequestChanges
	}
	holder, err := who.Person()
	if err != nil {
		return review.Shown{}, err
	}
	if d.By = string(holder); who.IsOperator() {
		d.By = review.Operator
	}
	decided, err := s.decideAct(ctx, &act, d)
	if err != nil {
		return review.Shown{}, permit.Refuse(ctx, s.ports.Acts, act, err)
	}
	if !who.IsOperator() && decided.State != review.Pending {
		s.ports.Notifier.NotifySubmitter(newDecisionNotice(decided.Review))
	}
	return decided, nil
}

// decideAct decides the review of the act, and adds its server and version to the act.
func (s *Service) decideAct(ctx context.Context, act *authority.Act, d review.Decision) (review.Shown, error) {
	if err := act.Caller.RequireAction(registry.ActionReview); err != nil {
		return review.Shown{}, err
	}
	found, err := s.find(ctx, act.Review)
	if err != nil {
		return review.Shown{}, err
	}
	act.ServerName, act.Version = found.Name.String(), found.Version.String()
	if found.Kind == review.Tools && !d.Changes {
		if err := s.describeTools(ctx, act, &found, d); err != nil {
			return review.Shown{}, err
		}
	}
	if err := s.requireReviewer(ctx, act.Caller, found.Name); err != nil {
		return review.Shown{}, err
	}
	if d.Comment, err = review.ParseComment(d.Comment, !d.Approve); err != nil {
		return review.Shown{}, err
	}
	return s.commit(ctx, *act, found.Name, d)
}

// requireReviewer returns fault.Forbidden unless the caller is an operator, or a person at
// FULL_TRUST who may review a server.
func (s *Service) requireReviewer(ctx context.Context, who authority.Caller, name registry.Name) error {
	if who.IsOperator() {
		return nil
	}
	holder, err := who.Person()
	if err == nil {
		err = s.requireGrant(ctx, holder, name)
	}
	if err == nil {
		_, err = who.RequireFullTrust()
	}
	return err
}

// requireGrant returns fault.Forbidden unless a person may review a server.
func (s *Service) requireGrant(ctx context.Context, holder registry.Holder, name registry.Name) error {
	patterns, err := s.patternsOf(ctx, holder)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(patterns, func(p registry.Pattern) bool { return p.Matches(name) }) {
		return fault.New(fault.Forbidden, "you have no review permission for the server of this review")
	}
	return nil
}

// Deciders are the people who may decide a review by grants over one pattern.
type Deciders struct {
	Pattern registry.Pattern
	People  []registry.Holder // at most namedAtMost
	More    int               // others
}

// namedAtMost is how many people of a pattern a page names.
const namedAtMost = 5

// Deciders returns who may decide a review, which the caller has read, by the patterns of their grants: not who has
// submitted it.
func (s *Service) Deciders(ctx context.Context, r review.Review) (all []Deciders, err error) {
	grants, err := s.ports.Grants.Records(ctx, registrystore.GrantQuery{Action: registry.ActionReview})
	named := map[registry.Grant]bool{}
	for _, g := range grants {
		if named[g.Grant] || !g.Pattern.Matches(r.Name) || r.IsOwn(g.Holder) {
			continue
		}
		named[g.Grant] = true
		i := slices.IndexFunc(all, func(d Deciders) bool { return d.Pattern == g.Pattern })
		if i < 0 {
			i, all = len(all), append(all, Deciders{Pattern: g.Pattern})
		}
		if len(all[i].People) == namedAtMost {
			all[i].More++
			continue
		}
		all[i].People = append(all[i].People, g.Holder)
	}
	return all, err
}

// patternsOf returns the patterns of servers that a person may review.
func (s *Service) patternsOf(ctx context.Context, holder registry.Holder) ([]registry.Pattern, error) {
	return permit.Patterns(ctx, s.ports.Grants, holder, registry.ActionReview)
}
