package account

import (
	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/tokenlist"
	"github.com/tollgate-dev/tollgate/core/auth"
)

const tokensPath = Path + "/tokens"

var tokensPage = site.NewPage(templates, "templates/tokens.html")

func (p *Pages) mountTokens(r fiber.Router) {
	r.Get(tokensPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showTokens(v, nil) }))
	p.site.Post(r, tokensPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Make this token", Do: p.addToken, Show: p.showTokens,
	})
	p.site.Post(r, tokensPath+"/:token/remove", 2, site.Act{
		Level: auth.Unverified, Title: "Remove this token", Do: p.removeToken,
	})
}

func (p *Pages) showTokens(v *site.Visit, problems site.Problems) error {
	who, err := v.Caller()
	if err == nil {
		_, err = who.RequireReader()
	}
	if err != nil {
		return err
	}
	list, err := tokenlist.Read(v, p.ports.Tokens, auth.Owner(v.Account.ID), tokensPath, problems)
	if err != nil {
		return err
	}
	return v.Render(tokensPage, site.Head{
		Title: "Tokens", Notice: notices[v.Text("done")], Problems: problems.Among(list.Add),
	}, list)
}

func (p *Pages) addToken(v *site.Visit) error {
	return tokenlist.Add(v.UserContext(), v, p.ports.Tokens, auth.Owner(v.Account.ID),
		site.Link{Text: "My tokens", Path: tokensPath})
}

func (p *Pages) removeToken(v *site.Visit) error {
	if err := tokenlist.Remove(v.UserContext(), v, p.ports.Tokens, auth.Owner(v.Account.ID)); err != nil {
		return err
	}
	return v.Redirect(tokensPath + "?done=token")
}
