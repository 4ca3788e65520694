package company

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// leeway is how much the clocks of a provider and of the service may differ.
const leeway = time.Minute

// maxUnix is the last second of the year 9999.
const maxUnix = 253402300799

// Claims are what a provider says about a person, in a token or a document whose origin was
// verified. Missing claims have zero values.
type Claims struct {
	Issuer, Subject string
	SID             string // the session at the provider
	Email           auth.Email
	Unverified      bool // the provider says anything else about the e-mail address than that it has verified it
	Name            string
	Groups          Groups

	audience        []string
	authorizedParty string
	nonce           string
	acr             string
	amr             []string
	authTime        time.Time
	silent          bool // there is no claim email_verified
	all             jsonvalue.Object
	more            jsonvalue.Object // of the userinfo endpoint
}

// maxNames is how many names of claims are kept, and how long each may be.
const maxNames = 60

// Names returns the names of the claims, with spaces between them.
func (c *Claims) Names() string {
	all := maps.Clone(c.all)
	maps.Copy(all, c.more)
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(all)), func(name string) bool {
		return !fields.IsText(name, maxNames)
	})
	return strings.Join(names[:min(len(names), maxNames)], " ")
}

// AbsentGroups returns the problem of claims without groups, at a provider that gives grants by groups.
func (p *Provider) AbsentGroups() string {
	depend := fmt.Sprintf("%d grants depend", len(p.GroupGrants))
	if len(p.GroupGrants) == 1 {
		depend = "1 grant depends"
	}
	return "the last sign-in had no claim " + p.GroupsClaim + ", on which " + depend
}

// Reject returns the error for a token that is refused, with the reason for the audit log. What it
// says contains nothing of the token.
func Reject(reason fault.Code, message string) error {
	return fault.New(fault.Unauthenticated, message).WithCode(reason)
}

// ReadClaims returns what a payload says, by the names of claims of the provider. It returns the
// error of Reject if it is no JSON object.
func (p *Provider) ReadClaims(payload []byte) (c Claims, err error) {
	all, err := readObject(payload)
	if err != nil {
		return Claims{}, err
	}
	return p.claimsOf(all), nil
}

func readObject(payload []byte) (all jsonvalue.Object, err error) {
	if err := json.Unmarshal(payload, &all); err != nil || all == nil {
		return nil, Reject("malformed", "the token is not a JSON object")
	}
	return all, nil
}

// claimsOf returns what the members of a payload say.
func (p *Provider) claimsOf(all jsonvalue.Object) Claims {
	c := Claims{all: all}
	c.Issuer, c.Subject, c.SID = c.all.Text("iss"), c.all.Text("sub"), c.all.Text("sid")
	c.authorizedParty, c.nonce, c.acr = c.all.Text("azp"), c.all.Text("nonce"), c.all.Text("acr")
	c.audience, _ = textsOf(c.all["aud"])
	c.amr, _ = textsOf(c.all["amr"])
	c.authTime, _ = timeOf(c.all["auth_time"])
	c.readPerson(p)
	return c
}

// readPerson reads the claims that a document of the userinfo endpoint may have too.
func (c *Claims) readPerson(p *Provider) {
	// One that is wrong counts as missing, also one with a letter that some take for one of ASCII.
	if email := c.all.Text(p.EmailClaim); isASCII(email) {
		c.Email, _ = auth.ParseEmail(email)
	}
	verified := c.all["email_verified"]
	c.silent = verified == nil
	c.Unverified = !c.silent && verified != jsonvalue.Flag(true) && verified != jsonvalue.Text("true")
	c.Name = c.all.Text("name")
	c.Groups = readGroups(c.all, p.GroupsClaim)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII })
}

// NeedsMore reports whether the userinfo endpoint may have what the claims lack: the e-mail address, whether
// it is verified if it is to lead to an account, or the groups.
func (c *Claims) NeedsMore(p *Provider) bool {
	return c.Email == "" || !c.Groups.present || c.silent && p.SpeaksFor(c.Email)
}

// KeepGroups gives claims without groups those of a membership at the provider. They are for a document of
// the userinfo endpoint alone, since the ID token may have the groups (OpenID Connect Core 1.0, section 12.2).
func (c *Claims) KeepGroups(p *Provider, m Membership) {
	if !c.Groups.present && m.Provider == p.Name {
		c.Groups.Names = m.Groups
	}
}

// HasGroups reports whether there is a claim of groups.
func (c *Claims) HasGroups() bool { return c.Groups.present }

// LacksGroups reports whether the provider gives grants by groups, and the claims have none, not even none
// in a list.
func (c *Claims) LacksGroups(p *Provider) bool { return p.NeedsGroups() && !c.HasGroups() }

// Complete adds the e-mail address and the groups that the claims lack, from a document of the
// userinfo endpoint. An address that either of them does not call verified is not. It returns the error of Reject if the document is of another subject (OpenID
// Connect Core 1.0, section 5.3.2).
func (c *Claims) Complete(p *Provider, document []byte) error {
	more, err := p.ReadClaims(document)
	switch {
	case err != nil:
		return Reject("userinfo", "what the provider says about the person cannot be read")
	case more.Subject != c.Subject:
		return Reject("userinfo_subject", "the provider speaks about another person")
	}
	c.more = more.all
	if c.Email == "" {
		c.Email = more.Email
	}
	c.Unverified = c.Unverified || more.Unverified
	if !c.Groups.present {
		c.Groups = more.Groups
	}
	if c.Name == "" {
		c.Name = more.Name
	}
	return nil
}

// textsOf returns a list of texts, or one text as a list; ok is false for anything else.
func textsOf(v jsonvalue.Value) (all []string, ok bool) {
	switch v := v.(type) {
	case jsonvalue.Text:
		return []string{string(v)}, true
	case jsonvalue.List:
		for _, one := range v {
			text, isText := one.(jsonvalue.Text)
			if !isText {
				return nil, false
			}
			all = append(all, string(text))
		}
		return all, true
	}
	return nil, false
}

// timeOf returns a time in seconds since 1970; ok is false for anything else.
func timeOf(v jsonvalue.Value) (at time.Time, ok bool) {
	n, isNumber := v.(jsonvalue.Number)
	if !isNumber || n < 0 || n > maxUnix {
		return time.Time{}, false
	}
	return time.Unix(int64(n), 0).UTC(), true
}

// CheckToken returns the error of Reject unless the claims are those of an ID token that the
// provider has made for the service and that is valid now. The nonce is that of the request; a
// token of a refresh need not have one.
func (c *Claims) CheckToken(p *Provider, nonce string, refreshed bool, now time.Time) error {
	if err := c.checkParties(p); err != nil {
		return err
	}
	if c.Subject == "" || !isIdentifier(c.Subject) || !isIdentifier(c.SID) {
		return Reject("subject", "the token has no subject of 1 to 255 characters")
	}
	if err := c.checkTimes(now); err != nil {
		return err
	}
	if c.nonce != nonce && (!refreshed || c.nonce != "") {
		return Reject("nonce", "the token belongs to another sign-in")
	}
	return nil
}

func (c *Claims) checkParties(p *Provider) error {
	switch {
	case c.Issuer != p.Issuer:
		return Reject("issuer", "the token is of another issuer")
	case !slices.Contains(c.audience, p.ClientID):
		return Reject("audience", "the token is for another client")
	case c.authorizedParty != p.ClientID && (len(c.audience) > 1 || c.all["azp"] != nil):
		return Reject("authorized_party", "the token was given to another client")
	}
	return nil
}

// isIdentifier reports whether a text of a provider can be stored to find something by it.
func isIdentifier(s string) bool {
	return len(s) <= fields.MaxText && utf8.ValidString(s) && !strings.ContainsRune(s, 0)
}

func (c *Claims) checkTimes(now time.Time) error {
	expires, hasEnd := timeOf(c.all["exp"])
	issued, hasIssue := timeOf(c.all["iat"])
	start, hasStart := timeOf(c.all["nbf"])
	switch {
	case !hasEnd || !now.Before(expires.Add(leeway)):
		return Reject("expired", "the token has expired")
	case !hasIssue || issued.After(now.Add(leeway)):
		return Reject("issued_at", "the token has no time of issue that has passed")
	case hasStart && start.After(now.Add(leeway)), !hasStart && c.all["nbf"] != nil:
		return Reject("not_before", "the token is not valid yet")
	}
	return nil
}

// logoutEvent is the event of a logout token (OpenID Connect Back-Channel Logout 1.0, section 2.4).
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout"

// maxLogoutAge is how long ago a logout token may have been issued.
const maxLogoutAge = 5 * time.Minute

// CheckLogout returns the ID of a logout token. It returns the error of Reject unless the claims are
// those of one that the provider has made for the service and that is valid now.
func (c *Claims) CheckLogout(p *Provider, now time.Time) (id string, err error) {
	issued, _ := timeOf(c.all["iat"])
	id = c.all.Text("jti")
	_, hasNonce := c.all["nonce"]
	if err := c.checkParties(p); err != nil {
		return "", err
	}
	switch {
	case hasNonce:
		return "", Reject("nonce", "a logout token must not have a nonce")
	case c.Subject == "" && c.SID == "" || !isIdentifier(c.Subject) || !isIdentifier(c.SID):
		return "", Reject("subject", "the token has neither a subject nor a session")
	case id == "" || !isIdentifier(id):
		return "", Reject("id", "the token has no jti of 1 to 255 characters")
	case c.all.Inner("events").Inner(logoutEvent) == nil:
		return "", Reject("events", "the token has no event of a logout")
	case now.Sub(issued) > maxLogoutAge:
		return "", Reject("issued_at", "the token was issued more than 5 minutes ago")
	}
	return id, c.checkTimes(now)
}

// HasSecondFactor reports whether the claims show a second factor that is not too old.
func (c *Claims) HasSecondFactor(p *Provider, now time.Time) bool {
	if !c.authTime.IsZero() && now.Sub(c.authTime) > p.MaxSession {
		return false
	}
	return c.acr != "" && slices.Contains(p.ACR, c.acr) || slices.ContainsFunc(c.amr, func(method string) bool {
		return slices.Contains(p.AMR, method)
	})
}

// AuthTime returns when the person signed in at the provider; zero if the claims do not say.
func (c *Claims) AuthTime() time.Time { return c.authTime }

// AuthenticatedSince reports whether the person has signed in at the provider since a time; not if the
// claims do not say when.
func (c *Claims) AuthenticatedSince(at time.Time) bool { return !c.authTime.Before(at.Add(-leeway)) }

// Groups are the groups of a person. If a problem is set, there are no names.
type Groups struct {
	Names   []string
	Problem GroupsProblem
	present bool
}

// GroupsProblem is why groups cannot be used; empty if they can.
type GroupsProblem string

// The problems of groups.
const (
	GroupsOverage GroupsProblem = "overage"    // the token has a reference instead of so many groups
	GroupsObject  GroupsProblem = "object"     // an object
	GroupsNumber  GroupsProblem = "number"     // a number
	GroupsTooMany GroupsProblem = "too_many"   // more than maxClaimed
	GroupsNoTexts GroupsProblem = "not_a_list" // anything else that is no list of strings
)

// Sentence returns the problem in words for the person.
func (g GroupsProblem) Sentence() string {
	switch g {
	case GroupsOverage:
		return "your company did not send your groups, because there are too many"
	case GroupsTooMany:
		return "your company sent more than 2,000 groups"
	}
	return "your company sent your groups in a form that cannot be read"
}

// maxClaimed is the greatest number of groups in a claim.
const maxClaimed = 2000

func readGroups(all jsonvalue.Object, claim string) Groups {
	value := all[claim]
	_, named := all.Inner("_claim_names")[claim]
	if named || claim == "groups" && all["hasgroups"] != nil && all["hasgroups"] != jsonvalue.Flag(false) {
		return Groups{Problem: GroupsOverage, present: true}
	}
	if value == nil {
		return Groups{}
	}
	g := Groups{present: true}
	names, ok := textsOf(value)
	switch value := value.(type) {
	case jsonvalue.Object:
		g.Problem = GroupsObject
	case jsonvalue.Number:
		g.Problem = GroupsNumber
	case jsonvalue.List:
		if len(value) > maxClaimed {
			g.Problem = GroupsTooMany
		}
	}
	if !ok && g.Problem == "" {
		g.Problem = GroupsNoTexts
	}
	if g.Problem == "" {
		g.Names = names
	}
	return g
}
