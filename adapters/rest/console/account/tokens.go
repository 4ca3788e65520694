package account

import (
	"net/url"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/tokenlist"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/tokens"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// TokensPath is the path of the page with the tokens of a person.
const TokensPath = Path + "/tokens"

const (
	removeSincePath = TokensPath + "/remove"

	sinceField = "since"
)

var tokensPage = site.NewPage(templates, "templates/tokens.html")

func (p *Pages) mountTokens(r fiber.Router) {
	r.Get(TokensPath, p.site.Require(auth.Unverified, func(v *site.Visit) error { return p.showTokens(v, nil) }))
	p.site.Post(r, TokensPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Make this token", Do: p.addToken, Show: p.showTokens,
	})
	p.site.Post(r, removeSincePath, 1, site.Act{
		Level: auth.Unverified, Title: "Remove these tokens", Do: p.removeTokens,
	})
	p.site.Post(r, TokensPath+"/:token/remove", 2, site.Act{
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
	list, err := tokenlist.Read(v, p.ports.Tokens, auth.Owner(v.Account.ID), TokensPath, problems)
	if err != nil {
		return err
	}
	view := tokensView{List: list, Since: v.Text(sinceField)}
	if since, err := time.Parse(time.RFC3339Nano, view.Since); err == nil {
		view.Offered = tokens.Since(list.Tokens, since)
	}
	return v.Render(tokensPage, site.Head{
		Title: "Tokens", Notice: notices[v.Text("done")], Problems: problems.Among(list.Add),
	}, view)
}

// tokensView is the page with the tokens.
type tokensView struct {
	tokenlist.List

	Offered []auth.APIToken // to remove them: they were made since a way to sign in was there that is gone now
	Since   string
}

// offerTokens leads to a page after an act that ends sessions and leaves tokens as they are: to that of the
// tokens, if some were made since a time.
func (p *Pages) offerTokens(v *site.Visit, page, done string, since time.Time) error {
	owner := auth.Owner(v.Account.ID)
	all, err := p.ports.Tokens.List(v.UserContext(), owner, "", 2*owner.MaxTokens())
	if err != nil {
		return err
	}
	query := url.Values{"done": {done}}
	if len(tokens.Since(all, since)) > 0 {
		page = TokensPath
		query.Set(sinceField, since.UTC().Format(time.RFC3339Nano))
	}
	return v.Redirect(page + "?" + query.Encode())
}

// removeTokens removes the tokens that the page has offered.
func (p *Pages) removeTokens(v *site.Visit) error {
	since, err := time.Parse(time.RFC3339Nano, v.Form.Get(sinceField))
	if err != nil {
		return fault.New(fault.Invalid, "since must be a time")
	}
	who, err := v.Caller()
	if err == nil {
		_, err = who.RequireReader()
	}
	if err == nil {
		err = p.ports.Tokens.RemoveSince(auditing.By(v.UserContext(), who.Actor()), auth.Owner(v.Account.ID), since)
	}
	return v.Done(err, TokensPath, "tokens")
}

func (p *Pages) addToken(v *site.Visit) error {
	return tokenlist.Add(v.UserContext(), v, tokenlist.Makers{Tokens: p.ports.Tokens, Credentials: p.ports.Credentials}, auth.Owner(v.Account.ID),
		site.Link{Text: "My tokens", Path: TokensPath})
}

func (p *Pages) removeToken(v *site.Visit) error {
	return v.Done(tokenlist.Remove(v.UserContext(), v, p.ports.Tokens, auth.Owner(v.Account.ID)), TokensPath, "token")
}

const usagePath = Path + "/access"

var usagePage = site.NewPage(templates, "templates/usage.html")

// usagesPerPage is how many servers a page lists at most.
const usagesPerPage = 50

// usageView is the page with the servers that the person may use.
type usageView struct {
	deciding.UsagePage

	Level site.Level
	Later bool   // it is not the first page
	Next  string // the address of the next page; empty on the last one
}

func (p *Pages) mountUsage(r fiber.Router) {
	r.Get(usagePath, p.site.Require(auth.Unverified, p.showUsage))
}

func (p *Pages) showUsage(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	after := v.Text("after")
	page, err := p.ports.Access.Usage(v.UserContext(), who, after, usagesPerPage)
	if err != nil {
		return err
	}
	view := usageView{UsagePage: page, Level: site.LevelOf(v.Session.TrustLevel), Later: after != ""}
	if page.Next != "" {
		view.Next = usagePath + "?" + url.Values{"after": {page.Next}}.Encode()
	}
	return v.Render(usagePage, site.Head{Title: "What may I use"}, view)
}
