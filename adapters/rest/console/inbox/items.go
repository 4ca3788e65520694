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

// soon is how long before its end something is in the Inbox.
const soon = 14 * 24 * time.Hour

// addReviews adds the reviews that the person may decide: the first page of them.
func (p *Pages) addReviews(r *reader, view *inboxView) (err error) {
	if view.Reviews, err = p.countReviews(r); err != nil || !r.reviews {
		return err
	}
	page, err := p.ports.Reviews.List(r.UserContext(), r.who, reviewing.Query{})
	for _, one := range page.Reviews {
		if one.WaitsFor(registry.Holder(r.Session.UserID)) {
			view.Items = append(view.Items, newReviewItem(&one))
		}
	}
	view.Listed = len(view.Items)
	return err
}

func newReviewItem(r *review.Shown) Item {
	points, more := r.Leading()
	return Item{
		Path: site.Root + "reviews/" + string(r.ID), Title: r.Name.String(), Version: r.Version.String(),
		Kind: site.ReviewKinds[r.Kind], By: r.Submitter.Key, Points: points, More: more, Danger: r.IsDangerous(), At: r.SubmittedAt,
	}
}

// refused returns the proofs of publishers that were refused, and that the person may allow.
func (p *Pages) refused(ctx context.Context, r *reader) (items []Item, err error) {
	all, err := p.ports.Policies.Refused(ctx, r.who)
	for _, one := range all {
		points := []review.Sign{{Words: "Nobody has allowed it to publish", Name: one.Draft.Pattern}}
		items = append(items, Item{
			Path: p.ports.Allow(one), Title: cmp.Or(one.Draft.Domain, one.Draft.Subject, one.Draft.Issuer), Kind: "Refused proof", Points: points, At: one.Time,
		})
	}
	return items, err
}

// addEnd adds something that ends, if that is soon.
func addEnd(items []Item, one Item) []Item {
	if left := time.Until(one.At); one.At.IsZero() || left <= 0 || left >= soon {
		return items
	}
	one.Ends = true
	return append(items, one)
}

// tokens returns the tokens of the person that end soon.
func (p *Pages) tokens(ctx context.Context, r *reader) (items []Item, err error) {
	owner := auth.Owner(r.Account.ID)
	all, err := p.ports.Account.Tokens.List(ctx, owner, "", 2*owner.MaxTokens())
	for _, t := range all {
		items = addEnd(items, Item{Path: account.TokensPath, Title: t.Name, Kind: "Token that ends", At: t.ExpiresAt})
	}
	return items, err
}

// policies returns the policies for names of the person that end soon.
func (p *Pages) policies(ctx context.Context, r *reader) (items []Item, err error) {
	all, err := p.ports.Policies.List(ctx, r.who)
	for _, one := range all {
		items = addEnd(items, Item{Path: site.Root + "own/trusted", Title: one.Pattern.String(), Kind: "Trusted publishing that ends", At: one.ExpiresAt})
	}
	return items, err
}

// maxAsked is how many requests for rights are in the Inbox; the list of them has more.
const maxAsked = 100

// asked returns the requests of others for rights.
func (p *Pages) asked(ctx context.Context, by *reader) (items []Item, err error) {
	all, err := p.ports.Operating.Asked.Waiting(ctx, maxAsked)
	for _, r := range all {
		if r.Holder == registry.Holder(by.Session.UserID) {
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

func (p *Pages) mirrors(ctx context.Context, _ *reader) (items []Item, err error) {
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

func (p *Pages) webhooks(ctx context.Context, _ *reader) (items []Item, err error) {
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
func (p *Pages) providers(ctx context.Context, _ *reader) (items []Item, err error) {
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
func (p *Pages) leavers(ctx context.Context, _ *reader) (items []Item, err error) {
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
func (p *Pages) denied(ctx context.Context, _ *reader) ([]Item, error) {
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
