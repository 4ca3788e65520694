package operating

import (
	"cmp"
	"context"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const peoplePath = Path + "/people"

var peoplePage = site.NewPage(templates, "templates/people.html")

func (p *Pages) mountPeople(r fiber.Router) {
	p.open(r, peoplePath, p.people)
	p.site.Post(r, peoplePath, 0, p.act("Invite people", p.invite, p.people))
	p.mountPerson(r)
}

// perPage is the number of rows on a page.
const perPage = 50

// peopleView is the page with the accounts that a search finds. The columns are those of Keycloak's list of users, with grants.
type peopleView struct {
	Part, State string
	States      []site.Option
	Later       bool // this is not the first page
	People      []personRow
	Next        string
	Invite      site.FormView
	Invited     []people.Invited // what became of a form with many addresses
}

// Outcome says what became of one of many invitations.
func (peopleView) Outcome(i people.Invited) string {
	switch {
	case fault.Is(i.Err, fault.Conflict):
		return "already there"
	case i.Err != nil:
		return "not invited: " + fault.PublicMessage(i.Err)
	case i.Link.Delivered:
		return "invited"
	}
	return "invited, and not sent: hand over the link, which is shown once"
}

// Joined returns how many of the addresses were invited.
func (view peopleView) Joined() (n int) {
	for _, one := range view.Invited {
		if one.Err == nil {
			n++
		}
	}
	return n
}

type personRow struct {
	authstore.Person

	Path, StateText, Class string
	Grants                 []registry.GrantRecord // the first ones
	MoreGrants             int
}

// accountStates are the states of accounts in words.
var accountStates = map[auth.AccountState]struct{ text, class string }{
	auth.AccountInvited: {"Invited", "warn"}, auth.AccountActive: {"Active", "good"},
	auth.AccountLocked: {"Locked", "warn"}, auth.AccountDisabled: {"Disabled", "bad"},
}

// stateOptions are the states of accounts that a search offers.
var stateOptions = []site.Option{
	{Value: "", Text: "Any"}, {Value: string(auth.AccountInvited), Text: "Invited"},
	{Value: string(auth.AccountActive), Text: "Active"}, {Value: string(auth.AccountLocked), Text: "Locked"},
	{Value: string(auth.AccountDisabled), Text: "Disabled"}, {Value: stateLeft, Text: "Left their company"},
}

// stateLeft selects active people whom their company lets in no more.
const stateLeft = "left"

// inviteInputs are the fields of an invitation.
var inviteInputs = []site.Input{
	{
		Name: "email", Label: "E-mail addresses", Kind: "area", Required: true,
		Hint: "One per line, or separated by commas; also as Name <address>. At most 50.",
	},
	{Name: "name", Label: "Name", Hint: "Of one person."},
	{Name: "actions", Label: "May", Kind: "choices", Options: site.Options(
		registry.ActionPublish, registry.ActionEdit, registry.ActionReview, registry.ActionOperate)},
	{
		Name: "resource", Label: "Servers",
		Hint: "For publish, edit and review: a name, a prefix such as com.example/*, or *.",
	},
}

func newPersonRow(p authstore.Person) personRow {
	state := accountStates[p.State]
	return personRow{Person: p, Path: PersonAddress(p.Email), StateText: state.text, Class: state.class}
}

// SecondFactor returns in words what the person has to sign in with, other than a password.
func (r personRow) SecondFactor() string {
	var has []string
	if r.MFA.Active {
		has = append(has, "authenticator app")
	}
	if r.Passkeys > 0 {
		has = append(has, "passkey")
	}
	return cmp.Or(strings.Join(has, ", "), "no")
}

// query returns what the search asks the directory for.
func (view *peopleView) query(after auth.Email) authstore.DirectoryQuery {
	q := authstore.DirectoryQuery{Part: view.Part, State: auth.AccountState(view.State), After: after, Limit: perPage + 1}
	if view.State == stateLeft {
		q.State, q.Left = auth.AccountActive, true
	}
	return q
}

func (p *Pages) people(ctx context.Context, v *site.Visit, problems site.Problems) error {
	return p.showPeople(ctx, v, problems, nil)
}

func (p *Pages) showPeople(ctx context.Context, v *site.Visit, problems site.Problems, invited []people.Invited) error {
	view := peopleView{Invited: invited, Part: v.Text("q"), State: v.Text("state"), Later: v.Text("after") != "", States: stateOptions}
	found, err := p.ports.People.Search(ctx, view.query(auth.Email(v.Text("after"))))
	if err != nil {
		return err
	}
	if len(found) > perPage {
		found = found[:perPage]
		view.Next = peoplePath + "?" + url.Values{
			"q": {view.Part}, "state": {view.State}, "after": {string(found[perPage-1].Email)},
		}.Encode()
	}
	if view.People, err = p.newPersonRows(ctx, found); err != nil {
		return err
	}
	view.Invite = v.Fill(site.Form{Action: peoplePath, Button: "Invite", Inputs: inviteInputs}, nil, problems)
	return v.Render(peoplePage, newHead(v, "People", problems, view.Invite), view)
}

// IsLeaver reports whether the company lets the person in no more, and the account is active.
func (r personRow) IsLeaver() bool { return r.Left != "" && r.State == auth.AccountActive }

// HolderOf returns the holder of the grants of a person.
func HolderOf(p *authstore.Person) registry.Holder { return registry.Holder(p.ID) }

// newPersonRows returns the rows of people, with their first grants.
func (p *Pages) newPersonRows(ctx context.Context, found []authstore.Person) ([]personRow, error) {
	const shown = 3
	grantsOf, err := registrystore.GrantsOf(ctx, p.ports.Grants, found, HolderOf)
	rows := make([]personRow, len(found))
	for i, one := range found {
		grants := grantsOf[HolderOf(&one)]
		rows[i] = newPersonRow(one)
		rows[i].Grants = grants[:min(len(grants), shown)]
		rows[i].MoreGrants = len(grants) - len(rows[i].Grants)
	}
	return rows, err
}

func (p *Pages) invite(ctx context.Context, v *site.Visit) error {
	all, err := people.ParseInvited(v.Form.Get("email"), v.Form.Get("name"))
	if err != nil {
		return err
	}
	grants, err := readRights(v)
	if err != nil {
		return err
	}
	p.ports.People.InviteMany(ctx, all, grants)
	if len(all) > 1 {
		v.Form.Set("email", people.Left(all))
		return p.showPeople(ctx, v, nil, all)
	}
	if one := all[0]; one.Err == nil {
		return showInvitation(v, one.Email, one.Link)
	}
	return all[0].Err
}

// readRights returns the grants that a form gives.
func readRights(v *site.Visit) (all []authority.GrantText, err error) {
	for _, action := range v.Form["actions"] {
		g := authority.GrantText{Action: action}
		if action != string(registry.ActionOperate) {
			g.Resource = v.Trimmed("resource")
		}
		if _, err := registry.ParseGrant("", g.Action, g.Resource); err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// showInvitation shows the link of an invitation once.
func showInvitation(v *site.Visit, email auth.Email, link people.Link) error {
	hint := "It was not sent: hand it over yourself, in a way that only this person reads."
	if link.Delivered {
		hint = "It was sent to " + string(email) + "."
	}
	return showLink(v, "The invitation of "+string(email), email, link, hint)
}

// showLink shows a link for a person once.
func showLink(v *site.Visit, title string, email auth.Email, link people.Link, hint string) error {
	return v.ShowOnce(site.Secret{
		Title: title, Value: link.URL, Hint: hint, Until: link.ExpiresAt,
		Back: site.Link{Text: string(email), Path: PersonAddress(email)},
	})
}
