package signin

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest"
	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/auth/federating"
	"github.com/tollgate-dev/tollgate/core/fault"
)

var (
	requiredPage = site.NewPage(templates, "templates/required.html")
	leavingPage  = site.NewPage(templates, "templates/leaving.html")
)

const (
	companyPath  = site.SignInPath + "/company/:name"
	callbackPath = companyPath + "/callback"
)

func (p *Pages) mountCompany(r fiber.Router) {
	r.Get(companyPath, p.site.Open(p.beginCompany))
	r.Get(callbackPath, p.site.Open(p.completeCompany))
	p.mountCompanyLink(r)
	p.mountCompanyStepUp(r)
}

// beginCompany sends a browser to a provider for a sign-in. A page of another site does not begin one
// (ASVS 7.6.2): who follows its link gets the sign-in page, and begins it there.
func (p *Pages) beginCompany(v *site.Visit) error {
	back := v.Local("return")
	if !v.CanSignIn() || v.FromElsewhere() {
		return v.Redirect(site.SignInAddress(cmp.Or(back, site.Home)))
	}
	name, err := v.Param("name")
	if err != nil {
		return err
	}
	return p.leave(v, federating.Start{Provider: name, Return: back})
}

// leave sends a browser to the page of a provider.
func (p *Pages) leave(v *site.Visit, in federating.Start) error {
	address, err := p.beginAtCompany(v, in)
	if err != nil {
		return err
	}
	return v.Redirect(address)
}

// leavingView is the page whose link leads to a provider. A form does not lead there itself: browsers
// hold each address to which its answer is redirected against the policy of the page.
type leavingView struct{ Text, Address, Back string }

// offerLeave shows the page that leads to the page of a provider.
func (p *Pages) offerLeave(v *site.Visit, in federating.Start, text, back string) error {
	address, err := p.beginAtCompany(v, in)
	if err != nil {
		return err
	}
	return v.Render(leavingPage, site.Head{Title: "Go on at your company"}, leavingView{text, address, back})
}

// beginAtCompany returns the address of the page of a provider for a sign-in that begins in the browser.
func (p *Pages) beginAtCompany(v *site.Visit, in federating.Start) (address string, err error) {
	in.Cookie, in.Base = federating.Cookie(v.CompanyCookie()), v.LocalBase()
	address, cookie, err := p.ports.Companies.Begin(v.UserContext(), in)
	if err == nil {
		v.SetCompanyCookie(string(cookie), federating.BegunTTL)
	}
	return address, err
}

// completeCompany takes the answer of a provider that the browser brings.
func (p *Pages) completeCompany(v *site.Visit) error {
	if !v.CanSignIn() {
		return p.renderPassword(v, nil)
	}
	v.KeepSecret()
	in, err := readCallback(v)
	if err != nil {
		return err
	}
	done, err := p.ports.Companies.Complete(v.UserContext(), in)
	v.SetCompanyCookie(string(done.Cookie), federating.BegunTTL)
	if err != nil {
		return err
	}
	return p.goOn(v, &done)
}

func readCallback(v *site.Visit) (in federating.Callback, err error) {
	in = federating.Callback{
		State: v.Text("state"), Code: v.Text("code"), Error: v.Text("error"), Issuer: v.Text("iss"),
		Cookie: federating.Cookie(v.CompanyCookie()), Base: v.LocalBase(),
	}
	if v.SignedIn() {
		in.Session = &v.Session
	}
	if in.Provider, err = v.Param("name"); err == nil {
		in.From, err = readOrigin(v)
	}
	return in, err
}

// goOn leads to what follows a sign-in at a provider.
func (p *Pages) goOn(v *site.Visit, done *federating.Completed) error {
	if done.Raised != nil {
		return p.finishStepUp(v, done)
	}
	if done.Return == "" {
		done.Return = site.Home
	}
	v.NotifyNext(groupsNotices[done.Problem])
	switch {
	case done.Asks != "":
		return v.Redirect(linkPath + "?" + stateField + "=" + url.QueryEscape(done.Asks))
	case done.MFARequired:
		return v.Redirect(factorPath + "?user=" + url.QueryEscape(string(done.UserID)) + "&next=" + url.QueryEscape(done.Return))
	}
	return p.beginAt(v, done.Result, done.Return)
}

// groupsNotices are the names of what the next page says about groups that cannot be used.
var groupsNotices = map[company.GroupsProblem]site.Later{
	company.GroupsOverage: site.GroupsOverage, company.GroupsTooMany: site.GroupsTooMany, company.GroupsObject: site.GroupsWrong,
	company.GroupsNumber: site.GroupsWrong, company.GroupsNoTexts: site.GroupsWrong,
}

// requiredView is the page for people who sign in at a company only.
type requiredView struct {
	Email     auth.Email
	Next      string
	Companies []companyLink
}

// refuseLogin shows why a sign-in with a password was refused. People of a domain that signs in at a
// company only get the links that lead there, also if they have given no password.
func (p *Pages) refuseLogin(v *site.Visit, email auth.Email, err error) error {
	f, ok := fault.As(err)
	required := ok && f.Code == auth.CodeCompanyOnly
	if email != "" && v.Form.Get("password") == "" {
		_, password, err := p.ports.Companies.Offered(v.UserContext(), email)
		if err != nil {
			return err
		}
		if !password {
			return p.renderRequired(v, email, nil)
		}
	}
	return p.refuse(v, err, func(v *site.Visit, problems site.Problems) error {
		if required {
			return p.renderRequired(v, email, problems)
		}
		for i := range problems { // about the account, if not about a field
			problems[i].Field = cmp.Or(problems[i].Field, "email")
		}
		return p.renderPassword(v, problems)
	})
}

func (p *Pages) renderRequired(v *site.Visit, email auth.Email, problems site.Problems) error {
	links, err := p.companyLinks(v, email)
	if err == nil && len(links) == 0 { // no password is accepted, whatever the domain
		links, err = p.companyLinks(v, "")
	}
	if err != nil {
		return err
	}
	return v.Render(requiredPage, site.Head{Title: "Sign in at your company", Problems: problems},
		requiredView{email, v.Next(), links})
}

// companyLink is a link that leads to a provider.
type companyLink struct{ Text, Address string }

// companyLinks returns links to the providers of an e-mail address, or to all without one.
func (p *Pages) companyLinks(v *site.Visit, email auth.Email) ([]companyLink, error) {
	offers, _, err := p.ports.Companies.Offered(v.UserContext(), email)
	links := make([]companyLink, len(offers))
	for i, o := range offers {
		links[i] = companyLink{o.DisplayName, addressOf(o.Name, v.Next())}
	}
	return links, err
}

func addressOf(name company.Name, next string) string {
	return strings.Replace(companyPath, ":name", string(name), 1) + "?return=" + url.QueryEscape(next)
}

const (
	accountPath   = site.Root + "account"
	linkPath      = accountPath + "/companies/link"
	beginLinkPath = accountPath + "/companies/:name/link"

	stateField = "state" // names the question
)

var linkPage = site.NewPage(templates, "templates/link.html")

func (p *Pages) mountCompanyLink(r fiber.Router) {
	r.Get(linkPath, p.site.Require(auth.FullTrust, func(v *site.Visit) error { return p.askLink(v, nil) }))
	p.site.Post(r, linkPath, 0, site.Act{
		Level: auth.FullTrust, Title: "Link this company sign-in", Do: p.link, Show: p.askLink,
	})
	p.site.Post(r, beginLinkPath, 3, site.Act{
		Level: auth.FullTrust, Title: "Link this company sign-in", Do: p.beginLink,
	})
}

// beginLink begins a sign-in whose identity is linked to the person.
func (p *Pages) beginLink(v *site.Visit) error {
	name, err := v.Param("name")
	if err != nil {
		return err
	}
	return p.offerLeave(v, federating.Start{Provider: name, Link: &v.Session},
		"Sign in there as the person whom you want to link. You are asked again before it is linked.", accountPath)
}

// linkView is the page that asks whether an identity is to be linked.
type linkView struct {
	federating.Question

	State, Person string
}

// askLink asks whether the identity with which the person has come back is to be linked.
func (p *Pages) askLink(v *site.Visit, problems site.Problems) error {
	state := v.Form.Get(stateField)
	if state == "" {
		state = v.Text(stateField)
	}
	q, err := p.ports.Companies.Question(v.UserContext(), v.Session.ID, federating.Cookie(v.CompanyCookie()), state)
	if err != nil {
		return err
	}
	return v.Render(linkPage, site.Head{Title: "Link a company sign-in", Problems: problems},
		linkView{q, state, string(v.Account.Email)})
}

// link links the identity of a question, as the person has answered.
func (p *Pages) link(v *site.Visit) error {
	cookie, err := p.ports.Companies.Link(v.UserContext(), v.Session.ID, rest.Address(v.Ctx),
		federating.Cookie(v.CompanyCookie()), v.Form.Get(stateField))
	if err != nil {
		return err
	}
	v.SetCompanyCookie(string(cookie), federating.BegunTTL)
	return v.Redirect(accountPath + "?done=linked")
}
