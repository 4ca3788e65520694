package authority

import "context"

// Granter gives people of authentication the grants of the registry. Its methods join the
// transaction that the context carries, if any.
type Granter interface {
	// GiveGrants gives a person grants. Grants that the person has stay as they are. It returns
	// fault.Invalid for an unknown action and a wrong resource.
	GiveGrants(ctx context.Context, userID string, grants []GrantText) error
	// CheckGrant returns fault.Invalid for a grant that GiveGrants refuses.
	CheckGrant(g GrantText) error
	// ReplaceGrants makes the grants of a person that come from an origin those in the list, and
	// returns what has changed. Grants of another origin stay as they are, also if they are the same.
	// What the last person who can operate needs stays too.
	ReplaceGrants(ctx context.Context, userID, origin string, grants []GrantText) (GrantChanges, error)
	// RemoveOrigin removes all grants of an origin. It returns fault.Conflict with code last_operator
	// if no one could operate without them.
	RemoveOrigin(ctx context.Context, origin string) error
	// MayOperate reports whether a person has the grant operate.
	MayOperate(ctx context.Context, userID string) (bool, error)
	// Operators returns the people who have the grant operate.
	Operators(ctx context.Context) (userIDs []string, err error)
}

// GrantText is a grant as people write it.
type GrantText struct{ Action, Resource string }

// GrantChanges is what ReplaceGrants has changed.
type GrantChanges struct {
	Added, Removed []GrantText
	KeptOperator   bool // the grant operate stays, because the person is the last one who has it
}

// FirstGrants returns the grants of the first person of a service.
func FirstGrants() []GrantText {
	return []GrantText{{"operate", ""}, {"publish", "*"}, {"edit", "*"}, {"review", "*"}}
}
