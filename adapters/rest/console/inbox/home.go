package inbox

import (
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/catalogue"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/browsing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

// The numbers of rows of Home, and of the servers that it looks at to know which a person may use.
const (
	homeRows  = 6
	homeUsage = 200
	// decidedFor is how long Home says what was decided.
	decidedFor = 30 * 24 * time.Hour
)

// homeView is the page with what concerns a person.
type homeView struct {
	Waits   []Item // that somebody should do something about
	All     int    // with those that are left out
	Ends    []Item
	Pending []review.Shown // that the person has submitted
	Decided []review.Shown
	Rights  []registry.RightRequest // that wait, or were decided lately
	Asked   bool                    // this service decides about calls
	Usages  []access.Usage
	More    bool // servers than Usages
	Changed []catalogue.Card
}

func (p *Pages) home(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	view := homeView{}
	for _, add := range [...]func(*site.Visit, authority.Caller, *homeView) error{p.addItems, p.addSubmitted, p.addRights, p.addServers} {
		if err := add(v, who, &view); err != nil {
			return err
		}
	}
	return v.Render(homePage, site.Head{Title: "Home"}, view)
}

// addItems adds the first part of the Inbox, and what ends soon.
func (p *Pages) addItems(v *site.Visit, _ authority.Caller, view *homeView) error {
	all, err := p.gather(v)
	view.All = all.Reviews - all.Listed
	for _, one := range all.Items {
		if one.Ends {
			view.Ends = append(view.Ends, one)
			continue
		}
		if view.All++; len(view.Waits) < homeRows {
			view.Waits = append(view.Waits, one)
		}
	}
	return err
}

// addSubmitted adds what the person has submitted: what waits, and what was decided lately.
func (p *Pages) addSubmitted(v *site.Visit, who authority.Caller, view *homeView) error {
	own := reviewing.Query{Limit: "20", Filter: reviewing.Filter{Own: true, Brief: true}}
	waiting, err := p.ports.Reviews.List(v.UserContext(), who, own)
	if err != nil {
		return err
	}
	own.Decided = true
	decided, err := p.ports.Reviews.List(v.UserContext(), who, own)
	for _, r := range decided.Reviews {
		if time.Since(r.DecidedAt) < decidedFor {
			view.Decided = append(view.Decided, r)
		}
	}
	slices.SortStableFunc(view.Decided, func(a, b review.Shown) int { // what is to be mended first
		return review.CompareDanger(a.State != review.Approved, b.State != review.Approved)
	})
	view.Decided = view.Decided[:min(len(view.Decided), homeRows)]
	view.Pending = waiting.Reviews[:min(len(waiting.Reviews), homeRows)]
	return err
}

// addRights adds what the person has asked for.
func (p *Pages) addRights(v *site.Visit, who authority.Caller, view *homeView) error {
	rights, err := p.ports.Operating.Asked.Own(v.UserContext(), who)
	for _, r := range rights {
		if r.State == registry.RightOpen || time.Since(r.DecidedAt) < decidedFor {
			view.Rights = append(view.Rights, r)
		}
	}
	return err
}

// addServers adds the servers that the person may use, and which of them changed last: without such servers, and where
// this service is not asked about calls, of all that the person may read.
func (p *Pages) addServers(v *site.Visit, who authority.Caller, view *homeView) error {
	found, err := p.ports.Finder.Find(v.UserContext(), browsing.Wanted{Sort: string(registrystore.ByUpdated)}, who)
	if err != nil {
		return err
	}
	may := map[string]bool{}
	if view.Asked = p.ports.Operating.Access.On(); view.Asked {
		page, err := p.ports.Operating.Access.Usage(v.UserContext(), who, "", homeUsage)
		if err != nil {
			return err
		}
		for _, u := range page.Usages {
			may[u.Server.String()] = true
		}
		view.Usages, view.More = page.Usages[:min(len(page.Usages), homeRows)], len(page.Usages) > homeRows || page.Next != ""
	}
	view.addChanged(found.Servers, may)
	return nil
}

// addChanged adds the first of the servers that the person may use, or of all if there are none.
func (view *homeView) addChanged(found []registrystore.FoundServer, may map[string]bool) {
	for _, f := range found {
		if (may[f.Name.String()] || len(may) == 0) && len(view.Changed) < homeRows {
			view.Changed = append(view.Changed, catalogue.NewFoundCard(f))
		}
	}
}
