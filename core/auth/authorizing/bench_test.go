package authorizing_test

import (
	"context"
	"crypto/ed25519"
	"io"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/sirupsen/logrus"
	"github.com/valyala/fasthttp"

	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/rest/tokenapi"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/auditing"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// instant are stores with one record each, which they have at once and never change.
type instant struct {
	family  oauth.Family
	session auth.Session
	account auth.Account
}

func (*instant) Atomically(ctx context.Context, do func(context.Context) error) error { return do(ctx) }

type instantFamilies struct {
	authorization.Families
	*instant
}

func (s instantFamilies) Get(context.Context, oauth.FamilyID) (oauth.Family, error) {
	return s.family, nil
}

func (s instantFamilies) Update(_ context.Context, _ oauth.FamilyID, change func(*oauth.Family) error) error {
	one := s.family
	return change(&one)
}

type instantSecrets struct {
	authorization.Secrets
	*instant
}

func (s instantSecrets) Find(_ context.Context, hash auth.TokenHash) (oauth.Secret, error) {
	return oauth.Secret{Hash: hash, Family: s.family.ID, IssuedAt: s.family.UsedAt, ExpiresAt: s.family.ExpiresAt}, nil
}
func (instantSecrets) Add(context.Context, oauth.Secret) error                { return nil }
func (instantSecrets) Spend(context.Context, auth.TokenHash, time.Time) error { return nil }

type instantSessions struct {
	authstore.Sessions
	*instant
}

func (s instantSessions) Get(context.Context, auth.SessionID) (auth.Session, error) {
	return s.session, nil
}

func (s instantSessions) Update(_ context.Context, _ auth.SessionID, change func(*auth.Session) error) error {
	one := s.session
	return change(&one)
}

type instantAccounts struct {
	authstore.Accounts
	*instant
}

func (s instantAccounts) Get(context.Context, auth.UserID) (auth.Account, error) {
	return s.account, nil
}

type instantLog struct{ authstore.AuditLog }

func (instantLog) Append(context.Context, ...audit.Event) error { return nil }

// BenchmarkRefresh compares a refresh, from the bytes of its form to those of its response, with an empty handler
// of the same server and with a signature (contract T, cost). What a database costs is not in it.
func BenchmarkRefresh(b *testing.B) {
	log := logrus.New()
	log.SetOutput(io.Discard)
	stores := &instant{}
	fx := newFixture(b, func(fx *fixture) {
		signer, done, err := jwt.Open(b.Context(), jwt.Config{
			Issuer: "tollgate", Audience: "tollgate", DataDir: b.TempDir(), OAuthIssuer: issuer,
		}, fakedb.NewKeyring(fakedb.New()), fx.clock, logrus.NewEntry(log))
		must.Succeed(b, err)
		b.Cleanup(done)
		p := &fx.ports
		p.Signer, p.Transactions, p.Changes = signer, stores, func() uint64 { return 1 }
		p.Families, p.Secrets = instantFamilies{p.Families, stores}, instantSecrets{p.Secrets, stores}
		p.Trail = auditing.New(instantLog{}, fx.clock, p.Entropy)
	})
	now := fx.clock.Now()
	stores.session, stores.account = fx.session, auth.Account{ID: fx.session.UserID, State: auth.AccountActive}
	stores.family = oauth.Family{
		ID: "11111111-2222-4333-8444-555555555555", UserID: fx.session.UserID, SessionID: fx.session.ID, Client: "app",
		Resource: wiki, Scopes: []string{"read", "write"}, CreatedAt: now, UsedAt: now, ExpiresAt: now.Add(oauth.FamilyTTL),
	}
	fx.ports.Sessions, fx.ports.Accounts = instantSessions{fx.ports.Sessions, stores}, instantAccounts{fx.ports.Accounts, stores}
	fx.renew()

	app := fiber.New(fiber.Config{CaseSensitive: true, StrictRouting: true})
	app.Post("/empty", func(c *fiber.Ctx) error { return c.SendString("ok") })
	tokenapi.New(tokenapi.UseCases{Token: fx.service.Token, Issuer: issuer}).Mount(app)
	handle := app.Handler()
	for name, path := range map[string]string{"empty handler": "/empty", "refresh": "/oauth2/token"} {
		b.Run(name, func(b *testing.B) {
			var c fasthttp.RequestCtx
			c.Request.Header.SetMethod("POST")
			c.Request.SetRequestURI(path)
			c.Request.Header.SetContentType("application/x-www-form-urlencoded")
			c.Request.SetBodyString(refreshForm("a refresh token that is long enough to be one").Encode())
			b.ReportAllocs()
			for b.Loop() {
				c.Response.Reset()
				handle(&c)
			}
			if c.Response.StatusCode() != fiber.StatusOK {
				b.Fatal(c.Response.String())
			}
		})
	}
	b.Run("signature", func(b *testing.B) {
		_, key, err := ed25519.GenerateKey(nil)
		must.Succeed(b, err)
		text := make([]byte, 600) // as long as a token
		for b.Loop() {
			ed25519.Sign(key, text)
		}
	})
}
