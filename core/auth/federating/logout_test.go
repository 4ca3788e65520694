package federating

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/test/must"
)

// logoutTokens verifies tokens that have no signature.
type logoutTokens struct{ identity.Providers }

func (logoutTokens) VerifyLogout(_ context.Context, _ *company.Provider, token string) ([]byte, error) {
	return []byte(token), nil
}

// failing is a store that fails with an error, if there is one.
type failing struct {
	authstore.Identities
	err error
}

func (f *failing) Find(ctx context.Context, issuer, subject string) (company.Identity, error) {
	if f.err != nil {
		return company.Identity{}, f.err
	}
	return f.Identities.Find(ctx, issuer, subject)
}

// TestRepeatedLogout checks that a provider can repeat a logout token that failed, and that one which has
// worked is good once.
func TestRepeatedLogout(t *testing.T) {
	fx := newFixture(t)
	away := fault.New(fault.Unavailable, "the database does not answer")
	store := &failing{fx.ports.Identities, away}
	fx.ports.Identities, fx.ports.Used, fx.ports.Remote = store, &used{keys: map[string]bool{}}, logoutTokens{}
	service, err := New(fx.service.config, fx.ports)
	must.Succeed(t, err)
	now := fx.clock.Now()
	token, err := json.Marshal(map[string]any{
		"iss": "https://good", "aud": "", "sub": "u1", "jti": "1", "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}},
	})
	must.Succeed(t, err)
	for range 2 {
		if err := service.LogOut(t.Context(), "good", string(token)); !fault.Is(err, fault.Unavailable) {
			t.Errorf("while the database is away the error is %v", err)
		}
	}
	store.err = nil
	must.Succeed(t, service.LogOut(t.Context(), "good", string(token)))
	if f, ok := fault.As(service.LogOut(t.Context(), "good", string(token))); !ok || f.Code != "used" {
		t.Errorf("the second time it works the error is %v", f)
	}
}
