package registryrecords_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestPolicies(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunPolicies(t, func(t *testing.T) registrystoretest.PolicyStores {
				db := open(t)
				return registrystoretest.PolicyStores{Policies: newStores(db).Policies, Runner: db.DB}
			})
		})
	}
}

// TestBrokenPolicies checks that a policy that breaks a rule of the model is not returned, and is
// not the mistake of the caller.
func TestBrokenPolicies(t *testing.T) {
	pattern, err := registry.ParsePattern("com.example/*")
	if err != nil {
		t.Fatal(err)
	}
	domain, err := publisher.ParseDomain("example.com")
	if err != nil {
		t.Fatal(err)
	}
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			policies := newStores(db).Policies
			for column, value := range map[string]string{
				"method": "ftp", "pattern": "", "actions": "publish,", "domain": "", "key_fingerprint": "rsa:",
				"subject": "*", "claims": "[]", "bound": "{",
			} {
				id := publisher.PolicyID(column)
				if err := policies.Add(t.Context(), publisher.Policy{
					ID: id, Method: publisher.DNS, Pattern: pattern, Actions: []publisher.Action{publisher.Publish},
					Domain: domain, CreatedAt: epoch,
				}); err != nil {
					t.Fatal(err)
				}
				if err := db.Execute(t.Context(),
					"UPDATE publisher_policies SET "+column+" = '"+value+"' WHERE id = '"+column+"'"); err != nil {
					t.Fatal(err)
				}
				if found, err := policies.Find(t.Context(), registrystore.PolicyQuery{
					IDs: []publisher.PolicyID{id},
				}); !fault.Is(err, fault.Internal) {
					t.Errorf("Find with a broken %s = %+v, %v, want fault.Internal", column, found, err)
				}
				if err := policies.Update(t.Context(), id, func(*publisher.Policy) error { return nil }); !fault.Is(err,
					fault.Internal) {
					t.Errorf("Update with a broken %s: %v, want fault.Internal", column, err)
				}
			}
		})
	}
}

// insertPolicies returns the statements that add 3,000 policies of each method. One of a hundred
// policies by domain was checked long ago.
func insertPolicies(kind string) []string {
	numbers, at := "generate_series(1, 3000) AS n (i)",
		"CASE WHEN n.i % 100 = 0 THEN timestamptz '2026-01-01T00:00:00Z' ELSE timestamptz '2026-06-01T00:00:00Z' END"
	if kind == relationaltest.SQLite {
		numbers = "(WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) SELECT i FROM n) AS n"
		at = "CASE WHEN n.i % 100 = 0 THEN unixepoch('2026-01-01') ELSE unixepoch('2026-06-01') END * 1000000"
	}
	var statements []string
	for _, method := range []string{"dns", "http", "oidc", "github-oidc"} {
		domain, issuer := "'d' || (n.i % 1000) || '.example'", "''"
		if strings.HasSuffix(method, "oidc") {
			domain, issuer = "''", "'https://i' || (n.i % 1000) || '.example'"
		}
		statements = append(statements,
			`INSERT INTO publisher_policies (id, method, pattern, actions, domain, key_fingerprint, issuer, subject, created_by, created_at, used_key, checked_at)
			SELECT '`+method+`-' || (n.i * 7919 % 3001), '`+method+`', 'com.example/*', 'publish', `+domain+`, '', `+
				issuer+`, '', '', `+at+`, '', `+at+" FROM "+numbers)
	}
	return append(statements, map[string]string{
		relationaltest.PostgreSQL: "VACUUM ANALYZE publisher_policies", relationaltest.SQLite: "ANALYZE",
	}[kind])
}

// TestPoliciesAreFoundByIndexes checks that no lookup of policies reads the whole table, and that
// lookups by domain and by issuer read nothing but the policies of that domain or issuer.
func TestPoliciesAreFoundByIndexes(t *testing.T) {
	domain, err := publisher.ParseDomain("d7.example")
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		query registrystore.PolicyQuery
		index string
	}{
		"by domain": {
			registrystore.PolicyQuery{Method: publisher.DNS, Domain: domain}, "publisher_policies_by_domain",
		},
		"by issuer": {
			registrystore.PolicyQuery{Method: publisher.OIDC, Issuer: "https://i7.example"},
			"publisher_policies_by_issuer",
		},
		"due checks": {
			registrystore.PolicyQuery{CheckedBefore: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)},
			"publisher_policies_due",
		},
		"by IDs":    {registrystore.PolicyQuery{IDs: []publisher.PolicyID{"dns-1", "oidc-2"}}, ""},
		"next page": {registrystore.PolicyQuery{After: "http-1", Limit: 100}, ""},
	}
	whole := map[string]*regexp.Regexp{
		relationaltest.PostgreSQL: regexp.MustCompile("Seq Scan"), relationaltest.SQLite: regexp.MustCompile("SCAN"),
	}
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			for _, statement := range insertPolicies(kind) {
				if err := db.Execute(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			policies := newStores(db).Policies
			for name, c := range cases {
				plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
					found, err := policies.Find(ctx, c.query)
					if err == nil && len(found) == 0 {
						t.Errorf("%s: no policies", name)
					}
					return err
				})
				if err != nil || len(plans) != 1 {
					t.Fatalf("%s: %d plans, %v", name, len(plans), err)
				}
				for query, plan := range plans {
					if whole[kind].MatchString(plan) || !strings.Contains(plan, c.index) {
						t.Errorf("%s does not use the index %s:\n%s\n%s", name, c.index, query, plan)
					}
				}
			}
		})
	}
}
