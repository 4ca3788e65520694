// Package company is the model of company sign-in: the providers of identities that operators
// configure, what their tokens say, and which person that is. It does no I/O; package federating
// has the use cases.
package company

import (
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// Name identifies a provider. It has the form of the name of a view.
type Name string

// Provider is an OpenID Connect issuer at which people of a company sign in. Parse makes one.
type Provider struct {
	Name        Name
	DisplayName string
	Issuer      string
	ClientID    string
	Secret      auth.SealedSecret // of the client; empty for a client that has PKCE alone
	Scopes      []string
	Domains     []string // of the e-mail addresses that the provider speaks for
	Create      bool     // people of the domains who have no account get one
	Enforce     bool     // people of the domains have no password
	IDJAG       bool     // its identity assertions for applications are accepted (contract T-18)

	EmailClaim, GroupsClaim, ScopeClaim string
	// Audiences are those of access tokens that count as callers; empty if no access tokens do.
	Audiences []string

	RequiredGroups []string // a person must be in one of them; empty for no condition
	GroupGrants    []GroupGrant
	// ACR and AMR are the values of the claims that show a second factor.
	ACR, AMR []string

	Recheck    time.Duration  // between two checks of a session
	MaxSession time.Duration  // of a session that the provider does not confirm
	Networks   []netip.Prefix // where its endpoints may be besides public addresses

	ManagedBy string // the owner of the file that manages it; empty if it was made by hand
	CreatedAt time.Time
	Condition Condition
}

// Condition is what happened at the provider last. Zero values are what did not happen.
type Condition struct {
	SucceededAt time.Time
	Problem     string
	ProblemAt   time.Time
	Claims      string // the names of the claims of the last sign-in that was stored, with spaces between them
}

// The problems of a provider that does not work now.
const (
	ProblemAway = "the company's sign-in does not answer now; try again later"
	// ProblemClient is invalid_client or unauthorized_client of RFC 6749, section 5.2.
	ProblemClient = "the company's sign-in refuses this service: its client secret may be wrong or have expired"
)

// CodeClient is the code of the error with ProblemClient.
const CodeClient fault.Code = "invalid_client"

// IsAway reports whether the provider did not work when it was last needed.
func (c Condition) IsAway() bool {
	return (c.Problem == ProblemAway || c.Problem == ProblemClient) && c.ProblemAt.After(c.SucceededAt)
}

// Health is how a provider works.
type Health int

// The states of providers.
const (
	Unused   Health = iota // it was never needed
	Works                  // when it was last needed
	Troubled               // something was wrong with what it said last
	Away                   // it did not answer, or refused this service
)

// Health returns how the provider worked when it was last needed.
func (c Condition) Health() Health {
	switch {
	case c.IsAway():
		return Away
	case c.Problem != "" && !c.ProblemAt.Before(c.SucceededAt):
		return Troubled
	case c.SucceededAt.IsZero():
		return Unused
	}
	return Works
}

// The bounds of providers.
const (
	MaxProviders = 20
	maxDomains   = 50
	maxGroups    = 50
	maxGrants    = 500
	maxValues    = 20 // scopes, audiences, values of acr and amr, networks
	maxSecret    = 1024
)

var (
	scopeForm = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]{1,100}$`) // RFC 6749, section 3.3
	daysForm  = regexp.MustCompile(`^([0-9]{1,3})d$`)
)

// ParseName returns the name that s contains. It returns fault.Invalid for a text of another form.
func ParseName(s string) (Name, error) {
	return Name(s), fields.CheckName(s)
}

// Origin is the origin of the grants that the provider gives.
func (n Name) Origin() string { return "provider:" + string(n) }

// Group returns a group of the provider as operators name it.
func (n Name) Group(name string) string { return string(n) + "/" + name }

// Parse returns the provider that fields describe, as Fields returns them; those that are left out
// have their defaults. The secret of the client is not one of them. It returns fault.Invalid, with
// the name of the field at the beginning, if one is wrong.
func Parse(given audit.Details) (p Provider, err error) {
	r := reader{fields.Reader{Values: given}}
	name, err := ParseName(given.Text("name"))
	r.Note(err)
	p = Provider{
		Name: name, DisplayName: r.Text("displayName", string(name), 64), Issuer: given.Text("issuer"),
		ClientID: r.Text("clientId", "", fields.MaxText), Scopes: r.Texts("scopes", maxValues), Create: given.Flag("create"),
		Enforce: given.Flag("enforce"), IDJAG: given.Flag(fieldIDJAG), EmailClaim: r.Text("emailClaim", "email", fields.MaxText),
		GroupsClaim:    r.Text("groupsClaim", "groups", fields.MaxText),
		ScopeClaim:     r.Text("scopeClaim", "scope", fields.MaxText),
		Audiences:      r.Texts("audiences", maxValues),
		RequiredGroups: r.Texts("requiredGroups", maxGroups), GroupGrants: r.grants(),
		Recheck:    r.duration("recheck", time.Hour, 10*time.Second, 24*time.Hour),
		MaxSession: r.duration("maxSession", 12*time.Hour, time.Minute, 30*24*time.Hour), Networks: r.Networks("networks", maxValues),
	}
	r.Note(checkIssuer(p.Issuer))
	p.Scopes = r.scopes(p.Scopes)
	p.Domains = r.domains()
	r.Values = given.Inner("secondFactor")
	p.ACR, p.AMR = r.Texts("acr", maxValues), r.Texts("amr", maxValues)
	if p.Enforce && len(p.Domains) == 0 {
		r.Note(fields.Invalid("enforce", " needs domains"))
	}
	return p, r.Err
}

// reader reads the fields of a provider.
type reader struct{ fields.Reader }

func (r *reader) scopes(given []string) []string {
	if len(given) == 0 {
		return []string{"openid", "profile", "email"}
	}
	for i, s := range given {
		if !scopeForm.MatchString(s) {
			r.Note(fields.Invalid(fields.Item("scopes", i), " is not a scope"))
		}
	}
	if !slices.Contains(given, "openid") {
		r.Note(fields.Invalid("scopes", " must have openid"))
	}
	return given
}

func (r *reader) domains() (all []string) {
	for i, s := range r.Texts("domains", maxDomains) {
		email, err := auth.ParseEmail("a@" + s)
		domain := email.Domain()
		switch {
		case err != nil || strings.Contains(s, "@") || !strings.Contains(domain, "."):
			r.Note(fields.Invalid(fields.Item("domains", i), " must be the domain of e-mail addresses, for example example.com"))
		case slices.Contains(all, domain):
			r.Note(fields.Invalid(fields.Item("domains", i), " is there twice"))
		}
		all = append(all, domain)
	}
	return all
}

func (r *reader) duration(name string, otherwise, least, most time.Duration) time.Duration {
	s := r.Values.Text(name)
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if days := daysForm.FindStringSubmatch(s); days != nil {
		var n int
		n, err = strconv.Atoi(days[1])
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < least || d > most {
		r.Note(fields.Invalid(name, " must be a duration from %s to %s, for example 5m", FormatDuration(least),
			FormatDuration(most)))
	}
	return d
}

// FormatDuration returns a duration without parts that are zero: 5m and not 5m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

// checkIssuer returns an error if a text is not the URL of an issuer: https, or http on this
// machine, without user, query and fragment (OpenID Connect Discovery 1.0, section 3).
func checkIssuer(text string) error {
	u, err := url.Parse(text)
	switch {
	case !fields.IsText(text, 2*fields.MaxText) || err != nil || u.Hostname() == "":
		return fields.Invalid("issuer", " must be a URL with a host, for example https://login.example.com")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return fields.Invalid("issuer", " must begin with https://; http:// is possible on this machine only")
	case u.User != nil || strings.ContainsAny(text, "?#"):
		return fields.Invalid("issuer", " must not have a user, a query or a fragment")
	}
	return nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// CheckSecret returns fault.Invalid for a text that is no secret of a client.
func CheckSecret(s string) error {
	if !fields.IsText(s, maxSecret) {
		return fields.Invalid("clientSecret", " must have 1 to %d characters, without control characters", maxSecret)
	}
	return nil
}

// Fields returns the provider as Parse reads it, without empty fields.
func (p *Provider) Fields() audit.Details {
	all := audit.Details{
		"name": audit.Text(p.Name), "displayName": audit.Text(p.DisplayName), "issuer": audit.Text(p.Issuer),
		"clientId": audit.Text(p.ClientID), "scopes": audit.Texts(p.Scopes), "emailClaim": audit.Text(p.EmailClaim),
		"groupsClaim": audit.Text(p.GroupsClaim), "scopeClaim": audit.Text(p.ScopeClaim), "recheck": audit.Text(FormatDuration(p.Recheck)),
		"maxSession": audit.Text(FormatDuration(p.MaxSession)),
	}
	if p.Create {
		all["create"] = audit.Flag(true)
	}
	if p.Enforce {
		all["enforce"] = audit.Flag(true)
	}
	if p.IDJAG {
		all[fieldIDJAG] = audit.Flag(true)
	}
	fields.SetTexts(all, "domains", p.Domains)
	fields.SetTexts(all, "requiredGroups", p.RequiredGroups)
	fields.SetTexts(all, "audiences", p.Audiences)
	fields.SetTexts(all, "networks", fields.NetworkTexts(p.Networks))
	var grants audit.List
	for _, g := range p.GroupGrants {
		grants = append(grants, audit.Details{
			"group": audit.Text(g.Group), "action": audit.Text(g.Action), "resource": audit.Text(g.Resource),
		})
	}
	if grants != nil {
		all["groupGrants"] = grants
	}
	second := audit.Details{}
	fields.SetTexts(second, "acr", p.ACR)
	fields.SetTexts(second, "amr", p.AMR)
	if len(second) > 0 {
		all["secondFactor"] = second
	}
	return all
}

// Object returns the provider for the audit log. Of the secret it has a hash.
func (p *Provider) Object(secretHash string) audit.Object {
	all := p.Fields()
	all.Set(audit.FieldSecret, secretHash)
	all.Set("managedBy", p.ManagedBy)
	return audit.Object{Kind: "provider", Key: string(p.Name), Fields: all}
}

// SpeaksFor reports whether the e-mail address is of a domain of the provider.
func (p *Provider) SpeaksFor(e auth.Email) bool { return slices.Contains(p.Domains, e.Domain()) }

// OfflineAccess is the scope by which a refresh token is asked for (OpenID Connect Core 1.0, section 11).
const OfflineAccess = "offline_access"

// AsksForRefresh reports whether a refresh token is asked for. One that a provider gives all the same may
// end with the person's session there, so that its end does not mean that the person has left.
func (p *Provider) AsksForRefresh() bool { return slices.Contains(p.Scopes, OfflineAccess) }

// Named returns the provider with a name; nil without one.
func Named(all []Provider, name string) *Provider {
	for i := range all {
		if string(all[i].Name) == name {
			return &all[i]
		}
	}
	return nil
}

// Enforcing returns the provider at which people with the e-mail address must sign in; nil without one.
func Enforcing(all []Provider, e auth.Email) *Provider {
	for i := range all {
		if p := &all[i]; p.Enforce && p.SpeaksFor(e) {
			return p
		}
	}
	return nil
}

// Admits reports whether a person in the groups is in one of those that the provider requires.
func (p *Provider) Admits(groups []string) bool {
	return len(p.RequiredGroups) == 0 || slices.ContainsFunc(p.RequiredGroups, func(g string) bool {
		return slices.Contains(groups, g)
	})
}

// ShowsSecondFactor reports whether claims can show a second factor.
func (p *Provider) ShowsSecondFactor() bool { return len(p.ACR)+len(p.AMR) > 0 }

// NeedsGroups reports whether the groups of a person decide whether and with which grants they sign in.
func (p *Provider) NeedsGroups() bool { return len(p.RequiredGroups)+len(p.GroupGrants) > 0 }

// Ways are what a person has to sign in with.
type Ways struct {
	Account    auth.Account
	Identities []Identity
	Passkeys   []auth.Passkey
}

// Any reports whether one of the ways leads in: a password that is accepted, an identity whose provider
// is among all, or a passkey that is not suspended.
func (w Ways) Any(all []Provider, passwordsOff bool) bool {
	return w.Account.PasswordHash != "" && !passwordsOff && Enforcing(all, w.Account.Email) == nil ||
		slices.ContainsFunc(w.Identities, func(i Identity) bool { return i.UsableAt(all) != nil }) ||
		len(auth.CredentialsOf(w.Passkeys)) > 0
}

// UsableAt returns the provider at which an identity can be used; nil without one.
func (i *Identity) UsableAt(all []Provider) *Provider {
	for k := range all {
		if all[k].Issuer == i.Issuer {
			return &all[k]
		}
	}
	return nil
}
