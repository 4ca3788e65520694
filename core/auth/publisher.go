package auth

// Publisher is the content of an access token without a session: who has proved what, and what that
// permits in the registry (contract P-15). Authentication does not interpret it.
type Publisher struct {
	Method      string
	Subject     string
	Permissions []PublisherPermission
}

// PublisherPermission allows actions on the servers that a pattern selects, as long as a policy
// lives.
type PublisherPermission struct {
	Actions []string
	Pattern string
	Policy  string // empty if it does not depend on one
}
