package wiring

import (
	"fmt"
	"slices"
	"strings"
)

// Parts tells which parts of the service run.
type Parts struct {
	Registry  bool
	Auth      bool
	Methods   bool
	RateLimit bool
}

var partNames = []string{"registry", "auth", "methods", "ratelimit"}

// ParseParts returns the parts of the given names; none means all.
func ParseParts(names []string) (Parts, error) {
	if len(names) == 0 {
		names = partNames
	}
	for _, name := range names {
		if !slices.Contains(partNames, name) {
			return Parts{}, fmt.Errorf("--only: unknown part %q; the parts are %s", name, strings.Join(partNames, ", "))
		}
	}
	return Parts{
		Registry:  slices.Contains(names, "registry"),
		Auth:      slices.Contains(names, "auth"),
		Methods:   slices.Contains(names, "methods"),
		RateLimit: slices.Contains(names, "ratelimit"),
	}, nil
}

// API reports whether any part answers on the API listener.
func (p Parts) API() bool { return p.Registry || p.Auth || p.Methods }
