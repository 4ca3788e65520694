package settings

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the parts of the service, as the flag --only takes them. The tag readBy also takes
// apiPart, which is any part on the API listener.
const (
	registryPart  = "registry"
	authPart      = "auth"
	methodsPart   = "methods"
	ratelimitPart = "ratelimit"
	consolePart   = "console"
	apiPart       = "api"
)

// Parts says which parts of the service run.
type Parts struct {
	Registry  bool
	Auth      bool
	Methods   bool
	RateLimit bool
	Console   bool // it needs the registry; without authentication it is the catalogue alone
}

// ParseParts returns the parts with the given names. No names mean all parts.
func ParseParts(names []string) (Parts, error) {
	all := []string{registryPart, authPart, methodsPart, ratelimitPart, consolePart}
	if len(names) == 0 {
		names = all
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return Parts{}, fmt.Errorf("--only: unknown part %q; the parts are %s", name, strings.Join(all, ", "))
		}
	}
	if slices.Contains(names, consolePart) && !slices.Contains(names, registryPart) {
		return Parts{}, fmt.Errorf("--only: the part %s needs the part %s", consolePart, registryPart)
	}
	return Parts{
		Registry:  slices.Contains(names, registryPart),
		Auth:      slices.Contains(names, authPart),
		Methods:   slices.Contains(names, methodsPart),
		RateLimit: slices.Contains(names, ratelimitPart),
		Console:   slices.Contains(names, consolePart),
	}, nil
}

// API reports whether any part uses the API listener.
func (p Parts) API() bool { return p.Registry || p.Auth || p.Methods }

// readsOf returns a function that reports whether a variable is read if the given parts run. No
// parts mean all parts.
func readsOf(parts []string) func(Variable) bool {
	return func(v Variable) bool {
		if len(parts) == 0 || len(v.readBy) == 0 {
			return true
		}
		return slices.ContainsFunc(parts, func(part string) bool {
			return slices.Contains(v.readBy, part) || part != ratelimitPart && slices.Contains(v.readBy, apiPart)
		})
	}
}
