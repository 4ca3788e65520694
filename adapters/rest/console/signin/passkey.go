package signin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/passkeyjson"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
	"github.com/tollgate-dev/tollgate/core/auth/stepup"
)

const (
	passkeyPath       = site.SignInPath + "/passkey"
	stepUpPasskeyPath = site.StepUpPath + "/passkey"

	credentialField = "step-up.credential"
)

func (p *Pages) mountPasskeys(r fiber.Router) {
	r.Post(passkeyPath+"/begin", p.site.Open(p.beginPasskey))
	p.site.PostTo(r, passkeyPath, 1, p.site.Open(p.checkPasskey))
	r.Post(stepUpPasskeyPath, p.site.Open(p.signedIn(p.beginPasskeyStepUp)))
}

// permitsPasskeys reports whether browsers permit passkeys at the address of a visit.
func (p *Pages) permitsPasskeys(v *site.Visit) bool {
	_, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	return err == nil
}

// beginPasskey answers with the options of a sign-in.
func (p *Pages) beginPasskey(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil {
		return err
	}
	s, err := p.ports.Passkeys.BeginSignIn(party, v.DeviceFields())
	if err != nil {
		return err
	}
	return passkeyjson.Send(v.Ctx, string(s.ID), passkeyjson.NewRequest(s.Options))
}

// checkPasskey signs a person in with a passkey.
func (p *Pages) checkPasskey(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil || !v.CanSignIn() {
		return p.renderPassword(v, nil)
	}
	from, err := readOrigin(v)
	if err != nil {
		return p.refuse(v, err, p.renderPassword)
	}
	r, err := p.ports.SignIn.LoginByPasskey(v.UserContext(), passkeys.Answer{
		Party: party, Ceremony: passkeys.CeremonyID(v.Form.Get("ceremony")), Response: []byte(v.Form.Get("credential")),
	}, from)
	if err != nil {
		return p.refuse(v, err, p.renderPassword)
	}
	return p.begin(v, r)
}

// beginPasskeyStepUp begins a step-up with a passkey, and answers with its options.
func (p *Pages) beginPasskeyStepUp(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil {
		return err
	}
	pending, err := p.ports.StepUp.Initiate(v.UserContext(), v.Session, auth.PasskeyMethod)
	if err != nil {
		return err
	}
	o, err := p.ports.Passkeys.StepUpOptions(v.UserContext(), party, v.Session.UserID, pending.ID)
	if err != nil {
		return err
	}
	return passkeyjson.Send(v.Ctx, string(pending.ID), passkeyjson.NewRequest(o))
}

// readAnswer returns what a person has sent to pass a challenge: a code, or what a passkey signed.
func (p *Pages) readAnswer(v *site.Visit) (in stepup.Answer, err error) {
	if in.ID, err = readChallenge(v); err != nil {
		return in, err
	}
	in.TrustDevice = v.Form.Has(trustField)
	if !v.Form.Has(credentialField) {
		in.Code = readCode(v)
		return in, nil
	}
	in.Session, in.Response = v.Session.ID, []byte(v.Form.Get(credentialField))
	in.Party, err = passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	return in, err
}
