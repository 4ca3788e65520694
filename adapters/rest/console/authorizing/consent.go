package authorizing

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/authorizing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// The fields of the form of a consent.
const (
	shownField    = "shown"
	decisionField = "decision"
)

// consentView is the page of the question whether an application may act for the person.
type consentView struct {
	*authorizing.Consent

	Person auth.Email
	Shown  string // the fingerprint of the question
	Scopes []scopeView
}

// scopeView is a scope in words; Means is empty for one of another server.
type scopeView struct{ Name, Means string }

// meanings are the scopes of this registry in words.
var meanings = map[string]string{
	oauth.ScopeRead:  "Read the registry: which servers there are, and how they are used, as far as you may see them.",
	oauth.ScopeWrite: "Change the registry: publish servers, replace and delete their versions, as far as you may do so.",
}

func renderConsent(v *site.Visit, next *authorizing.Next, problems site.Problems) error {
	v.OfferBack()
	view := consentView{Consent: next.Consent, Person: v.Account.Email, Shown: fingerprint(v.Session.UserID, next.Consent)}
	for _, name := range next.Consent.Scopes {
		one := scopeView{Name: name}
		if next.Consent.Registry {
			one.Means = meanings[name]
		}
		view.Scopes = append(view.Scopes, one)
	}
	return v.Render(consentPage, site.Head{Title: "Let an application act for you", Problems: problems}, view)
}

// fingerprint returns what identifies a question and the person whom it is for, so that no answer counts for
// another one.
func fingerprint(person auth.UserID, c *authorizing.Consent) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%#v", []any{person, *c})) // as in Go, so that texts are quoted
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// returnView is the page whose link leads back to the application.
type returnView struct {
	Client  string
	Address template.URL // checked by checkAddress
}

// renderReturn shows the page that leads back to an application. A form does not lead there itself: browsers
// hold each address to which its answer is redirected against the policy of the page.
func renderReturn(v *site.Visit, client, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	v.Set("Refresh", "0; url="+address)
	return v.Render(returnPage, site.Head{Title: "Back to the application"},
		returnView{client, template.URL(address)}) //nolint:gosec // checkAddress admits no address that is a program
}

// leave redirects the browser to an application.
func leave(v *site.Visit, address string) error {
	if err := checkAddress(address); err != nil {
		return err
	}
	return v.Ctx.Redirect(address, http.StatusFound)
}

// programs are the schemes of addresses that browsers run, show or open as their own.
var programs = []string{"javascript", "vbscript", "data", "blob", "file", "filesystem", "about", "view-source", "ws", "wss"}

// checkAddress returns an error for an address that is no way back to an application. Redirect URIs are
// checked where they are read; this is for what that may have missed.
func checkAddress(address string) error {
	u, err := url.Parse(address)
	unseen := strings.ContainsFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"<>\^`+"`{|}", r) })
	if err != nil || u.Scheme == "" || unseen || slices.Contains(programs, strings.ToLower(u.Scheme)) {
		return fault.Newf(fault.Internal, "an address that leads back to an application must not be %.200q", address)
	}
	return nil
}
