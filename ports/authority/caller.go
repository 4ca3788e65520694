package authority

import (
	"context"
	"net/netip"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
)

// Authority identifies callers, once for each request, where it arrives. It is safe for concurrent
// use.
type Authority interface {
	// Identify returns the caller to whom an access token belongs, for a request from an address.
	// It returns fault.Unauthenticated when the token is missing, unknown, expired or of a session
	// that has ended, and fault.Unavailable when the database is not available.
	Identify(ctx context.Context, token string, from netip.Addr) (Caller, error)
	// IdentifySession returns the person of a session that was found by other means than a token.
	// The errors are those of Identify.
	IdentifySession(ctx context.Context, id string, from netip.Addr) (Caller, error)
}

// Caller is who calls a use case: a person with a session, a publisher without one, or an operator.
// An Authority makes it from what a request proves; it cannot be changed. The zero value may do
// nothing.
type Caller struct {
	kind      kind
	holder    registry.Holder
	session   string
	trust     Trust
	publisher *Publisher
	address   netip.Addr
}

type kind uint8

const (
	unknown kind = iota
	person
	provedPublisher
	operator
)

// Person is a person with a session.
type Person struct {
	UserID    registry.Holder
	SessionID string
	Trust     Trust
}

// TrustLevel is the name of a trust level, for the audit log.
type TrustLevel string

// Trust is the trust level of a session: its name, and the refusals of what needs a higher level.
// They are nil for what the level permits, and ask for a step-up, with the challenge of RFC 9470 in
// the detail "challenge".
type Trust struct {
	Level TrustLevel
	Read  error // of reading what is not public
	Write error // of changing the registry
	Full  error // of what always needs FULL_TRUST
}

// Publisher is a caller that has proved a domain or an identity, and has no session (contract
// P-15).
type Publisher struct {
	Method      publisher.Method
	Subject     string // what it has proved (publisher.Proof.Subject)
	Permissions []publisher.Permission
}

// NewPerson returns a person as the caller of a request. Only an Authority may call it.
func NewPerson(p Person, from netip.Addr) Caller {
	return Caller{kind: person, holder: p.UserID, session: p.SessionID, trust: p.Trust, address: from}
}

// NewPublisher returns a publisher as the caller of a request. Only an Authority may call it.
func NewPublisher(p Publisher, from netip.Addr) Caller {
	return Caller{kind: provedPublisher, publisher: &p, address: from}
}

// Operator returns the caller of operator commands, which may do everything. Only those may call
// it, and what checks the grant to operate.
func Operator() Caller { return Caller{kind: operator} }

// IsRemote reports whether the caller sent a request: it is a person or a publisher.
func (c Caller) IsRemote() bool { return c.kind == person || c.kind == provedPublisher }

// IsOperator reports whether the caller is an operator, of whom no use case knows the name.
func (c Caller) IsOperator() bool { return c.kind == operator }

// Person returns the id of a person; it is empty for an operator. It returns fault.Forbidden for a
// publisher.
func (c Caller) Person() (registry.Holder, error) {
	switch c.kind {
	case person, operator:
		return c.holder, nil
	case provedPublisher:
		return "", fault.New(fault.Forbidden,
			"the token of a publisher may only publish and change status: sign in as a person")
	}
	return "", fault.New(fault.Unauthenticated, "an access token is required")
}

// Publisher returns the publisher; nil for other callers.
func (c Caller) Publisher() *Publisher { return c.publisher }

// WithPermissions returns a publisher that has other permissions.
func (c Caller) WithPermissions(list []publisher.Permission) Caller {
	c.publisher = &Publisher{Method: c.publisher.Method, Subject: c.publisher.Subject, Permissions: list}
	return c
}

// Session returns the id of a person's session, and the name of its trust level.
func (c Caller) Session() (id string, level TrustLevel) { return c.session, c.trust.Level }

// Address returns the address from which the request came.
func (c Caller) Address() netip.Addr { return c.address }

// RequireReader returns the person, or fault.Forbidden below the trust level for reading what is
// not public. The other errors are those of Person, as they are of the next two methods.
func (c Caller) RequireReader() (registry.Holder, error) { return c.require(c.trust.Read) }

// RequireWriter returns the person, or fault.Forbidden below the trust level for changes of the
// registry.
func (c Caller) RequireWriter() (registry.Holder, error) { return c.require(c.trust.Write) }

// RequireFullTrust returns the person, or fault.Forbidden below FULL_TRUST.
func (c Caller) RequireFullTrust() (registry.Holder, error) { return c.require(c.trust.Full) }

func (c Caller) require(refusal error) (registry.Holder, error) {
	holder, err := c.Person()
	if err == nil {
		err = refusal
	}
	return holder, err
}
