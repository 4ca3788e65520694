package publishing_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const publisherToken = "publisher"

// slowChecker calls a function while it checks a package.
type slowChecker struct{ during func() }

func (c slowChecker) Check(context.Context, ownership.Claim) error {
	c.during()
	return nil
}

func (slowChecker) Types() []string { return []string{"npm"} }

// publisherFixture is a fixture with a publisher and its policies.
type publisherFixture struct {
	*fixture
	policies  *fakedb.Policies
	publisher authority.Publisher // the one with publisherToken
	during    func()              // called by each check of a package
}

// newPublisherFixture returns a fixture with policies of an operator: each with its actions, for
// com.example/*.
func newPublisherFixture(t *testing.T, c publishing.Config, actions ...[]publisher.Action) *publisherFixture {
	t.Helper()
	w := newFixture(t, c, registry.ActionPublish, registry.ActionEdit)
	f := &publisherFixture{fixture: w, policies: fakedb.NewPolicies(w.runner.db), during: func() {}}
	f.publisher = authority.Publisher{Method: publisher.DNS, Subject: "example.com"}
	w.callers = func(token string) authority.Caller {
		if token == publisherToken {
			return authority.NewPublisher(f.publisher, authoritytest.Address())
		}
		return person(token)
	}
	pattern, err := registry.ParsePattern("com.example/*")
	must.Succeed(t, err)
	for i, list := range actions {
		p := publisher.Policy{
			ID: registry.PolicyID(rune('a' + i)), Method: publisher.DNS, Pattern: pattern, Actions: list,
		}
		must.Succeed(t, f.policies.Add(t.Context(), p))
		f.publisher.Permissions = append(f.publisher.Permissions, p.Permission())
	}
	checker := permit.NewChecker(permit.Config{Mode: publisher.ByPolicies, UnprovenAfter: time.Hour},
		permit.CheckerPorts{Policies: f.policies, Grants: w.grants, Clock: w.clock})
	ports := w.ports(publishing.Config{})
	ports.Policies, ports.Ownership = checker, slowChecker{func() { f.during() }}
	w.Publisher = publishing.New(c, ports)
	return f
}

func (f *publisherFixture) removePolicies(t *testing.T) {
	t.Helper()
	for _, p := range f.publisher.Permissions {
		must.Succeed(t, f.policies.Remove(t.Context(), p.Policy))
	}
}

// requireAct checks that the audit log has one act, of the publisher.
func (f *publisherFixture) requireAct(t *testing.T, want authority.Act) {
	t.Helper()
	want.Caller = authority.NewPublisher(f.publisher, authoritytest.Address())
	if len(f.authority.acts) != 1 || !reflect.DeepEqual(f.authority.acts[0], want) {
		t.Errorf("the audit log has %+v, want %+v", f.authority.acts, want)
	}
	f.authority.acts = nil
}

func toPublish() []publisher.Action { return []publisher.Action{publisher.Publish} }

func toChangeStatus() []publisher.Action { return []publisher.Action{publisher.Status} }

func TestPublisherPublishesWithItsPolicy(t *testing.T) {
	t.Parallel()
	f := newPublisherFixture(t, publishing.Config{}, toPublish())
	if _, err := f.Publish(t.Context(), requestBy(publisherToken, document("1.0.0"))); err != nil {
		t.Fatal(err)
	}
	f.requireAct(t, authority.Act{Action: "publish", ServerName: serverName, Version: "1.0.0"})
}

func TestPublisherMayDoNothingElse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		actions []publisher.Action
		call    func(*fixture) error
		reason  string
	}{
		"another name": {
			toPublish(), publishCall(publisherToken, `{"name":"org.example/a","version":"1.0.0"}`),
			"no policy gives example.com the action publish for org.example/a",
		},
		"no name": {
			toChangeStatus(), publishCall(publisherToken, `{}`), "no policy gives example.com the action publish",
		},
		"publish with a policy for status": {
			toChangeStatus(), publishCall(publisherToken, document("2.0.0")),
			"no policy gives example.com the action publish for com.example/weather",
		},
		"replace": {
			append(toPublish(), publisher.Status), replaceCall(publisherToken, document("1.0.0"), "1.0.0"),
			"the token of a publisher may only publish and change status: sign in as a person",
		},
		"delete": {
			append(toPublish(), publisher.Status), deleteCall(publisherToken, "1.0.0"),
			"the token of a publisher may only publish and change status: sign in as a person",
		},
		"status with a policy to publish": {
			toPublish(), statusCall(publisherToken, `{"status":"deprecated"}`, "1.0.0"),
			"no policy gives example.com the action status for com.example/weather",
		},
		"status of all": {
			toPublish(), statusAllCall(publisherToken, `{"status":"deprecated"}`),
			"no policy gives example.com the action status for com.example/weather",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newPublisherFixture(t, publishing.Config{}, test.actions)
			f.publishAll(t, "1.0.0")
			err := test.call(f.fixture)
			got, ok := fault.As(err)
			if !ok || got.Kind != fault.Forbidden || got.Message != test.reason {
				t.Fatalf("got %v, want fault.Forbidden with %q", err, test.reason)
			}
			if acts := f.authority.acts; len(acts) != 1 || acts[0].Reason != test.reason ||
				acts[0].Caller.Publisher() == nil {
				t.Errorf("the audit log has %+v", acts)
			}
		})
	}
}

func TestPublisherChangesStatusWithItsPolicy(t *testing.T) {
	t.Parallel()
	f := newPublisherFixture(t, publishing.Config{}, toChangeStatus())
	f.publishAll(t, "1.0.0")
	must.Succeed(t, statusCall(publisherToken, `{"status":"deprecated"}`, "1.0.0")(f.fixture))
	f.requireAct(t, authority.Act{Action: "status", ServerName: serverName, Version: "1.0.0", Status: "deprecated",
		Changed: registry.StatusChange{Status: "active", NewStatus: "deprecated"}})
}

func TestTokenOfEndedPoliciesIsRefused(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(*fixture) error{
		"publish": publishCall(publisherToken, document("2.0.0")),
		"replace": replaceCall(publisherToken, document("1.0.0"), "1.0.0"),
		"delete":  deleteCall(publisherToken, "1.0.0"),
		"status":  statusCall(publisherToken, `{"status":"deprecated"}`, "1.0.0"),
	} {
		f := newPublisherFixture(t, publishing.Config{}, append(toPublish(), publisher.Status))
		f.publishAll(t, "1.0.0")
		f.removePolicies(t)
		wantFault(t, call(f.fixture), fault.Unauthenticated, "%s", name)
	}
}

// TestOnePolicyOfTwoEnds checks that a token keeps the permissions of the policies that still live.
func TestOnePolicyOfTwoEnds(t *testing.T) {
	t.Parallel()
	f := newPublisherFixture(t, publishing.Config{}, toPublish(), toChangeStatus())
	must.Succeed(t, f.policies.Remove(t.Context(), "a"))
	wantFault(t, publishCall(publisherToken, document("1.0.0"))(f.fixture), fault.Forbidden, "publish")
	f.publishAll(t, "1.0.0")
	if err := statusCall(publisherToken, `{"status":"deprecated"}`, "1.0.0")(f.fixture); err != nil {
		t.Errorf("status: %v", err)
	}
}

// TestPolicyEndsDuringThePackageCheck removes the policy while packages are checked.
func TestPolicyEndsDuringThePackageCheck(t *testing.T) {
	t.Parallel()
	f := newPublisherFixture(t, publishing.Config{}, toPublish())
	f.during = func() { f.removePolicies(t) }
	err := publishCall(publisherToken, document("1.0.0", `"packages":[`+npmPackage("weather")+`]`))(f.fixture)
	wantFault(t, err, fault.Unauthenticated, "got")
	if _, err := f.servers.Version(t.Context(), firstRelease(t).Name, firstRelease(t).Version, true); !fault.Is(err,
		fault.NotFound) {
		t.Errorf("the version was published: %v", err)
	}
}

func TestReservedNamespacesAreRefused(t *testing.T) {
	t.Parallel()
	reserved, err := registry.ParsePattern("com.example/*")
	must.Succeed(t, err)
	for name, call := range map[string]func(*fixture) error{
		"publish by a person":    publishCall(trustedToken, document("1.0.0")),
		"publish by a publisher": publishCall(publisherToken, document("1.0.0")),
		"replace by a person":    replaceCall(trustedToken, document("1.0.0"), "1.0.0"),
		"replace by a publisher": replaceCall(publisherToken, document("1.0.0"), "1.0.0"),
	} {
		f := newPublisherFixture(t, publishing.Config{Reserved: []registry.Pattern{reserved}}, toPublish())
		got, ok := fault.As(call(f.fixture))
		if !ok || got.Kind != fault.Forbidden || got.Message !=
			"com.example/weather is in the reserved namespace com.example/*, in which nobody may publish" {
			t.Errorf("%s: %v, want fault.Forbidden", name, got)
		}
		if len(f.authority.acts) != 1 {
			t.Errorf("%s: the audit log has %+v", name, f.authority.acts)
		}
	}
}
