package registering_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/auth/registering"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/management"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

type recorder struct{ changes []audit.Change }

func (r *recorder) RecordChanges(_ context.Context, changes ...audit.Change) error {
	r.changes = append(r.changes, changes...)
	return nil
}

var now = time.Date(2026, time.November, 30, 12, 0, 0, 0, time.UTC)

type fixture struct {
	ports registering.Ports
	log   *recorder
}

func newFixture() *fixture { return newFixtureOf(fakedb.New()) }

func newFixtureOf(db *fakedb.Database) *fixture {
	log := &recorder{}
	return &fixture{registering.Ports{
		Transactions: db, Clients: fakedb.NewClients(db), Resources: fakedb.NewResources(db), Recorder: log,
		Families: fakedb.NewFamilies(db), Consents: fakedb.NewConsents(db), Clock: clocktest.NewManual(now),
		Entropy: &secretstest.Entropy{},
	}, log}
}

func clientFields(method string, others audit.Details) audit.Details {
	all := audit.Details{
		"clientId": audit.Text("ide"), "name": audit.Text("IDE"), "redirectUris": audit.Texts([]string{"http://127.0.0.1/cb"}),
		"method": audit.Text(method),
	}
	maps.Copy(all, others)
	return all
}

// TestSecrets stores a client in ways that make a secret or not, and wants that it is shown once.
func TestSecrets(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	clients := registering.NewClients(fx.ports).Objects()
	another := audit.Details{"newSecret": audit.Flag(true)}
	var last string
	for _, step := range []struct {
		what   string
		change management.Change
		made   bool // another secret
		has    bool // a secret, afterwards
	}{
		{"a public client", management.Change{Fields: clientFields("none", nil)}, false, false},
		{"a method with a secret, by a file", management.Change{Fields: clientFields("client_secret_basic", nil), Owner: "platform"}, false, false},
		{"the same by hand", management.Change{Fields: clientFields("client_secret_basic", nil)}, true, true},
		{"the same again", management.Change{Fields: clientFields("client_secret_basic", nil)}, false, true},
		{"the same by the file", management.Change{Fields: clientFields("client_secret_basic", nil), Owner: "platform"}, false, true},
		{"another secret", management.Change{Fields: clientFields("client_secret_basic", another)}, true, true},
		{"the secret in the form", management.Change{Fields: clientFields("client_secret_post", nil)}, false, true},
		{"a public client again", management.Change{Fields: clientFields("none", nil)}, false, false},
		{"with a secret again", management.Change{Fields: clientFields("client_secret_post", nil)}, true, true},
	} {
		stored, _, err := clients.Put(t.Context(), step.change)
		must.Succeed(t, err)
		secret := stored.State.Text(oauth.ClientSecretFact)
		if (secret != "") != step.made || step.made && (secret == last || len(secret) != 43) || stored.Fixed.Flag("hasSecret") != step.has {
			t.Errorf("%s: the secret %q after %q, shown as %v", step.what, secret, last, stored.Fixed)
		}
		if secret != "" {
			last = secret
		}
		c, err := fx.ports.Clients.Get(t.Context(), "ide")
		must.Succeed(t, err)
		if step.has && c.SecretHash != auth.HashSecret(auth.ClientSecret(last)) || !step.has && c.HasSecret() {
			t.Errorf("%s: the stored hash is not that of the secret", step.what)
		}
		again, err := clients.Get(t.Context(), "ide")
		if err != nil || again.State[oauth.ClientSecretFact] != nil {
			t.Errorf("%s: the secret is shown again: %v, %v", step.what, again.State, err)
		}
	}
	if text := fmt.Sprint(fx.log.changes); strings.Contains(text, last) || !strings.Contains(text, "secret:changed") {
		t.Errorf("the events are %s", text)
	}
	if text := fmt.Sprintf("%v %#v", oauth.Client{Secret: "hush"}, oauth.Client{Secret: "hush"}); strings.Contains(text, "hush") {
		t.Errorf("a client prints its secret: %s", text)
	}
}

func resourceFields(name, url string) audit.Details {
	return audit.Details{"name": audit.Text(name), "url": audit.Text(url), "servers": audit.Texts([]string{"com.example/weather"})}
}

// TestOneURL refuses a resource whose URL another one has, however it is written.
func TestOneURL(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	resources := registering.NewResources(fx.ports).Objects()
	put := func(name, url string) error {
		_, _, err := resources.Put(t.Context(), management.Change{Fields: resourceFields(name, url)})
		return err
	}
	must.Succeed(t, put("weather", "https://weather.example.com/mcp"))
	must.Succeed(t, put("weather", "https://weather.example.com/mcp/"))
	must.Succeed(t, put("maps", "https://weather.example.com/MCP"))
	for _, url := range []string{"https://weather.example.com/mcp", "https://Weather.example.com:443/mcp/"} {
		err := put("twin", url)
		if f, _ := fault.As(err); !fault.Is(err, fault.Conflict) || f.Field != "url" || !strings.Contains(f.Message, "weather") {
			t.Errorf("%s: %v, want a conflict that names the other one", url, err)
		}
	}
}

// gate has the servers of URLs.
type gate struct {
	authorization.Gate

	servers map[string][]oauth.Server
	err     error
}

func (g gate) Servers(_ context.Context, url string, _ []toolserver.Name) ([]oauth.Server, error) {
	return g.servers[url], g.err
}

// TestState wants in what is shown of a resource whether tokens are issued for it now, and if not, why.
func TestState(t *testing.T) {
	t.Parallel()
	const url = "https://weather.example.com"
	name, err := toolserver.ParseName("com.example/weather")
	must.Succeed(t, err)
	for want, g := range map[string]gate{
		"open": {servers: map[string][]oauth.Server{url: {{Name: name, Listed: true}}}},
		"closed: the server com.example/weather is in quarantine": {
			servers: map[string][]oauth.Server{url: {{Name: name, Listed: true, Quarantined: true}}},
		},
		"closed: no listed version of its servers has the URL": {servers: map[string][]oauth.Server{url + "/": {{Name: name}}}},
		"unknown: the registry cannot be read":                 {err: errors.New("away")},
	} {
		fx := newFixture()
		fx.ports.Gate = g
		resources := registering.NewResources(fx.ports).Objects()
		_, _, err := resources.Put(t.Context(), management.Change{Fields: resourceFields("weather", url+"/")})
		must.Succeed(t, err)
		one, err := resources.Get(t.Context(), "weather")
		must.Succeed(t, err)
		all, err := resources.List(t.Context(), "", 2)
		must.Succeed(t, err)
		if got := one.State.Text("state"); got != want || len(all) != 1 || all[0].State.Text("state") != want {
			t.Errorf("got %q and %v, want %q", got, all, want)
		}
	}
}

// TestRemoved wants that what people have granted ends with its client or its resource, and does not come back with
// another one of that name.
func TestRemoved(t *testing.T) {
	t.Parallel()
	const url, user, ide = "https://weather.example.com/mcp", auth.UserID("aaaaaaaa-2222-4333-8444-555555555555"), oauth.ClientID("ide")
	for name, c := range map[string]struct {
		client   oauth.ClientID
		resource string
		ends     bool
	}{
		"of the client and the resource": {ide, url, true},
		"of another client":              {"other", url, true}, // by the resource
		"of another resource":            {ide, "https://maps.example.com", true},
		"of others":                      {"other", "https://maps.example.com", false},
	} {
		db := fakedb.New()
		fx := newFixtureOf(db)
		must.Succeed(t, fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: user, Email: "ada@example.com"}))
		must.Succeed(t, fx.ports.Families.Add(t.Context(), oauth.Family{
			ID: "f", UserID: user, Provider: "corp", Client: c.client, Resource: c.resource, CreatedAt: now, ExpiresAt: now.Add(oauth.FamilyTTL),
		}))
		must.Succeed(t, fx.ports.Consents.Put(t.Context(), oauth.Consent{
			UserID: user, Client: c.client, Resource: c.resource, GivenAt: now, ExpiresAt: now.Add(oauth.ConsentTTL),
		}))
		clients, resources := registering.NewClients(fx.ports).Objects(), registering.NewResources(fx.ports).Objects()
		for range 2 { // the second time nothing is there
			_, _, err := clients.Put(t.Context(), management.Change{Fields: clientFields("none", nil)})
			must.Succeed(t, err)
			_, _, err = resources.Put(t.Context(), management.Change{Fields: resourceFields("weather", url)})
			must.Succeed(t, err)
			must.Succeed(t, clients.Remove(t.Context(), "ide", management.Change{}))
			must.Succeed(t, resources.Remove(t.Context(), "weather", management.Change{}))
		}
		f, err := fx.ports.Families.Get(t.Context(), "f")
		must.Succeed(t, err)
		_, err = fx.ports.Consents.Find(t.Context(), user, c.client, "", c.resource)
		if f.Active(now) == c.ends || c.ends && f.EndReason != oauth.EndRemoved || fault.Is(err, fault.NotFound) != c.ends {
			t.Errorf("%s: %+v, the consent: %v", name, f, err)
		}
	}
}
