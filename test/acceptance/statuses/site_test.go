package statuses

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/dnsserver"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	domain    = "statuses.example"
	namespace = "example.statuses/"
	unknownID = "00000000-0000-4000-8000-000000000000"
)

// grants are those of the people who differ in their trust level only.
func grants() []string {
	return []string{"publish " + namespace + "*", "edit " + namespace + "*", "review " + namespace + "*"}
}

// caller is somebody who sends requests: its headers identify it.
type caller struct {
	name   string
	header []string
}

// site is a service with one caller of each kind.
type site struct {
	*fixture.Service
	t *testing.T
	e *fixture.Environment

	callers  []caller // of the API
	sam      *fixture.Person
	reviewer *fixture.Person
	admin    *fixture.Person
	waiting  int
}

// newSite starts a service whose documents wait for review, unless their name begins with "open".
func newSite(t *testing.T) *site {
	t.Helper()
	e := fixture.NewEnvironment(t, "embedded")
	dns := dnsserver.Start(t)
	e.Environ = append(e.Environ, fixture.RegistrySettings()...)
	e.Environ = append(e.Environ, "DECIDE=on", "REGISTRY_REVIEW=on", "REVIEW_PENDING_MAX=1000", "STEP_UP_LIMIT=1000",
		"PUBLISHER_DNS_RESOLVER="+dns.Address, "PUBLISHER_PROOF_LIMIT=0", "PUBLISHER_DOMAIN_LIMIT=0")
	s := &site{t: t, e: e, Service: e.Start(t)}
	e.RunCommand(t, "", "review", "rule", "add", "--pattern", namespace+"open*", "--when", "any")
	e.RunCommand(t, "", "view", "add", "closed", "--access", "token")
	s.sam = e.NewWriter(t, s.Service, "sam@example.com", "publish "+namespace+"*")
	s.reviewer = e.NewWriter(t, s.Service, "rita@example.com", "review "+namespace+"*")
	s.admin = e.NewWriter(t, s.Service, "olga@example.com", "operate *")
	s.callers = append(s.callers, caller{"no token", nil},
		caller{"bad token", []string{"Authorization", "Bearer not.a.token"}},
		caller{"another scheme", []string{"Authorization", "Basic YTpi"}},
		caller{"publisher", s.newPublisher(dns)})
	s.addLevels()
	e.NewPerson(t, "tom@example.com")
	nobody := e.NewWriter(t, s.Service, "nora@example.com")
	operator := e.NewWriter(t, s.Service, "otto@example.com", "operate *")
	s.callers = append(s.callers, caller{"no grant", nobody.Bearer()}, caller{"operator", operator.Bearer()})
	s.addTokens()
	return s
}

// addTokens adds callers with tokens: those of a person and of a service account that have all grants.
func (s *site) addTokens() {
	s.t.Helper()
	const own, service = "me/tokens", "service-accounts/ci/tokens"
	all := append(grants(), "operate *")
	owner := s.e.NewWriter(s.t, s.Service, "tina@example.com", all...)
	apiclient.Call(s.t, "PUT", s.API+"/admin/v1/service-accounts/ci", map[string]any{}, s.admin.Bearer()...).
		WantStatus(s.t, http.StatusCreated)
	for _, g := range all {
		action, resource, _ := strings.Cut(g, " ")
		s.e.RunCommand(s.t, "", "grant", "add", "--service", "ci", "--action", action, "--resource", resource)
	}
	add := func(name, path string, fields map[string]any) (secret string) {
		s.t.Helper()
		draft := map[string]any{"name": "t", "scopes": []string{
			"registry:read", "registry:publish", "registry:edit", "registry:review", "admin:write", "audit:read", "decide",
		}}
		maps.Copy(draft, fields)
		var made struct{ Token string }
		owner.PostJSON(s.t, s.Service, "/admin/v1/"+path, draft).WantStatus(s.t, http.StatusCreated).Decode(s.t, &made)
		s.callers = append(s.callers, caller{name, []string{"Authorization", "Bearer " + made.Token}})
		return made.Token
	}
	add("token", own, nil)
	add("token with another scope", own, map[string]any{"scopes": []string{"decide"}})
	add("service account", service, nil)
	add("token of another network", own, map[string]any{"networks": []string{"192.0.2.0/24"}})
	ended := add("ended token", own, nil)
	if _, err := s.e.OpenDatabase(s.t).ExecContext(s.t.Context(),
		"UPDATE api_tokens SET expires_at = created_at WHERE prefix = ?", ended[:12]); err != nil {
		s.t.Fatal(err)
	}
	wrong := ended[:len(ended)-1] + "0"
	if wrong == ended {
		wrong = ended[:len(ended)-1] + "1"
	}
	s.callers = append(s.callers, caller{"token with a wrong checksum", []string{"Authorization", "Bearer " + wrong}})
}

// addLevels adds a caller with each trust level and all grants.
func (s *site) addLevels() {
	s.t.Helper()
	begin := func(level string, p *fixture.Person) {
		s.t.Helper()
		if p.TrustLevel != level {
			s.t.Fatalf("the session of %s is at %s, want %s", p.Email, p.TrustLevel, level)
		}
		s.callers = append(s.callers, caller{level, p.Bearer()})
	}
	person := func(name string) *fixture.Person {
		p := s.e.NewPerson(s.t, name+"@example.com", grants()...)
		p.Login(s.t, s.Service)
		return p
	}
	high := person("high")
	high.Login(s.t, s.Service)
	apiclient.Call(s.t, "POST", s.API+"/auth/login", map[string]any{
		"email": high.Email, "password": "wrong", "deviceInfo": high.Device,
	}).
		WantStatus(s.t, http.StatusUnauthorized)
	high.Login(s.t, s.Service)
	begin("HIGH_RISK", high)
	begin("UNVERIFIED", person("unverified"))
	limited := person("limited")
	limited.StepUp(s.t, s.e, s.Service)
	limited.DeviceToken = ""
	limited.Login(s.t, s.Service)
	begin("LIMITED_TRUST", limited)
	full := person("full")
	full.StepUp(s.t, s.e, s.Service)
	begin("FULL_TRUST", full)
}

// newPublisher returns the headers of a publisher that has proved a domain.
func (s *site) newPublisher(dns *dnsserver.Server) []string {
	s.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must.Succeed(s.t, err)
	dns.SetTXT(domain, "v=MCPv1; k=ed25519; p="+base64.StdEncoding.EncodeToString(public))
	s.e.RunCommand(s.t, "", "publisher", "add", "--method", "dns", "--domain", domain, "--pattern", namespace+"*",
		"--action", "publish", "--action", "status")
	now := time.Now().UTC().Format(time.RFC3339Nano)
	proof := map[string]string{
		"domain": domain, "timestamp": now, "signed_timestamp": hex.EncodeToString(ed25519.Sign(private, []byte(now))),
	}
	var got struct {
		Token string `json:"registry_token"`
	}
	apiclient.Call(s.t, "POST", s.API+"/v0.1/auth/dns", proof).WantStatus(s.t, http.StatusOK).Decode(s.t, &got)
	return []string{"Authorization", "Bearer " + got.Token}
}

// publish publishes a version as somebody who is no caller, and returns the ID of its review; empty
// if it is served at once.
func (s *site) publish(name, version string) string {
	s.t.Helper()
	var got struct {
		Meta struct {
			Review struct{ ID string } `json:"dev.tollgate/review"`
		} `json:"_meta"`
	}
	s.sam.PostJSON(s.t, s.Service, "/v0.1/publish", fixture.NewServerDocument(namespace+name, version)).WantStatus(s.t,
		http.StatusOK).Decode(s.t, &got)
	return got.Meta.Review.ID
}

// submit returns the ID of a review that waits for a decision.
func (s *site) submit() string {
	s.waiting++
	return s.publish(fmt.Sprintf("wait-%d", s.waiting), "1.0.0")
}

// hide publishes a server and puts it in quarantine.
func (s *site) hide(name string) {
	s.t.Helper()
	s.publish(name, "1.0.0")
	s.reviewer.PostJSON(s.t, s.Service, "/v0.1/x/dev.tollgate/quarantine", map[string]string{
		"serverName": namespace + name, "reason": "it sends mail",
	}).
		WantStatus(s.t, http.StatusOK)
}
