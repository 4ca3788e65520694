package operating

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
)

const (
	peoplePath = Path + "/people"
	personPath = peoplePath + "/:email"
)

var (
	peoplePage = site.ParsePage(templates, "templates/people.html")
	personPage = site.ParsePage(templates, "templates/person.html")
)

func (p *Pages) mountPeople(r fiber.Router) {
	r.Get(peoplePath, p.page(p.people))
	r.Get(personPath, p.page(func(ctx context.Context, v *site.Visit) error { return p.person(ctx, v, nil) }))
	for _, c := range p.accountChanges() {
		p.site.Post(r, personPath+"/"+c.path, 1,
			p.act(c.title, func(ctx context.Context, v *site.Visit) error { return p.changeAccount(ctx, v, c) }, nil))
	}
}

// accountChange is something that an operator does to an account.
type accountChange struct {
	path, title, done string
	do                func(ctx context.Context, a auth.Account) error
}

func (p *Pages) accountChanges() []accountChange {
	byEmail := func(do func(context.Context, auth.Email) error) func(context.Context, auth.Account) error {
		return func(ctx context.Context, a auth.Account) error { return do(ctx, a.Email) }
	}
	endSessions := func(ctx context.Context, a auth.Account) error {
		_, err := p.ports.Sessions.EndAllSessions(ctx, &a)
		return err
	}
	return []accountChange{
		{"lock", "Lock this account", "locked", byEmail(p.ports.People.Lock)},
		{"unlock", "Unlock this account", "unlocked", byEmail(p.ports.People.Unlock)},
		{"disable", "Disable this account", "disabled", byEmail(p.ports.People.Disable)},
		{"enable", "Enable this account", "enabled", byEmail(p.ports.People.Enable)},
		{"end-sessions", "End all sessions of this account", "ended", endSessions},
	}
}

func (p *Pages) changeAccount(ctx context.Context, v *site.Visit, c accountChange) error {
	a, err := p.account(ctx, v)
	if err == nil {
		err = c.do(ctx, a)
	}
	if err != nil {
		return err
	}
	return v.Redirect(personAddress(a.Email) + "?done=" + c.done)
}

// perPage is the number of rows on a page.
const perPage = 50

// peopleView is the page with the accounts.
type peopleView struct {
	People []personRow
	After  string // the accounts are those after this address
	Next   string
}

type personRow struct {
	auth.Account

	Path, State, Class string
}

// accountStates are the states of accounts in words.
var accountStates = map[auth.AccountState]struct{ text, class string }{
	auth.AccountInvited: {"Invited", "warn"}, auth.AccountActive: {"Active", "good"}, auth.AccountLocked: {"Locked", "warn"}, auth.AccountDisabled: {
		"Disabled", "bad",
	},
}

func newPersonRow(a auth.Account) personRow {
	return personRow{a, personAddress(a.Email), accountStates[a.State].text, accountStates[a.State].class}
}

func personAddress(e auth.Email) string { return peoplePath + "/" + url.PathEscape(string(e)) }

func (p *Pages) people(ctx context.Context, v *site.Visit) error {
	view := peopleView{After: v.Text("after")}
	all, err := p.ports.People.List(ctx, auth.Email(view.After), perPage+1)
	if err != nil {
		return err
	}
	for i, a := range all {
		if i == perPage {
			view.Next = peoplePath + "?after=" + url.QueryEscape(string(all[i-1].Email))
			break
		}
		view.People = append(view.People, newPersonRow(a))
	}
	return v.Render(peoplePage, site.Head{Title: "People"}, view)
}

// personView is the page of an account.
type personView struct {
	personRow

	Sessions []auth.Session
	Devices  int
	Grants   []registry.Grant
}

func (p *Pages) account(ctx context.Context, v *site.Visit) (auth.Account, error) {
	text, err := v.Param("email")
	if err != nil {
		return auth.Account{}, err
	}
	email, err := auth.ParseEmail(text)
	if err != nil {
		return auth.Account{}, auth.NotFound("user")
	}
	return p.ports.People.ByEmail(ctx, email)
}

func (p *Pages) person(ctx context.Context, v *site.Visit, problems site.Problems) error {
	a, err := p.account(ctx, v)
	if err != nil {
		return err
	}
	view := personView{personRow: newPersonRow(a)}
	if view.Devices, err = p.countDevices(ctx, a); err != nil {
		return err
	}
	if view.Sessions, err = p.ports.Sessions.ListSessions(ctx, a.ID); err != nil {
		return err
	}
	if view.Grants, err = p.ports.Grants.Of(ctx, registry.Holder(a.ID)); err != nil {
		return err
	}
	return v.Render(personPage, site.Head{
		Title: string(a.Email), Notice: notices[v.Text("done")], Problems: problems,
	}, view)
}

// countDevices returns the number of devices that are not revoked.
func (p *Pages) countDevices(ctx context.Context, a auth.Account) (n int, err error) {
	devices, err := p.ports.Sessions.ListDevices(ctx, a.ID)
	for _, d := range devices {
		if !d.Revoked {
			n++
		}
	}
	return n, err
}
