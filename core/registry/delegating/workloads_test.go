package delegating_test

import (
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/identity"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

func workloadRules() publisher.Rules {
	return publisher.Rules{Issuers: []string{otherIssuer}, GitHubIssuer: gitHubIssuer}
}

// putAccount stores the service account ci with three workloads.
func (fx *fixture) putAccount(t *testing.T, state string) {
	t.Helper()
	a, err := service.New(service.Draft{Name: "ci", State: state, Workloads: []service.WorkloadDraft{
		{Issuer: gitHubIssuer, Subject: "repo:acme/other:*", Scopes: []string{"decide"}},
		{
			Issuer: gitHubIssuer, Subject: "repo:acme/tools:*", Audience: "https://inner.example",
			Claims: map[string]string{"repository_id": "20"}, Scopes: []string{"registry:publish"},
		},
		{Issuer: otherIssuer, Subject: "project:acme/*", Scopes: []string{"registry:edit", "admin:read"}},
	}}, workloadRules())
	must.Succeed(t, err)
	err = fx.services.Put(t.Context(), "ci", func(*service.Account) (service.Account, error) { return a, nil })
	must.Succeed(t, err)
}

func (fx *fixture) proveWorkload(t *testing.T, account string, token identity.Token) (delegating.Token, error) {
	t.Helper()
	fx.identities.token = token
	return fx.ProveWorkload(t.Context(), delegating.WorkloadRequest{
		Client: delegating.Client{Address: address, Key: "client"}, Service: account, Token: "text",
	})
}

// TestWorkloadGetsAToken checks that the first workload that admits an ID token gives its scopes,
// once for a token, and that the attempt is recorded.
func TestWorkloadGetsAToken(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, publisher.Off)
	fx.putAccount(t, "")
	job := newJob("1", "10", "20")
	got, err := fx.proveWorkload(t, "ci", job)
	if err != nil || got.Text != "tgs_token" || !slices.Equal(fx.publishers.workloads, []string{"ci registry:publish"}) {
		t.Fatalf("token %+v, error %v, issued %v", got, err, fx.publishers.workloads)
	}
	if want := []string{"", "https://inner.example"}; !slices.Equal(fx.identities.audiences, want) {
		t.Errorf("the audiences are %q, want %q", fx.identities.audiences, want)
	}
	fx.requireEvent(t, authority.ProofAttempt{
		Method: publisher.GitHubOIDC, Issuer: gitHubIssuer, Subject: job.Subject, Service: "ci",
	})
	_, err = fx.proveWorkload(t, "ci", job)
	requireFault(t, err, fault.Unauthenticated, "used before")
	_, err = fx.proveJob(t, publisher.GitHubOIDC, job)
	requireFault(t, err, fault.NotFound, "switched off")
	other := newJob("2", "10", "20")
	other.Issuer, other.Subject = otherIssuer, "project:acme/x"
	if _, err := fx.proveWorkload(t, "ci", other); err != nil ||
		fx.publishers.workloads[len(fx.publishers.workloads)-1] != "ci admin:read registry:edit" {
		t.Errorf("another workload: %v, issued %v", err, fx.publishers.workloads)
	}
}

// TestWorkloadsThatAreRefused checks that nothing is issued and used up, and that each refusal is
// recorded, without a notice to makers of policies.
func TestWorkloadsThatAreRefused(t *testing.T) {
	t.Parallel()
	good, claims, subject := newJob("1", "10", "20"), newJob("1", "10", "21"), newJob("1", "10", "20")
	subject.Subject = "repo:acme/tools-evil:x"
	for name, test := range map[string]struct {
		account, state string
		token          identity.Token
		verify         error
		kind           fault.Kind
	}{
		"an unknown account":        {"cd", "", good, nil, fault.Unauthenticated},
		"a name that is none":       {"C I", "", good, nil, fault.Unauthenticated},
		"a disabled account":        {"ci", "disabled", good, nil, fault.Unauthenticated},
		"another claim":             {"ci", "", claims, nil, fault.Unauthenticated},
		"another subject":           {"ci", "", subject, nil, fault.Unauthenticated},
		"a token that is not valid": {"ci", "", good, fault.New(fault.Unauthenticated, "bad"), fault.Unauthenticated},
		"keys that are away":        {"ci", "", good, fault.New(fault.Unavailable, "away"), fault.Unavailable},
	} {
		fx := newFixture(t, publisher.ByPolicies)
		fx.addPolicy(t, "p1", maker, gitHubDraft())
		fx.putAccount(t, test.state)
		fx.identities.err = test.verify
		_, err := fx.proveWorkload(t, test.account, test.token)
		if !fault.Is(err, test.kind) || len(fx.publishers.workloads)+len(fx.used.claimed)+len(fx.publishers.notices) != 0 {
			t.Errorf("%s: %v, issued %v, used %v, notices %v", name, err, fx.publishers.workloads, fx.used.claimed,
				fx.publishers.notices)
		}
		if events := fx.publishers.events; len(events) != 1 || events[0].Reason == "" ||
			events[0].Service != test.account {
			t.Errorf("%s: the events are %+v", name, events)
		}
	}
}

type serviceFixture struct {
	*delegating.Services
	recorder *fakeRecorder
}

func newServiceFixture() *serviceFixture {
	db, recorder := fakedb.New(), &fakeRecorder{}
	return &serviceFixture{delegating.NewServices(permit.Config{Rules: workloadRules()}, delegating.ServicePorts{
		Transactions: db, Services: fakedb.NewServices(db), Recorder: recorder, Clock: clocktest.NewManual(epoch),
	}), recorder}
}

// TestServices checks that accounts are made, replaced and removed with an event each, that a
// condition is checked, and that the file that manages one stays.
func TestServices(t *testing.T) {
	t.Parallel()
	fx := newServiceFixture()
	parse := func(d service.Draft) service.Account {
		a, err := fx.Parse(d)
		must.Succeed(t, err)
		return a
	}
	draft := service.Draft{Name: "ci", Workloads: []service.WorkloadDraft{
		{Issuer: otherIssuer, Subject: "a", Scopes: []string{"decide"}},
	}}
	first := parse(draft)
	first.ManagedBy = "platform"
	stored, created, err := fx.Put(t.Context(), first, func(current *service.Account) error {
		if current != nil {
			t.Errorf("the condition got %+v", current)
		}
		return nil
	})
	if err != nil || !created || !stored.CreatedAt.Equal(epoch) {
		t.Fatalf("Put = %+v, %v, %v", stored, created, err)
	}
	stale := fault.New(fault.Stale, "stale")
	refuse := func(*service.Account) error { return stale }
	if _, _, err := fx.Put(t.Context(), first, refuse); !fault.Is(err, fault.Stale) {
		t.Errorf("Put with a condition that does not hold: %v", err)
	}
	draft.State, draft.Description = "disabled", "builds"
	stored, created, err = fx.Put(t.Context(), parse(draft), nil)
	if err != nil || created || stored.State != service.Disabled || stored.ManagedBy != "platform" {
		t.Errorf("Put = %+v, %v, %v", stored, created, err)
	}
	if _, created, err := fx.Put(t.Context(), parse(draft), nil); err != nil || created {
		t.Errorf("Put of the same: %v, %v", created, err)
	}
	if found, err := fx.Get(t.Context(), "ci"); err != nil || !reflect.DeepEqual(found, stored) {
		t.Errorf("Get = %+v, %v, want %+v", found, err, stored)
	}
	wantFault(t, fx.Remove(t.Context(), "ci", refuse), fault.Stale, "Remove with a condition that does not hold")
	must.Succeed(t, fx.Remove(t.Context(), "ci", nil))
	wantFault(t, fx.Remove(t.Context(), "ci", nil), fault.NotFound, "Remove of no account")
	var actions []string
	for _, c := range fx.recorder.recorded {
		actions = append(actions, string(c.Action))
	}
	wantEqual(t, actions, []string{"service_add", "service_change", "service_remove"}, "the events")
	changes := fx.recorder.recorded[1].Details.Inner("changes")
	if len(changes) != 2 || len(changes.List("state")) != 2 || len(changes.List("description")) != 2 {
		t.Errorf("the changed fields are %v", changes)
	}
}

func scopesOf(t *testing.T, names string) scope.Set {
	t.Helper()
	s, err := scope.Parse(strings.Fields(names))
	must.Succeed(t, err)
	return s
}

// TestServicesDoNotEscalate checks that a token gives workloads only scopes that it has.
func TestServicesDoNotEscalate(t *testing.T) {
	t.Parallel()
	fx := newServiceFixture()
	a, err := fx.Parse(service.Draft{Name: "ci", Workloads: []service.WorkloadDraft{
		{Issuer: otherIssuer, Subject: "a", Scopes: []string{"admin:read", "registry:publish"}},
	}})
	must.Succeed(t, err)
	for scopes, allowed := range map[string]bool{
		"admin:write": false, "admin:write registry:publish": true, "registry:publish": false,
	} {
		token := authority.NewToken(authority.Token{Owner: "anna", Scopes: scopesOf(t, scopes)}, address)
		_, _, err := fx.Put(authority.GivenBy(t.Context(), token), a, nil)
		if f, _ := fault.As(err); (err == nil) != allowed || err != nil && f.Code != scope.CodeInsufficient {
			t.Errorf("a token with %s: %v", scopes, err)
		}
	}
	bound := authority.NewToken(authority.Token{
		Owner: "anna", Scopes: scopesOf(t, "admin:write registry:publish"),
		Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
	}, address)
	if _, _, err := fx.Put(authority.GivenBy(t.Context(), bound), a, nil); !fault.Is(err, fault.Forbidden) {
		t.Errorf("a token with networks admits workloads: %v", err)
	}
}

// TestServiceDraftsThatAreRefused has a draft with one defect in each case.
func TestServiceDraftsThatAreRefused(t *testing.T) {
	t.Parallel()
	fx := newServiceFixture()
	good := service.WorkloadDraft{Issuer: gitHubIssuer, Subject: "repo:acme/*", Scopes: []string{"decide"}}
	for want, change := range map[string]func(*service.Draft){
		"name":                    func(d *service.Draft) { d.Name = "C" },
		"state":                   func(d *service.Draft) { d.State = "on" },
		"description":             func(d *service.Draft) { d.Description = "a\x00" },
		"workloads must":          func(d *service.Draft) { d.Workloads = slices.Repeat(d.Workloads, 21) },
		"workloads[0].issuer":     func(d *service.Draft) { d.Workloads[0].Issuer = "https://x.example" },
		"workloads[0].issuer is":  func(d *service.Draft) { d.Workloads[0].Issuer = "" },
		"workloads[0].subject":    func(d *service.Draft) { d.Workloads[0].Subject = "" },
		"workloads[0].subject mu": func(d *service.Draft) { d.Workloads[0].Subject = "*" },
		"workloads[0].claims":     func(d *service.Draft) { d.Workloads[0].Subject = "repo:*" },
		"workloads[0].claims.a":   func(d *service.Draft) { d.Workloads[0].Claims = map[string]string{"a": "*"} },
		"workloads[0].audience":   func(d *service.Draft) { d.Workloads[0].Audience = "\x00" },
		"workloads[0].scopes":     func(d *service.Draft) { d.Workloads[0].Scopes = nil },
	} {
		d := service.Draft{Name: "ci", Workloads: []service.WorkloadDraft{good}}
		change(&d)
		_, err := fx.Parse(d)
		requireFault(t, err, fault.Invalid, want)
	}
}
