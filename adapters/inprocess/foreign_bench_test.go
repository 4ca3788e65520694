package inprocess_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/jwt"
	"github.com/tollgate-dev/tollgate/adapters/memory"
	"github.com/tollgate-dev/tollgate/core/auth"
	authaccess "github.com/tollgate-dev/tollgate/core/auth/access"
	"github.com/tollgate-dev/tollgate/core/auth/company"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/secrets"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// BenchmarkIdentify finds out whose tokens are that were seen less than a second ago: one of a session,
// one of a person, and access tokens of a provider.
//
//	go test -run xxx -bench Identify ./adapters/inprocess
func BenchmarkIdentify(b *testing.B) {
	db, clk, ctx := fakedb.New(), clocktest.NewManual(noon), b.Context()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	const user, session = "11111111-2222-4333-8444-555555555555", "33333333-2222-4333-8444-555555555555"
	must(fakedb.NewAccounts(db).Create(ctx, auth.Account{ID: user, Email: "ada@example.com", State: auth.AccountActive}))
	_, _, err := fakedb.NewDevices(db).Ensure(ctx, auth.Device{ID: "d", UserID: user, Identity: "d"})
	must(err)
	must(fakedb.NewSessions(db).Create(ctx, auth.Session{
		ID: session, UserID: user, DeviceID: "d", TrustLevel: auth.FullTrust, CreatedAt: noon, LastActivity: noon,
		ExpiresAt: noon.Add(time.Hour),
	}))
	must(fakedb.NewProviders(db).Save(ctx, company.Provider{
		Name: "acme", Issuer: "https://login.acme.example", Audiences: []string{"api"}, ScopeClaim: "scope", GroupsClaim: "groups",
	}))
	signer, end, err := jwt.Open(ctx, jwt.Config{Issuer: "tollgate", Audience: "tollgate", DataDir: b.TempDir()},
		fakedb.NewKeyring(db), clk, logrus.NewEntry(logrus.New()))
	must(err)
	defer end()
	checker := authaccess.NewChecker(signer, fakedb.NewSessions(db), memory.NewSessions(clk, memory.Config{}), fakedb.NewAPITokens(db), clk, func() uint64 { return 0 }, nil)
	tokens := map[string]string{}
	own, err := signer.Sign(ctx, secrets.TokenClaims{
		ID: "j", UserID: user, SessionID: session, IssuedAt: noon, ExpiresAt: noon.Add(time.Hour),
	})
	must(err)
	tokens["session"] = string(own)
	for name, groups := range map[string]int{"foreign": 5, "foreign with 200 groups": 200} {
		list := make([]string, groups)
		for i := range list {
			list[i] = fmt.Sprintf("%q", fmt.Sprintf("group-%d", i))
		}
		tokens[name] = fmt.Sprintf(`{"iss":"https://login.acme.example","aud":"api","sub":"u1","iat":%d,"exp":%d,"scope":%q,"groups":[%s],"x":%q}`,
			noon.Unix(), noon.Add(time.Hour).Unix(), authority.ReadScope, strings.Join(list, ","), strings.Repeat("x", 500))
	}
	a := inprocess.NewAuthority(checker, newForeign(db, trustingVerifier{}), auth.FullTrust)
	for name, token := range tokens {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				who, err := a.IdentifyReader(b.Context(), token, netip.Addr{})
				if err != nil || who.MayRead() != nil || who.RequireScope(scope.Read) != nil && who.Foreign() == nil {
					b.Fatal(err)
				}
			}
		})
	}
}
