package account

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/passkeyjson"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/passkeys"
)

const passkeysPath = Path + "/passkeys"

var passkeysPage = site.NewPage(templates, "templates/passkeys.html")

func (p *Pages) mountPasskeys(r fiber.Router) {
	r.Get(passkeysPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showPasskeys(v, nil) }))
	r.Post(passkeysPath+"/begin", p.site.Open(p.beginPasskey))
	p.site.Post(r, passkeysPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Add a passkey", Do: p.addPasskey, Show: p.showPasskeys,
	})
	p.site.Post(r, passkeysPath+"/:id/name", 2, site.Act{
		Level: auth.FullTrust, Title: "Rename this passkey", Do: p.renamePasskey,
	})
	p.site.Post(r, passkeysPath+"/:id/remove", 2, site.Act{
		Level: auth.FullTrust, Title: "Remove this passkey", Do: p.removePasskey,
	})
}

// passkeysView is the page with the passkeys.
type passkeysView struct {
	Passkeys  []auth.Passkey
	Name      string // of the next one, as it was typed
	Permitted bool   // browsers permit passkeys at this address
}

func (p *Pages) showPasskeys(v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Passkeys.List(v.UserContext(), v.Session.UserID)
	if err != nil {
		return err
	}
	_, refused := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	return v.Render(passkeysPage, site.Head{
		Title: "Passkeys", Notice: notices[v.Text("done")], Problems: problems,
	}, passkeysView{all, v.Form.Get("name"), refused == nil})
}

// beginPasskey answers with the options of a registration.
func (p *Pages) beginPasskey(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil {
		return err
	}
	s, err := p.ports.Passkeys.BeginRegistration(v.UserContext(), v.Session, party)
	if err != nil {
		return err
	}
	return passkeyjson.Send(v.Ctx, string(s.ID), passkeyjson.NewCreation(s.Options))
}

// addPasskey registers a passkey. The form comes without one if no options could be had for it: then
// the error says why.
func (p *Pages) addPasskey(v *site.Visit) error {
	party, err := passkeyjson.Party(v.Ctx, p.ports.Passkeys)
	if err != nil {
		return err
	}
	if v.Form.Get("credential") == "" {
		if _, err := p.ports.Passkeys.BeginRegistration(v.UserContext(), v.Session, party); err != nil {
			return err
		}
	}
	_, err = p.ports.Passkeys.Register(v.UserContext(), v.Session, passkeys.Answer{
		Party: party, Ceremony: passkeys.CeremonyID(v.Form.Get("ceremony")), Response: []byte(v.Form.Get("credential")),
	}, v.Form.Get("name"))
	if err != nil {
		return err
	}
	return v.Redirect(passkeysPath + "?done=passkey")
}

func (p *Pages) renamePasskey(v *site.Visit) error {
	id, err := pathID[auth.PasskeyID](v)
	if err != nil {
		return err
	}
	if _, err := p.ports.Passkeys.Rename(v.UserContext(), v.Session, id, v.Form.Get("name")); err != nil {
		return err
	}
	return v.Redirect(passkeysPath + "?done=passkey-name")
}

func (p *Pages) removePasskey(v *site.Visit) error {
	id, err := pathID[auth.PasskeyID](v)
	if err != nil {
		return err
	}
	removed, err := p.ports.Passkeys.Remove(v.UserContext(), v.Session, id)
	if err != nil {
		return err
	}
	return p.offerTokens(v, passkeysPath, "passkey-removed", removed.CreatedAt)
}
