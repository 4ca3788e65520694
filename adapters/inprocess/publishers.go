package inprocess

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/notices"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/ports/servicestore"
)

// PublishersPorts are the dependencies of Publishers. All fields are required, except Notifier.
type PublishersPorts struct {
	Signer   secrets.TokenSigner
	Tokens   authstore.APITokens
	Trail    *auditing.Trail
	Notifier *notices.Notifier // nil for no notices
	Clock    clock.Clock
	Entropy  secrets.Entropy
}

// Publishers issues the tokens of publishers and of workloads, and records and reports what they do. It is safe for
// concurrent use.
type Publishers struct{ ports PublishersPorts }

var _ authority.Publishers = (*Publishers)(nil)

// NewPublishers returns Publishers.
func NewPublishers(p PublishersPorts) *Publishers { return &Publishers{p} }

// tokenID is the jti of a token.
type tokenID string

// IssueToken implements [authority.Publishers].
func (s *Publishers) IssueToken(ctx context.Context, p authority.Publisher) (string, time.Time, error) {
	content := &auth.Publisher{Method: string(p.Method), Subject: p.Subject}
	for _, permission := range p.Permissions {
		actions := make([]string, len(permission.Actions))
		for i, a := range permission.Actions {
			actions[i] = string(a)
		}
		content.Permissions = append(content.Permissions, auth.PublisherPermission{
			Actions: actions, Pattern: permission.Pattern.String(), Policy: string(permission.Policy),
		})
	}
	now := s.ports.Clock.Now()
	claims := secrets.TokenClaims{
		ID: string(secrets.NewUUID[tokenID](s.ports.Entropy)), Publisher: content, IssuedAt: now,
		ExpiresAt: now.Add(publisher.TokenTTL),
	}
	token, err := s.ports.Signer.Sign(ctx, claims)
	return string(token), claims.ExpiresAt, err
}

// IssueServiceToken implements [authority.Publishers].
func (s *Publishers) IssueServiceToken(
	ctx context.Context, service string, scopes scope.Set,
) (string, time.Time, error) {
	t, secret := secrets.IssueToken(s.ports.Entropy, auth.NewWorkloadToken(service, scopes, s.ports.Clock.Now()))
	return string(secret), t.ExpiresAt, s.ports.Tokens.Add(ctx, t)
}

// RecordProof implements [authority.Publishers]. Its events have no user ID: only operators see
// them.
func (s *Publishers) RecordProof(ctx context.Context, a authority.ProofAttempt) error {
	return s.ports.Trail.RecordChanges(ctx, a.Change())
}

// NotifyMaker implements [authority.Publishers].
func (s *Publishers) NotifyMaker(n authority.PublisherNotice) {
	kind := notices.PublisherUsed
	if n.Failed {
		kind = notices.PublisherFailed
	}
	s.ports.Notifier.Notify(notices.Event{
		Kind: kind, UserID: auth.UserID(n.Maker), At: n.At, Address: n.Address, Publisher: n.Subject,
		Servers: n.Pattern.String(),
	})
}

// readPublisher returns the publisher of a token.
func readPublisher(content *auth.Publisher) (authority.Publisher, error) {
	p := authority.Publisher{Method: publisher.Method(content.Method), Subject: content.Subject}
	for _, permission := range content.Permissions {
		pattern, err := registry.ParsePattern(permission.Pattern)
		if err != nil {
			return authority.Publisher{}, fault.Wrap(fault.Unauthenticated, "the access token is not valid", err)
		}
		actions := make([]publisher.Action, len(permission.Actions))
		for i, a := range permission.Actions {
			actions[i] = publisher.Action(a)
		}
		p.Permissions = append(p.Permissions, publisher.Permission{
			Actions: actions, Pattern: pattern, Policy: registry.PolicyID(permission.Policy),
		})
	}
	return p, nil
}

// Makers knows the people and the service accounts that created policies. It is safe for concurrent
// use.
type Makers struct {
	accounts authstore.Accounts
	services servicestore.Services
}

var _ authority.Makers = (*Makers)(nil)

// NewMakers returns Makers.
func NewMakers(a authstore.Accounts, s servicestore.Services) *Makers { return &Makers{a, s} }

// IsActive implements [authority.Makers].
func (m *Makers) IsActive(ctx context.Context, userID string) (bool, error) {
	if name, ok := registry.Holder(userID).Service(); ok {
		found, err := m.services.Get(ctx, service.Name(name))
		if fault.Is(err, fault.NotFound) {
			return false, nil
		}
		return err == nil && found.State == service.Active, err
	}
	account, err := m.accounts.Get(ctx, auth.UserID(userID))
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil && account.State.HasSignIn(), err
}

// EmailOf implements [authority.Makers].
func (m *Makers) EmailOf(ctx context.Context, userID string) (string, error) {
	id, err := auth.ParseUUID[auth.UserID]("id", userID)
	if err != nil {
		return "", nil //nolint:nilerr // it is not the id of a person
	}
	account, err := m.accounts.Get(ctx, id)
	if fault.Is(err, fault.NotFound) {
		return "", nil
	}
	return string(account.Email), err
}

// NewEmailAddresses returns the e-mail addresses of the people in accounts.
func NewEmailAddresses(accounts authstore.Accounts) authority.EmailAddresses {
	return func(ctx context.Context) (map[registry.Holder]string, error) {
		emails := map[registry.Holder]string{}
		for after := auth.Email(""); ; {
			list, err := accounts.List(ctx, after, auth.MaxPage)
			for i := range list {
				after = list[i].Email
				emails[registry.Holder(list[i].ID)] = string(after)
			}
			if err != nil || len(list) < auth.MaxPage {
				return emails, err
			}
		}
	}
}

// ReviewNotifier notifies people of reviews and of quarantine. It is safe for concurrent use.
type ReviewNotifier struct{ notifier *notices.Notifier }

var _ authority.ReviewNotifier = (*ReviewNotifier)(nil)

// NewReviewNotifier returns a ReviewNotifier; n is nil for no notices.
func NewReviewNotifier(n *notices.Notifier) *ReviewNotifier { return &ReviewNotifier{n} }

// NotifyReviewer implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifyReviewer(n authority.WaitingNotice) {
	servers := n.First[0].ServerName
	switch {
	case n.More:
		servers += " and at least " + strconv.Itoa(n.Count) + " others"
	case n.Count > 1:
		servers += " and " + strconv.Itoa(n.Count-1) + " more"
	}
	event := notices.Event{Kind: notices.ReviewsWaiting, UserID: auth.UserID(n.Reviewer), At: n.At, Servers: servers}
	for _, d := range n.First {
		name := d.ServerName + " " + d.Version
		if d.Danger != "" {
			name += ", dangerous: " + d.Danger
		}
		if d.Second {
			name += "; it needs a second approval"
		}
		event.Pages = append(event.Pages, reviewPage(name, d.Review))
	}
	if n.More || n.Count > len(n.First) {
		event.Pages = append(event.Pages, notices.Page{Name: "All that waits", Path: "/console/reviews"})
	}
	r.notifier.Notify(event)
}

// NotifySubmitter implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifySubmitter(n authority.DecisionNotice) {
	kind := map[[2]bool]notices.Kind{
		{false, false}: notices.ReviewRejected, {true, false}: notices.ReviewApproved,
		{false, true}: notices.ToolsRejected, {true, true}: notices.ToolsApproved,
	}[[2]bool{n.Approved, n.Tools}]
	if n.Changes {
		kind = notices.ChangesRequested
	}
	for _, person := range n.People {
		r.notifier.Notify(notices.Event{
			Kind: kind, UserID: auth.UserID(person), At: n.At, Servers: strings.TrimSpace(n.ServerName + " " + n.Version),
			Comment: n.Comment, Pages: []notices.Page{reviewPage("The review", n.Review)},
		})
	}
}

// NotifyAsker implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifyAsker(q registry.RightRequest) {
	kind := notices.RightDeclined
	if q.State == registry.RightGranted {
		kind = notices.RightGranted
	}
	r.notifier.Notify(notices.Event{
		Kind: kind, UserID: auth.UserID(q.Holder), At: q.DecidedAt, Servers: string(q.Action) + " " + q.Shown().String(), Comment: q.Comment,
		Pages: []notices.Page{{Name: "Your requests", Path: "/console/rights"}},
	})
}

// NotifyPublishers implements [authority.ReviewNotifier].
func (r *ReviewNotifier) NotifyPublishers(n authority.QuarantineNotice) {
	namespace, server, _ := strings.Cut(n.ServerName.String(), "/")
	servers, path := n.ServerName.String(), "/console/servers/"+url.PathEscape(namespace)+"/"+url.PathEscape(server)
	if version := n.Version.String(); version != "" {
		servers, path = servers+" "+version, path+"/versions/"+url.PathEscape(version)
	}
	kind := notices.Quarantined
	if n.Tools {
		kind = notices.ToolsChanged
	}
	for _, person := range n.People {
		r.notifier.Notify(notices.Event{
			Kind: kind, UserID: auth.UserID(person), At: n.At, Servers: servers, Comment: n.Reason,
			Pages: []notices.Page{{Name: "The server", Path: path}},
		})
	}
}

// reviewPage returns the page of a review in the console.
func reviewPage(name string, id registry.ReviewID) notices.Page {
	return notices.Page{Name: name, Path: "/console/reviews/" + string(id)}
}
