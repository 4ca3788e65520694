package registryrecords_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/relational/registryrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestServers(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunServers, openServers)
}

// TestListsByIndexes runs the contract tests of lists with searches that always use an index, as those
// of large registries do.
func TestListsByIndexes(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunLists,
		func(t *testing.T, db *relationaltest.Database) registrystoretest.ServerStores {
			stores := openServers(t, db)
			if servers, ok := stores.Reader.(*registryrecords.Servers); ok {
				servers.AlwaysUseIndexes()
			}
			return stores
		})
}

// newStores returns the stores of a database.
func newStores(db *relationaltest.Database) registryrecords.Stores {
	return registryrecords.NewStores(db.DB, registryrecords.Config{})
}

func openServers(_ *testing.T, db *relationaltest.Database) registrystoretest.ServerStores {
	servers := registryrecords.NewServers(db.DB, registryrecords.Config{RemoteURLUnique: true})
	return registrystoretest.ServerStores{
		Reader: servers, Writer: servers, Free: registryrecords.NewServers(db.DB, registryrecords.Config{}),
		Runner: db.DB,
	}
}

func TestChanges(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunChanges,
		func(t *testing.T, db *relationaltest.Database) registrystoretest.ChangesStores {
			other := db.OpenAgain(t)
			ours, theirs := newStores(db), newStores(other)
			changes, end := registryrecords.WatchChanges(db.DB, ours)
			t.Cleanup(end)
			servers := func(s registryrecords.Stores, db *relationaltest.Database) registrystoretest.ServerStores {
				return registrystoretest.ServerStores{Reader: s.Reader, Writer: s.Writer, Free: s.Writer, Runner: db.DB}
			}
			grants, pattern := 0, parse(t, registry.ParsePattern, "com.example/*")
			return registrystoretest.ChangesStores{
				Own: servers(ours, db), Other: servers(theirs, other), OwnViews: ours.Views, OtherViews: theirs.Views,
				Changes: changes, Alter: func(ctx context.Context) error {
					grants++
					return theirs.Grants.Add(ctx, registry.GrantRecord{Grant: registry.Grant{
						Holder: registry.Holder(time.Unix(int64(grants), 0).String()), Action: registry.ActionPublish,
						Pattern: pattern,
					}})
				},
			}
		})
}

func TestCatalogue(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunCatalogue,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.CatalogueStores {
			servers := registryrecords.NewServers(db.DB, registryrecords.Config{})
			return registrystoretest.CatalogueStores{
				ServerStores: registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: servers, Runner: db.DB},
				Catalogue:    newStores(db).Catalogue,
			}
		})
}

func TestMirrors(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunMirrors,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.MirrorStores {
			s := registryrecords.NewStores(db.DB, registryrecords.Config{RemoteURLUnique: true})
			return registrystoretest.MirrorStores{
				Mirrors: s.Mirrors, Rereader: s.Rereader, Mirrored: s.Mirrored, Reader: s.Reader, Writer: s.Writer, Runner: db.DB,
			}
		})
}

func TestQuarantine(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunQuarantine,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.QuarantineStores {
			s := newStores(db)
			return registrystoretest.QuarantineStores{Quarantine: s.Quarantine, Writer: s.Writer, Runner: db.DB}
		})
}

func TestToolLists(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunToolLists,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.ToolListStores {
			s := newStores(db)
			return registrystoretest.ToolListStores{
				Lists: s.ToolLists, Writer: s.Writer, Mirrored: s.Mirrored, Reviews: s.Reviews, Backlog: s.Backlog, Catalogue: s.Catalogue, Runner: db.DB,
			}
		})
}

func TestToolWatches(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunToolWatches,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.ToolWatchStores {
			s := newStores(db)
			return registrystoretest.ToolWatchStores{
				Watches: s.ToolWatches, Lists: s.ToolLists, Writer: s.Writer, Quarantine: s.Quarantine, Runner: db.DB,
			}
		})
}

func TestReviews(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunReviews,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.ReviewStores {
			s := newStores(db)
			return registrystoretest.ReviewStores{
				Reviews: s.Reviews, Backlog: s.Backlog, Writer: s.Writer, Rules: s.ReviewRules, Notices: s.ReviewNotices,
				Runner: db.DB,
			}
		})
}

func TestServices(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunServices,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.ServiceStores {
			s := newStores(db)
			return registrystoretest.ServiceStores{Services: s.Services, Grants: s.Grants, Runner: db.DB}
		})
}

func TestWebhooks(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunWebhooks,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.WebhookStores {
			s := newStores(db)
			return registrystoretest.WebhookStores{Webhooks: s.Webhooks, Deliveries: s.Deliveries, Runner: db.DB}
		})
}

func TestAppliedStates(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunAppliedStates,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.AppliedStores {
			return registrystoretest.AppliedStores{States: newStores(db).Applied, Runner: db.DB}
		})
}

func TestGrants(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunGrants,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.GrantStores {
			return registrystoretest.GrantStores{Grants: newStores(db).Grants}
		})
}

func TestPolicies(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunPolicies,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.PolicyStores {
			return registrystoretest.PolicyStores{Policies: newStores(db).Policies, Runner: db.DB}
		})
}

func TestViews(t *testing.T) {
	relationaltest.RunContract(t, registrystoretest.RunViews,
		func(_ *testing.T, db *relationaltest.Database) registrystoretest.ViewStores {
			return registrystoretest.ViewStores{Views: newStores(db).Views, Runner: db.DB}
		})
}

// TestRightRequests also checks that requests for rights end with the person.
func TestRightRequests(t *testing.T) {
	open := func(t *testing.T, db *relationaltest.Database) registrystoretest.RightStores {
		s := registrystoretest.RightStores{Requests: newStores(db).RightRequests, Runner: db.DB}
		for i := range s.People {
			id, email := fmt.Sprintf("%08d-0000-4000-8000-000000000000", i), fmt.Sprintf("p%d@example.com", i)
			db.Fill(t, `INSERT INTO accounts (id, email, name, phone, password_hash, state, mfa_secret, mfa_active, mfa_last_step)
				VALUES ('`+id+`', '`+email+`', '', '', '', 'active', '', false, 0)`)
			s.People[i], s.Emails[i] = registry.Holder(id), email
		}
		return s
	}
	relationaltest.RunContract(t, registrystoretest.RunRightRequests, open)
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		s := open(t, db)
		g, err := registry.ParseRight(s.People[0], "review", "*")
		must.Succeed(t, err)
		must.Succeed(t, s.Requests.Add(t.Context(), registry.RightRequest{Grant: g, ID: "1", Reason: "x", AskedAt: time.Unix(0, 0)}))
		db.Fill(t, "DELETE FROM accounts WHERE id = '"+string(s.People[0])+"'")
		if n, err := db.QueryInt(t.Context(), "SELECT count(*) FROM right_requests"); err != nil || n != 0 {
			t.Errorf("%d are left, %v", n, err)
		}
	})
}
