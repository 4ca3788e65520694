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
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/moment"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// addReviews adds the reviews that the person may decide: the first page of them.
func (p *Pages) addReviews(r *reader, view *inboxView) error {
	if !r.reviews {
		return nil
	}
	waiting, err := p.ports.Reviews.Waiting(r.UserContext(), r.who)
	for i := range waiting.Reviews {
		one := newReviewItem(&waiting.Reviews[i])
		if view.Items = append(view.Items, one); one.Harmless {
			view.Harmless = append(view.Harmless, one.ID)
		}
	}
	if len(view.Items) > 0 {
		view.First = view.Items[0].Path
	}
	view.Reviews, view.Listed = waiting.Count, len(view.Items)
	return err
}

func newReviewItem(r *review.Shown) Item {
	points, more := r.Leading()
	return Item{
		Path: site.Root + "reviews/" + string(r.ID), Title: r.Name.String(), Version: r.Version.String(),
		Kind: site.ReviewKinds[r.Kind], By: r.Submitter.Key, Points: points, More: more, Danger: r.IsDangerous(), At: r.SubmittedAt,
		ID: r.ID, Harmless: r.Alone() == "", Second: r.First.By != "",
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
	if !moment.EndsSoon(one.At, time.Now()) {
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

// denied returns that denied calls rose in the last day.
func (p *Pages) denied(ctx context.Context, _ *reader) ([]Item, error) {
	now := time.Now()
	denied, err := p.ports.Operating.Trail.Denied(ctx, now)
	if err != nil || !denied.Rose() {
		return nil, err
	}
	words := fmt.Sprintf("The log has %d entries of the last day, and %d of the day before", denied.Today, denied.Before)
	return []Item{{
		Path: operating.Path + "/log?type=" + string(audit.AccessDecision), Title: "Denied calls", Kind: "They rose",
		Points: []review.Sign{{Words: words, Danger: true}}, Danger: true, At: now,
	}}, nil
}
