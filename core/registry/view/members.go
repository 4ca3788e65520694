package view

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/email"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
)

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
