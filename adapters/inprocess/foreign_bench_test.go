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
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/access"
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
	checker := authaccess.NewChecker(signer, fakedb.NewSessions(db), memory.NewSessions(clk, memory.Config{}), fakedb.NewAPITokens(db), clk)
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

// BenchmarkListings measures how long it takes to know what is listed after one of 10,000 servers has
// changed, and when all are read.
//
//	go test -run xxx -bench Listings ./adapters/inprocess
func BenchmarkListings(b *testing.B) {
	for kind, open := range map[string]func() *relationaltest.Database{
		relationaltest.SQLite: func() *relationaltest.Database { return relationaltest.NewSQLite(b) },
		relationaltest.PostgreSQL: func() *relationaltest.Database {
			return relationaltest.OpenPostgres(b, postgrestest.NewEmpty(b))
		},
	} {
		db := open()
		if _, err := db.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		fillServers(b, db, kind, 10_000)
		stores := registryrecords.NewStores(db.DB, registryrecords.Config{})
		ports := inprocess.ListingPorts{Servers: stores.Snapshot, Marks: stores.Marks, Quarantine: stores.Quarantine}
		kept := inprocess.NewListings(ports)
		var known []access.Listing
		b.Run(kind+"/all", func(b *testing.B) {
			for b.Loop() {
				var err error
				if known, err = inprocess.NewListings(ports).Listings(b.Context()); err != nil || len(known) != 10_000 {
					b.Fatal(len(known), err)
				}
			}
		})
		if _, err := kept.Listings(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Run(kind+"/one", func(b *testing.B) {
			for b.Loop() {
				change := "UPDATE versions SET updated_at = updated_at + 1 WHERE name = 'com.example/s00007'"
				if kind == relationaltest.PostgreSQL {
					change = strings.Replace(change, "+ 1", "+ interval '1 second'", 1)
				}
				if err := db.Execute(b.Context(), change); err != nil {
					b.Fatal(err)
				}
				if _, err := kept.Listings(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(kind+"/compile", func(b *testing.B) {
			for b.Loop() {
				access.Compile(access.Options{}, nil, known)
			}
		})
	}
}

func fillServers(b *testing.B, db *relationaltest.Database, kind string, servers int) {
	b.Helper()
	at, flagged, document := "'2026-01-01T00:00:00Z'", "true", "convert_to(n.column2, 'UTF8')"
	if kind == relationaltest.SQLite {
		at, flagged, document = "1767225600000000", "1", "CAST(n.column2 AS BLOB)"
	}
	for first := 0; first < servers; first += 1000 {
		var names, rows []string
		for i := first; i < first+1000; i++ {
			name := fmt.Sprintf("com.example/s%05d", i)
			names = append(names, "('"+name+"')")
			rows = append(rows, fmt.Sprintf(`('%s', '{"name":"%s","description":"%s","remotes":[{"type":"streamable-http","url":"https://s%d.example.com/mcp"}]}')`,
				name, name, strings.Repeat("word ", 200), i))
		}
		for _, statement := range []string{
			"INSERT INTO servers (name) VALUES " + strings.Join(names, ","),
			`INSERT INTO versions (name, version, status, status_message, status_changed_at, published_at, updated_at, is_latest, document)
				SELECT n.column1, '1.0.0', 'active', '', ` + strings.Join([]string{at, at, at, flagged, document}, ", ") +
				" FROM (VALUES " + strings.Join(rows, ",") + ") AS n",
		} {
			if err := db.Execute(b.Context(), statement); err != nil {
				b.Fatal(err)
			}
		}
	}
}
