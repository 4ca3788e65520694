// Package inbox has the two pages that a person opens first: the Inbox, with all that waits for the
// person, and Home, with what concerns the person. They decide nothing: each row leads to the page on
// which that is done, and each use case is asked as the person, so that a person sees no more than there.
package inbox

import (
	"context"
	"embed"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/account"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/operating"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/recent"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

//go:embed templates
var templates embed.FS

var (
	inboxPage = site.NewPage(templates, "templates/inbox.html")
	homePage  = site.NewPage(templates, "templates/home.html")
)

// Path is the path of the Inbox.
const Path = site.Root + "inbox"

// Ports are the use cases that the pages call.
type Ports struct {
	Account   account.Ports
	Operating operating.Ports
	Policies  *delegating.Policies
	Allow     func(publisher.Refused) string // the address of the form that allows a refused proof
	Reviews   *reviewing.Service
	Finder    *browsing.Finder
}

// Pages are the two pages. It is safe for concurrent use.
type Pages struct {
	site  *site.Site
	ports Ports

	counts recent.Memory[auth.SessionID, kept]
}

// New returns the pages.
func New(s *site.Site, p Ports) *Pages {
	pages := &Pages{site: s, ports: p}
	s.SetWaiting(pages.count)
	return pages
}

// Mount adds the routes.
func (p *Pages) Mount(r fiber.Router) {
	r.Get(Path, p.site.Require(auth.Unverified, p.inbox))
	r.Get(site.MyHome, p.site.Require(auth.Unverified, p.home))
}

// Item is one thing that waits for a person.
type Item struct {
	Path, Title, Kind string
	Version, By       string        // of a review, and who has submitted it; empty for another thing
	Points            []review.Sign // what about it
	More              int           // points that are left out
	Danger            bool
	At                time.Time // since when it waits, or when it ends
	Ends              bool      // At is when it ends
	Harmless          bool      // a review that may be approved unread
	ID                registry.ReviewID
	Second            bool // a review that needs a second approval
}

// inboxView is the page with all that waits.
type inboxView struct {
	Items    []Item
	Reviews  int                 // that wait for the person
	Listed   int                 // of these, on the page
	Harmless []registry.ReviewID // of these, that may be approved together
	First    string              // the address of the first review; empty without one
	Decides  bool                // the person reviews something
	Lower    bool                // a session with full trust would see more
}

func (p *Pages) inbox(v *site.Visit) error {
	view, err := p.gather(v)
	if err != nil {
		return err
	}
	return v.Render(inboxPage, site.Head{Title: "Inbox"}, view)
}

// reader is the person for whom the Inbox is read, and what of it the person may see.
type reader struct {
	*site.Visit

	who                          authority.Caller // the zero value for a person to whom no use case below has anything to say
	reviews, publishes, operates bool             // the last two of a session with full trust only
	lower                        bool             // a session with full trust would see more
}

// newReader returns who visits a page.
func newReader(v *site.Visit) (r reader, err error) {
	r.Visit = v
	for action, holds := range map[registry.Action]*bool{
		registry.ActionReview: &r.reviews, registry.ActionPublish: &r.publishes, registry.ActionOperate: &r.operates,
	} {
		if *holds, err = v.Holds(action); err != nil {
			return r, err
		}
	}
	if !v.Session.TrustLevel.Admits(auth.FullTrust) {
		r.lower, r.publishes, r.operates = r.publishes || r.operates, false, false
	}
	if r.reviews || r.publishes {
		r.who, err = v.Caller()
	}
	return r, err
}

// gather returns what waits for a person, the dangerous first.
func (p *Pages) gather(v *site.Visit) (view inboxView, err error) {
	r, err := newReader(v)
	if err != nil {
		return view, err
	}
	view.Decides, view.Lower = r.reviews, r.lower
	if err := p.addReviews(&r, &view); err != nil {
		return view, err
	}
	rest, err := p.rest(&r)
	if err != nil {
		return view, err
	}
	p.keep(v, len(rest))
	v.CountWaiting(view.Reviews + len(rest))
	view.Items = append(view.Items, rest...)
	slices.SortStableFunc(view.Items, func(a, b Item) int { return review.CompareDanger(a.Danger, b.Danger) })
	return view, nil
}

// kept is a number that was counted, and when.
type kept struct {
	n  int
	at time.Time
}

// keptFor is how long the header has the same number of what is no review. Reviews, which people
// decide one after the other, are counted for each page.
const keptFor = 10 * time.Second

// maxKept bounds the sessions whose numbers are kept.
const maxKept = 10_000

func (p *Pages) keep(v *site.Visit, n int) {
	now := time.Now()
	p.counts.Put(v.Session.ID, kept{n, now}, 1, now, recent.Bounds{Size: maxKept, Age: keptFor})
}

// count returns how much waits for a person.
func (p *Pages) count(v *site.Visit) (int, error) {
	r, err := newReader(v)
	if err != nil {
		return 0, err
	}
	reviews := 0
	if r.reviews {
		if reviews, err = p.ports.Reviews.CountPending(v.UserContext(), r.who); err != nil {
			return 0, err
		}
	}
	if last, ok := p.counts.Get(v.Session.ID); ok && time.Since(last.at) < keptFor {
		return reviews + last.n, nil
	}
	rest, err := p.rest(&r)
	if err == nil {
		p.keep(v, len(rest))
	}
	return reviews + len(rest), err
}

// rest returns what waits for a person besides reviews.
func (p *Pages) rest(r *reader) ([]Item, error) {
	sources := []source{p.tokens}
	if r.publishes {
		sources = []source{p.refused, p.tokens, p.policies}
	}
	if r.operates {
		sources = append(sources, p.asked, p.mirrors, p.webhooks, p.providers, p.leavers, p.denied)
	}
	var all []Item
	for _, read := range sources {
		items, err := read(r.UserContext(), r)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// source returns what of a kind waits for a person.
type source func(ctx context.Context, r *reader) ([]Item, error)
