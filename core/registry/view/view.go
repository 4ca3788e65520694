// Package view is the model of views: parts of the registry that an organisation gives to some of
// its people. It has the rules of what a view shows; package viewing has the use cases.
package view

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/registry"
)

// All is the name of the view that has all servers. It is always there and cannot be added.
const All = "all"

// Name is the name of a view: 1 to 40 lower-case letters, digits and hyphens.
type Name string

// TokenName is the name of a token of a view. It has the form of a Name.
type TokenName string

// ParseName returns the name of a view that operators may add. It returns fault.Invalid for a text
// of another form and for the reserved name (contract C-30).
func ParseName(s string) (Name, error) {
	if s == All {
		return "", fault.New(fault.Invalid, "the name of a view must not be all: that view is always there")
	}
	return Name(s), fields.CheckNameOf("the name of a view", s)
}

// ParseTokenName returns the name of a token. It returns fault.Invalid for a text of another form.
func ParseTokenName(s string) (TokenName, error) {
	return TokenName(s), fields.CheckNameOf("the name of a token", s)
}

// Access is who may read a view.
type Access string

// The values of Access.
const (
	Public    Access = "public"
	WithToken Access = "token"  // who has a token of the view
	People    Access = "people" // its Members, and who has a token of the view
)

// ParseAccess returns the access with the given name. It returns fault.Invalid for any other text.
func ParseAccess(s string) (Access, error) {
	return fault.OneOf("access", s, Public, WithToken, People)
}

// Deprecated is what a view does with deprecated versions.
type Deprecated string

// The values of Deprecated.
const (
	Show Deprecated = "show"
	Hide Deprecated = "hide"
)

// ParseDeprecated returns the value with the given name. It returns fault.Invalid for any other
// text.
func ParseDeprecated(s string) (Deprecated, error) {
	return fault.OneOf("deprecated", s, Show, Hide)
}

// View is a part of the registry. New makes one.
type View struct {
	registry.Selection

	Name       Name
	Deprecated Deprecated
	Access     Access
	Members    Members // of a view with the access People
	ManagedBy  string  // the owner of the file that manages the view; empty if no file does
}

// Draft is a view as an operator writes it. Deprecated and Access may be empty: deprecated versions
// are shown, and everybody may read the view. Without ManagedBy, a view that is replaced keeps its
// owner.
type Draft struct {
	Name               string
	Include, Exclude   []string
	Deprecated, Access string
	People, Groups     []string
	ManagedBy          string
}

// New returns the view of a draft. It returns fault.Invalid with the name of the field if one is
// wrong (contract C-30).
func New(d Draft) (View, error) {
	v := View{Deprecated: Show, Access: Public, ManagedBy: d.ManagedBy}
	var err error
	if v.Name, err = ParseName(d.Name); err != nil {
		return View{}, fault.In("name", err)
	}
	if v.Selection, err = registry.ParseSelection(d.Include, d.Exclude); err != nil {
		return View{}, err
	}
	if d.Deprecated != "" {
		if v.Deprecated, err = ParseDeprecated(d.Deprecated); err != nil {
			return View{}, fault.In("deprecated", err)
		}
	}
	if d.Access != "" {
		if v.Access, err = ParseAccess(d.Access); err != nil {
			return View{}, fault.In("access", err)
		}
	}
	v.Members, err = newMembers(d, v.Access)
	if err != nil {
		return View{}, err
	}
	return v, nil
}

// OfAll returns the view of all servers.
func OfAll() View { return View{Name: All, Deprecated: Show, Access: Public} }

// Path returns the path of the view, below which it is a registry of its own. That of the view of all
// servers is empty: the service itself is that registry. In the path of a view that not everybody may
// read, the placeholder is in place of a token, because programs send no headers.
func (v View) Path(placeholder string) string {
	switch {
	case v.Name == All:
		return ""
	case v.Access != Public:
		return "/registries/" + string(v.Name) + "/t/" + placeholder
	}
	return "/registries/" + string(v.Name)
}

// Hides reports whether the view leaves out versions with the status.
func (v View) Hides(s registry.Status) bool {
	return v.Deprecated == Hide && s == registry.StatusDeprecated
}

// Latest returns which of all versions of a server is the latest in the view: the one that outranks
// the others that the view shows. It returns false if the view shows nothing (contract C-32).
func (v View) Latest(all []registry.Release) (registry.Release, bool) {
	shown := make([]registry.Release, 0, len(all))
	for _, r := range all {
		if v.Includes(r.Name) && !v.Hides(r.Status) {
			shown = append(shown, r)
		}
	}
	return registry.HighestRanked(shown)
}

// Equal reports whether two views are the same.
func (v View) Equal(w View) bool {
	return v.Name == w.Name && v.Deprecated == w.Deprecated && v.Access == w.Access &&
		v.ManagedBy == w.ManagedBy && v.Members.Equal(w.Members) && v.Selection.Equal(w.Selection)
}

// MaxMembers is the greatest number of people and groups of a view (contract C-36).
const MaxMembers = 50

// Members are who may read a view with the access People: everybody who is signed in, if there are
// none. newMembers makes them.
type Members struct {
	People []string // e-mail addresses
	Groups []string // PROVIDER/GROUP, of company sign-in
}

// Any reports whether everybody who is signed in is a member.
func (m Members) Any() bool { return len(m.People)+len(m.Groups) == 0 }

// Has reports whether a person with an e-mail address, who is in groups, is a member.
func (m Members) Has(address string, groups []string) bool {
	return m.Any() || slices.Contains(m.People, address) && address != "" ||
		slices.ContainsFunc(m.Groups, func(g string) bool { return slices.Contains(groups, g) })
}

// Equal reports whether two lists of members are the same.
func (m Members) Equal(n Members) bool {
	return slices.Equal(m.People, n.People) && slices.Equal(m.Groups, n.Groups)
}

// ParseGroup returns the group that s contains. It returns fault.Invalid for a text of another form.
func ParseGroup(s string) (string, error) {
	provider, name, ok := strings.Cut(s, "/")
	if !ok || fields.CheckName(provider) != nil || !fields.IsText(name, fields.MaxText) {
		return "", fault.New(fault.Invalid, "a group must be PROVIDER/GROUP, for example acme/developers")
	}
	return s, nil
}

// ParsePerson returns the e-mail address that s contains, in the form in which addresses are
// compared. It returns fault.Invalid for another text.
func ParsePerson(s string) (string, error) {
	address := email.Canonical(s)
	if len(address) > email.Max || !email.IsAddress(address) {
		return "", fault.Newf(fault.Invalid, "a person must be an e-mail address, not %.60q", s)
	}
	return address, nil
}

// newMembers returns the members of a draft of a view with an access.
func newMembers(d Draft, a Access) (m Members, err error) {
	if m.People, err = parseMembers("people", d.People, ParsePerson); err != nil {
		return m, err
	}
	if m.Groups, err = parseMembers("groups", d.Groups, ParseGroup); err != nil {
		return m, err
	}
	field := "groups"
	if len(m.People) > 0 {
		field = "people"
	}
	switch n := len(m.People) + len(m.Groups); {
	case n > 0 && a != People:
		return m, fault.In(field, fault.Newf(fault.Invalid, "%s: only a view with the access people has them", field))
	case n > MaxMembers:
		return m, fault.In(field, fault.Newf(fault.Invalid, "%s: a view must have at most %d people and groups, and has %d",
			field, MaxMembers, n))
	}
	return m, nil
}

// parseMembers returns the values of a field, each once.
func parseMembers(field string, texts []string, parse func(string) (string, error)) (all []string, err error) {
	for _, s := range texts {
		one, err := parse(s)
		if err != nil {
			return nil, fault.In(field, fault.Newf(fault.Invalid, "%s: %s", field, fault.PublicMessage(err)))
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all, nil
}

// Secret is a token of a view in clear: 256 random bits. It prints as a placeholder.
type Secret string

// String returns a placeholder.
func (Secret) String() string { return "[view token]" }

// GoString returns a placeholder.
func (s Secret) GoString() string { return s.String() }

// secretPrefix is at the start of each token, so that people and scanners recognise one.
const secretPrefix = "tgview_"

// NewSecret returns the token of 256 random bits: the prefix, and 43 characters of base64url, which
// need no escape in a path.
func NewSecret(random [32]byte) Secret {
	return Secret(secretPrefix + base64.RawURLEncoding.EncodeToString(random[:]))
}

// Hash is the hash under which a token is stored. A plain hash suffices for 256 random bits.
type Hash [sha256.Size]byte

// Hash returns the hash of the token.
func (s Secret) Hash() Hash { return sha256.Sum256([]byte(s)) }

// MaxTokens is the greatest number of tokens of one view (contract C-34).
const MaxTokens = 100

// Token is a token of a view as it is stored. Its name is unique among those of the view.
type Token struct {
	View      Name
	Name      TokenName
	Hash      Hash
	CreatedAt time.Time
}
