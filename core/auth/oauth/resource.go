package oauth

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// ResourceName identifies a resource that operators have declared. It has the form of the name of a view.
type ResourceName string

// Resource is a tool server, or several at one URL, for which tokens are issued (contract T-9), or
// this registry.
type Resource struct {
	Name ResourceName // empty for one that no one has declared, and for this registry
	URL  string       // as it was declared, or as the registry lists it
	// Servers are those at the URL. A resource that no one has declared has no list: they are
	// those with the URL.
	Servers       []toolserver.Name
	Scopes        []string
	Introspectors []string // names of service accounts
	TokenTTL      time.Duration
	MinTrust      auth.TrustLevel
	Clients       []ClientID // that may have it; empty for all
	Refresh       bool       // refresh tokens are issued
	ManagedBy     string     // the owner of the file that manages it; empty if it was made by hand
}

// The bounds and defaults of resources.
const (
	MinTokenTTL     = time.Minute
	MaxTokenTTL     = time.Hour
	DefaultTokenTTL = 10 * time.Minute
)

const (
	// MaxDeclared is how many resources there may be.
	MaxDeclared      = 1_000
	maxServers       = 20
	maxScopes        = 100
	maxIntrospectors = 10
	maxClients       = 100 // of a resource
)

// Registry returns this registry as a resource (contract T-3). Its origin is the issuer.
func Registry(issuer string) Resource {
	return Resource{
		URL: issuer, Scopes: []string{ScopeRead, ScopeWrite}, TokenTTL: DefaultTokenTTL, MinTrust: auth.Unverified,
		Refresh: true,
	}
}

func parseResourceName(s string) (ResourceName, error) {
	return ResourceName(s), fields.CheckNameOf("the name of a resource", s)
}

// ParseResource returns the resource that fields describe, as Fields returns them. It returns fault.Invalid,
// with the name of the field at the beginning, if one is wrong.
func ParseResource(given audit.Details) (Resource, error) {
	r := fields.Reader{Values: given, MaxText: maxURL}
	name := given.Text("name")
	r.Note(fields.CheckName(name))
	one := Resource{
		Name: ResourceName(name), URL: given.Text("url"),
		Servers:       fields.Parsed(&r, "servers", true, maxServers, toolserver.ParseName),
		Scopes:        fields.Parsed(&r, "scopes", false, maxScopes, ParseScope),
		Introspectors: fields.Parsed(&r, "introspectors", false, maxIntrospectors, parseIntrospector),
		TokenTTL:      readTokenTTL(&r), MinTrust: readLevel(&r),
		Clients: fields.Parsed(&r, "clients", false, maxClients, ParseClientID),
		Refresh: given["refresh"] != audit.Flag(false),
	}
	if len(strings.Join(one.Scopes, " ")) > maxScopeText {
		r.Note(fields.Invalid("scopes", " must have at most %d characters together: each token has them", maxScopeText))
	}
	u, err := url.Parse(one.URL)
	if _, ok := CanonicalURL(one.URL); !ok || err != nil || !isURLText(one.URL) || u.Scheme != "https" && !isThisComputer(u) {
		r.Note(fields.Invalid("url", " must be a URL with https, or http on this computer, of at most 2,048 characters, without a "+
			"user and a fragment"))
	}
	return one, r.Err
}

// maxScope is the greatest length of a scope, whose form scopeForm is (RFC 6749, section 3.3).
const maxScope = 255

var scopeForm = regexp.MustCompile(`^[\x21\x23-\x5B\x5D-\x7E]+$`)

// ParseScope returns a scope. It returns fault.Invalid for any other text.
func ParseScope(s string) (string, error) {
	if len(s) > maxScope || !scopeForm.MatchString(s) {
		return "", fault.New(fault.Invalid, "a scope has 1 to 255 visible characters of ASCII, without quotes and backslashes")
	}
	return s, nil
}

// introspector is what is before the name of an account that may introspect tokens.
const introspector = "service:"

func parseIntrospector(s string) (string, error) {
	name, ok := strings.CutPrefix(s, introspector)
	if !ok {
		return "", fault.New(fault.Invalid, "it must be service: and the name of a service account")
	}
	return name, fields.CheckNameOf("the name of a service account", name)
}

func readTokenTTL(r *fields.Reader) time.Duration {
	v, given := r.Values["tokenTtl"]
	if !given {
		return DefaultTokenTTL
	}
	n, ok := v.(audit.Number)
	ttl := time.Duration(n) * time.Second
	if !ok || n != audit.Number(int(n)) || n < audit.Number(MinTokenTTL.Seconds()) || n > audit.Number(MaxTokenTTL.Seconds()) {
		r.Note(fields.Invalid("tokenTtl", " must be a whole number of seconds from %g to %g", MinTokenTTL.Seconds(), MaxTokenTTL.Seconds()))
	}
	return ttl
}

func readLevel(r *fields.Reader) auth.TrustLevel {
	name := r.Values.Text("minTrust")
	if name == "" {
		return auth.LimitedTrust
	}
	level, err := auth.ParseTrustLevel(name)
	if err != nil {
		r.Note(fields.Invalid("minTrust", " must be HIGH_RISK, UNVERIFIED, LIMITED_TRUST or FULL_TRUST"))
	}
	return level
}

// Fields returns the resource as ParseResource reads it, without empty fields.
func (r *Resource) Fields() audit.Details {
	introspectors := each.Map(r.Introspectors, func(name string) string { return introspector + name })
	all := audit.Details{
		"name": audit.Text(r.Name), "url": audit.Text(r.URL), "servers": audit.Texts(each.Texts(r.Servers)),
		"tokenTtl": audit.Number(r.TokenTTL.Seconds()), "minTrust": audit.Text(r.MinTrust.String()), "refresh": audit.Flag(r.Refresh),
	}
	fields.SetTexts(all, "scopes", r.Scopes)
	fields.SetTexts(all, "introspectors", introspectors)
	fields.SetTexts(all, "clients", r.Clients)
	return all
}

// Undeclared returns the resource of a remote of a listed version, with the defaults.
func Undeclared(url string) Resource {
	return Resource{URL: url, TokenTTL: DefaultTokenTTL, MinTrust: auth.LimitedTrust, Refresh: true}
}

// Admits reports whether a client may have tokens for the resource.
func (r *Resource) Admits(c *Client) bool {
	return (len(r.Clients) == 0 || slices.Contains(r.Clients, c.ID)) &&
		(len(c.Resources) == 0 || slices.Contains(c.Resources, r.Name))
}

// Server is a tool server of a resource as it is now.
type Server struct {
	Name        toolserver.Name
	Title       string
	URL         string // of the resource, as a listed version has it; may be empty
	Publisher   string // the namespace, or who published it last, for people
	Listed      bool   // a listed version that is not deleted has the URL
	Quarantined bool
	Reviewed    bool // a reviewer has approved the version
}

// Closed returns why no tokens are issued for a resource with these servers, in words; empty if it is
// open (contract T-9).
func Closed(all []Server) string {
	listed := false
	for i := range all {
		if all[i].Quarantined {
			return "the server " + all[i].Name.String() + " is in quarantine"
		}
		listed = listed || all[i].Listed
	}
	if !listed {
		return "no listed version of its servers has the URL"
	}
	return ""
}
