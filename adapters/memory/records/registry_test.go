package records_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/ports/methodstore/methodstoretest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
	"github.com/tollgate-dev/tollgate/ports/transaction/transactiontest"
)

func TestServers(t *testing.T) {
	registrystoretest.RunServers(t, func(*testing.T) registrystoretest.ServerStores {
		db := records.New()
		servers := records.NewServers(db, true)
		return registrystoretest.ServerStores{Reader: servers, Writer: servers, Free: records.NewServers(db, false), Runner: db}
	})
}

func TestTransactions(t *testing.T) {
	transactiontest.Run(t, func(*testing.T) transactiontest.Opened {
		db := records.New()
		return transactiontest.Opened{Runner: db, Grants: records.NewGrants(db)}
	})
}

func TestGrants(t *testing.T) {
	registrystoretest.RunGrants(t, func(*testing.T) registrystoretest.GrantStores {
		return registrystoretest.GrantStores{Grants: records.NewGrants(records.New())}
	})
}

func TestPolicies(t *testing.T) {
	registrystoretest.RunPolicies(t, func(*testing.T) registrystoretest.PolicyStores {
		db := records.New()
		return registrystoretest.PolicyStores{Policies: records.NewPolicies(db), Runner: db}
	})
}

func TestQuarantine(t *testing.T) {
	registrystoretest.RunQuarantine(t, func(*testing.T) registrystoretest.QuarantineStores {
		db := records.New()
		return registrystoretest.QuarantineStores{Quarantine: records.NewQuarantine(db), Writer: records.NewServers(db, true), Runner: db}
	})
}

func TestViews(t *testing.T) {
	registrystoretest.RunViews(t, func(*testing.T) registrystoretest.ViewStores {
		db := records.New()
		return registrystoretest.ViewStores{Views: records.NewViews(db), Runner: db}
	})
}

func TestWebhooks(t *testing.T) {
	registrystoretest.RunWebhooks(t, func(*testing.T) registrystoretest.WebhookStores {
		db := records.New()
		return registrystoretest.WebhookStores{Webhooks: records.NewWebhooks(db), Deliveries: records.NewDeliveries(db), Runner: db}
	})
}

func TestMirrors(t *testing.T) {
	registrystoretest.RunMirrors(t, func(*testing.T) registrystoretest.MirrorStores {
		db := records.New()
		servers := records.NewServers(db, true)
		return registrystoretest.MirrorStores{
			Mirrors: records.NewMirrors(db), Rereader: records.NewMirrors(db), Mirrored: records.NewMirroredVersions(db), Reader: servers, Writer: servers, Runner: db,
		}
	})
}

func TestMethods(t *testing.T) {
	methodstoretest.Run(t, func(*testing.T) methodstoretest.Opened {
		return methodstoretest.Opened{Methods: records.NewMethods(records.New())}
	})
}

func TestReviews(t *testing.T) {
	registrystoretest.RunReviews(t, func(*testing.T) registrystoretest.ReviewStores {
		db := records.New()
		reviews := records.NewReviews(db)
		return registrystoretest.ReviewStores{
			Reviews: reviews, Backlog: reviews, Writer: records.NewServers(db, true),
			Rules: records.NewReviewRules(db), Notices: records.NewReviewNotices(db), Runner: db,
		}
	})
}
