package operate_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/operate"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// callers is an authority whose tokens are the names of people; "low" has no full trust.
type callers struct{ acts []authority.Act }

func (c *callers) Identify(_ context.Context, token string) (authority.Caller, error) {
	switch token {
	case "":
		return authority.Caller{}, fault.New(fault.Unauthenticated, "no token")
	case "ci":
		return authority.Caller{Publisher: &authority.Publisher{}}, nil
	case "low":
		return authority.Caller{UserID: "ada", TrustLevel: "UNVERIFIED"}, nil
	}
	return authority.Caller{UserID: token, TrustLevel: "FULL_TRUST"}, nil
}

func (c *callers) RequireTrust(_ context.Context, who authority.Caller) error {
	if who.TrustLevel != "FULL_TRUST" {
		return fault.New(fault.Forbidden, "step up first").WithDetail("challenge", "Bearer")
	}
	return nil
}

func (c *callers) RequireVerified(context.Context, authority.Caller) error { return nil }

func (c *callers) RequireFullTrust(ctx context.Context, who authority.Caller) error {
	return c.RequireTrust(ctx, who)
}

func (c *callers) Record(_ context.Context, a authority.Act) error {
	c.acts = append(c.acts, a)
	return nil
}

// TestAuthorize: only a person with the grant and full trust may operate, and a refusal for the grant is
// recorded with the address.
func TestAuthorize(t *testing.T) {
	grants := fakedb.NewGrants(fakedb.New())
	for _, g := range [][3]string{{"ada", "operate", ""}, {"bea", "publish", "*"}, {"bea", "edit", "*"}, {"bea", "review", "*"}} {
		grant, err := registry.ParseGrant(registry.Holder(g[0]), g[1], g[2])
		if err == nil {
			err = grants.Add(t.Context(), grant)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	address := netip.MustParseAddr("192.0.2.1")
	for token, want := range map[string]struct {
		kind     fault.Kind
		recorded int
		stepUp   bool
	}{
		"ada": {}, "": {kind: fault.Unauthenticated}, "ci": {kind: fault.Forbidden}, "bea": {kind: fault.Forbidden, recorded: 1},
		"low": {kind: fault.Forbidden, stepUp: true},
	} {
		var who callers
		holder, err := operate.New(grants, &who).Authorize(t.Context(), operate.Request{Token: token, Address: address})
		f, refused := fault.As(err)
		if refused != (token != "ada") || refused && f.Kind != want.kind || len(who.acts) != want.recorded || !refused && holder != "ada" {
			t.Errorf("%q: %q, %v, recorded %v", token, holder, err, who.acts)
		}
		if refused && (f.Details["challenge"] != nil) != want.stepUp {
			t.Errorf("%q: the details are %v", token, f.Details)
		}
		if len(who.acts) == 1 && (who.acts[0].Caller.Address != address || who.acts[0].Reason == "") {
			t.Errorf("%q: recorded %+v", token, who.acts[0])
		}
	}
}
