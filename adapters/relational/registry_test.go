package relational_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/catalogue"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/methodstore/methodstoretest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
	"github.com/tollgate-dev/tollgate/ports/transaction/transactiontest"
)

func TestServers(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunServers(t, func(t *testing.T) registrystoretest.ServerStores {
				db := open(t)
				servers := relational.NewServers(db, relational.Config{RemoteURLUnique: true})
				free := relational.NewServers(db, relational.Config{})
				return registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: free, Runner: db}
			})
		})
	}
}

// TestServersByIndexes has even the first rows looked up by indexes.
func TestServersByIndexes(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunServers(t, func(t *testing.T) registrystoretest.ServerStores {
				db := open(t)
				servers := relational.NewServers(db, relational.Config{RemoteURLUnique: true})
				servers.AskIndexes()
				return registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: relational.NewServers(db, relational.Config{}), Runner: db}
			})
		})
	}
}

func TestTransactions(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			transactiontest.Run(t, func(t *testing.T) transactiontest.Opened {
				db := open(t)
				return transactiontest.Opened{Runner: db, Grants: relational.NewGrants(db)}
			})
		})
	}
}

func TestGrants(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunGrants(t, func(t *testing.T) registrystoretest.GrantStores {
				return registrystoretest.GrantStores{Grants: relational.NewGrants(open(t))}
			})
		})
	}
}

func TestMethods(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			methodstoretest.Run(t, func(t *testing.T) methodstoretest.Opened {
				return methodstoretest.Opened{Methods: relational.NewMethods(open(t))}
			})
		})
	}
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

// saveLocked stores changes of one server as a use case does.
func saveLocked(t *testing.T, db *relational.DB, s *relational.Servers, changes ...registrystore.Change) error {
	t.Helper()
	return db.Atomically(t.Context(), func(ctx context.Context) error {
		if _, err := s.Lock(ctx, changes[0].Release.Name); err != nil {
			return err
		}
		return s.Save(ctx, changes)
	})
}

// TestConflictsNameTheirRule: callers are told what stands against a change.
func TestConflictsNameTheirRule(t *testing.T) {
	name, err := registry.ParseName("com.example/a")
	if err != nil {
		t.Fatal(err)
	}
	change := func(version string, hours int, latest bool) registrystore.Change {
		v, err := registry.ParseVersion(version)
		if err != nil {
			t.Fatal(err)
		}
		at := epoch.Add(time.Duration(hours) * time.Hour)
		return registrystore.Change{
			Release:  registry.Release{Name: name, Version: v, Status: registry.StatusActive, StatusChangedAt: at, PublishedAt: at, UpdatedAt: at, Latest: latest},
			Document: []byte("{}"),
		}
	}
	cases := map[string]registrystore.Change{
		"this version of the server exists already":                    change("1.0.0", 1, false),
		"another version of the server was published at the same time": change("2.0.0", 0, false),
		"another version of the server is the latest":                  change("2.0.0", 1, true),
	}
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			servers := relational.NewServers(db, relational.Config{})
			if err := saveLocked(t, db, servers, change("1.0.0", 0, true)); err != nil {
				t.Fatal(err)
			}
			for sentence, c := range cases {
				f, ok := fault.As(saveLocked(t, db, servers, c))
				if !ok || f.Kind != fault.Conflict || f.Message != sentence {
					t.Errorf("got %v, want the sentence %q", f, sentence)
				}
			}
		})
	}
}

// TestAFailedStatementIsNeverCommitted goes on after a conflict, as if nothing
// had happened: PostgreSQL would roll back in silence.
func TestAFailedStatementIsNeverCommitted(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			db := open(t)
			grants, methods := relational.NewGrants(db), relational.NewMethods(db)
			err := db.Atomically(t.Context(), func(ctx context.Context) error {
				if err := grants.Add(ctx, registry.Grant{Holder: "a", Action: registry.ActionEdit, Pattern: anything(t)}); err != nil {
					return err
				}
				taken := methods.Add(ctx, catalogue.Method{ID: catalogue.ListingID, Path: "/x"})
				if !fault.Is(taken, fault.Conflict) {
					t.Errorf("adding a taken id: %v", taken)
				}
				return nil
			})
			if !fault.Is(err, fault.Conflict) {
				t.Errorf("the transaction ended with %v", err)
			}
			if got, err := grants.Of(t.Context(), "a"); err != nil || len(got) != 0 {
				t.Errorf("stored are %v (%v)", got, err)
			}
		})
	}
}

// TestConnectionsThatTheServerClosedAreReplaced ends all idle connections, as a
// restart of the server does: no caller notices.
func TestConnectionsThatTheServerClosedAreReplaced(t *testing.T) {
	address := relationaltest.Postgres(t)
	db, operator := relationaltest.OpenPostgres(t, address), relationaltest.OpenPostgres(t, address)
	err := db.Atomically(t.Context(), func(ctx context.Context) error { return db.Ping(ctx) }) // two connections at once
	if err != nil {
		t.Fatal(err)
	}
	err = operator.Execute(t.Context(), `SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := db.Atomically(t.Context(), func(ctx context.Context) error { return db.Ping(ctx) }); err != nil {
			t.Error(err)
		}
	}
}

func anything(t *testing.T) registry.Pattern {
	t.Helper()
	p, err := registry.ParsePattern("*")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestSearchGoesPastNamesWithoutRows looks for servers of which all but the
// last have only versions that the page leaves out.
func TestSearchGoesPastNamesWithoutRows(t *testing.T) {
	for kind, open := range relationaltest.Databases(t) {
		t.Run(kind, func(t *testing.T) {
			db := open(t)
			servers := relational.NewServers(db, relational.Config{})
			const hidden = 8
			for i := range hidden + 1 {
				name, err := registry.ParseName(fmt.Sprintf("com.example/server-%d", i))
				if err != nil {
					t.Fatal(err)
				}
				version, err := registry.ParseVersion("1.0.0")
				if err != nil {
					t.Fatal(err)
				}
				status := registry.StatusDeleted
				if i == hidden {
					status = registry.StatusActive
				}
				r := registry.Release{Name: name, Version: version, Status: status, StatusChangedAt: epoch, PublishedAt: epoch, UpdatedAt: epoch, Latest: true}
				if err := saveLocked(t, db, servers, registrystore.Change{Release: r, Document: []byte("{}")}); err != nil {
					t.Fatal(err)
				}
			}
			for _, text := range []string{"SERVER", "r-"} {
				got, err := servers.List(t.Context(), registrystore.Query{Search: text, Limit: 2})
				if err != nil || len(got.Records) != 1 || got.Records[0].Name.String() != "com.example/server-8" {
					t.Errorf("%q finds %+v, %v", text, got, err)
				}
			}
		})
	}
}
