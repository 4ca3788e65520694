// Package authoritytest makes callers for the tests of use cases.
package authoritytest

import (
	"context"
	"net/netip"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/authority"
)

// The refusals of sessions whose trust is too low.
var (
	ErrStepUp = fault.New(fault.Forbidden, "step up first").WithDetail("challenge", jsonvalue.Text("Bearer"))
	ErrVerify = fault.New(fault.Forbidden, "verify first").WithDetail("challenge", jsonvalue.Text("Bearer"))
)

// Address is the address of callers whose address does not matter.
func Address() netip.Addr { return netip.MustParseAddr("192.0.2.7") }

// Person returns a person at FULL_TRUST; "NAME low" returns one at UNVERIFIED, "NAME risky" one at
// HIGH_RISK, and an empty name no one. The id of the session is that of the person.
func Person(name string) authority.Caller { return PersonFrom(name, Address()) }

// PersonFrom returns the caller of Person with another address.
func PersonFrom(name string, from netip.Addr) authority.Caller {
	level := authority.Trust{Level: "FULL_TRUST"}
	id, low := strings.CutSuffix(name, " low")
	id, risky := strings.CutSuffix(id, " risky")
	switch {
	case id == "":
		return authority.Caller{}
	case low:
		level = authority.Trust{Level: "UNVERIFIED", Write: ErrStepUp, Full: ErrStepUp}
	case risky:
		level = authority.Trust{Level: "HIGH_RISK", Read: ErrVerify, Write: ErrStepUp, Full: ErrStepUp}
	}
	return authority.NewPerson(authority.Person{UserID: registry.Holder(id), SessionID: id, Trust: level}, from)
}

// Callers is an authority whose tokens, and whose ids of sessions, are the names of people.
type Callers struct{}

// Identify implements [authority.Authority].
func (Callers) Identify(_ context.Context, token string, from netip.Addr) (authority.Caller, error) {
	c := PersonFrom(token, from)
	_, err := c.Person()
	return c, err
}

// IdentifyReader implements [authority.Authority].
func (c Callers) IdentifyReader(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	return c.Identify(ctx, token, from)
}

// IdentifyCall implements [authority.Authority].
func (c Callers) IdentifyCall(ctx context.Context, token string, from netip.Addr) (authority.Caller, error) {
	return c.Identify(ctx, token, from)
}

// IdentifySession implements [authority.Authority].
func (c Callers) IdentifySession(ctx context.Context, id string, from netip.Addr) (authority.Caller, error) {
	return c.Identify(ctx, id, from)
}

// IdentifyVerified implements [authority.Authority].
func (c Callers) IdentifyVerified(ctx context.Context, payload []byte, from netip.Addr) (authority.Caller, error) {
	return c.Identify(ctx, string(payload), from)
}
