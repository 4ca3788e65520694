package kindrecords_test

import (
	"os"
	"reflect"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/relational/database"
	"github.com/tollgate-dev/tollgate/adapters/relational/kindrecords"
	"github.com/tollgate-dev/tollgate/adapters/relational/postgres/postgrestest"
	"github.com/tollgate-dev/tollgate/adapters/relational/relationaltest"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/accessstore/accessstoretest"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestMain(m *testing.M) { os.Exit(postgrestest.Run(m)) }

func TestRules(t *testing.T) {
	relationaltest.RunContract(t, accessstoretest.Run,
		func(_ *testing.T, db *relationaltest.Database) accessstoretest.Opened {
			return accessstoretest.Opened{
				Rules: kindrecords.NewRules(db.DB), Runner: db.DB,
				Revision: func(t *testing.T) (n int64) {
					q := database.Query{Text: "SELECT CAST(sum(access) AS bigint) FROM registry_changes"}
					must.Succeed(t, db.ScanRow(t.Context(), q, &n))
					return n
				},
			}
		})
}

// TestRegistered stores a client with a secret and a resource, of which all but the secret in clear is
// read again.
func TestRegistered(t *testing.T) {
	relationaltest.InEach(t, func(t *testing.T, db *relationaltest.Database) {
		client := oauth.Client{
			ID: "ide", Name: "IDE \"é\"", RedirectURIs: []string{"cursor://x/y"}, Method: oauth.MethodSecretBasic,
			SecretHash: auth.HashSecret(auth.ClientSecret("x")), Resources: []oauth.ResourceName{"weather"}, SkipConsent: true, ManagedBy: "platform",
		}
		shown := client
		shown.NewSecret, shown.Secret = true, "x"
		clients := kindrecords.NewClients(db.DB)
		must.Succeed(t, clients.Save(t.Context(), shown))
		if got, err := clients.Get(t.Context(), "ide"); err != nil || !reflect.DeepEqual(got, client) {
			t.Errorf("got %+v, %v, want %+v", got, err, client)
		}
		resource := oauth.Undeclared("https://weather.example.com/mcp")
		resource.Name, resource.Refresh, resource.Clients = "weather", false, []oauth.ClientID{"ide"}
		name, err := toolserver.ParseName("com.example/weather")
		must.Succeed(t, err)
		resource.Servers = append(resource.Servers, name)
		resources := kindrecords.NewResources(db.DB)
		must.Succeed(t, resources.Save(t.Context(), resource))
		if got, err := resources.Get(t.Context(), "weather"); err != nil || !reflect.DeepEqual(got, resource) {
			t.Errorf("got %+v, %v, want %+v", got, err, resource)
		}
	})
}
