package operating

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/auditlog"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const personPath = peoplePath + "/:email"

var personPage = site.NewPage(templates, "templates/person.html")

// profileInputs are the fields of a person that an operator changes.
var profileInputs = []site.Input{
	{Name: "name", Label: "Name", Required: true},
	{Name: "phone", Label: "Telephone", Kind: "tel", Hint: "Such as +4930123456, or empty. The person confirms it on the account page."},
}

func (p *Pages) mountPerson(r fiber.Router) {
	p.open(r, personPath, p.person)
	p.site.Post(r, personPath, 0, p.act("Save this person", p.changeProfile, p.person))
	add, remove := p.changePersonGrant("granted", p.ports.GrantChanges.Add), p.changePersonGrant("revoked", p.removeByHand)
	p.site.Post(r, personPath+"/grants", 1, p.act("Add this grant", add, p.person))
	p.site.Post(r, personPath+"/grants/remove", 2, p.act("Remove this grant", remove, nil))
	for _, a := range p.personActs() {
		p.site.Post(r, personPath+"/"+a.Path, 1, p.act(a.Title, func(ctx context.Context, v *site.Visit) error {
			email, err := pathEmail(v)
			if err != nil {
				return err
			}
			return a.do(ctx, v, email)
		}, nil))
	}
}

// personAct is something that an operator does to an account.
type personAct struct {
	Path, Button, Title string
	Question            string // asked before it is done; empty if it can be undone
	offered             func(*personView) bool
	do                  func(ctx context.Context, v *site.Visit, email auth.Email) error
}

func (p *Pages) personActs() []personAct {
	in := func(states ...auth.AccountState) func(*personView) bool {
		return func(view *personView) bool { return slices.Contains(states, view.Account.State) }
	}
	return []personAct{
		{
			"lock", "Lock", "Lock this account", "", in(auth.AccountActive), acting(p.ports.People.Lock, "locked"),
		}, {
			"unlock", "Unlock", "Unlock this account", "", func(view *personView) bool {
				return view.State == auth.AccountLocked || view.State == auth.AccountActive && !view.LockedUntil.IsZero()
			}, acting(p.ports.People.Unlock, "unlocked"),
		}, {
			"disable", "Disable", "Disable this account", "All sessions end, and links that were sent are dead.",
			in(auth.AccountInvited, auth.AccountActive, auth.AccountLocked), acting(p.ports.People.Disable, "disabled"),
		}, {
			"enable", "Enable", "Enable this account", "", in(auth.AccountDisabled), acting(p.ports.People.Enable, "enabled"),
		}, {
			"end-sessions", "End all sessions", "End all sessions of this account", "The person signs in again everywhere.",
			func(view *personView) bool { return len(view.Sessions) > 0 }, acting(p.endSessions, "ended"),
		}, {
			"remove-second-factor", "Remove the second factor", "Remove the second factor of this account",
			"All sessions end, and the person gets a notice. A password is then enough to sign in.",
			func(view *personView) bool { return len(view.MFA.Secret) > 0 },
			acting(p.ports.People.DisableMFA, "unfactored"),
		}, {
			"invitation", "New invitation", "Make a new invitation", "The link of the earlier one is dead then.",
			in(auth.AccountInvited), p.inviteAgain,
		}, {
			"reset-link", "Link for a new password", "Make a link for a new password", "",
			func(view *personView) bool { return view.Account.State.HasSignIn() }, p.makeResetLink,
		},
	}
}

// acting returns what does something to an account and leads to its page with a notice.
func acting(
	do func(context.Context, auth.Email) error, notice string,
) func(context.Context, *site.Visit, auth.Email) error {
	return func(ctx context.Context, v *site.Visit, email auth.Email) error {
		return v.Done(do(ctx, email), PersonAddress(email), notice)
	}
}

func (p *Pages) endSessions(ctx context.Context, email auth.Email) error {
	a, err := p.ports.People.ByEmail(ctx, email)
	if err == nil {
		_, err = p.ports.Sessions.EndAllSessions(ctx, &a)
	}
	return err
}

func (p *Pages) inviteAgain(ctx context.Context, v *site.Visit, email auth.Email) error {
	a, err := p.ports.People.ByEmail(ctx, email)
	if err != nil {
		return err
	}
	grants, err := registrystore.GrantsOf(ctx, p.ports.Grants, []auth.UserID{a.ID}, func(id *auth.UserID) registry.Holder { return registry.Holder(*id) })
	if err != nil {
		return err
	}
	link, err := p.ports.People.InviteAgain(ctx, email, authority.TextsOf(grants[registry.Holder(a.ID)]))
	if err != nil {
		return err
	}
	return showInvitation(v, email, link)
}

func (p *Pages) makeResetLink(ctx context.Context, v *site.Visit, email auth.Email) error {
	link, err := p.ports.People.MakeResetLink(ctx, email)
	if err != nil {
		return err
	}
	return showLink(v, "The link for a new password of "+string(email), email, link,
		"It is not sent: hand it over yourself, in a way that only this person reads.")
}

// pathEmail returns the e-mail address in the path.
func pathEmail(v *site.Visit) (auth.Email, error) {
	email, err := auth.ParseEmail(key[string](v, "email"))
	if err != nil {
		err = auth.NotFound("user")
	}
	return email, err
}

// PersonAddress returns the path of the page of a person.
func PersonAddress(e auth.Email) string { return peoplePath + "/" + url.PathEscape(string(e)) }

// personView is the page of an account.
type personView struct {
	personRow

	LockedUntil time.Time // by failed sign-ins; zero without one
	Records     []registry.GrantRecord
	Linked      []federating.Linked
	Sessions    []sessionRow
	Devices     []deviceRow // that are not revoked
	Tokens      []auth.APIToken

	Acts           []personAct
	Profile, Grant site.FormView
}

// sessionRow is a session in words.
type sessionRow struct {
	auth.Session

	Device string
	Level  site.Level
}

// deviceRow is a device, and how the person was verified on it last; empty if that is not known.
type deviceRow struct {
	auth.Device

	Method string
}

func (p *Pages) person(ctx context.Context, v *site.Visit, problems site.Problems) error {
	view, err := p.readPerson(ctx, v)
	if err != nil {
		return err
	}
	for _, a := range p.personActs() {
		if a.offered(&view) {
			view.Acts = append(view.Acts, a)
		}
	}
	view.Profile = v.Fill(site.Form{Action: view.Path, Button: "Save this person", Inputs: profileInputs},
		url.Values{"name": {view.Name}, "phone": {view.Phone}}, problems)
	view.Grant = v.Fill(
		site.Form{Action: view.Path + "/grants", Button: "Add this grant", Inputs: grantInputs}, nil, problems)
	return v.Render(personPage, newHead(v, string(view.Email), problems, view.Profile, view.Grant), view)
}

// readPerson returns the person in the path, with all that is stored about them.
func (p *Pages) readPerson(ctx context.Context, v *site.Visit) (personView, error) {
	email, err := pathEmail(v)
	if err != nil {
		return personView{}, err
	}
	a, err := p.ports.People.ByEmail(ctx, email)
	if err != nil {
		return personView{}, err
	}
	found, err := p.ports.People.ByID(ctx, a.ID)
	if err != nil {
		return personView{}, err
	}
	view := personView{personRow: newPersonRow(found)}
	held := registrystore.GrantQuery{Holders: []registry.Holder{registry.Holder(a.ID)}}
	view.Records, err = p.ports.Grants.Records(ctx, held)
	if err == nil {
		view.Linked, err = p.ports.Providers.Identities(ctx, a.ID)
	}
	if err == nil {
		view.LockedUntil, err = p.ports.People.LockedUntil(ctx, &a)
	}
	if err == nil {
		owner := auth.Owner(a.ID)
		view.Tokens, err = p.ports.Tokens.List(ctx, owner, "", 2*owner.MaxTokens())
	}
	if err != nil {
		return personView{}, err
	}
	return view, p.addSessions(ctx, &view)
}

// addSessions adds the devices and the sessions of the person.
func (p *Pages) addSessions(ctx context.Context, view *personView) error {
	devices, err := p.ports.Sessions.ListDevices(ctx, view.ID)
	if err != nil {
		return err
	}
	verified, err := p.ports.Trail.Search(ctx, view.ID, auditing.Query{Category: audit.StepUpAttempt, Limit: auth.MaxPage, Most: 1})
	if err != nil {
		return err
	}
	methods := map[string]string{}
	for _, e := range slices.Backward(verified.Events) {
		if a := stepup.ReadAttempt(&e); a.Action == stepup.ActionVerify && e.Success {
			methods[e.Details.Text("deviceIdentity")] = auditlog.MethodOf(a.Method)
		}
	}
	names := map[auth.DeviceID]string{}
	for _, d := range devices {
		names[d.ID] = d.Browser + " on " + d.OS
		if !d.Revoked {
			view.Devices = append(view.Devices, deviceRow{d, methods[string(d.Identity)]})
		}
	}
	sessions, err := p.ports.Sessions.ListSessions(ctx, view.ID)
	for _, s := range sessions {
		view.Sessions = append(view.Sessions, sessionRow{s, names[s.DeviceID], site.LevelOf(s.TrustLevel)})
	}
	return err
}

func (p *Pages) changeProfile(ctx context.Context, v *site.Visit) error {
	email, err := pathEmail(v)
	if err != nil {
		return err
	}
	name, phone := v.Form.Get("name"), v.Trimmed("phone")
	err = p.ports.People.SetProfile(ctx, email, people.Profile{Name: &name, Phone: &phone})
	return v.Done(err, PersonAddress(email), "saved")
}

// changePersonGrant does something with the grant of the person in the path that a form describes.
func (p *Pages) changePersonGrant(notice string, do func(context.Context, registry.Grant) error) handler {
	return func(ctx context.Context, v *site.Visit) error {
		email, err := pathEmail(v)
		if err != nil {
			return err
		}
		a, err := p.ports.People.ByEmail(ctx, email)
		if err != nil {
			return err
		}
		g, err := registry.ParseGrant(registry.Holder(a.ID), v.Form.Get("action"), v.Trimmed("resource"))
		if err == nil {
			err = do(ctx, g)
		}
		return v.Done(err, PersonAddress(email), notice)
	}
}
