package inbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/account"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/operating"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// firstPoints is how many points of a review its row has.
const firstPoints = 2

// soon is how long before its end something is in the Inbox.
const soon = 14 * 24 * time.Hour

// addReviews adds the reviews that the person may decide: the first page of them.
func (p *Pages) addReviews(v *site.Visit, view *inboxView) (err error) {
	if view.Decides, err = v.Holds(registry.ActionReview); err != nil || !view.Decides {
		return err
	}
	if view.Reviews, err = p.countReviews(v); err != nil {
		return err
	}
	who, err := v.Caller()
	if err != nil {
		return err
	}
	page, err := p.ports.Reviews.List(v.UserContext(), who, reviewing.Query{})
	for _, r := range page.Reviews {
		if !r.WaitsFor(registry.Holder(v.Session.UserID)) {
			continue
		}
		view.Items = append(view.Items, newReviewItem(&r))
	}
	view.Listed = len(view.Items)
	return err
}

func newReviewItem(r *review.Shown) Item {
	points := r.Signs[:min(len(r.Signs), firstPoints)]
	return Item{
		Path: site.Root + "reviews/" + string(r.ID), Title: r.Name.String(), Version: r.Version.String(),
		Kind: site.ReviewKinds[r.Kind], By: r.Submitter.Key, Points: points, More: len(r.Signs) - len(points), Danger: r.IsDangerous(), At: r.SubmittedAt,
	}
}

// refused returns the proofs of publishers that were refused, and that the person may allow.
func (p *Pages) refused(ctx context.Context, v *site.Visit) (items []Item, err error) {
	if publishes, err := v.Holds(registry.ActionPublish); err != nil || !publishes || !v.Session.TrustLevel.Admits(auth.FullTrust) {
		return nil, err
	}
	who, err := v.Caller()
	if err != nil {
		return nil, err
	}
	all, err := p.ports.Policies.Refused(ctx, who)
	for _, r := range all {
		points := []review.Sign{{Words: "Nobody has allowed it to publish", Name: r.Draft.Pattern}}
		items = append(items, Item{
			Path: p.ports.Allow(r), Title: cmp.Or(r.Draft.Domain, r.Draft.Subject, r.Draft.Issuer), Kind: "Refused proof", Points: points, At: r.Time,
		})
	}
	return items, err
}

// ending returns what of the person ends soon: tokens, and the keys of publishers.
func (p *Pages) ending(ctx context.Context, v *site.Visit) (items []Item, err error) {
	add := func(path, title, kind string, at time.Time) {
		if left := time.Until(at); !at.IsZero() && left > 0 && left < soon {
			items = append(items, Item{Path: path, Title: title, Kind: kind, At: at, Ends: true})
		}
	}
	owner := auth.Owner(v.Account.ID)
	tokens, err := p.ports.Account.Tokens.List(ctx, owner, "", 2*owner.MaxTokens())
	if err != nil {
		return nil, err
	}
	for _, t := range tokens {
		add(account.TokensPath, t.Name, "Token that ends", t.ExpiresAt)
	}
	publishes, err := v.Holds(registry.ActionPublish)
	if err != nil || !publishes || !v.Session.TrustLevel.Admits(auth.FullTrust) {
		return items, err
	}
	who, err := v.Caller()
	if err != nil {
		return nil, err
	}
	policies, err := p.ports.Policies.List(ctx, who)
	for _, one := range policies {
		add(site.Root+"own/trusted", one.Pattern.String(), "Trusted publishing that ends", one.ExpiresAt)
	}
	return items, err
}

// operators returns what waits for operators, for one with full trust.
func (p *Pages) operators(ctx context.Context, v *site.Visit) (items []Item, err error) {
	operates, err := v.Holds(registry.ActionOperate)
	if err != nil || !operates || !v.Session.TrustLevel.Admits(auth.FullTrust) {
		return nil, err
	}
	if items, err = p.asked(ctx, v); err != nil {
		return nil, err
	}
	for _, source := range [...]func(context.Context) ([]Item, error){p.mirrors, p.webhooks, p.providers, p.leavers, p.denied} {
		found, err := source(ctx)
		if err != nil {
			return nil, err
		}
		items = append(items, found...)
	}
	return items, nil
}

// maxAsked is how many requests for rights are in the Inbox; the list of them has more.
const maxAsked = 100

// asked returns the requests of others for rights.
func (p *Pages) asked(ctx context.Context, v *site.Visit) (items []Item, err error) {
	all, err := p.ports.Operating.Asked.Waiting(ctx, maxAsked)
	for _, r := range all {
		if r.Holder == registry.Holder(v.Session.UserID) {
			continue // somebody else decides
		}
		broad := registry.IsBroad(r.Pattern)
		items = append(items, Item{
			Path: operating.RequestsPath + "/" + string(r.ID), Title: r.Email, Kind: "Request for a right", Danger: broad, At: r.AskedAt,
			Points: []review.Sign{{Words: string(r.Action), Name: r.Pattern.String(), Danger: broad}, {Words: r.Reason}},
		})
	}
	return items, err
}

func (p *Pages) mirrors(ctx context.Context) (items []Item, err error) {
	all, err := p.ports.Operating.Mirrors.List(ctx)
	for _, m := range all {
		if m.State.Health() == mirror.Failing {
			items = append(items, Item{
				Path: operating.Path + "/mirrors/" + string(m.Name), Title: string(m.Name), Kind: "Mirror that fails",
				Points: []review.Sign{{Words: m.State.Reason}}, At: m.State.FailingSince,
			})
		}
	}
	return items, err
}

func (p *Pages) webhooks(ctx context.Context) (items []Item, err error) {
	all, err := p.ports.Operating.Webhooks.List(ctx)
	for _, w := range all {
		if w.Dead > 0 {
			items = append(items, Item{
				Path: operating.Path + "/webhooks/" + string(w.ID), Title: w.URL.Host(), Kind: "Webhook that fails",
				Points: []review.Sign{{Words: strconv.Itoa(w.Dead) + " events were not delivered"}}, At: w.LastFailure,
			})
		}
	}
	return items, err
}

// providers returns the providers of company sign-in with problems. With one that is away, its people cannot sign in.
func (p *Pages) providers(ctx context.Context) (items []Item, err error) {
	all, err := p.ports.Operating.Providers.List(ctx)
	for _, one := range all {
		if health := one.Condition.Health(); health == company.Away || health == company.Troubled {
			items = append(items, Item{
				Path: operating.Path + "/providers/" + string(one.Name), Title: one.DisplayName, Kind: "Company sign-in",
				Points: []review.Sign{{Words: one.Condition.Problem, Danger: health == company.Away}},
				Danger: health == company.Away, At: one.Condition.ProblemAt,
			})
		}
	}
	return items, err
}

// leavers returns the first people whom their company lets in no more, and whose account is active.
func (p *Pages) leavers(ctx context.Context) (items []Item, err error) {
	const most = 50
	found, err := p.ports.Operating.People.Search(ctx, authstore.DirectoryQuery{State: auth.AccountActive, Left: true, Limit: most})
	if err != nil {
		return nil, err
	}
	grants, err := registrystore.GrantsOf(ctx, p.ports.Operating.Grants, found, operating.HolderOf)
	for _, one := range found {
		held := grants[operating.HolderOf(&one)]
		byHand := slices.ContainsFunc(held, func(g registry.GrantRecord) bool { return g.ManagedBy == "" })
		words := fmt.Sprintf("Left %s; still active, with %s", one.Left, countGrants(len(held)))
		items = append(items, Item{
			Path: operating.PersonAddress(one.Email), Title: string(one.Email), Kind: "Leaver",
			Points: []review.Sign{{Words: words, Danger: byHand}}, Danger: byHand, At: one.LeftAt,
		})
	}
	return items, err
}

func countGrants(n int) string {
	switch n {
	case 0:
		return "no grants"
	case 1:
		return "1 grant"
	}
	return strconv.Itoa(n) + " grants"
}

const (
	day = 24 * time.Hour
	// Denied calls have risen if the log has at least so many entries of the last day, and at least so
	// many times those of the day before. An entry has the calls of a caller, server and tool in a minute.
	fewDenied  = 20
	manyDenied = 2
	// mostDenied is where entries are counted no further.
	mostDenied = 1000
)

// denied returns that denied calls rose in the last day.
func (p *Pages) denied(ctx context.Context) ([]Item, error) {
	now := time.Now()
	count := func(after, before time.Time) (int, error) {
		failed := false
		page, err := p.ports.Operating.Trail.Search(ctx, "", auditing.Query{
			Category: audit.AccessDecision, Success: &failed, After: after, Before: before, Limit: 1, Most: mostDenied,
		})
		return min(page.Total, mostDenied), err
	}
	today, err := count(now.Add(-day), now)
	if err != nil || today < fewDenied {
		return nil, err
	}
	before, err := count(now.Add(-2*day), now.Add(-day))
	if err != nil || today < manyDenied*before {
		return nil, err
	}
	words := fmt.Sprintf("The log has %d entries of the last day, and %d of the day before", today, before)
	return []Item{{
		Path: operating.Path + "/log?type=" + string(audit.AccessDecision), Title: "Denied calls", Kind: "They rose",
		Points: []review.Sign{{Words: words, Danger: true}}, Danger: true, At: now,
	}}, nil
}
