package federating

import (
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// boundSealer opens a secret only for what it is about.
type boundSealer struct{ secrets.Sealer }

func (boundSealer) Seal(secret []byte, about string) ([]byte, error) {
	return []byte(about + "|" + string(secret)), nil
}

func (boundSealer) Open(s []byte, about string) ([]byte, error) {
	if secret, ok := strings.CutPrefix(string(s), about+"|"); ok {
		return []byte(secret), nil
	}
	return nil, fault.New(fault.Invalid, "of something else")
}

// TestSecretsBelongToIssuers checks that the secret of a client and a refresh token cannot be read once
// their provider has another issuer, also those that an earlier version has sealed (N6).
func TestSecretsBelongToIssuers(t *testing.T) {
	ctx, db := t.Context(), fakedb.New()
	p := company.Provider{Name: "acme", Issuer: "https://acme.example", ClientID: "tollgate"}
	p.Secret, _ = boundSealer{}.Seal([]byte("secret"), providerSeal(&p).old)
	store := fakedb.NewProviders(db)
	must.Succeed(t, store.Save(ctx, p))
	s := &Service{ports: Ports{Providers: store, Sealer: boundSealer{}, Transactions: db}}
	if c, err := s.client(&p, ""); err != nil || c.ClientSecret != "secret" {
		t.Errorf("before it is sealed anew: %q, %v", c.ClientSecret, err)
	}
	for range 2 { // the second time there is nothing to do
		must.Succeed(t, s.resealAll(ctx))
	}
	all, err := store.List(ctx)
	must.Succeed(t, err)
	if c, err := s.client(&all[0], ""); err != nil || c.ClientSecret != "secret" {
		t.Errorf("after it was sealed anew: %q, %v", c.ClientSecret, err)
	}
	for name, change := range map[string]func(*company.Provider){
		"another issuer": func(p *company.Provider) { p.Issuer = "https://evil.example" },
		"another client": func(p *company.Provider) { p.ClientID = "evil" },
	} {
		other := all[0]
		change(&other)
		if c, err := s.client(&other, ""); !fault.Is(err, fault.Unavailable) || c.ClientSecret != "" {
			t.Errorf("%s gets %q, %v", name, c.ClientSecret, err)
		}
	}
	sealed, err := s.sealRefresh("l", p.Issuer, "nonce", "token")
	must.Succeed(t, err)
	if _, _, err := openSealed(boundSealer{}, sealed, refreshSeal("l", "https://evil.example")); err == nil {
		t.Error("another issuer gets the refresh token")
	}
}

// TestOldRefreshTokenIsSealedAnew checks that a refresh token that an earlier version has sealed is sealed
// with its issuer at the next check, also if the provider gives no other one.
func TestOldRefreshTokenIsSealedAnew(t *testing.T) {
	fx := newFixture(t)
	fx.ports.Sealer = boundSealer{}
	service, err := New(fx.service.config, fx.ports)
	must.Succeed(t, err)
	fx.signIn("s", "good", fx.clock.Now())
	login := fx.login("s")
	from := login.RecheckAt
	login.Refresh, _ = boundSealer{}.Seal([]byte("nonce token"), refreshSeal("s", "https://good").old)
	must.Succeed(t, fx.ports.Logins.Renew(t.Context(), login, from))
	fx.clock.Advance(time.Minute)
	must.Succeed(t, service.recheck(t.Context(), login))
	sealed := fx.login("s").Refresh
	if secret, old, err := openSealed(boundSealer{}, sealed, refreshSeal("s", "https://good")); err != nil || old || string(secret) != "nonce token" {
		t.Errorf("after the check: %q, old %v, %v", secret, old, err)
	}
}
