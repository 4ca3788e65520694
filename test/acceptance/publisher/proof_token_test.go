package publisher

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// policiesPath is the path of policies (contract P-20), quarantinePath that of quarantine (contract
// C-20).
const (
	policiesPath   = "/x/dev.tollgate/publishers"
	quarantinePath = "/x/dev.tollgate/quarantine"
)

// TestProofNarrowToken checks what the token of a publisher may do, and what ends it (contract
// P-13, P-15, P-16).
func TestProofNarrowToken(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		p := startProofs(t, e)
		checkNarrowToken(t, p)
		checkQuarantine(t, p)
		checkTokenEnds(t, p)
		checkMakers(t, p)
	})
}

func checkNarrowToken(t *testing.T, p *proofSite) {
	key := newEd25519Key(t)
	p.allowDomain(t, "narrow.example", key, "--pattern", "example.narrow/weather*")
	p.allowDomain(t, "wide.example", key, "--pattern", "example.wide/*", "--action", "publish", "--action", "status")
	narrow, wide := p.token(t, "narrow.example", key), p.token(t, "wide.example", key)
	p.publish(t, narrow, "example.narrow/weather", "1.0.0").WantStatus(t, 200)
	p.publish(t, wide, "example.wide/weather", "1.0.0").WantStatus(t, 200)
	p.setStatus(t, wide, "example.wide/weather", "1.0.0").WantStatus(t, 200)
	for _, name := range []string{"example.narrow/other", "example.wide/other", "com.example/weather"} {
		wantSentence(t, p.publish(t, narrow, name, "1.0.0").WantStatus(t, 403), name)
	}
	p.setStatus(t, narrow, "example.narrow/weather", "1.0.0").WantStatus(t, 403)
	p.setStatus(t, wide, "example.narrow/weather", "1.0.0").WantStatus(t, 403)
	for _, prefix := range prefixes {
		version := prefix + fixture.ServerPath("example.wide/weather", "1.0.0")
		for _, c := range []struct {
			method, path string
			body         any
			status       int
		}{
			{"PUT", version, fixture.NewServerDocument("example.wide/weather", "1.0.0"), 403},
			{"DELETE", version, nil, 403},
			{"GET", prefix + policiesPath, nil, 403},
			{
				"POST", prefix + policiesPath, map[string]string{
					"method": "dns", "domain": "wide.example", "pattern": "example.wide/*",
				}, 403,
			},
			{"DELETE", prefix + policiesPath + "/" + unknownPolicy, nil, 403},
			{"GET", prefix + quarantinePath, nil, 403},
			{
				"POST", prefix + quarantinePath, map[string]string{
					"serverName": "example.wide/weather", "reason": "x",
				}, 403,
			},
			{"DELETE", prefix + quarantinePath + "?serverName=example.wide/weather", nil, 403},
			{"GET", "/auth/session", nil, 401}, {"GET", "/devices", nil, 401}, {"GET", "/sessions", nil, 401}, {
				"GET", "/audit-logs", nil, 401,
			},
			{
				"POST", "/auth/password", map[string]string{
					"currentPassword": fixture.Password, "newPassword": fixture.Password + "8",
				}, 401,
			},
		} {
			a := apiclient.Call(t, c.method, p.API+c.path, c.body, "Authorization", "Bearer "+wide)
			if a.Status != c.status {
				t.Errorf("%s %s: status %d, want %d: %s", c.method, c.path, a.Status, c.status, a.Body)
			}
		}
	}
}

// checkQuarantine checks that the token of a publisher changes nothing in quarantine (contract
// C-22).
func checkQuarantine(t *testing.T, p *proofSite) {
	key := newEd25519Key(t)
	p.allowDomain(t, "held.example", key, "--pattern", "example.held/*", "--action", "publish", "--action", "status")
	token := p.token(t, "held.example", key)
	p.publish(t, token, "example.held/weather", "1.0.0").WantStatus(t, 200)
	p.e.RunCommand(t, "", "registry", "quarantine", "example.held/weather", "--reason", "it sends mail")
	const sentence = "example.held/weather is in quarantine: it sends mail"
	wantSentence(t, p.publish(t, token, "example.held/weather", "2.0.0").WantStatus(t, 403), sentence)
	wantSentence(t, p.setStatus(t, token, "example.held/weather", "1.0.0").WantStatus(t, 403), sentence)
	p.e.RunCommand(t, "", "registry", "release", "example.held/weather")
	p.setStatus(t, token, "example.held/weather", "1.0.0").WantStatus(t, 200)
}

// wantEnded checks that the token is refused at the next request on every instance.
func wantEnded(t *testing.T, services []*fixture.Service, token, name, version string) {
	t.Helper()
	for _, s := range services {
		a := apiclient.Call(t, "POST", s.API+"/v0/publish", fixture.NewServerDocument(name, version), "Authorization",
			"Bearer "+token)
		if a.Status != http.StatusUnauthorized {
			t.Errorf("the token of a policy that has ended: %d %s", a.Status, a.Body)
		}
	}
}

func checkTokenEnds(t *testing.T, p *proofSite) {
	services := []*fixture.Service{p.Service}
	if p.e.Shared {
		services = append(services, p.e.Start(t, "HOST="+newLoopbackHost(), "PORT="+apiPort))
	}
	key := newEd25519Key(t)
	policy := p.allowDomain(t, "end.example", key, "--pattern", "example.end/*")
	token := p.token(t, "end.example", key)
	for i, s := range services {
		doc := fixture.NewServerDocument("example.end/weather", "1.0."+string(rune('0'+i)))
		apiclient.Call(t, "POST", s.API+"/v0/publish", doc, "Authorization", "Bearer "+token).WantStatus(t, 200)
	}
	p.e.RunCommand(t, "", "publisher", "remove", policy)
	wantEnded(t, services, token, "example.end/weather", "2.0.0")
	wantSentence(t, p.prove(t, "end.example", key).WantStatus(t, 401), "nobody has allowed it")

	ada := p.e.NewWriter(t, p.Service, "eve@example.com", "publish example.*")
	token, id := p.tokenByPerson(t, ada, key, "removed.example", "example.removed/*")
	apiclient.Call(t, "DELETE", p.API+"/v0.1"+policiesPath+"/"+id, nil, ada.Bearer()...).WantStatus(t, 204)
	wantEnded(t, services, token, "example.removed/weather", "2.0.0")

	expires := time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339)
	p.allowDomain(t, "short.example", key, "--pattern", "example.short/*", "--expires-at", expires)
	token = p.token(t, "short.example", key)
	await.Until(t, "the end of the policy", func() bool {
		return p.publish(t, token, "example.short/weather",
			time.Now().Format("1.0.150405000")).Status == http.StatusUnauthorized
	})
	wantSentence(t, p.prove(t, "short.example", key).WantStatus(t, 401), "holds, but it may publish nothing here",
		"it has expired")
}

// tokenByPerson adds a policy by the API and returns the token of a first proof, and the ID of the
// policy.
func (p *proofSite) tokenByPerson(
	t *testing.T, maker *fixture.Person, key *domainKey, domain, pattern string,
) (token, id string) {
	t.Helper()
	p.dns.SetTXT(domain, key.record)
	var added struct{ ID string }
	maker.PostJSON(t, p.Service, "/v0.1"+policiesPath, map[string]string{
		"method": "dns", "domain": domain, "pattern": pattern,
	}).
		WantStatus(t, 201).Decode(t, &added)
	return p.token(t, domain, key), added.ID
}

// checkMakers checks that a policy gives nothing while its maker could not create it.
func checkMakers(t *testing.T, p *proofSite) {
	key := newEd25519Key(t)
	ada := p.e.NewWriter(t, p.Service, "ada@example.com", "publish example.maker/*")
	token, _ := p.tokenByPerson(t, ada, key, "maker.example", "example.maker/*")
	p.publish(t, token, "example.maker/weather", "1.0.0").WantStatus(t, 200)
	grant := []string{"--email", ada.Email, "--action", "publish", "--resource", "example.maker/*"}
	for i, change := range []struct{ end, begin []string }{
		{[]string{"user", "disable", "--email", ada.Email}, []string{"user", "enable", "--email", ada.Email}},
		{append([]string{"grant", "remove"}, grant...), append([]string{"grant", "add"}, grant...)},
	} {
		p.e.RunCommand(t, "", change.end...)
		wantEnded(t, []*fixture.Service{p.Service}, token, "example.maker/weather", "2.0.0")
		wantSentence(t, p.prove(t, "maker.example", key).WantStatus(t, 401), "it may publish nothing here",
			"the person who created it is disabled, or may no longer publish")
		var list []struct{ CreatedBy, State string }
		p.e.ReadCommand(t, &list, "publisher", "list")
		for _, policy := range list {
			if policy.CreatedBy == ada.Email && policy.State != "expired" {
				t.Errorf("%s: the policy is %s", strings.Join(change.end, " "), policy.State)
			}
		}
		p.e.RunCommand(t, "", change.begin...)
		p.publish(t, token, "example.maker/weather", "1.1."+string(rune('0'+i))).WantStatus(t, 200)
	}
}
