package adminapi

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/authapi"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/auth/people"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/managing"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
)

const (
	peoplePath = root + "/people"
	personPath = peoplePath + "/:id"
)

func (a *API) mountPeople(r fiber.Router) {
	r.Get(peoplePath, a.read(a.operator(adminRead), a.listPeople))
	r.Post(peoplePath, a.writePerson("invite", a.invite))
	r.Get(personPath, a.read(a.operator(adminRead), a.getPerson))
	r.Patch(personPath, a.writePerson("profile", a.changePerson))
	r.Get(personPath+"/sessions", a.read(a.operator(adminRead), a.listSessions))
	r.Get(personPath+"/devices", a.read(a.operator(adminRead), a.listDevices))
	r.Get(personPath+"/identities", a.read(a.operator(adminRead), a.listIdentities))
	r.Post(personPath+"/invitation", a.writePerson("invitation", a.inviteAgain))
	r.Post(personPath+"/reset-link", a.writeCredentials("reset_link", a.makeResetLink))
	for action, do := range map[audit.Action]func(context.Context, auth.Email) error{
		"lock": a.use.People.Lock, "unlock": a.use.People.Unlock, "disable": a.use.People.Disable,
		"enable": a.use.People.Enable, "end_sessions": a.endSessions,
	} {
		name := strings.ReplaceAll(string(action), "_", "-")
		r.Post(personPath+"/"+name, a.writePerson(action, a.actOnPerson(do)))
	}
	r.Post(personPath+"/remove-second-factor", a.writeCredentials("mfa_disable", a.actOnPerson(a.use.People.DisableMFA)))
}

// writePerson returns the handler of a route that changes people.
func (a *API) writePerson(action audit.Action, handle handler) fiber.Handler {
	return a.write(change{audit.AccountChange, action, "person"}, a.operator(adminWrite), handle)
}

// writeCredentials returns the handler of a route that changes how people sign in.
func (a *API) writeCredentials(action audit.Action, handle handler) fiber.Handler {
	return a.write(change{audit.CredentialChange, action, "person"}, a.operator(adminWrite), handle)
}

type personResponse struct {
	ID           auth.UserID       `json:"id"`
	Email        auth.Email        `json:"email"`
	Name         string            `json:"name"`
	Phone        string            `json:"phone"`
	State        auth.AccountState `json:"state"`
	Grants       []grantResponse   `json:"grants"`
	SecondFactor bool              `json:"secondFactor"`
	CreatedAt    string            `json:"createdAt"`
	LastSignInAt *string           `json:"lastSignInAt"`
	ownedBy
	personState
}

// personState is what changes while no one changes the person.
type personState struct {
	UpdatedAt              string `json:"updatedAt,omitempty"`
	SecondFactorPending    bool   `json:"secondFactorPending,omitempty"`    // it can still be activated
	SecondFactorEnrolledAt string `json:"secondFactorEnrolledAt,omitempty"` // empty if it is not known
	RecoveryCodes          int    `json:"recoveryCodes,omitempty"`          // that are left
}

// stable leaves out what changes while no one changes the person.
func (p personResponse) stable() any {
	p.LastSignInAt, p.personState = nil, personState{}
	return p
}

// personRecord is a person with the grants.
type personRecord struct {
	authstore.Person

	grants []registry.GrantRecord
	now    time.Time
}

func newPersonResponse(p *personRecord) personResponse {
	response := personResponse{
		ID: p.ID, Email: p.Email, Name: p.Name, Phone: p.Phone, State: p.State, SecondFactor: p.MFA.Active,
		Grants: each.MapRef(p.grants, newGrantResponse), CreatedAt: authapi.FormatTime(p.CreatedAt),
		personState: personState{
			UpdatedAt: authapi.FormatTime(p.UpdatedAt), SecondFactorPending: p.MFA.Pending(p.now), RecoveryCodes: len(p.MFA.Recovery),
		},
	}
	if at := p.MFA.Enrolment.At; !at.IsZero() && (p.MFA.Active || p.MFA.Pending(p.now)) {
		response.SecondFactorEnrolledAt = authapi.FormatTime(at)
	}
	if !p.LastSignIn.IsZero() {
		at := authapi.FormatTime(p.LastSignIn)
		response.LastSignInAt = &at
	}
	return response
}

// withGrants returns people with their grants, as many as there are people.
func (a *API) withGrants(ctx context.Context, found ...authstore.Person) ([]personRecord, error) {
	grants, err := registrystore.GrantsOf(ctx, a.use.Grants, found,
		func(p *authstore.Person) registry.Holder { return registry.Holder(p.ID) })
	return each.Map(found, func(p authstore.Person) personRecord {
		return personRecord{p, grants[registry.Holder(p.ID)], a.use.Clock.Now()}
	}), err
}

// readPerson returns a function that finds the person whom the path names.
func (a *API) readPerson(q *request) func(ctx context.Context) (personRecord, error) {
	id, err := auth.ParseUUID[auth.UserID]("id", q.param("id"))
	q.check("id", err)
	q.find = func(ctx context.Context) string {
		p, _ := a.use.People.ByID(ctx, id) // without the person, the key is what the path has
		return string(p.Email)
	}
	return func(ctx context.Context) (personRecord, error) {
		p, err := a.use.People.ByID(ctx, id)
		if err != nil {
			return personRecord{}, err
		}
		records, err := a.withGrants(ctx, p)
		return records[0], err
	}
}

// personStates are the states of people.
var personStates = []auth.AccountState{
	auth.AccountInvited, auth.AccountActive, auth.AccountLocked, auth.AccountDisabled,
}

func (a *API) listPeople(q *request) act {
	search := authstore.DirectoryQuery{Part: q.query("q"), State: auth.AccountState(q.query("state"))}
	if search.State != "" && !slices.Contains(personStates, search.State) {
		q.check("state", fault.New(fault.Invalid, "must be invited, active, locked or disabled"))
	}
	return listing[personRecord, personResponse]{
		name: "people", key: func(p *personRecord) string { return string(p.Email) }, shape: newPersonResponse,
		fetch: func(ctx context.Context, after string, limit int) ([]personRecord, error) {
			search.After, search.Limit = auth.Email(after), limit
			found, err := a.use.People.Search(ctx, search)
			if err != nil {
				return nil, err
			}
			return a.withGrants(ctx, found...)
		},
	}.handle(q)
}

func (a *API) getPerson(q *request) act {
	find := a.readPerson(q)
	return func(ctx context.Context) (answer, error) { return a.answerPerson(ctx, find) }
}

func (a *API) answerPerson(ctx context.Context, find func(context.Context) (personRecord, error)) (answer, error) {
	p, err := find(ctx)
	return answerWith(http.StatusOK, p, err, newPersonResponse)
}

// linkResponse is a link for a person.
type linkResponse struct {
	URL       string `json:"url,omitempty"` // not for a token, which would become its person
	ExpiresAt string `json:"expiresAt"`
	Delivered *bool  `json:"delivered,omitempty"` // of an invitation, and for a token
}

func newInvitationResponse(l people.Link, who authority.Caller) linkResponse {
	r := linkResponse{l.URL, authapi.FormatTime(l.ExpiresAt), &l.Delivered}
	if _, ok := who.Token(); ok {
		r.URL = ""
	}
	return r
}

// invitedResponse is a person who was just invited.
type invitedResponse struct {
	personResponse

	Invitation linkResponse `json:"invitation"`
}

func (a *API) invite(q *request) act {
	var in people.Invitation
	var err error
	in.Email, err = auth.ParseEmail(q.body().Text("email"))
	q.check("email", err)
	q.named = string(in.Email)
	in.Name, err = people.ParseName(q.body().Text("name"))
	q.check("name", err)
	if q.body().IsNull("grants") {
		q.check("grants", fault.New(fault.Invalid, "must be a list of objects"))
	}
	for i, g := range q.body().Objects("grants") {
		text := authority.GrantText{Action: g.Text("action"), Resource: g.OptionalText("resource")}
		_, err := registry.ParseGrant("", text.Action, text.Resource)
		q.check(fmt.Sprintf("grants[%d]", i), err)
		in.Grants = append(in.Grants, text)
	}
	return func(ctx context.Context) (answer, error) {
		account, link, err := a.use.People.Invite(ctx, in)
		if err != nil {
			return answer{}, err
		}
		records, err := a.withGrants(ctx, authstore.Person{Account: account})
		if err != nil {
			return answer{}, err
		}
		return object(http.StatusCreated, invitedResponse{newPersonResponse(&records[0]), newInvitationResponse(link, q.who)}), nil
	}
}

func (a *API) changePerson(q *request) act {
	find := a.readPerson(q)
	var profile people.Profile
	if q.body().Has("name") || q.body().IsNull("name") {
		name, err := people.ParseName(q.body().PresentText("name"))
		q.check("name", err)
		profile.Name = &name
	}
	if q.body().Has("phone") || q.body().IsNull("phone") {
		phone := q.body().OptionalText("phone")
		q.check("phone", people.CheckPhone(phone))
		profile.Phone, profile.Sure = &phone, q.who.IsOperator() // a command at the database
	}
	q.action = profile.Action()
	condition := conditionOf(q, newPersonResponse)
	return func(ctx context.Context) (answer, error) {
		p, err := find(ctx)
		if err == nil && profile.Phone != nil && *profile.Phone != p.Phone {
			err = authority.RefuseToken(ctx, "change a telephone number, to which codes are sent")
		}
		if err != nil {
			return answer{}, err
		}
		profile.Condition = func(ctx context.Context) error {
			current, err := find(ctx)
			if err == nil && condition != nil {
				err = condition(&current)
			}
			return err
		}
		if err := a.use.People.SetProfile(ctx, p.Email, profile); err != nil {
			return answer{}, err
		}
		return a.answerPerson(ctx, find)
	}
}

// actOnPerson returns the handler of an act that answers with the person.
func (a *API) actOnPerson(do func(context.Context, auth.Email) error) handler {
	return func(q *request) act {
		find := a.readPerson(q)
		return func(ctx context.Context) (answer, error) {
			p, err := find(ctx)
			if err == nil {
				err = do(ctx, p.Email)
			}
			if err != nil {
				return answer{}, err
			}
			return a.answerPerson(ctx, find)
		}
	}
}

func (a *API) endSessions(ctx context.Context, email auth.Email) error {
	account, err := a.use.People.ByEmail(ctx, email)
	if err == nil {
		_, err = a.use.Devices.EndAllSessions(ctx, &account)
	}
	return err
}

func (a *API) inviteAgain(q *request) act {
	return a.answerLink(q, func(ctx context.Context, p personRecord) (linkResponse, error) {
		link, err := a.use.People.InviteAgain(ctx, p.Email, authority.TextsOf(p.grants))
		return newInvitationResponse(link, q.who), err
	})
}

func (a *API) makeResetLink(q *request) act {
	return a.answerLink(q, func(ctx context.Context, p personRecord) (linkResponse, error) {
		if _, ok := q.who.Token(); ok {
			link, err := a.use.People.MailResetLink(ctx, p.Email)
			return newInvitationResponse(link, q.who), err
		}
		link, err := a.use.People.MakeResetLink(ctx, p.Email)
		return linkResponse{URL: link.URL, ExpiresAt: authapi.FormatTime(link.ExpiresAt)}, err
	})
}

// answerLink returns an act that answers with a link for a person.
func (a *API) answerLink(q *request, makeLink func(context.Context, personRecord) (linkResponse, error)) act {
	find := a.readPerson(q)
	return func(ctx context.Context) (answer, error) {
		p, err := find(ctx)
		if err != nil {
			return answer{}, err
		}
		link, err := makeLink(ctx, p)
		return answer{status: http.StatusOK, body: link}, err
	}
}

func (a *API) listSessions(q *request) act {
	return listOwned(q, a.readPerson(q), a.use.Devices.ListSessions, listing[auth.Session, any]{
		name: "sessions", shape: authapi.SessionShape, key: func(s *auth.Session) string { return string(s.ID) },
	})
}

func (a *API) listDevices(q *request) act {
	return listOwned(q, a.readPerson(q), a.use.Devices.ListDevices, listing[auth.Device, any]{
		name: "devices", shape: authapi.DeviceShape, key: func(d *auth.Device) string { return string(d.ID) },
	})
}

func (a *API) listIdentities(q *request) act {
	return listOwned(q, a.readPerson(q), a.use.Providers.Identities, listing[federating.Linked, any]{
		name: "identities", shape: authapi.IdentityShape, key: func(l *federating.Linked) string { return string(l.ID) },
	})
}

// listOwned returns an act that lists what a person has.
func listOwned[T any](
	q *request, find func(context.Context) (personRecord, error),
	all func(context.Context, auth.UserID) ([]T, error), l listing[T, any],
) act {
	l.fetch = managing.PageOf(func(ctx context.Context) ([]T, error) {
		p, err := find(ctx)
		if err != nil {
			return nil, err
		}
		return all(ctx, p.ID)
	}, l.key)
	return l.handle(q)
}
