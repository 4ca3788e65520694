package registry

import (
	"net/url"
	"strings"

	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fields"
)

// The bounds of an owner, in characters.
const (
	maxOwner   = 100
	maxContact = 300
)

// Owner is who answers for a server. The zero value is no owner.
type Owner struct {
	Team    string
	Contact string // an e-mail address or an https URL; optional
}

// NewOwner returns an owner; without one if both texts are empty. It returns fault.Invalid, with the name of the
// field, owner or contact, for a wrong one.
func NewOwner(team, contact string) (Owner, error) {
	o := Owner{strings.TrimSpace(team), strings.TrimSpace(contact)}
	switch {
	case o == Owner{}:
		return o, nil
	case !fields.IsText(o.Team, maxOwner):
		return Owner{}, fields.Invalid("owner", " must have 1 to %d characters, without control characters", maxOwner)
	case o.Contact != "" && !isContact(o.Contact):
		return Owner{}, fields.Invalid("contact", " must be an e-mail address or an https URL of at most %d characters", maxContact)
	}
	return o, nil
}

// isContact reports whether a text is an e-mail address or a URL with https, in visible ASCII characters.
func isContact(s string) bool {
	if len(s) > maxContact || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	u, err := url.Parse(s)
	return email.IsAddress(s) || err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil
}

// Facet returns what servers with the owner are found by.
func (o Owner) Facet() Facet {
	if o.Team == "" {
		return NewFacet(FacetOwner, "none")
	}
	return NewFacet(FacetOwner, "known")
}
