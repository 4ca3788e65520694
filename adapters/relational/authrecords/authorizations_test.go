package authrecords_test

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/authorization/authorizationtest"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestAuthorizations runs the contract tests of the stores of the authorization server on every kind of
// database.
func TestAuthorizations(t *testing.T) {
	relationaltest.RunContract(t, authorizationtest.Run, openAuthorizations)
}

func openAuthorizations(t *testing.T, db *relationaltest.Database) authorizationtest.Stores {
	t.Helper()
	all := newStores(t, db.DB)
	return authorizationtest.Stores{
		Requests: all.Requests, Families: all.Families, Secrets: all.Secrets, Consents: all.Consents,
		Sightings: all.Sightings, Runner: db.DB, Accounts: all.Accounts, Devices: all.Devices,
		Sessions: struct {
			authstore.Sessions
			authstore.SessionRetention
		}{all.Sessions, all.SessionRetention},
	}
}

// TestAuthorizationsGoWithPerson deletes an account: nothing of its authorizations stays, and those of
// others do.
func TestAuthorizationsGoWithPerson(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		s := openAuthorizations(t, db)
		authorizationtest.AddPeople(t, s)
		for person := range 2 {
			user := authstoretest.Account(person).ID
			byAssertion := authorizationtest.Family(person, 10+person)
			byAssertion.SessionID = ""
			must.Succeed(t, s.Families.Add(t.Context(), authorizationtest.Family(person, person)))
			must.Succeed(t, s.Families.Add(t.Context(), byAssertion))
			must.Succeed(t, s.Secrets.Add(t.Context(), oauth.Secret{
				Hash: auth.TokenHash{byte(person)}, Family: byAssertion.ID, IssuedAt: time.Unix(0, 0), ExpiresAt: time.Unix(1, 0),
			}))
			must.Succeed(t, s.Consents.Put(t.Context(), oauth.Consent{
				UserID: user, Client: "client", GivenAt: time.Unix(0, 0), ExpiresAt: time.Unix(1, 0),
			}))
		}
		user := fmt.Sprintf("= '%s'", authstoretest.Account(0).ID)
		db.Fill(t, "DELETE FROM sessions WHERE user_id "+user, "DELETE FROM devices WHERE user_id "+user,
			"DELETE FROM accounts WHERE id "+user)
		for table, want := range map[string]int{"oauth_families": 2, "oauth_secrets": 1, "oauth_consents": 1} {
			if n, err := db.QueryInt(t.Context(), "SELECT count(*) FROM "+table); err != nil || n != want {
				t.Errorf("%s has %d rows, %v, want %d", table, n, err, want)
			}
		}
	})
}

// TestAuthorizationsUseIndexes checks the plans of what is asked at each token and page.
func TestAuthorizationsUseIndexes(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		db.Fill(t, insertOldRecords(db.Kind())...)
		hash := map[string]string{relationaltest.PostgreSQL: "sha256(hash)", relationaltest.SQLite: "randomblob(32)"}[db.Kind()]
		db.Fill(t, "INSERT INTO oauth_sightings (hash, url, name, problem, seen_at) SELECT "+hash+
			", 'https://app.example/', 'App', '', created_at FROM oauth_requests")
		fullScan := map[string]*regexp.Regexp{
			relationaltest.PostgreSQL: fullScan[relationaltest.PostgreSQL],
			relationaltest.SQLite:     regexp.MustCompile(`SCAN (family|consent|sighting)_row($|\s+[^U])|AUTOMATIC`),
		}
		s, now := openAuthorizations(t, db), time.Date(2026, time.January, 1, 0, 20, 30, 0, time.UTC)
		nobody := auth.UserID("00000000-1234-4abc-8def-999999999999")
		for name, call := range map[string]func(ctx context.Context) error{
			"Active": func(ctx context.Context) error { _, err := s.Families.Active(ctx, nobody, now, 9); return err },
			"Get": func(ctx context.Context) error {
				_, err := s.Families.Get(ctx, "00000000-1234-4abc-8def-000000000007")
				return err
			},
			"End, person": func(ctx context.Context) error {
				_, err := s.Families.End(ctx, authorization.FamilyFilter{UserID: nobody}, now, "x")
				return err
			},
			"End, client": func(ctx context.Context) error {
				_, err := s.Families.End(ctx, authorization.FamilyFilter{Client: "few"}, now, "x")
				return err
			},
			"End, subject": func(ctx context.Context) error {
				_, err := s.Families.End(ctx, authorization.FamilyFilter{Provider: "p", Subject: "s17"}, now, "x")
				return err
			},
			"Remove": func(ctx context.Context) error {
				return s.Consents.Remove(ctx, authorization.FamilyFilter{UserID: nobody, Client: "few"})
			},
			"List": func(ctx context.Context) error { _, err := s.Sightings.List(ctx, 9); return err },
		} {
			plans, err := db.Plans(t.Context(), call)
			if len(plans) == 0 {
				t.Errorf("%s: no plans, %v", name, err)
			}
			for query, plan := range plans {
				if fullScan[db.Kind()].MatchString(plan) {
					t.Errorf("%s reads a whole table:\n%.300s\n%s", name, query, plan)
				}
			}
		}
	})
}
