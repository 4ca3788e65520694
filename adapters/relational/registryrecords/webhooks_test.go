package registryrecords_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/ports/registrystore/registrystoretest"
)

func TestWebhooks(t *testing.T) {
	for name, open := range relationaltest.Databases(t) {
		t.Run(name, func(t *testing.T) {
			registrystoretest.RunWebhooks(t, func(t *testing.T) registrystoretest.WebhookStores {
				db := open(t)
				return registrystoretest.WebhookStores{
					Webhooks: newStores(db).Webhooks, Deliveries: newStores(db).Deliveries,
					Runner: db.DB,
				}
			})
		})
	}
}
