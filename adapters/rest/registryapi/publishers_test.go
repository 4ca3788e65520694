package registryapi_test

import (
	"context"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/registryapi"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
)

var madeAt = now.Truncate(time.Second)

// publisherStub records the calls of the handlers and returns fixed results.
type publisherStub struct {
	calls    []string
	domain   delegating.DomainRequest
	identity delegating.IdentityRequest
	who      authority.Caller
	draft    publisher.Draft
	id       publisher.PolicyID

	switched error // of Switched
	err      error // of the other calls
	list     []delegating.Policy
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

func (s *publisherStub) Add(_ context.Context, who authority.Caller, d publisher.Draft) (delegating.Policy, error) {
	s.who, s.draft = who, d
	if err := s.recordCall("add"); err != nil {
		return delegating.Policy{}, err
	}
	return s.list[0], nil
}

func (s *publisherStub) List(_ context.Context, who authority.Caller) ([]delegating.Policy, error) {
	s.who = who
	return s.list, s.recordCall("list")
}

func (s *publisherStub) Remove(_ context.Context, who authority.Caller, id publisher.PolicyID) error {
	s.who, s.id = who, id
	return s.recordCall("remove")
}

const (
	domainProof = `{"domain":"example.com","timestamp":"2027-01-15T08:00:00Z","signed_timestamp":"00ff","other":1}`
	tokenBody   = `{"registry_token":"a.b.c","expires_at":1800000000}`
)

func TestProofsOfDomains(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s))
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for _, method := range []publisher.Method{publisher.DNS, publisher.HTTP} {
			s.domain, s.calls = delegating.DomainRequest{}, nil
			expectUncached(t, http.MethodPost, url+prefix+"/auth/"+string(method), domainProof, 200, tokenBody)
			r := s.domain
			if r.Method != method || r.Domain != "example.com" || r.Timestamp != "2027-01-15T08:00:00Z" || r.Signature != "00ff" ||
				r.Address.String() != "127.0.0.1" || r.Key == "" || len(s.calls) != 1 {
				t.Errorf("%s %s: the request is %+v, calls %q", prefix, method, r, s.calls)
			}
		}
	}
}

func TestProofsByIDToken(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s))
	for _, prefix := range []string{"/v0.1", "/v0"} {
		for _, method := range []publisher.Method{publisher.OIDC, publisher.GitHubOIDC} {
			s.identity, s.calls = delegating.IdentityRequest{}, nil
			expectUncached(t, http.MethodPost, url+prefix+"/auth/"+string(method), `{"oidc_token":"x.y.z"}`, 200, tokenBody)
			r := s.identity
			if r.Method != method || r.Token != "x.y.z" || r.Address.String() != "127.0.0.1" || r.Key == "" || len(s.calls) != 1 {
				t.Errorf("%s %s: the request is %+v, calls %q", prefix, method, r, s.calls)
			}
		}
	}
}

// TestWrongProofBodies requires 400 with the name of the member, and no call of the use case.
func TestWrongProofBodies(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s)) + "/v0/auth/"
	for path, bodies := range map[string]map[string]string{
		"dns": {
			``: "body is empty; it must be a JSON object", `[]`: "body must be a JSON object", `{}`: "domain is missing",
			`{"domain":"a.b","timestamp":1}`:                           "timestamp must be a string without NUL",
			`{"domain":"a.b","timestamp":"t"}`:                         "signed_timestamp is missing",
			`{"domain":"a.b","timestamp":"t","signed_timestamp":""}`:   "signed_timestamp must not be empty",
			`{"domain":"a.b","timestamp":"t","signed_timestamp":null}`: "signed_timestamp is missing",
			`{"domain":"a.b","domain":"a.b"}`:                          "domain occurs twice",
		},
		"http":        {`{"domain":"\u0000"}`: "domain must be a string without NUL"},
		"oidc":        {`{"token":"x"}`: "oidc_token is missing", `{"oidc_token":{}}`: "oidc_token must be a string without NUL"},
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
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s))
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
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s))
	for kind, status := range map[fault.Kind]int{
		fault.Invalid: 400, fault.Unauthenticated: 401, fault.NotFound: 404, fault.Exhausted: 429, fault.Unavailable: 503,
	} {
		s.err = fault.New(kind, "a reason")
		expectUncached(t, http.MethodPost, url+"/v0/auth/dns", domainProof, status, `{"error":"a reason"}`)
		expectUncached(t, http.MethodPost, url+"/v0/auth/oidc", `{"oidc_token":"x"}`, status, `{"error":"a reason"}`)
	}
}

// policy returns a policy with all fields of a policy by ID token.
func policy(t *testing.T) delegating.Policy {
	t.Helper()
	p, err := publisher.NewPolicy(publisher.Draft{
		Method: "oidc", Pattern: "com.example/*", Actions: []string{"publish", "status"}, Issuer: "https://ci.example.com",
		Subject: "project:*", Claims: map[string]string{"ref": "main"}, ExpiresAt: madeAt.Add(time.Hour),
	}, publisher.Rules{Issuers: []string{"https://ci.example.com"}}, madeAt)
	if err != nil {
		t.Fatal(err)
	}
	p.ID, p.CreatedBy, p.CreatedAt = "3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c", "0a0b", madeAt
	return delegating.Policy{Policy: p, State: publisher.Active}
}

const policyText = `{"id":"3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c","method":"oidc","pattern":"com.example/*","actions":["publish","status"],` +
	`"issuer":"https://ci.example.com","subject":"project:*","claims":{"ref":"main"},"expiresAt":"2027-01-15T09:00:00.000000Z",` +
	`"createdBy":"0a0b","createdAt":"2027-01-15T08:00:00.000000Z","lastUsedAt":null,"state":"active"}`

func TestAddedPolicy(t *testing.T) {
	s := &publisherStub{list: []delegating.Policy{policy(t)}}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s))
	for _, prefix := range []string{"/v0.1", "/v0"} {
		s.draft = publisher.Draft{}
		expectUncached(t, http.MethodPost, url+prefix+"/x/dev.tollgate/publishers", `{"method":"m","pattern":"p","actions":["a","b"],"domain":"d",
			"keyFingerprint":"k","issuer":"i","subject":"s","claims":{"c":"v"},"expiresAt":"2027-01-15T09:00:00Z","other":1}`, 201, policyText)
		want := publisher.Draft{
			Method: "m", Pattern: "p", Actions: []string{"a", "b"}, Domain: "d", KeyFingerprint: "k", Issuer: "i", Subject: "s",
			Claims: map[string]string{"c": "v"}, ExpiresAt: madeAt.Add(time.Hour),
		}
		if !reflect.DeepEqual(s.draft, want) {
			t.Errorf("%s: the draft is %+v, want %+v", prefix, s.draft, want)
		}
		if s.who != tokenHolder() {
			t.Errorf("%s: the request is %+v", prefix, s.who)
		}
	}
}

// tokenHolder returns the caller with the token of expectUncached.
func tokenHolder() authority.Caller {
	return authoritytest.PersonFrom("t.o.k", netip.MustParseAddr("127.0.0.1"))
}

// lowTrust finds the same person below FULL_TRUST for every token.
type lowTrust struct{ authoritytest.Callers }

func (lowTrust) Identify(context.Context, string, netip.Addr) (authority.Caller, error) {
	return authoritytest.Person("ada low"), nil
}

// TestCallerIsCheckedBeforeTheBody requires that a caller without the right learns nothing about
// the body.
func TestCallerIsCheckedBeforeTheBody(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(lowTrust{}, s, s))
	expectUncached(t, http.MethodPost, url+"/v0.1/x/dev.tollgate/publishers", "nonsense", 403, `{"error":"step up first"}`)
	if len(s.calls) != 0 {
		t.Errorf("calls: %q", s.calls)
	}
}

func TestWrongPolicyBodies(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s)) + "/v0.1/x/dev.tollgate/publishers"
	for body, message := range map[string]string{
		`{}`: "method is missing", `{"method":"dns"}`: "pattern is missing", `7`: "body must be a JSON object",
		`{"method":"oidc","pattern":"p","claims":{"a":"1","a":"2"}}`: "claims.a occurs twice",
		`{"method":"oidc","pattern":"p","claims":{"a":1}}`:           "claims.a must be a string that is not empty",
		`{"method":"dns","pattern":"p","actions":[]}`:                "actions must be a list of one or more strings",
		`{"method":"dns","pattern":"p","expiresAt":"never"}`:         "expiresAt must be an RFC 3339 time, for example 2027-01-01T00:00:00Z",
	} {
		expectUncached(t, http.MethodPost, url, body, 400, `{"error":"`+message+`"}`)
	}
	if len(s.calls) != 0 {
		t.Errorf("calls with malformed bodies: %q", s.calls)
	}
}

func TestListedPolicies(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s)) + "/v0/x/dev.tollgate/publishers"
	expectUncached(t, http.MethodGet, url, "", 200, `{"publishers":[]}`)
	used := policy(t)
	used.CreatedBy, used.ExpiresAt, used.LastUsedAt, used.State = "", time.Time{}, madeAt.Add(time.Minute), publisher.Unproven
	s.list = []delegating.Policy{policy(t), used}
	second := strings.NewReplacer(`"expiresAt":"2027-01-15T09:00:00.000000Z",`, "", `"0a0b"`, `"operator"`,
		`"lastUsedAt":null`, `"lastUsedAt":"2027-01-15T08:01:00.000000Z"`, `"active"`, `"unproven"`).Replace(policyText)
	expectUncached(t, http.MethodGet, url, "", 200, `{"publishers":[`+policyText+`,`+second+`]}`)
	if s.who != tokenHolder() {
		t.Errorf("the request is %+v", s.who)
	}
	s.err = fault.New(fault.Unauthenticated, "sign in first")
	expectUncached(t, http.MethodGet, url, "", 401, `{"error":"sign in first"}`)
}

func TestRemovedPolicy(t *testing.T) {
	s := &publisherStub{}
	url := servePart(t, registryapi.NewPublishers(authoritytest.Callers{}, s, s)) + "/v0.1/x/dev.tollgate/publishers/"
	expectUncached(t, http.MethodDelete, url+"3F30E8B6-7d1c-4c0e-9c53-0d9f4a1f2b3c", "", 204, "")
	if s.id != "3f30e8b6-7d1c-4c0e-9c53-0d9f4a1f2b3c" || s.who != tokenHolder() {
		t.Errorf("%q is removed by %+v", s.id, s.who)
	}
	s.err = fault.New(fault.NotFound, "there is no such policy")
	expectUncached(t, http.MethodDelete, url+"nonsense", "", 404, `{"error":"there is no such policy"}`)
}

// TestOwnedPathsOfPublishers requires that errors of all paths of the part, and of no others, are written by it.
func TestOwnedPathsOfPublishers(t *testing.T) {
	a := registryapi.NewPublishers(authoritytest.Callers{}, nil, nil)
	for path, owned := range map[string]bool{
		"/v0/auth/dns": true, "/v0.1/auth/unknown": true, "/v0/x/dev.tollgate/publishers": true, "/v0.1/x/dev.tollgate/publishers/a": true,
		"/v0/auth": false, "/auth/dns": false, "/v0/x/dev.tollgate/publishersx": false, "/v0/servers": false, "/v1/auth/dns": false, "": false,
	} {
		if got := a.Owns(path); got != owned {
			t.Errorf("Owns(%q) = %t", path, got)
		}
	}
}
