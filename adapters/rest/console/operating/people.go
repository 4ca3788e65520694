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
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const peoplePath = Path + "/people"

var peoplePage = site.NewPage(templates, "templates/people.html")

func (p *Pages) mountPeople(r fiber.Router) {
	p.open(r, peoplePath, p.people)
	p.site.Post(r, peoplePath, 0, p.act("Invite this person", p.invite, p.people))
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
	{Name: "email", Label: "E-mail address", Kind: "email", Required: true},
	{Name: "name", Label: "Name", Required: true},
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
	view := peopleView{Part: v.Text("q"), State: v.Text("state"), Later: v.Text("after") != "", States: stateOptions}
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
	view.Invite = v.Fill(site.Form{Action: peoplePath, Button: "Invite this person", Inputs: inviteInputs}, nil, problems)
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
	in, err := readInvitation(v)
	if err != nil {
		return err
	}
	a, link, err := p.ports.People.Invite(ctx, in)
	if err != nil {
		return err
	}
	return showInvitation(v, a.Email, link)
}

// readInvitation returns the invitation that a form describes.
func readInvitation(v *site.Visit) (in people.Invitation, err error) {
	if in.Email, err = readEmail("email", v.Trimmed("email")); err != nil {
		return in, err
	}
	if in.Name, err = people.ParseName(v.Form.Get("name")); err != nil {
		return in, err
	}
	for _, action := range v.Form["actions"] {
		g := authority.GrantText{Action: action}
		if action != string(registry.ActionOperate) {
			g.Resource = v.Trimmed("resource")
		}
		if _, err := registry.ParseGrant("", g.Action, g.Resource); err != nil {
			return in, err
		}
		in.Grants = append(in.Grants, g)
	}
	return in, nil
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
