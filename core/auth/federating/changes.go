package federating

import (
	"context"
	"maps"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authorization"
)

// refusedError is the error for a person who may not sign in.
type refusedError struct {
	verdict  company.Verdict
	user     auth.UserID // empty if no account is known
	provider *company.Provider
	groups   company.GroupsProblem // why there are no groups; empty otherwise
}

// Error returns the reason.
func (e refusedError) Error() string { return string(e.verdict) }

// asFault returns what the person may read. It names no one.
func (e refusedError) asFault() error {
	sentence := map[company.Verdict]string{
		company.Operator: "who operates this service links the company sign-in on the account page, after a sign-in by another way",
		company.Unknown:  "you are not known here; ask an operator of this service for an account",
		company.Disabled: "this account is disabled; ask an operator of this service",
		company.Locked:   "an operator of this service has locked this account",
		company.NoGroup:  "you are in no group at your company that may sign in here",
	}[e.verdict]
	if e.verdict == company.NoGroup && e.groups != "" {
		sentence = e.groups.Sentence() + ", and only people in some groups may sign in here: ask an operator of this service"
	}
	return fault.New(fault.Forbidden, sentence).WithCode(auth.CodeAccessDenied)
}

// recordRefusal records why a sign-in was refused, and returns the error for the person. What says
// nothing about a person, nor is an error of the provider, is not recorded.
func (s *Service) recordRefusal(
	ctx context.Context, from signin.Origin, p *company.Provider, c company.Claims, why error,
) error {
	proof := company.Proof{Provider: p.Name, Subject: c.Subject, Groups: c.Groups.Problem}
	if refused, ok := why.(refusedError); ok { //nolint:errorlint // a transaction returns it as it is
		err := s.ports.SignIn.RecordRefusal(ctx, from, refused.user, proof, string(refused.verdict))
		if err == nil && refused.verdict == company.NoGroup {
			s.noteSuccess(ctx, p, c.Groups.Problem, &c) // the provider works; what it said of groups may not
			err = s.withdraw(ctx, p.Name, c)
		}
		if err != nil {
			return err
		}
		return refused.asFault()
	}
	if f, ok := fault.As(why); ok && (f.Kind == fault.Unauthenticated || f.Code == codeRefused || f.Code == company.CodeClient) {
		if err := s.ports.SignIn.RecordRefusal(ctx, from, "", proof, string(f.Code)); err != nil {
			return err
		}
	}
	return why
}

// withdraw stores that the provider has refused the person of claims, whose passkeys are refused from
// then on (contract K-9), and ends what came of assertions.
func (s *Service) withdraw(ctx context.Context, provider company.Name, c company.Claims) error {
	found, err := s.ports.Identities.Find(ctx, c.Issuer, c.Subject)
	if err == nil {
		err = s.ports.Identities.Confirm(ctx, found.ID, time.Time{}, nil)
	}
	if err == nil {
		err = s.endAsserted(ctx, authorization.FamilyFilter{Provider: string(provider), Subject: c.Subject})
	}
	return ignoreNotFound(err)
}

// newLinkChange returns the event of an identity that was linked or unlinked, with the details of about.
func newLinkChange(action audit.Action, provider company.Name, i *company.Identity, about audit.Details) audit.Change {
	details := audit.Details{
		"issuer": audit.Text(i.Issuer), "subject": audit.Text(i.Subject), "identityId": audit.Text(i.ID),
	}
	details.Set("provider", string(provider))
	details.Set("email", string(i.Email))
	maps.Copy(details, about)
	return audit.Change{Category: audit.AccountChange, Action: action, Subject: audit.Subject(i.UserID), Details: details}
}

// newGroupsChange returns the event of grants that have changed by groups.
func newGroupsChange(
	provider company.Name, user auth.UserID, done authority.GrantChanges, problem company.GroupsProblem,
) audit.Change {
	details := audit.Details{
		"provider": audit.Text(provider), "added": describeGrants(done.Added), "removed": describeGrants(done.Removed),
	}
	details.Set("problem", string(problem))
	if done.KeptOperator {
		details["keptOperator"] = audit.Flag(true)
	}
	return audit.Change{Category: audit.AccountChange, Action: "groups", Subject: audit.Subject(user), Details: details}
}

func describeGrants(all []authority.GrantText) audit.List {
	return each.Map(all, func(g authority.GrantText) audit.Value { return audit.Text(g.Action + " " + g.Resource) })
}

// noteEvery is how often a success is stored.
const noteEvery = time.Minute

// noteSuccess stores that a sign-in or a check at a provider succeeded, with what is wrong with its groups, and
// the claims of a sign-in; otherwise they are nil. Errors are ignored: the next sign-in stores it.
func (s *Service) noteSuccess(ctx context.Context, p *company.Provider, groups company.GroupsProblem, claims *company.Claims) {
	now, c, problem := s.ports.Clock.Now(), p.Condition, ""
	if claims != nil && claims.LacksGroups(p) {
		problem = p.AbsentGroups()
	} else if groups != "" {
		problem = "groups: " + string(groups)
	}
	if now.Sub(c.SucceededAt) < noteEvery && problem == "" && !c.IsAway() && (claims == nil || c.Claims != "") {
		return
	}
	c.SucceededAt = now
	if problem != "" {
		c.Problem, c.ProblemAt = problem, now
	}
	if claims != nil {
		c.Claims = claims.Names()
	}
	_ = s.ports.Providers.Note(ctx, p.Name, c) // see above
}

// noteProblem stores what failed at a provider, unless it concerns the browser only. Errors are
// ignored, because there is one to return already.
func (s *Service) noteProblem(ctx context.Context, p *company.Provider, why error) {
	f, ok := fault.As(why)
	if !ok || f.Kind != fault.Unavailable && f.Kind != fault.Unauthenticated && f.Code != codeRefused {
		return
	}
	now, c := s.ports.Clock.Now(), p.Condition
	// Anybody can bring an error of a provider: it is stored once in a while, whichever it is.
	if (c.Problem == f.Message || f.Code == codeRefused) && now.Sub(c.ProblemAt) < noteEvery && c.ProblemAt.After(c.SucceededAt) {
		return
	}
	c.Problem, c.ProblemAt = f.Message, now
	_ = s.ports.Providers.Note(context.WithoutCancel(ctx), p.Name, c) // see above
}
