package deciding_test

import (
	"context"
	"net/netip"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

const weatherURL = "https://tools.example.com/mcp"

// weather is the only listed server as a resource.
func weather(t *testing.T) access.Resource {
	t.Helper()
	name, err := toolserver.ParseName("com.example/weather")
	must.Succeed(t, err)
	return access.Resource{URL: weatherURL, Servers: []toolserver.Name{name}}
}

// TestGrantedSubjects decides for applications: as the person, at the live level, by its client and for its
// resource only.
func TestGrantedSubjects(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.allow("ada", "person:ada@example.com", audit.Details{
		"minTrust": audit.Text("LIMITED_TRUST"), "clients": audit.Texts([]string{"vscode"}),
	})
	fx.allow("devs", "group:acme/devs", audit.Details{"clients": audit.Texts([]string{"agent"})})
	resource := weather(t)
	by := func(client, level string, r *access.Resource, groups ...string) deciding.Question {
		g := authority.Granted{UserID: "p1", SessionID: "s", Client: client, Resource: r, Groups: groups}
		setText(&g.Trust.Level, level)
		return question(authority.NewGranted(g, netip.Addr{}))
	}
	fx.want(by("vscode", "LIMITED_TRUST", &resource), access.Allow, access.ByRule)
	fx.want(by("vscode", "UNVERIFIED", &resource), access.Challenge, access.InsufficientTrust)
	fx.want(by("vscode", "HIGH_RISK", &resource), access.Challenge, access.InsufficientTrust)
	fx.want(by("cursor", "LIMITED_TRUST", &resource), access.Deny, access.ByDefault)
	fx.want(by("agent", "LIMITED_TRUST", &resource), access.Deny, access.ByDefault)
	fx.want(by("agent", "LIMITED_TRUST", &resource, "acme/devs"), access.Allow, access.ByRule)
	fx.want(by("vscode", "LIMITED_TRUST", nil), access.Challenge, access.InvalidToken) // for this registry
	fx.want(by("vscode", "LIMITED_TRUST", &access.Resource{URL: "https://other.example.com/mcp"}), access.Challenge, access.InvalidToken)
	session := authority.NewPerson(authority.Person{UserID: "p1", Trust: authority.Trust{Level: "FULL_TRUST"}}, netip.Addr{})
	fx.want(question(session), access.Deny, access.ByDefault) // no rule of a client is met by a session
	fx.quarantine()
	fx.hint++
	fx.want(by("vscode", "LIMITED_TRUST", &resource), access.Deny, access.Quarantined)
	delete(fx.members, "p1") // disabled
	fx.want(by("vscode", "LIMITED_TRUST", &access.Resource{URL: weatherURL}), access.Deny, access.Quarantined)
}

// TestGrantedIsRecorded checks that the event of a denial names the person and the client.
func TestGrantedIsRecorded(t *testing.T) {
	fx := newFixture(t, deciding.Config{LogsAll: true})
	resource := weather(t)
	g := authority.Granted{UserID: "p1", Client: "https://vscode.example/client.json", Resource: &resource}
	fx.answer(question(authority.NewGranted(g, netip.Addr{})))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	fx.Run(ctx)
	if len(fx.recorded) != 1 || fx.recorded[0].Details.Text(audit.DetailActor) != "person:p1" ||
		fx.recorded[0].Details.Text("client") != g.Client {
		t.Errorf("recorded %+v", fx.recorded)
	}
	if len(fx.logged) != 1 || fx.logged[0].Subject.Client() != g.Client {
		t.Errorf("logged %+v", fx.logged)
	}
}

// TestPermits checks whether a person could call a server with a client, and what the servers of a resource
// are now.
func TestPermits(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.allow("ada", "person:ada@example.com", audit.Details{
		"minTrust": audit.Text("LIMITED_TRUST"), "clients": audit.Texts([]string{"vscode"}), "networks": audit.Texts([]string{"10.0.0.0/8"}),
	})
	fx.allow("devs", "group:acme/devs", nil)
	resource := weather(t)
	for name, c := range map[string]struct {
		prospect deciding.Prospect
		least    trustlevel.Level
		ok       bool
	}{
		"the person":     {deciding.Prospect{Holder: "p1", Client: "vscode", From: netip.MustParseAddr("10.1.1.1")}, trustlevel.LimitedTrust, true},
		"elsewhere":      {deciding.Prospect{Holder: "p1", Client: "vscode", From: netip.MustParseAddr("192.0.2.1")}, 0, false},
		"another client": {deciding.Prospect{Holder: "p1", Client: "x", From: netip.MustParseAddr("10.1.1.1")}, 0, false},
		"other groups":   {deciding.Prospect{Holder: "p1", Groups: []string{"acme/devs"}}, 0, true},
		"not active":     {deciding.Prospect{Holder: "gone", Groups: []string{"acme/devs"}}, 0, false},
	} {
		c.prospect.Server = resource.Servers[0]
		if least, ok, err := fx.Permits(t.Context(), c.prospect); err != nil || ok != c.ok || least != c.least {
			t.Errorf("%s: %s, %v, %v", name, least, ok, err)
		}
	}
	offers, err := fx.Offers(t.Context(), resource)
	if err != nil || len(offers) != 1 || !offers[0].Listed || offers[0].Quarantined {
		t.Errorf("the servers are %+v, %v", offers, err)
	}
	fx.quarantine()
	fx.hint++
	if offers, err = fx.Offers(t.Context(), resource); err != nil || offers[0].Listed || !offers[0].Quarantined {
		t.Errorf("after the quarantine they are %+v, %v", offers, err)
	}
	fx.failure = fault.New(fault.Unavailable, "away")
	if _, _, err := fx.Permits(t.Context(), deciding.Prospect{Holder: "p1"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without the database: %v", err)
	}
}

// TestExplainGranted explains calls by tokens of clients for resources.
func TestExplainGranted(t *testing.T) {
	fx := newFixture(t, deciding.Config{})
	fx.allow("ada", "person:ada@example.com", audit.Details{"clients": audit.Texts([]string{"vscode"})})
	for name, c := range map[string]struct {
		subject, client, resource string
		want                      string // an effect and a reason, or the field that is wrong
	}{
		"without a client": {"person:ada@example.com", "", "", "deny default"},
		"the client":       {"person:ada@example.com", "vscode", "", "allow rule"},
		"its resource":     {"person:ada@example.com", "vscode", weatherURL, "allow rule"},
		"another resource": {"person:ada@example.com", "vscode", "https://other.example.com/mcp", "challenge invalid_token"},
		"an unknown one":   {"person:ada@example.com", "vscode", "https://unknown.example.com", "resource"},
		"a service":        {"service:robot", "vscode", "", "subject"},
		"nobody":           {"anyone", "", weatherURL, "subject"},
	} {
		who, q, err := deciding.ParseQuestion(deciding.Draft{
			Subject: c.subject, Server: "com.example/weather", Name: "x", Client: c.client, Resource: c.resource,
		})
		var e access.Explanation
		if err == nil {
			e, err = fx.Explain(t.Context(), who, q)
		}
		got := string(e.Effect) + " " + string(e.Reason)
		if f, ok := fault.As(err); ok {
			got = f.Field
		}
		if got != c.want {
			t.Errorf("%s: %s (%v), want %s", name, got, err, c.want)
		}
	}
}
