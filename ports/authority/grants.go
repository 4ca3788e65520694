package authority

import "context"

// Granter gives people of authentication the grants of the registry.
type Granter interface {
	// GiveGrants gives a person grants, in the transaction that the context carries, if any. Grants
	// that the person has stay as they are. It returns fault.Invalid for an unknown action and a
	// wrong resource.
	GiveGrants(ctx context.Context, userID string, grants []GrantText) error
}

// GrantText is a grant as people write it.
type GrantText struct{ Action, Resource string }

// FirstGrants returns the grants of the first person of a service.
func FirstGrants() []GrantText {
	return []GrantText{{"operate", ""}, {"publish", "*"}, {"edit", "*"}, {"review", "*"}}
}
