package registryapi_test

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var madeAt = now.Truncate(time.Second)

// publisherStub records the calls of the handlers and returns fixed results.
type publisherStub struct {
	calls    []string
	domain   delegating.DomainRequest
	identity delegating.IdentityRequest

	switched error // of Switched
	err      error // of the other calls
}

func (s *publisherStub) recordCall(name string) error {
	s.calls = append(s.calls, name)
	return s.err
}

func (s *publisherStub) Switched() error { return s.switched }

func (s *publisherStub) ProveDomain(_ context.Context, r delegating.DomainRequest) (delegating.Token, error) {
	s.domain = r
	return delegating.Token{Text: "a.b.c", ExpiresAt: madeAt}, s.recordCall("domain")
}

func (s *publisherStub) ProveIdentity(_ context.Context, r delegating.IdentityRequest) (delegating.Token, error) {
	s.identity = r
	return delegating.Token{Text: "a.b.c", ExpiresAt: madeAt}, s.recordCall("identity")
}

const (
	domainProof = `{"domain":"example.com","timestamp":"2027-01-15T08:00:00Z","signed_timestamp":"00ff","other":1}`
	tokenBody   = `{"registry_token":"a.b.c","expires_at":1800000000}`
)

func TestProofsOfDomains(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, s, nil))
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for _, method := range []publisher.Method{publisher.DNS, publisher.HTTP} {
			s.domain, s.calls = delegating.DomainRequest{}, nil
			expectUncached(t, http.MethodPost, url+prefix+"/auth/"+string(method), domainProof, 200, tokenBody)
			r := s.domain
			if r.Method != method || r.Domain != "example.com" || r.Timestamp != "2027-01-15T08:00:00Z" ||
				r.Signature != "00ff" ||
				r.Address.String() != "127.0.0.1" || r.Key == "" || len(s.calls) != 1 {
				t.Errorf("%s %s: the request is %+v, calls %q", prefix, method, r, s.calls)
			}
		}
	}
}

func TestProofsByIDToken(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, s, nil))
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for _, method := range []publisher.Method{publisher.OIDC, publisher.GitHubOIDC} {
			s.identity, s.calls = delegating.IdentityRequest{}, nil
			expectUncached(t, http.MethodPost, url+prefix+"/auth/"+string(method), `{"oidc_token":"x.y.z"}`,
				200, tokenBody)
			r := s.identity
			if r.Method != method || r.Token != "x.y.z" || r.Address.String() != "127.0.0.1" || r.Key == "" ||
				len(s.calls) != 1 {
				t.Errorf("%s %s: the request is %+v, calls %q", prefix, method, r, s.calls)
			}
		}
	}
}

// TestWrongProofBodies requires 400 with the name of the member, and no call of the use case.
func TestWrongProofBodies(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, s, nil)) + "/v0/auth/"
	for path, bodies := range map[string]map[string]string{
		"dns": {
			``: "body is empty; it must be a JSON object", `[]`: "body must be a JSON object",
			`{}`:                               "domain is missing",
			`{"domain":"a.b","timestamp":1}`:   "timestamp must be a string without NUL",
			`{"domain":"a.b","timestamp":"t"}`: "signed_timestamp is missing",
			`{"domain":"a.b","timestamp":"t","signed_timestamp":""}`:   "signed_timestamp must not be empty",
			`{"domain":"a.b","timestamp":"t","signed_timestamp":null}`: "signed_timestamp is missing",
			`{"domain":"a.b","domain":"a.b"}`:                          "domain occurs twice",
		},
		"http": {`{"domain":"\u0000"}`: "domain must be a string without NUL"},
		"oidc": {
			`{"token":"x"}`: "oidc_token is missing", `{"oidc_token":{}}`: "oidc_token must be a string without NUL",
		},
		"github-oidc": {`nonsense`: "body is not valid JSON"},
	} {
		for body, message := range bodies {
			expectUncached(t, http.MethodPost, url+path, body, 400, `{"error":"`+message+`"}`)
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("calls with malformed bodies: %q", s.calls)
	}
}

// TestProofsThatAreOff requires 404 whatever the body is, because it is not read.
func TestProofsThatAreOff(t *testing.T) {
	s := &publisherStub{switched: fault.New(fault.NotFound, "proofs are off")}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, s, nil))
	for _, path := range []string{"/v0/auth/dns", "/v0.1/auth/http", "/v0/auth/oidc", "/v0.1/auth/github-oidc"} {
		for _, body := range []string{"", "nonsense", domainProof, `{"oidc_token":"x"}`} {
			expectUncached(t, http.MethodPost, url+path, body, 404, `{"error":"proofs are off"}`)
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("calls while proofs are off: %q", s.calls)
	}
}

func TestRefusedProofs(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, s, nil))
	for kind, status := range map[fault.Kind]int{
		fault.Invalid: 400, fault.Unauthenticated: 401, fault.NotFound: 404, fault.Exhausted: 429,
		fault.Unavailable: 503,
	} {
		s.err = fault.New(kind, "a reason")
		expectUncached(t, http.MethodPost, url+"/v0/auth/dns", domainProof, status, `{"error":"a reason"}`)
		expectUncached(t, http.MethodPost, url+"/v0/auth/oidc", `{"oidc_token":"x"}`, status, `{"error":"a reason"}`)
	}
}

// policies are records in memory and a service of them, for a person who may publish the servers
// below com.example.
type policies struct {
	url     string // of the policies
	store   *fakedb.Policies
	service *delegating.Policies
}

type allActive struct{}

func (allActive) IsActive(context.Context, string) (bool, error) { return true, nil }

func (allActive) EmailOf(context.Context, string) (string, error) { return "", nil }

type noRecorder struct{}

func (noRecorder) RecordChanges(context.Context, ...audit.Change) error { return nil }

// fixedEntropy makes one id again and again.
type fixedEntropy struct{}

func (fixedEntropy) Fill(p []byte) {
	copy(p, "\x3f\x30\xe8\xb6\x7d\x1c\x4c\x0e\x9c\x53\x0d\x9f\x4a\x1f\x2b\x3c")
}

func servePolicies(t *testing.T) policies {
	t.Helper()
	db, at := fakedb.New(), clocktest.NewManual(madeAt)
	store, grants := fakedb.NewPolicies(db), newGrants(t, db, registry.ActionPublish)
	config := permit.Config{
		Mode: publisher.ByPolicies, UnprovenAfter: time.Hour, Rules: publisher.Rules{
			Issuers: []string{"https://ci.example.com"},
		},
	}
	service := delegating.NewPolicies(config, delegating.PolicyPorts{
		Transactions: db, Policies: store, Grants: grants, Recorder: noRecorder{}, Clock: at, Entropy: fixedEntropy{},
		Checker: permit.NewChecker(config, permit.CheckerPorts{
			Policies: store, Grants: grants, Makers: allActive{}, Clock: at,
		}),
	})
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, &publisherStub{}, service))
	return policies{url, store, service}
}

// identityPolicy is a body with all members of a policy by ID token.
const identityPolicy = `{"method":"oidc","pattern":"com.example/*","actions":["publish","status"],"issuer":"https://ci.example.com",
	"subject":"project:*","claims":{"ref":"main"},"expiresAt":"2027-01-15T09:00:00Z","other":1}`

const policyText = `{"id":"3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c","method":"oidc","pattern":"com.example/*","actions":["publish","status"],` +
	`"issuer":"https://ci.example.com","subject":"project:*","claims":{"ref":"main"},"expiresAt":"2027-01-15T09:00:00.000000Z",` +
	`"createdBy":"t.o.k","createdAt":"2027-01-15T08:00:00.000000Z","lastUsedAt":null,"state":"active"}`

func TestAddedPolicy(t *testing.T) {
	for _, prefix := range []string{"/v0.1", "/v0"} {
		expectUncached(t, http.MethodPost, servePolicies(t).url+prefix+"/x/dev.tollgate/publishers", identityPolicy,
			201, policyText)
		expectUncached(t, http.MethodPost, servePolicies(t).url+prefix+"/x/dev.tollgate/publishers",
			`{"method":"dns","pattern":"com.example/*","domain":"example.com","keyFingerprint":"ed25519:abcdefgh"}`,
			201,
			`{"id":"3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c","method":"dns","pattern":"com.example/*","actions":["publish"],"domain":"example.com",`+
				`"keyFingerprint":"ed25519:abcdefgh","createdBy":"t.o.k","createdAt":"2027-01-15T08:00:00.000000Z","lastUsedAt":null,"state":"active"}`)
	}
}

// lowTrust finds the same person below FULL_TRUST for every token.
type lowTrust struct{ authoritytest.Callers }

func (lowTrust) Identify(context.Context, string, netip.Addr) (authority.Caller, error) {
	return authoritytest.Person("ada low"), nil
}

// TestCallerIsCheckedBeforeTheBody requires that a caller without the right learns nothing about
// the body.
func TestCallerIsCheckedBeforeTheBody(t *testing.T) {
	url := servePart(t, registryapi.NewPublishers(lowTrust{}, registryapi.Resource{}, &publisherStub{}, servePolicies(t).service))
	expectUncached(t, http.MethodPost, url+"/v0.1/x/dev.tollgate/publishers", "nonsense", 403,
		`{"error":"step up first"}`)
}

func TestWrongPolicyBodies(t *testing.T) {
	url := servePolicies(t).url + "/v0.1/x/dev.tollgate/publishers"
	for body, message := range map[string]string{
		`{}`: "method is missing", `{"method":"dns"}`: "pattern is missing", `7`: "body must be a JSON object",
		`{"method":"oidc","pattern":"p","claims":{"a":"1","a":"2"}}`: "claims.a occurs twice",
		`{"method":"oidc","pattern":"p","claims":{"a":1}}`:           "claims.a must be a string that is not empty",
		`{"method":"dns","pattern":"p","actions":[]}`:                "actions must be a list of one or more strings",
		`{"method":"dns","pattern":"p","expiresAt":"never"}`:         "expiresAt must be an RFC 3339 time, for example 2027-01-01T00:00:00Z",
	} {
		expectUncached(t, http.MethodPost, url, body, 400, `{"error":"`+message+`"}`)
	}
	expectUncached(t, http.MethodGet, url, "", 200, `{"publishers":[]}`)
}

func TestListedPolicies(t *testing.T) {
	p := servePolicies(t)
	url := p.url + "/v0/x/dev.tollgate/publishers"
	expectUncached(t, http.MethodGet, url, "", 200, `{"publishers":[]}`)
	expectUncached(t, http.MethodPost, url, identityPolicy, 201, policyText)
	used, err := publisher.NewPolicy(publisher.Draft{
		Method: "oidc", Pattern: "com.example/*", Actions: []string{"publish", "status"},
		Issuer:  "https://ci.example.com",
		Subject: "project:*", Claims: map[string]string{"ref": "main"},
	}, publisher.Rules{Issuers: []string{"https://ci.example.com"}}, madeAt)
	must.Succeed(t, err)
	used.ID, used.CreatedAt, used.LastUsedAt = "4f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c", madeAt, madeAt.Add(time.Minute)
	must.Succeed(t, p.store.Add(t.Context(), used))
	second := strings.NewReplacer(`"expiresAt":"2027-01-15T09:00:00.000000Z",`, "", `"t.o.k"`, `"operator"`,
		`"3f30`, `"4f30`,
		`"lastUsedAt":null`, `"lastUsedAt":"2027-01-15T08:01:00.000000Z"`).Replace(policyText)
	expectUncached(t, http.MethodGet, url, "", 200, `{"publishers":[`+policyText+`,`+second+`]}`)
	call(t, http.MethodGet, url, "").expect(t, 401, `{"error":"an access token is required"}`)
}

func TestRemovedPolicy(t *testing.T) {
	url := servePolicies(t).url + "/v0.1/x/dev.tollgate/publishers"
	expectUncached(t, http.MethodPost, url, identityPolicy, 201, policyText)
	expectUncached(t, http.MethodDelete, url+"/3F30E8B6-7d1c-4c0e-9c53-0d9f4a1f2b3c", "", 204, "")
	expectUncached(t, http.MethodGet, url, "", 200, `{"publishers":[]}`)
	for _, id := range []string{"3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c", "nonsense"} {
		if a := call(t, http.MethodDelete, url+"/"+id, "", "Authorization", "Bearer t.o.k"); a.status != 404 {
			t.Errorf("the removal of %s is %d %s", id, a.status, a.body)
		}
	}
}

// TestOwnedPathsOfPublishers requires that errors of all paths of the part, and of no others, are
// written by it.
func TestOwnedPathsOfPublishers(t *testing.T) {
	a := registryapi.NewPublishers(authoritytest.Callers{}, registryapi.Resource{}, nil, nil)
	for path, owned := range map[string]bool{
		"/v0/auth/dns": true, "/v0.1/auth/unknown": true, "/v0/x/dev.tollgate/publishers": true,
		"/v0.1/x/dev.tollgate/publishers/a": true,
		"/v0/auth":                          false, "/auth/dns": false, "/v0/x/dev.tollgate/publishersx": false,
		"/v0/servers":  false,
		"/v1/auth/dns": false, "": false,
	} {
		if got := a.Owns(path); got != owned {
			t.Errorf("Owns(%q) = %t", path, got)
		}
	}
}
