// Package view is the model of views: parts of the registry that an organisation gives to some of
// its people. It has the rules of what a view shows; package viewing has the use cases.
package view

import (
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
