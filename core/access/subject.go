package access

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

// SubjectKind says who a Subject is.
type SubjectKind uint8

// The kinds of subjects. The zero value is a caller without any token.
const (
	Anonymous SubjectKind = iota
	Person
	Service
	Foreign // a token of a company provider that is linked to no person
)

// Member is a person or the owner of a foreign token as rules see it, for NewSubject.
type Member struct {
	Kind SubjectKind
	// ID is the e-mail address of a person, the name of a service account, or issuer and subject of
	// a foreign token, with a space between them.
	ID     string
	Groups []Group
	Grants []Grant
	Trust  trustlevel.Level
	// Whole says for Compare that the subject has no other groups and grants.
	Whole bool
}

// Group is a group of a linked identity, or of a foreign token.
type Group struct{ Provider, Name string }

// Grant is an action that a subject may do with servers.
type Grant struct {
	Action  toolserver.Action
	Pattern toolserver.Pattern
}

// Subject is who calls (contract Z-4). The zero value is anyone. It never changes, and is worth
// keeping: it has the keys by which rules are found.
type Subject struct {
	member   Member
	problem  Reason
	keys     []string  // of selectors that can match; those of grants only if the grant covers the server
	client   string    // whose token calls; empty for other tokens
	resource *Resource // for which the token is; nil for all servers
}

// NewSubject returns the subject of a member.
func NewSubject(m Member) Subject {
	s := Subject{member: m, keys: []string{string(SelectAnyone), string(SelectEveryone)}}
	switch m.Kind {
	case Person:
		s.keys = append(s.keys, Selector{SelectPerson, m.ID}.String())
	case Service:
		s.keys = append(s.keys, Selector{SelectService, m.ID}.String())
	}
	for _, g := range m.Groups { // thousands, perhaps
		s.keys = append(s.keys, Selector{SelectGroup, g.Provider + "/" + g.Name}.String())
	}
	for _, g := range m.Grants {
		s.keys = append(s.keys, Selector{SelectGrant, string(g.Action)}.String())
	}
	slices.Sort(s.keys)
	s.keys = slices.Compact(s.keys)
	return s
}

// WithTrust returns the subject with another trust level.
func (s Subject) WithTrust(l trustlevel.Level) Subject {
	s.member.Trust = l
	return s
}

// WithGroups returns the person in other groups, before WithClient and Within.
func (s Subject) WithGroups(all []Group) Subject {
	if s.problem != "" {
		return s
	}
	s.member.Groups = all
	return NewSubject(s.member)
}

// WithClient returns the subject as it calls by a token of a client of the authorization server.
func (s Subject) WithClient(client string) Subject {
	s.client = client
	return s
}

// Client returns the client by whose token the subject calls; empty for other tokens.
func (s *Subject) Client() string { return s.client }

// Refused returns the subject of a token that is not valid now, or of a person who is not active.
func Refused() Subject { return Subject{problem: InvalidToken} }

// ID returns Member.ID.
func (s *Subject) ID() string { return s.member.ID }

// Kind returns who the subject is.
func (s *Subject) Kind() SubjectKind { return s.member.Kind }

// Trust returns the trust level; 0 for anyone.
func (s *Subject) Trust() trustlevel.Level { return s.member.Trust }

// String returns the subject as headers have it (contract Z-7); empty for anyone.
func (s *Subject) String() string {
	switch s.member.Kind {
	case Person:
		return audit.PersonActor + s.member.ID
	case Service:
		return audit.ServiceActor + s.member.ID
	case Foreign:
		return "jwt:" + s.member.ID
	}
	return ""
}

// anonymousKeys are the keys of a caller without a token.
var anonymousKeys = []string{string(SelectAnyone)}

func (s *Subject) selectors() []string {
	if s.member.Kind == Anonymous {
		return anonymousKeys
	}
	return s.keys
}

// Operates reports whether the subject has the grant to operate.
func (s *Subject) Operates() bool {
	return slices.ContainsFunc(s.member.Grants, func(g Grant) bool { return g.Action == toolserver.ActionOperate })
}

// matches reports whether a selector selects the subject for a call of a server.
func (s *Subject) matches(one Selector, of toolserver.Name) bool {
	switch one.Kind {
	case SelectAnyone:
		return true
	case SelectEveryone:
		return s.member.Kind != Anonymous
	case SelectPerson:
		return s.member.Kind == Person && s.member.ID == one.Value
	case SelectService:
		return s.member.Kind == Service && s.member.ID == one.Value
	case SelectGroup:
		for _, g := range s.member.Groups {
			if len(one.Value) == len(g.Provider)+1+len(g.Name) && strings.HasPrefix(one.Value, g.Provider) &&
				one.Value[len(g.Provider)] == '/' && strings.HasSuffix(one.Value, g.Name) {
				return true
			}
		}
	case SelectGrant:
		return s.grantFor(one, of) != (Grant{})
	}
	return false
}
