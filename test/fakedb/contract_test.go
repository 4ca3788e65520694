package fakedb_test

import (
	"context"
	"testing"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/ports/accessstore/accessstoretest"
	"github.com/tollgate-dev/tollgate/ports/authstore/authstoretest"
	"github.com/tollgate-dev/tollgate/ports/methodstore/methodstoretest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
	"github.com/tollgate-dev/tollgate/ports/transaction/transactiontest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

func TestAuthStores(t *testing.T) {
	authstoretest.Run(t, func(*testing.T) authstoretest.Stores {
		db := fakedb.New()
		return authstoretest.Stores{
			Accounts: fakedb.NewAccounts(db), Devices: fakedb.NewDevices(db), DeviceTokens: fakedb.NewDeviceTokens(db),
			Sessions: fakedb.NewSessions(db), RefreshTokens: fakedb.NewRefreshTokens(db),
			Cookies:    fakedb.NewSessionCookies(db),
			Challenges: fakedb.NewChallenges(db), PendingLogins: fakedb.NewPendingLogins(db),
			Lockouts: fakedb.NewLockouts(db), AuditLog: fakedb.NewAuditLog(db), Keys: fakedb.NewKeyring(db),
			History: fakedb.NewHistory(db), Runner: db, APITokens: fakedb.NewAPITokens(db),
			Passkeys: fakedb.NewPasskeys(db),
			Companies: authstoretest.Companies{
				Providers: fakedb.NewProviders(db), Identities: fakedb.NewIdentities(db), Logins: fakedb.NewLogins(db),
			},
			AddService: func(t *testing.T, name string, active bool) {
				a := service.Account{Name: service.Name(name), State: service.Disabled}
				if active {
					a.State = service.Active
				}
				if err := fakedb.NewServices(db).Put(t.Context(), a.Name, func(*service.Account) (service.Account, error) {
					return a, nil
				}); err != nil {
					t.Fatal(err)
				}
			},
			Links:     fakedb.NewLinks(db),
			Directory: fakedb.NewDirectory(db), Operators: fakedb.NewDirectory(db),
			Operate: func(ctx context.Context, user auth.UserID) error {
				g, err := registry.ParseGrant(registry.Holder(user), string(registry.ActionOperate), "")
				if err == nil {
					err = fakedb.NewGrants(db).Add(ctx, registry.GrantRecord{Grant: g})
				}
				return err
			},
		}
	})
}

func TestServers(t *testing.T) {
	registrystoretest.RunServers(t, func(*testing.T) registrystoretest.ServerStores {
		db := fakedb.New()
		servers := fakedb.NewServers(db, true)
		return registrystoretest.ServerStores{
			Reader: servers, Writer: servers, Free: fakedb.NewServers(db, false), Runner: db,
		}
	})
}

func TestTransactions(t *testing.T) {
	transactiontest.Run(t, func(*testing.T) transactiontest.Opened {
		db := fakedb.New()
		return transactiontest.Opened{Runner: db, Grants: fakedb.NewGrants(db)}
	})
}

func TestGrants(t *testing.T) {
	registrystoretest.RunGrants(t, func(*testing.T) registrystoretest.GrantStores {
		return registrystoretest.GrantStores{Grants: fakedb.NewGrants(fakedb.New())}
	})
}

func TestPolicies(t *testing.T) {
	registrystoretest.RunPolicies(t, func(*testing.T) registrystoretest.PolicyStores {
		db := fakedb.New()
		return registrystoretest.PolicyStores{Policies: fakedb.NewPolicies(db), Runner: db}
	})
}

func TestServices(t *testing.T) {
	registrystoretest.RunServices(t, func(*testing.T) registrystoretest.ServiceStores {
		db := fakedb.New()
		return registrystoretest.ServiceStores{
			Services: fakedb.NewServices(db), Grants: fakedb.NewGrants(db), Runner: db,
		}
	})
}

func TestQuarantine(t *testing.T) {
	registrystoretest.RunQuarantine(t, func(*testing.T) registrystoretest.QuarantineStores {
		db := fakedb.New()
		return registrystoretest.QuarantineStores{
			Quarantine: fakedb.NewQuarantine(db), Writer: fakedb.NewServers(db, true), Runner: db,
		}
	})
}

func TestToolLists(t *testing.T) {
	registrystoretest.RunToolLists(t, func(*testing.T) registrystoretest.ToolListStores {
		db := fakedb.New()
		return registrystoretest.ToolListStores{
			Reviews: fakedb.NewReviews(db), Backlog: fakedb.NewReviews(db), Lists: fakedb.NewToolLists(db), Writer: fakedb.NewServers(db, true), Mirrored: fakedb.NewMirroredVersions(db), Runner: db,
		}
	})
}

func TestToolWatches(t *testing.T) {
	registrystoretest.RunToolWatches(t, func(*testing.T) registrystoretest.ToolWatchStores {
		db := fakedb.New()
		return registrystoretest.ToolWatchStores{
			Watches: fakedb.NewToolWatches(db), Lists: fakedb.NewToolLists(db), Writer: fakedb.NewServers(db, true),
			Quarantine: fakedb.NewQuarantine(db), Runner: db,
		}
	})
}

func TestAccessRules(t *testing.T) {
	accessstoretest.Run(t, func(*testing.T) accessstoretest.Opened {
		db := fakedb.New()
		return accessstoretest.Opened{Rules: fakedb.NewAccessRules(db), Runner: db}
	})
}

func TestViews(t *testing.T) {
	registrystoretest.RunViews(t, func(*testing.T) registrystoretest.ViewStores {
		db := fakedb.New()
		return registrystoretest.ViewStores{Views: fakedb.NewViews(db), Runner: db}
	})
}

func TestWebhooks(t *testing.T) {
	registrystoretest.RunWebhooks(t, func(*testing.T) registrystoretest.WebhookStores {
		db := fakedb.New()
		return registrystoretest.WebhookStores{
			Webhooks: fakedb.NewWebhooks(db), Deliveries: fakedb.NewDeliveries(db), Runner: db,
		}
	})
}

func TestMirrors(t *testing.T) {
	registrystoretest.RunMirrors(t, func(*testing.T) registrystoretest.MirrorStores {
		db := fakedb.New()
		servers := fakedb.NewServers(db, true)
		return registrystoretest.MirrorStores{
			Mirrors: fakedb.NewMirrors(db), Rereader: fakedb.NewMirrors(db), Mirrored: fakedb.NewMirroredVersions(db),
			Reader: servers, Writer: servers, Runner: db,
		}
	})
}

func TestMethods(t *testing.T) {
	methodstoretest.Run(t, func(*testing.T) methodstoretest.Opened {
		return methodstoretest.Opened{Methods: fakedb.NewMethods(fakedb.New())}
	})
}

func TestAppliedStates(t *testing.T) {
	registrystoretest.RunAppliedStates(t, func(*testing.T) registrystoretest.AppliedStores {
		db := fakedb.New()
		return registrystoretest.AppliedStores{States: fakedb.NewAppliedStates(db), Runner: db}
	})
}

func TestReviews(t *testing.T) {
	registrystoretest.RunReviews(t, func(*testing.T) registrystoretest.ReviewStores {
		db := fakedb.New()
		reviews := fakedb.NewReviews(db)
		return registrystoretest.ReviewStores{
			Reviews: reviews, Backlog: reviews, Writer: fakedb.NewServers(db, true),
			Rules: fakedb.NewReviewRules(db), Notices: fakedb.NewReviewNotices(db), Runner: db,
		}
	})
}
