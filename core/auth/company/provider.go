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
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
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

	EmailClaim, GroupsClaim string
	RequiredGroups          []string // a person must be in one of them; empty for no condition
	GroupGrants             []GroupGrant
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
}

// ProblemAway is the problem of a provider that does not work now.
const ProblemAway = "the company's sign-in does not answer now; try again later"

// IsAway reports whether the provider did not work when it was last needed.
func (c Condition) IsAway() bool { return c.Problem == ProblemAway && c.ProblemAt.After(c.SucceededAt) }

// Health is how a provider works.
type Health int

// The states of providers.
const (
	Unused   Health = iota // it was never needed
	Works                  // when it was last needed
	Troubled               // something was wrong with what it said last
	Away                   // it did not answer
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

// GroupGrant is a grant that the members of a group get.
type GroupGrant struct{ Group, Action, Resource string }

// String returns the grant as ReadGroupGrants reads it.
func (g GroupGrant) String() string { return g.Group + "=" + g.Action + ":" + g.Resource }

// ReadGroupGrants returns the field groupGrants for Parse of texts like
// developers=publish:com.example/*, or fault.Invalid.
func ReadGroupGrants(texts []string) (grants audit.List, err error) {
	for i, text := range texts {
		n := strings.LastIndex(text, "=")
		action, resource, ok := strings.Cut(text[n+1:], ":")
		if n < 0 || !ok {
			return nil, invalid(item("groupGrants", i), " must be GROUP=ACTION:RESOURCE, for example developers=publish:com.example/*")
		}
		grants = append(grants, audit.Details{
			"group": audit.Text(text[:n]), "action": audit.Text(action), "resource": audit.Text(resource),
		})
	}
	return grants, nil
}

// The bounds of providers.
const (
	MaxProviders = 20
	maxDomains   = 50
	maxGroups    = 50
	maxGrants    = 500
	maxValues    = 20 // scopes, values of acr and amr, networks
	maxText      = 255
	maxSecret    = 1024
)

var (
	nameForm  = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	scopeForm = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]{1,100}$`) // RFC 6749, section 3.3
	daysForm  = regexp.MustCompile(`^([0-9]{1,3})d$`)
)

// ParseName returns the name that s contains. It returns fault.Invalid for a text of another form.
func ParseName(s string) (Name, error) {
	if !nameForm.MatchString(s) {
		return "", invalid("name", " must have 1 to 40 lower-case letters, digits and hyphens, not %.60q", s)
	}
	return Name(s), nil
}

// item returns the name of an item of a field.
func item(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// invalid returns the error of a field. The message is the name of the field, and a format.
func invalid(field, format string, args ...any) error {
	return fault.In(field, fault.Newf(fault.Invalid, field+format, args...))
}

// Origin is the origin of the grants that the provider gives.
func (n Name) Origin() string { return "provider:" + string(n) }

// Parse returns the provider that fields describe, as Fields returns them; those that are left out
// have their defaults. The secret of the client is not one of them. It returns fault.Invalid, with
// the name of the field at the beginning, if one is wrong.
func Parse(fields audit.Details) (p Provider, err error) {
	r := reader{fields: fields}
	name, err := ParseName(fields.Text("name"))
	r.note(err)
	p = Provider{
		Name: name, DisplayName: r.text("displayName", string(name), 64), Issuer: fields.Text("issuer"),
		ClientID: r.text("clientId", "", maxText), Scopes: r.texts("scopes", maxValues), Create: fields.Flag("create"),
		Enforce: fields.Flag("enforce"), EmailClaim: r.text("emailClaim", "email", maxText),
		GroupsClaim:    r.text("groupsClaim", "groups", maxText),
		RequiredGroups: r.texts("requiredGroups", maxGroups), GroupGrants: r.grants(),
		Recheck:    r.duration("recheck", time.Hour, 10*time.Second, 24*time.Hour),
		MaxSession: r.duration("maxSession", 12*time.Hour, time.Minute, 30*24*time.Hour), Networks: r.networks(),
	}
	r.note(checkIssuer(p.Issuer))
	p.Scopes = r.scopes(p.Scopes)
	p.Domains = r.domains()
	r.fields = fields.Inner("secondFactor")
	p.ACR, p.AMR = r.texts("acr", maxValues), r.texts("amr", maxValues)
	if p.Enforce && len(p.Domains) == 0 {
		r.note(invalid("enforce", " needs domains"))
	}
	return p, r.err
}

// reader reads fields and keeps the first error.
type reader struct {
	fields audit.Details
	err    error
}

func (r *reader) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// isText reports whether s is text without control characters, of 1 to most characters.
func isText(s string, most int) bool {
	return s != "" && utf8.ValidString(s) && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, unicode.IsControl)
}

func (r *reader) text(name, otherwise string, most int) string {
	s := strings.TrimSpace(r.fields.Text(name))
	if s == "" {
		s = otherwise
	}
	if !isText(s, most) {
		r.note(invalid(name, " must have 1 to %d characters, without control characters", most))
	}
	return s
}

func (r *reader) texts(name string, most int) (all []string) {
	list := r.fields.List(name)
	if len(list) > most {
		r.note(invalid(name, " must have at most %d entries", most))
		return nil
	}
	for i, v := range list {
		s, _ := v.(jsonvalue.Text)
		if !isText(string(s), maxText) {
			r.note(invalid(item(name, i), " must have 1 to %d characters, without control characters", maxText))
		}
		if slices.Contains(all, string(s)) {
			r.note(invalid(item(name, i), " is there twice"))
		}
		all = append(all, string(s))
	}
	return all
}

func (r *reader) scopes(given []string) []string {
	if len(given) == 0 {
		return []string{"openid", "profile", "email"}
	}
	for i, s := range given {
		if !scopeForm.MatchString(s) {
			r.note(invalid(item("scopes", i), " is not a scope"))
		}
	}
	if !slices.Contains(given, "openid") {
		r.note(invalid("scopes", " must have openid"))
	}
	return given
}

func (r *reader) domains() (all []string) {
	for i, s := range r.texts("domains", maxDomains) {
		email, err := auth.ParseEmail("a@" + s)
		domain := email.Domain()
		switch {
		case err != nil || strings.Contains(s, "@") || !strings.Contains(domain, "."):
			r.note(invalid(item("domains", i), " must be the domain of e-mail addresses, for example example.com"))
		case slices.Contains(all, domain):
			r.note(invalid(item("domains", i), " is there twice"))
		}
		all = append(all, domain)
	}
	return all
}

func (r *reader) grants() (all []GroupGrant) {
	if len(r.fields.List("groupGrants")) > maxGrants {
		r.note(invalid("groupGrants", " must have at most %d entries", maxGrants))
		return nil
	}
	for i, g := range r.fields.Objects("groupGrants") {
		one := GroupGrant{g.Text("group"), g.Text("action"), g.Text("resource")}
		switch {
		case !isText(one.Group, maxText):
			r.note(invalid(item("groupGrants", i)+".group", " must have 1 to %d characters", maxText))
		case one.Action == "" || one.Resource == "":
			r.note(invalid(item("groupGrants", i), " must have an action and a resource"))
		case slices.Contains(all, one):
			r.note(invalid(item("groupGrants", i), " is there twice"))
		}
		all = append(all, one)
	}
	return all
}

func (r *reader) duration(name string, otherwise, least, most time.Duration) time.Duration {
	s := r.fields.Text(name)
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
		r.note(invalid(name, " must be a duration from %s to %s, for example 5m", FormatDuration(least),
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

func (r *reader) networks() (all []netip.Prefix) {
	for i, s := range r.texts("networks", maxValues) {
		n, err := netip.ParsePrefix(s)
		if err != nil {
			r.note(invalid(item("networks", i), " must be a network, for example 10.0.0.0/8"))
		}
		all = append(all, n.Masked())
	}
	return all
}

// checkIssuer returns an error if a text is not the URL of an issuer: https, or http on this
// machine, without user, query and fragment (OpenID Connect Discovery 1.0, section 3).
func checkIssuer(text string) error {
	u, err := url.Parse(text)
	switch {
	case !isText(text, 2*maxText) || err != nil || u.Hostname() == "":
		return invalid("issuer", " must be a URL with a host, for example https://login.example.com")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return invalid("issuer", " must begin with https://; http:// is possible on this machine only")
	case u.User != nil || strings.ContainsAny(text, "?#"):
		return invalid("issuer", " must not have a user, a query or a fragment")
	}
	return nil
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// CheckSecret returns fault.Invalid for a text that is no secret of a client.
func CheckSecret(s string) error {
	if !isText(s, maxSecret) {
		return invalid("clientSecret", " must have 1 to %d characters, without control characters", maxSecret)
	}
	return nil
}

// Fields returns the provider as Parse reads it, without empty fields.
func (p *Provider) Fields() audit.Details {
	fields := audit.Details{
		"name": audit.Text(p.Name), "displayName": audit.Text(p.DisplayName), "issuer": audit.Text(p.Issuer),
		"clientId": audit.Text(p.ClientID), "scopes": audit.Texts(p.Scopes), "emailClaim": audit.Text(p.EmailClaim),
		"groupsClaim": audit.Text(p.GroupsClaim), "recheck": audit.Text(FormatDuration(p.Recheck)),
		"maxSession": audit.Text(FormatDuration(p.MaxSession)),
	}
	if p.Create {
		fields["create"] = audit.Flag(true)
	}
	if p.Enforce {
		fields["enforce"] = audit.Flag(true)
	}
	networks := make([]string, len(p.Networks))
	for i, n := range p.Networks {
		networks[i] = n.String()
	}
	setTexts(fields, "domains", p.Domains)
	setTexts(fields, "requiredGroups", p.RequiredGroups)
	setTexts(fields, "networks", networks)
	var grants audit.List
	for _, g := range p.GroupGrants {
		grants = append(grants, audit.Details{
			"group": audit.Text(g.Group), "action": audit.Text(g.Action), "resource": audit.Text(g.Resource),
		})
	}
	if grants != nil {
		fields["groupGrants"] = grants
	}
	second := audit.Details{}
	setTexts(second, "acr", p.ACR)
	setTexts(second, "amr", p.AMR)
	if len(second) > 0 {
		fields["secondFactor"] = second
	}
	return fields
}

func setTexts(fields audit.Details, name string, texts []string) {
	if len(texts) > 0 {
		fields[name] = audit.Texts(texts)
	}
}

// Object returns the provider for the audit log. Of the secret it has a hash.
func (p *Provider) Object(secretHash string) audit.Object {
	fields := p.Fields()
	fields.Set(audit.FieldSecret, secretHash)
	fields.Set("managedBy", p.ManagedBy)
	return audit.Object{Kind: "provider", Key: string(p.Name), Fields: fields}
}

// SpeaksFor reports whether the e-mail address is of a domain of the provider.
func (p *Provider) SpeaksFor(e auth.Email) bool { return slices.Contains(p.Domains, e.Domain()) }

// Enforcing returns the provider at which people with the e-mail address must sign in; nil without one.
func Enforcing(all []Provider, e auth.Email) *Provider {
	for i := range all {
		if p := &all[i]; p.Enforce && p.SpeaksFor(e) {
			return p
		}
	}
	return nil
}

// GrantsOf returns the grants of the members of groups, each once.
func (p *Provider) GrantsOf(groups []string) (grants []GroupGrant) {
	for _, g := range p.GroupGrants {
		one := GroupGrant{Action: g.Action, Resource: g.Resource}
		if slices.Contains(groups, g.Group) && !slices.Contains(grants, one) {
			grants = append(grants, one)
		}
	}
	return grants
}

// Admits reports whether a person in the groups is in one of those that the provider requires.
func (p *Provider) Admits(groups []string) bool {
	return len(p.RequiredGroups) == 0 || slices.ContainsFunc(p.RequiredGroups, func(g string) bool {
		return slices.Contains(groups, g)
	})
}

// ShowsSecondFactor reports whether claims can show a second factor.
func (p *Provider) ShowsSecondFactor() bool { return len(p.ACR)+len(p.AMR) > 0 }

// NeedsGroups reports whether the groups of a person change anything.
func (p *Provider) NeedsGroups() bool { return len(p.RequiredGroups)+len(p.GroupGrants) > 0 }
