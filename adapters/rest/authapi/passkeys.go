package authapi

import (
	"net/http"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/adapters/rest/passkeyjson"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/signin"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/ports/webauthn"
)

const passkeysPath = root + "/passkeys"

func (a *API) mountPasskeys(r fiber.Router) {
	r.Get(passkeysPath, a.requireSession(auth.Unverified, a.listPasskeys))
	r.Post(passkeysPath+"/register/begin", a.requireSession(auth.FullTrust, a.beginRegistration))
	r.Post(passkeysPath+"/register/finish", a.requireSession(auth.FullTrust, a.registerPasskey))
	r.Post(passkeysPath+"/sign-in/begin", withBody(a.beginPasskeySignIn))
	r.Post(passkeysPath+"/sign-in/finish", a.signInWithPasskey)
	r.Patch(passkeysPath+"/:id", a.requireSession(auth.FullTrust, withID(a.renamePasskey)))
	r.Delete(passkeysPath+"/:id", a.requireSession(auth.FullTrust, withID(a.removePasskey)))
}

// party returns the relying party of a request.
func (a *API) party(c *fiber.Ctx) (webauthn.Party, error) {
	return passkeyjson.Party(c, a.use.Passkeys)
}

type passkeyView struct {
	ID         auth.PasskeyID `json:"id"`
	Name       string         `json:"name"`
	CreatedAt  string         `json:"createdAt"`
	LastUsedAt *string        `json:"lastUsedAt"` // null if it was never used
	Synced     bool           `json:"synced"`
}

func newPasskeyView(p auth.Passkey) passkeyView {
	v := passkeyView{ID: p.ID, Name: p.Name, CreatedAt: FormatTime(p.CreatedAt), Synced: p.BackedUp}
	if !p.LastUsedAt.IsZero() {
		used := FormatTime(p.LastUsedAt)
		v.LastUsedAt = &used
	}
	return v
}

type passkeyList struct {
	Passkeys []passkeyView `json:"passkeys"`
}

func (a *API) listPasskeys(c *fiber.Ctx, caller auth.Session) error {
	found, err := a.use.Passkeys.List(c.UserContext(), caller.UserID)
	if err != nil {
		return err
	}
	return sendJSON(c, passkeyList{each.Map(found, newPasskeyView)})
}

// ceremonyResponse is a ceremony that has begun.
type ceremonyResponse[O any] struct {
	CeremonyID passkeys.CeremonyID `json:"ceremonyId"`
	PublicKey  O                   `json:"publicKey"`
	ExpiresAt  string              `json:"expiresAt"`
}

// beginRegistration needs no request body.
func (a *API) beginRegistration(c *fiber.Ctx, caller auth.Session) error {
	party, err := a.party(c)
	if err != nil {
		return err
	}
	s, err := a.use.Passkeys.BeginRegistration(c.UserContext(), caller, party)
	if err != nil {
		return err
	}
	return sendJSON(c, ceremonyResponse[*passkeyjson.Creation]{s.ID, passkeyjson.NewCreation(s.Options), FormatTime(s.ExpiresAt)})
}

func (a *API) readAnswer(c *fiber.Ctx) (in passkeys.Answer, b *jsonbody.Object, err error) {
	if b, err = readBody(c); err != nil {
		return in, nil, err
	}
	if in.Party, err = a.party(c); err != nil {
		return in, nil, err
	}
	in.Ceremony, in.Response = passkeys.CeremonyID(b.Text("ceremonyId")), b.Raw("credential")
	return in, b, nil
}

func (a *API) registerPasskey(c *fiber.Ctx, caller auth.Session) error {
	in, b, err := a.readAnswer(c)
	if err != nil {
		return err
	}
	name, err := auth.ParsePasskeyName(b.Text("name"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	p, err := a.use.Passkeys.Register(c.UserContext(), caller, in, name)
	if err != nil {
		return err
	}
	c.Status(http.StatusCreated)
	return sendJSON(c, newPasskeyView(p))
}

func (a *API) beginPasskeySignIn(c *fiber.Ctx, b *jsonbody.Object) error {
	party, err := a.party(c)
	if err != nil {
		return err
	}
	device := readDeviceFields(b)
	if err := fieldError(b.Problems()); err != nil {
		return err
	}
	s, err := a.use.Passkeys.BeginSignIn(party, device)
	if err != nil {
		return err
	}
	return sendJSON(c, ceremonyResponse[*passkeyjson.Request]{s.ID, passkeyjson.NewRequest(s.Options), FormatTime(s.ExpiresAt)})
}

func (a *API) signInWithPasskey(c *fiber.Ctx) error {
	in, b, err := a.readAnswer(c)
	if err != nil {
		return err
	}
	from := signin.Origin{DeviceToken: readDeviceToken(c), Address: rest.Address(c)}
	if err := fieldError(b.Problems()); err != nil {
		return err
	}
	r, err := a.use.SignIn.LoginByPasskey(c.UserContext(), in, from)
	if err != nil {
		return err
	}
	setDeviceToken(c, r.DeviceToken)
	return sendLogin(c, r)
}

func (a *API) renamePasskey(c *fiber.Ctx, caller auth.Session, id auth.PasskeyID) error {
	b, err := readBody(c)
	if err != nil {
		return err
	}
	name, err := auth.ParsePasskeyName(b.Text("name"))
	if err := fieldError(b.Problems(), err); err != nil {
		return err
	}
	p, err := a.use.Passkeys.Rename(c.UserContext(), caller, id, name)
	return reply(c, err, newPasskeyView(p))
}

func (a *API) removePasskey(c *fiber.Ctx, caller auth.Session, id auth.PasskeyID) error {
	_, err := a.use.Passkeys.Remove(c.UserContext(), caller, id)
	return replyEmpty(c, err)
}
