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
)

// TestBrokenPolicies checks that a policy that breaks a rule of the model is not returned, and is
// not the mistake of the caller.
func TestBrokenPolicies(t *testing.T) {
	pattern, domain := parse(t, registry.ParsePattern, "com.example/*"), parse(t, publisher.ParseDomain, "example.com")
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		policies := newStores(db).Policies
		for column, value := range map[string]string{
			"method": "ftp", "pattern": "", "actions": "publish,", "domain": "", "key_fingerprint": "rsa:",
			"subject": "*", "claims": "[]", "bound": "{",
		} {
			id := registry.PolicyID(column)
			if err := policies.Add(t.Context(), publisher.Policy{
				ID: id, Method: publisher.DNS, Pattern: pattern, Actions: []publisher.Action{publisher.Publish},
				Domain: domain, CreatedAt: epoch,
			}); err != nil {
				t.Fatal(err)
			}
			db.Fill(t, "UPDATE publisher_policies SET "+column+" = '"+value+"' WHERE id = '"+column+"'")
			if found, err := policies.Find(t.Context(), registrystore.PolicyQuery{
				IDs: []registry.PolicyID{id},
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

// insertPolicies returns the statements that add 3,000 policies of each method. One of a hundred
// policies by domain was checked long ago.
func insertPolicies(kind string) []string {
	at := "CASE WHEN n.i % 100 = 0 THEN timestamptz '2026-01-01T00:00:00Z' ELSE timestamptz '2026-06-01T00:00:00Z' END"
	if kind == relationaltest.SQLite {
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
				issuer+`, '', '', `+at+`, '', `+at+" FROM "+numbers(kind, 3000))
	}
	return append(statements, "ANALYZE publisher_policies")
}

// checkPlansOfPolicies checks that no lookup of policies reads the whole table, and that lookups by
// domain and by issuer read nothing but the policies of that domain or issuer.
func checkPlansOfPolicies(t *testing.T, db *relationaltest.Database) {
	t.Helper()
	policies := newStores(db).Policies
	for name, c := range map[string]struct {
		query registrystore.PolicyQuery
		index string
	}{
		"by domain": {
			registrystore.PolicyQuery{Method: publisher.DNS, Domain: parse(t, publisher.ParseDomain, "d7.example")},
			"publisher_policies_by_domain",
		},
		"by issuer": {
			registrystore.PolicyQuery{Method: publisher.OIDC, Issuer: "https://i7.example"},
			"publisher_policies_by_issuer",
		},
		"due checks": {
			registrystore.PolicyQuery{CheckedBefore: time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)},
			"publisher_policies_due",
		},
		"by IDs":    {registrystore.PolicyQuery{IDs: []registry.PolicyID{"dns-1", "oidc-2"}}, ""},
		"next page": {registrystore.PolicyQuery{After: "http-1", Limit: 100}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			checkOneIndexedQuery(t, db, c.index, func(ctx context.Context) (int, error) {
				found, err := policies.Find(ctx, c.query)
				return len(found), err
			})
		})
	}
}

// anyScan matches a plan that reads a whole table or a whole index.
var anyScan = map[string]*regexp.Regexp{
	relationaltest.PostgreSQL: regexp.MustCompile("Seq Scan"), relationaltest.SQLite: regexp.MustCompile("SCAN"),
}

// checkOneIndexedQuery checks that a call finds rows with one query, which uses an index.
func checkOneIndexedQuery(
	t *testing.T, db *relationaltest.Database, index string, call func(ctx context.Context) (found int, err error),
) {
	t.Helper()
	plans, err := db.Plans(t.Context(), func(ctx context.Context) error {
		found, err := call(ctx)
		if err == nil && found == 0 {
			t.Error("it finds nothing")
		}
		return err
	})
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	for query, plan := range plans {
		if anyScan[db.Kind()].MatchString(plan) || !strings.Contains(plan, index) {
			t.Errorf("it does not use the index %s:\n%s\n%s", index, query, plan)
		}
	}
}
