package authority

import (
	"context"
	"net/netip"
	"slices"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/each"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/scope"
)

// ErrOtherResource is the error for a token of the authorization server that is for another resource than
// this registry (contract T-16).
var ErrOtherResource error = fault.New(fault.Unauthenticated, "the access token is for another server").
	WithCode("invalid_token")

// Authority identifies callers, once for each request, where it arrives. It is safe for concurrent
// use.
type Authority interface {
	// Identify returns the caller to whom an access token belongs, for a request from an address.
	// It returns fault.Unauthenticated when the token is missing, unknown, expired or of a session
	// that has ended, or of an owner who is not active, and fault.Unavailable when the database is
	// not available.
	Identify(ctx context.Context, token string, from netip.Addr) (Caller, error)
	// IdentifyReader is Identify for a read, from copies that are at most a second old. It knows
	// exactly whether the caller may read, and may be wrong about more trust than that.
	IdentifyReader(ctx context.Context, token string, from netip.Addr) (Caller, error)
	// IdentifySession returns the person of a session that was found by other means than a token.
	// The errors are those of Identify.
	IdentifySession(ctx context.Context, id string, from netip.Addr) (Caller, error)
	// IdentifyVerified returns the owner of an access token of a company provider, from its payload, for
	// a sender who has verified its signature and whom the service trusts. The errors are those of
	// IdentifyReader; that for an issuer who is no provider is fault.Unauthenticated.
	IdentifyVerified(ctx context.Context, payload []byte, from netip.Addr) (Caller, error)
	// IdentifyCall is IdentifyReader for a call of a tool server, which only decisions about calls may use. It
	// accepts tokens of the authorization server for tool servers, which are good nowhere else, and refuses
	// those for this registry.
	IdentifyCall(ctx context.Context, token string, from netip.Addr) (Caller, error)
}

// Caller is who calls a use case: a person with a session or by a token, a service account by a
// token, a publisher, the owner of an access token of a company provider, or an operator. An Authority makes it from what a request proves; it cannot be changed. The zero value may do
// nothing.
type Caller struct {
	kind      kind
	holder    registry.Holder
	session   string
	trust     Trust
	publisher *Publisher
	token     *Token
	foreign   *Foreign
	granted   *Granted
	address   netip.Addr
}

type kind uint8

const (
	unknown kind = iota
	person
	serviceAccount
	provedPublisher
	foreigner
	visitor
	operator
	watcher
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

// Token is a token of a person or of a service account. It counts as FULL_TRUST within its scopes,
// because trust was given when it was made.
type Token struct {
	Owner  registry.Holder
	Prefix string // by which people recognise it
	Scopes scope.Set
	// Networks are those from which the token is good; empty for everywhere.
	Networks []netip.Prefix
}

// NewToken returns the owner of a token, a person or a service account, as the caller of a request.
// Only an Authority may call it.
func NewToken(t Token, from netip.Addr) Caller {
	c := Caller{kind: person, holder: t.Owner, trust: Trust{Level: audit.TrustToken}, token: &t, address: from}
	if _, ok := t.Owner.Service(); ok {
		c.kind = serviceAccount
	}
	return c
}

// NewPerson returns a person as the caller of a request. Only an Authority may call it.
func NewPerson(p Person, from netip.Addr) Caller {
	return Caller{kind: person, holder: p.UserID, session: p.SessionID, trust: p.Trust, address: from}
}

// Foreign is the owner of an access token of a company provider (contract C-44), who may only read. It never changes.
type Foreign struct {
	Issuer, Subject string
	// Holder is the user id of the person to whom the identity is linked; empty if it is not linked.
	Holder string
	Groups []string // PROVIDER/GROUP, as the token has them
	Reads  bool     // the token has the scope for reading the registry
}

// The scopes of tokens that others issue, or the authorization server, for reading and changing the
// registry.
const (
	ReadScope  scope.Scope = "mcp-registry:read"
	WriteScope scope.Scope = "mcp-registry:write"
)

// Granted is how an application calls for a person, by a token of the authorization server (contract T-3,
// T-16). It never changes.
type Granted struct {
	UserID    registry.Holder
	SessionID string // in which it was granted; empty if the provider of a company has granted it
	Client    string
	Trust     Trust     // of a token for a tool server the live level only
	Scopes    scope.Set // of a token for this registry
	// Resource is for which tool servers the token is; nil for this registry.
	Resource *access.Resource
	Groups   []string // PROVIDER/GROUP, in place of those of the person; nil for those
}

// NewGranted returns an application as the caller of a request. With a token for this registry it is the
// person within the scopes; with one for tool servers it may do nothing here. Only an Authority may call
// it.
func NewGranted(g Granted, from netip.Addr) Caller {
	c := Caller{kind: person, holder: g.UserID, session: g.SessionID, trust: g.Trust, granted: &g, address: from}
	if g.Resource != nil {
		c.kind = visitor
	}
	return c
}

// Granted returns how an application calls; nil for other callers.
func (c Caller) Granted() *Granted { return c.granted }

// NewForeign returns the owner of an access token of a company provider as the caller of a request.
// Only an Authority may call it.
func NewForeign(f *Foreign, from netip.Addr) Caller {
	return Caller{kind: foreigner, foreign: f, address: from}
}

// Foreign returns the owner of an access token of a company provider; nil for other callers. It is the
// same one for the calls with a token within a second.
func (c Caller) Foreign() *Foreign { return c.foreign }

// NewPublisher returns a publisher as the caller of a request. Only an Authority may call it.
func NewPublisher(p Publisher, from netip.Addr) Caller {
	return Caller{kind: provedPublisher, publisher: &p, address: from}
}

// Operator returns the caller of operator commands, which may do everything. Only those may call
// it, and what checks the grant to operate.
func Operator() Caller { return Caller{kind: operator} }

// Watcher returns the service itself as it reads the tools of remotes, which has no grants.
func Watcher() Caller { return Caller{kind: watcher} }

// IsRemote reports whether the caller sent a request: it is neither an operator, nor the service itself, nor no one.
func (c Caller) IsRemote() bool { return c.kind != unknown && c.kind != operator && c.kind != watcher }

// IsOperator reports whether the caller is an operator, of whom no use case knows the name.
func (c Caller) IsOperator() bool { return c.kind == operator }

// Person returns the holder of grants that the caller is, a person or a service account; it is empty
// for an operator. It returns fault.Forbidden for a publisher and for the owner of a foreign token.
func (c Caller) Person() (registry.Holder, error) {
	switch c.kind {
	case person, serviceAccount, operator:
		return c.holder, nil
	case provedPublisher:
		return "", fault.New(fault.Forbidden,
			"the token of a publisher may only publish and change status: sign in as a person")
	case foreigner:
		return "", fault.New(fault.Forbidden, "the token of a company may only read the registry: sign in as a person")
	case visitor:
		return "", fault.New(fault.Unauthenticated, "the access token is for another server")
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

// Token returns the token by which the caller acts; ok is false without one.
func (c Caller) Token() (t Token, ok bool) {
	if c.token == nil {
		return Token{}, false
	}
	return *c.token, true
}

// Allows reports whether the caller may use its grants for an action, which the scopes of a token
// may forbid.
func (c Caller) Allows(a registry.Action) bool { return c.RequireScope(actionScope(a)) == nil }

func actionScope(a registry.Action) scope.Scope {
	switch a {
	case registry.ActionPublish:
		return scope.Publish
	case registry.ActionEdit:
		return scope.Edit
	case registry.ActionReview:
		return scope.Review
	}
	return scope.Admin
}

// RequireAction returns the error of RequireScope for the scopes of some actions.
func (c Caller) RequireAction(oneOf ...registry.Action) error {
	scopes := each.Map(oneOf, actionScope)
	return c.RequireScope(scopes...)
}

// RequireScope returns the error of scope.Insufficient if the caller acts by a token with none of
// the scopes, or by a foreign one.
func (c Caller) RequireScope(oneOf ...scope.Scope) error {
	switch {
	case c.kind == foreigner:
		return scope.Insufficient(oneOf...)
	case c.granted != nil:
		return c.granted.require(oneOf)
	case c.token == nil || slices.ContainsFunc(oneOf, c.token.Scopes.Has):
		return nil
	}
	return scope.Insufficient(oneOf...)
}

// require returns the error of scope.Insufficient, with the scopes as the authorization server has them.
func (g *Granted) require(oneOf []scope.Scope) error {
	if slices.ContainsFunc(oneOf, g.Scopes.Has) {
		return nil
	}
	needed := slices.Clone(oneOf)
	for i, one := range needed {
		switch one {
		case scope.Read:
			needed[i] = ReadScope
		case scope.Publish, scope.Edit:
			needed[i] = WriteScope
		}
	}
	return scope.Insufficient(slices.Compact(needed)...)
}

// IsToken reports whether the caller acts by a token that leads to no others: one of its own, or one of the
// authorization server.
func (c Caller) IsToken() bool { return c.token != nil || c.granted != nil }

// RequireAll returns the error of scope.Insufficient if the caller acts by a token without some of
// the scopes, which it would give to others.
func (c Caller) RequireAll(s scope.Set) error {
	missing := slices.DeleteFunc(slices.Clone(s), func(one scope.Scope) bool { return c.RequireScope(one) == nil })
	if len(missing) > 0 {
		return scope.Insufficient(missing...)
	}
	return nil
}

// RequireNetworks returns fault.Forbidden if the caller acts by a token that is good from some
// networks only, and would give one that is good from others; empty for everywhere.
func (c Caller) RequireNetworks(wanted []netip.Prefix) error {
	if c.token == nil || len(c.token.Networks) == 0 {
		return nil
	}
	outside := func(p netip.Prefix) bool {
		return !slices.ContainsFunc(c.token.Networks, func(held netip.Prefix) bool {
			return held.Bits() <= p.Bits() && held.Contains(p.Addr())
		})
	}
	if len(wanted) == 0 || slices.ContainsFunc(wanted, outside) {
		return fault.New(fault.Forbidden,
			"the token is good from some networks only, and cannot make one that is good from others")
	}
	return nil
}

// RequireReader returns the person, or fault.Forbidden below the trust level for reading what is
// not public, or without the scope for it. The other errors are those of Person, as they are of the
// next two methods.
func (c Caller) RequireReader() (registry.Holder, error) { return c.require(c.trust.Read, scope.Read) }

// MayRead returns the error of RequireReader, except for a publisher, who may read, and for the owner of
// a foreign token, who may by its scope.
func (c Caller) MayRead() error {
	switch {
	case c.kind == provedPublisher, c.kind == foreigner && c.foreign.Reads:
		return nil
	case c.kind == foreigner:
		return scope.Insufficient(ReadScope)
	}
	_, err := c.RequireReader()
	return err
}

// RequireWriter returns the person, or fault.Forbidden below the trust level for changes of the
// registry. The caller must check the scope, by RequireAction.
func (c Caller) RequireWriter() (registry.Holder, error) { return c.require(c.trust.Write) }

// RequireFullTrust returns the person, or fault.Forbidden below FULL_TRUST or without one of the
// scopes.
func (c Caller) RequireFullTrust(oneOf ...scope.Scope) (registry.Holder, error) {
	return c.require(c.trust.Full, oneOf...)
}

func (c Caller) require(refusal error, scopes ...scope.Scope) (registry.Holder, error) {
	holder, err := c.Person()
	if err == nil && len(scopes) > 0 {
		err = c.RequireScope(scopes...)
	}
	if err == nil {
		err = refusal
	}
	return holder, err
}
