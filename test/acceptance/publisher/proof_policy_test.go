package publisher

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// policyEntry is a policy as the API shows it.
type policyEntry struct {
	ID, Method, Pattern, Domain, KeyFingerprint, CreatedBy, CreatedAt, State string
	Actions                                                                  []string
	LastUsedAt                                                               *string
}

// unknownPolicy is the ID of no policy.
const unknownPolicy = "3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c"

// readPolicies returns the policies that a person sees, by ID.
func readPolicies(t *testing.T, s *fixture.Service, of *fixture.Person) map[string]policyEntry {
	t.Helper()
	var list struct{ Publishers []policyEntry }
	apiclient.Call(t, "GET", s.API+"/v0.1"+policiesPath, nil, of.Bearer()...).WantStatus(t, 200).Decode(t, &list)
	byID := map[string]policyEntry{}
	for _, p := range list.Publishers {
		byID[p.ID] = p
	}
	return byID
}

// TestProofPolicies checks the API of policies, their state, events and notices (contract
// P-11, P-14, P-17, P-18, P-20).
func TestProofPolicies(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		t.Parallel()
		p := startProofs(t, e, "PUBLISHER_RECHECK=1s", "PUBLISHER_UNPROVEN_AFTER=1s", fixture.RiskPolicy("fast"))
		ada := e.NewWriter(t, p.Service, "ada@example.com", "publish com.example/*")
		checkPolicyErrors(t, p, ada)
		key := newEd25519Key(t)
		p.dns.SetTXT("example.com", key.record)
		var added policyEntry
		ada.PostJSON(t, p.Service, "/v0.1"+policiesPath, map[string]any{
			"method": "dns", "domain": "Example.com", "pattern": "com.example/*", "keyFingerprint": key.fingerprint,
			"expiresAt": "2099-01-01T00:00:00Z",
		}).WantStatus(t, 201).Decode(t, &added)
		_, user := fixture.ReadSession(t, p.Service, ada)
		if added.State != "active" || added.Domain != "example.com" || added.KeyFingerprint != key.fingerprint ||
			added.LastUsedAt != nil ||
			added.CreatedBy != user || !slices.Equal(added.Actions, []string{"publish"}) {
			t.Errorf("added %+v", added)
		}
		token := p.token(t, "example.com", key)
		p.publish(t, token, "com.example/weather", "1.0.0").WantStatus(t, 200)
		if got := readPolicies(t, p.Service, ada); len(got) != 1 || got[added.ID].LastUsedAt == nil {
			t.Errorf("policies after the first use: %+v", got)
		}
		checkUnproven(t, p, ada, key, token)
		checkPolicyRecords(t, p, added.ID, key)
		checkMakerNotices(t, p)
		checkPolicyRemoval(t, p, ada, added.ID)
	})
}

// checkPolicyErrors checks who may, and that an error names the field. All rules of fields are tested in
// core/registry/publisher.
func checkPolicyErrors(t *testing.T, p *proofSite, ada *fixture.Person) {
	path := "/v0.1" + policiesPath
	apiclient.Call(t, "GET", p.API+path, nil).WantStatus(t, 401)
	apiclient.Call(t, "POST", p.API+path, "{}").WantStatus(t, 401)
	apiclient.Call(t, "DELETE", p.API+path+"/"+unknownPolicy, nil).WantStatus(t, 401)
	bob := p.e.NewPerson(t, "bob@example.com", "publish com.example/*")
	bob.Login(t, p.Service)
	apiclient.Call(t, "GET", p.API+path, nil, bob.Bearer()...).WantStatus(t, 403)
	bob.PostJSON(t, p.Service, path, map[string]string{
		"method": "dns", "domain": "example.com", "pattern": "com.example/*",
	}).WantStatus(t, 403)
	apiclient.Call(t, "DELETE", p.API+path+"/"+unknownPolicy, nil, bob.Bearer()...).WantStatus(t, 403)
	a := ada.PostJSON(t, p.Service, path, map[string]string{
		"method": "dns", "domain": "example.org", "pattern": "org.example/*",
	}).WantStatus(t, 403)
	wantSentence(t, a, "covers the whole pattern org.example/*")
	for _, c := range []struct {
		text   string // in the sentence
		change map[string]any
	}{
		{"method ", map[string]any{"method": nil}},
		{"pattern ", map[string]any{"pattern": "com.other/*"}},
		{"actions", map[string]any{"actions": []string{}}},
		{"claims ", map[string]any{"claims": map[string]string{"repository": "acme/tools"}}},
		{"expiresAt", map[string]any{"expiresAt": "tomorrow"}},
	} {
		body := map[string]any{"method": "dns", "domain": "example.com", "pattern": "com.example/*"}
		maps.Copy(body, c.change)
		a := ada.PostJSON(t, p.Service, path, body)
		if a.Status != 400 {
			t.Errorf("%v: status %d: %s", body, a.Status, a.Body)
			continue
		}
		if sentence := apiclient.WantRegistryError(t, a); !strings.HasPrefix(sentence, c.text) {
			t.Errorf("%v: %q does not name the field %s", body, sentence, c.text)
		}
	}
	if got := readPolicies(t, p.Service, ada); len(got) != 0 {
		t.Errorf("policies after errors: %+v", got)
	}
}

// checkUnproven checks that a policy and its token give nothing while its key is gone.
func checkUnproven(t *testing.T, p *proofSite, ada *fixture.Person, key *domainKey, token string) {
	t.Helper()
	awaitState := func(state string) {
		t.Helper()
		await.Until(t, state, func() bool {
			for _, policy := range readPolicies(t, p.Service, ada) {
				return policy.State == state
			}
			return false
		})
	}
	p.dns.SetTXT("example.com", newEd25519Key(t).record)
	awaitState("unproven")
	wantEnded(t, []*fixture.Service{p.Service}, token, "com.example/weather", "2.0.0")
	p.dns.SetTXT("example.com", key.record)
	awaitState("active")
	p.publish(t, token, "com.example/weather", "1.1.0").WantStatus(t, 200)
}

// checkPolicyRecords checks the audit events of a first use, of a lost key and of a failed proof.
func checkPolicyRecords(t *testing.T, p *proofSite, policy string, key *domainKey) {
	t.Helper()
	stranger := newEd25519Key(t)
	p.prove(t, "example.com", stranger).WantStatus(t, 401)
	events := p.readEvents(t, "PUBLISHER_PROOF")
	if len(events) != 4 { // a proof, the key that is gone, the key that is back, and a refused proof
		t.Fatalf("%d events, want 4: %+v", len(events), events)
	}
	refused, back, gone, accepted := events[0], events[1], events[2], events[3]
	if !back.Success || gone.Success ||
		gone.Details["reason"] != "the domain no longer publishes the key of the policy" {
		t.Errorf("the events of the lost key are %+v and %+v", gone, back)
	}
	reason, _ := refused.Details["reason"].(string)
	if refused.Success || !strings.Contains(reason, "none of the keys") || refused.Details["domain"] != "example.com" ||
		refused.Details["ipAddress"] == nil {
		t.Errorf("the event of a refusal is %+v", refused)
	}
	policies, _ := accepted.Details["policies"].([]any)
	if !accepted.Success || accepted.Details["method"] != "dns" ||
		accepted.Details["keyFingerprint"] != key.fingerprint ||
		len(policies) != 1 || policies[0] != policy || accepted.Details["reason"] != nil {
		t.Errorf("the event of a success is %+v", accepted)
	}
	var published bool
	for _, event := range p.readEvents(t, "REGISTRY_CHANGE") {
		published = published ||
			strings.Contains(strings.Join(texts(event.Details), " "), "example.com") &&
				event.Details["version"] == "1.1.0"
	}
	if !published {
		t.Errorf("no event of the publication: %+v", p.readEvents(t, "REGISTRY_CHANGE"))
	}
}

// texts returns the values of details that are strings.
func texts(details map[string]any) (list []string) {
	for _, v := range details {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func checkPolicyRemoval(t *testing.T, p *proofSite, ada *fixture.Person, id string) {
	t.Helper()
	p.dns.SetTXT("example.org", newEd25519Key(t).record) // a recheck that comes by finds a key
	foreign := p.addPolicy(t, "--method", "dns", "--domain", "example.org", "--pattern", "org.example/*")
	if got := readPolicies(t, p.Service, ada); len(got) != 1 {
		t.Errorf("policies for the names of a person: %+v", got)
	}
	remove := func(id string) apiclient.Response {
		return apiclient.Call(t, "DELETE", p.API+"/v0.1"+policiesPath+"/"+id, nil, ada.Bearer()...)
	}
	remove(foreign).WantStatus(t, 404)
	remove(id).WantStatus(t, 204)
	remove(id).WantStatus(t, 404)
	remove(unknownPolicy).WantStatus(t, 404)
	actions := map[any]int{}
	for _, event := range p.readEvents(t, "ACCOUNT_CHANGE") {
		actions[event.Details["action"]]++
	}
	if actions["publisher_add"] != 2 || actions["publisher_remove"] != 1 {
		t.Errorf("events of policies: %v", actions)
	}
}

// TestProofReserved checks the namespaces that no one may publish (contract P-21), a service that
// is open to everybody (P-10), and the endpoints of P-22.
func TestProofReserved(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		p := startProofs(t, e, "RESERVED_NAMESPACES=com.example/reserved*,org.example/*", "PUBLISHER_PROOFS=open")
		key := newEd25519Key(t)
		p.dns.SetTXT("example.com", key.record)
		token := p.token(t, "example.com", key)
		p.publish(t, token, "com.example/weather", "1.0.0").WantStatus(t, 200)
		p.publish(t, token, "com.example.sub/weather", "1.0.0").WantStatus(t, 200)
		p.setStatus(t, token, "com.example/weather", "1.0.0").WantStatus(t, 200)
		p.publish(t, token, "com.other/weather", "1.0.0").WantStatus(t, 403)
		wantSentence(t, p.publish(t, token, "com.example/reserved-1", "1.0.0").WantStatus(t, 403), "reserved")
		ada := e.NewWriter(t, p.Service, "ada@example.com", "publish *", "edit *")
		wantSentence(t, p.publish(t, ada.AccessToken, "org.example/weather", "1.0.0").WantStatus(t, 403), "reserved")
		put := p.API + "/v0.1" + fixture.ServerPath("org.example/weather", "1.0.0")
		wantSentence(t,
			apiclient.Call(t, "PUT", put, fixture.NewServerDocument("org.example/weather", "1.0.0"), ada.Bearer()...).
				WantStatus(t, 403), "reserved")
		for _, policy := range []map[string]string{
			{"method": "dns", "domain": "example.org", "pattern": "org.example/*"},
			{"method": "dns", "domain": "example.com", "pattern": "com.example/reserved"},
			{"method": "dns", "domain": "example.org", "pattern": "org.example/a"},
		} {
			a := ada.PostJSON(t, p.Service, "/v0.1"+policiesPath, policy)
			if wantSentence(t, a, "reserved"); a.Status != 400 {
				t.Errorf("%v: status %d", policy, a.Status)
			}
		}
		for _, prefix := range prefixes {
			var health, version map[string]string
			var ping map[string]bool
			apiclient.Call(t, "GET", p.API+prefix+"/health", nil).WantStatus(t, 200).Decode(t, &health)
			apiclient.Call(t, "GET", p.API+prefix+"/ping", nil).WantStatus(t, 200).Decode(t, &ping)
			apiclient.Call(t, "GET", p.API+prefix+"/version", nil).WantStatus(t, 200).Decode(t, &version)
			if len(health) != 1 || health["status"] != "ok" || len(ping) != 1 || !ping["pong"] || len(version) != 3 ||
				version["version"] == "" || version["git_commit"] == "" || version["build_time"] == "" {
				t.Errorf("%s: %v %v %v", prefix, health, ping, version)
			}
		}
	})
}

// checkMakerNotices checks that the maker of a policy gets notices of its first use and of a failed
// proof (contract P-18).
func checkMakerNotices(t *testing.T, p *proofSite) {
	t.Helper()
	for _, event := range []string{"has proved who it is, for the first time", "could not prove who it is"} {
		await.Until(t, event, func() bool {
			written, err := os.ReadFile(p.notices)
			return err == nil && strings.Contains(string(written), event) &&
				strings.Contains(string(written), "Publisher: example.com, for com.example/*")
		})
	}
}
