package delegating_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/delegating"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// as returns the caller with a token: the name of a person at FULL_TRUST, or "low" or "publisher".
func as(token string) authority.Caller {
	switch token {
	case "publisher":
		return authority.NewPublisher(authority.Publisher{Method: publisher.DNS}, authoritytest.Address())
	case "low":
		token = "ada low"
	}
	return authoritytest.Person(token)
}

// countingEntropy fills each secret with another byte.
type countingEntropy struct{ next byte }

func (e *countingEntropy) Fill(p []byte) {
	e.next++
	for i := range p {
		p[i] = e.next
	}
}

type policyFixture struct {
	service  *delegating.Policies
	checker  *permit.Checker
	store    *fakedb.Policies
	grants   *fakedb.Grants
	people   fakeMakers
	recorder *fakeRecorder
	log      *fakedb.AuditLog
	clock    *clocktest.Manual
}

func newPolicyFixture(t *testing.T, mode publisher.Mode) *policyFixture {
	t.Helper()
	db := fakedb.New()
	fx := &policyFixture{
		store: fakedb.NewPolicies(db), grants: fakedb.NewGrants(db), people: fakeMakers{"ada": true, "bea": true},
		recorder: &fakeRecorder{}, log: fakedb.NewAuditLog(db), clock: clocktest.NewManual(epoch),
	}
	config := permit.Config{
		Mode: mode, UnprovenAfter: time.Hour, Rules: publisher.Rules{
			Reserved: []registry.Pattern{mustPattern(t, "com.example/internal*")},
		},
	}
	fx.checker = permit.NewChecker(config, permit.CheckerPorts{
		Policies: fx.store, Grants: fx.grants, Makers: fx.people, Clock: fx.clock,
	})
	fx.service = delegating.NewPolicies(config, delegating.PolicyPorts{
		Grants:       fx.grants,
		Transactions: db, Policies: fx.store, Checker: fx.checker, Recorder: fx.recorder, Clock: fx.clock,
		Log: fx.log, Entropy: &countingEntropy{},
	})
	must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, "ada", "com.example/*")))
	must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, "bea", "com.example/b*")))
	must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, "bea", "*", registry.ActionEdit)))
	return fx
}

func newDraft(pattern string) publisher.Draft {
	return publisher.Draft{Method: "dns", Domain: "example.com", Pattern: pattern}
}

func (fx *policyFixture) add(t *testing.T, caller, pattern string) delegating.Policy {
	t.Helper()
	p, err := fx.service.Add(t.Context(), as(caller), newDraft(pattern))
	must.Succeed(t, err)
	return p
}

func TestPersonAddsAPolicy(t *testing.T) {
	t.Parallel()
	fx := newPolicyFixture(t, publisher.ByPolicies)
	p := fx.add(t, "ada", "com.example/w*")
	if p.CreatedBy != "ada" || p.State != publisher.Active || p.ID == "" || !p.CreatedAt.Equal(epoch) {
		t.Errorf("the policy is %+v", p)
	}
	stored, err := fx.store.Find(t.Context(), registrystore.PolicyQuery{})
	if err != nil || len(stored) != 1 || !reflect.DeepEqual(stored[0], p.Policy) {
		t.Errorf("stored is %+v (%v), want %+v", stored, err, p.Policy)
	}
	want := audit.Change{Category: audit.AccountChange, Action: "publisher_add", Subject: "ada", Details: audit.Details{
		"policy": audit.Text(p.ID), "method": audit.Text("dns"), "publisher": audit.Text("example.com"),
		"resource": audit.Text("com.example/w*"), "actions": audit.List{audit.Text("publish")},
		"kind": audit.Text("policy"), "key": audit.Text(p.ID),
	}}
	if !reflect.DeepEqual(fx.recorder.recorded, []audit.Change{want}) {
		t.Errorf("the changes are %+v, want %+v", fx.recorder.recorded, want)
	}
}

func TestAddRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		caller  string
		pattern string
		want    fault.Kind
	}{
		"no token":                    {"", "com.example/a", fault.Unauthenticated},
		"publisher":                   {"publisher", "com.example/a", fault.Forbidden},
		"below FULL_TRUST":            {"low", "com.example/a", fault.Forbidden},
		"no grant":                    {"eve", "com.example/a", fault.Forbidden},
		"grant covers a part only":    {"cay", "com.example/c*", fault.Forbidden},
		"grant to edit only":          {"bea", "com.example/a", fault.Forbidden},
		"malformed draft":             {"ada", "", fault.Invalid},
		"outside of the domain":       {"ada", "com.other/*", fault.Invalid},
		"reserved namespace":          {"ada", "com.example/internal/x", fault.Invalid},
		"covers a reserved namespace": {"ada", "com.example/*", fault.Invalid},
	} {
		fx := newPolicyFixture(t, publisher.ByPolicies)
		must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, "cay", "com.example/cat*")))
		_, err := fx.service.Add(t.Context(), as(test.caller), newDraft(test.pattern))
		wantFault(t, err, test.want, "%s", name)
		if found, _ := fx.store.Find(t.Context(),
			registrystore.PolicyQuery{}); len(found)+len(fx.recorder.recorded) != 0 {
			t.Errorf("%s: stored %+v, recorded %+v", name, found, fx.recorder.recorded)
		}
	}
}

func TestEachUseNeedsAPersonAtFullTrust(t *testing.T) {
	t.Parallel()
	fx := newPolicyFixture(t, publisher.ByPolicies)
	id := fx.add(t, "ada", "com.example/w*").ID
	for token, want := range map[string]fault.Kind{
		"": fault.Unauthenticated, "publisher": fault.Forbidden, "low": fault.Forbidden,
	} {
		r := as(token)
		_, list := fx.service.List(t.Context(), r)
		for name, err := range map[string]error{"list": list, "remove": fx.service.Remove(t.Context(), r, id, nil)} {
			wantFault(t, err, want, "%s with token %q", name, token)
			if f, _ := fault.As(err); token == "low" && (f == nil || f.Details["challenge"] == nil) {
				t.Errorf("%s: %v has no challenge to step up", name, err)
			}
		}
	}
}

func TestPeopleSeeWhatTheirGrantsCover(t *testing.T) {
	t.Parallel()
	fx := newPolicyFixture(t, publisher.ByPolicies)
	wide, narrow := fx.add(t, "ada", "com.example/w*").ID, fx.add(t, "ada", "com.example/bird").ID
	for caller, want := range map[string][]registry.PolicyID{"ada": {wide, narrow}, "bea": {narrow}, "eve": nil} {
		list, err := fx.service.List(t.Context(), as(caller))
		var got []registry.PolicyID
		for _, p := range list {
			got = append(got, p.ID)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s sees %q (%v), want %q", caller, got, err, want)
		}
	}
	bea := as("bea")
	for name, id := range map[string]registry.PolicyID{"not covered": wide, "none": "x"} {
		wantFault(t, fx.service.Remove(t.Context(), bea, id, nil), fault.NotFound, "%s", name)
	}
	fx.recorder.recorded = nil
	must.Succeed(t, fx.service.Remove(t.Context(), bea, narrow, nil))
	if c := fx.recorder.recorded[0]; c.Subject != "bea" || c.Action != "publisher_remove" ||
		c.Details.Text("policy") != string(narrow) {
		t.Errorf("the changes are %+v", fx.recorder.recorded)
	}
	wantFault(t, fx.service.Remove(t.Context(), bea, narrow, nil), fault.NotFound, "the second removal")
}

func TestOperator(t *testing.T) {
	t.Parallel()
	fx := newPolicyFixture(t, publisher.ByPolicies)
	p, err := fx.service.Add(t.Context(), authority.Operator(), newDraft("com.example/w*"))
	if err != nil || p.CreatedBy != "" {
		t.Fatalf("policy %+v, error %v", p, err)
	}
	fx.add(t, "ada", "com.example/x")
	if list, err := fx.service.List(t.Context(), authority.Operator()); err != nil || len(list) != 2 {
		t.Errorf("the list is %+v, error %v", list, err)
	}
	if err := fx.service.Remove(t.Context(), authority.Operator(), p.ID, nil); err != nil {
		t.Error(err)
	}
	wantFault(t, fx.service.Remove(t.Context(), authority.Operator(), p.ID, nil), fault.NotFound, "the second removal")
	for i, want := range []audit.Action{"publisher_add", "publisher_add", "publisher_remove"} {
		c := fx.recorder.recorded[i]
		if c.Action != want || (c.Subject != "") != (i == 1) || c.ByOperator == (i == 1) {
			t.Errorf("change %d is %+v", i, c)
		}
	}
	_, err = fx.service.Add(t.Context(), authority.Operator(), newDraft("com.example/internal"))
	wantFault(t, err, fault.Invalid, "a reserved name")
}

func TestChangeAndEventAreOneTransaction(t *testing.T) {
	t.Parallel()
	fx := newPolicyFixture(t, publisher.ByPolicies)
	id := fx.add(t, "ada", "com.example/w*").ID
	fx.recorder.err = fault.New(fault.Unavailable, "the database is away")
	_, added := fx.service.Add(t.Context(), authority.Operator(), newDraft("com.example/x"))
	for name, err := range map[string]error{
		"add": added, "remove": fx.service.Remove(t.Context(), authority.Operator(), id, nil),
	} {
		wantFault(t, err, fault.Unavailable, "%s", name)
	}
	if found, err := fx.store.Find(t.Context(), registrystore.PolicyQuery{}); err != nil || len(found) != 1 ||
		found[0].ID != id {
		t.Errorf("stored are %+v, error %v", found, err)
	}
}

func TestTooManyPolicies(t *testing.T) {
	t.Parallel()
	fx := newPolicyFixture(t, publisher.ByPolicies)
	p := fx.add(t, "ada", "com.example/w*").Policy
	for i := range 1998 {
		p.ID = registry.PolicyID(fmt.Sprintf("p%04d", i))
		must.Succeed(t, fx.store.Add(t.Context(), p))
	}
	fx.add(t, "ada", "com.example/x")
	if _, err := fx.service.Add(t.Context(), authority.Operator(), newDraft("com.example/y")); !fault.Is(err,
		fault.Invalid) {
		t.Errorf("the policy after 2000: %v, want fault.Invalid", err)
	}
}

func TestLivingPermissions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mode   publisher.Mode
		change func(t *testing.T, fx *policyFixture, id registry.PolicyID)
		want   int
	}{
		"alive":         {publisher.ByPolicies, func(*testing.T, *policyFixture, registry.PolicyID) {}, 1},
		"open":          {publisher.Open, func(*testing.T, *policyFixture, registry.PolicyID) {}, 2},
		"off":           {publisher.Off, func(*testing.T, *policyFixture, registry.PolicyID) {}, 0},
		"removed":       {publisher.ByPolicies, removePolicy, 0},
		"removed, open": {publisher.Open, removePolicy, 1},
		"maker disabled": {
			publisher.ByPolicies, func(_ *testing.T, fx *policyFixture, _ registry.PolicyID) {
				fx.people["ada"] = false
			}, 0,
		},
		"grant removed": {publisher.ByPolicies, removeGrant, 0},
		"grant given back": {publisher.ByPolicies, func(t *testing.T, fx *policyFixture, id registry.PolicyID) {
			removeGrant(t, fx, id)
			must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, "ada", "com.example/*")))
		}, 1},
		"grant to edit only": {publisher.ByPolicies, func(t *testing.T, fx *policyFixture, id registry.PolicyID) {
			removeGrant(t, fx, id)
			must.Succeed(t, fx.grants.Add(t.Context(), newGrant(t, "ada", "com.example/*", registry.ActionEdit)))
		}, 0},
		"expired": {publisher.ByPolicies, func(t *testing.T, fx *policyFixture, id registry.PolicyID) {
			fx.update(t, id, func(p *publisher.Policy) { p.ExpiresAt = epoch })
		}, 0},
		"key gone": {publisher.ByPolicies, func(t *testing.T, fx *policyFixture, id registry.PolicyID) {
			fx.update(t, id, func(p *publisher.Policy) { p.GoneSince = epoch.Add(-59 * time.Minute) })
		}, 1},
		"unproven": {publisher.ByPolicies, func(t *testing.T, fx *policyFixture, id registry.PolicyID) {
			fx.update(t, id, func(p *publisher.Policy) { p.GoneSince = epoch.Add(-time.Hour) })
		}, 0},
	} {
		fx := newPolicyFixture(t, test.mode)
		p := fx.add(t, "ada", "com.example/w*")
		test.change(t, fx, p.ID)
		forged := publisher.Permission{
			Actions: []publisher.Action{publisher.Publish}, Pattern: mustPattern(t, "*"), Policy: p.ID,
		}
		free := publisher.Permission{
			Actions: []publisher.Action{publisher.Publish}, Pattern: mustPattern(t, "com.free/*"),
		}
		got, err := fx.checker.LivingPermissions(t.Context(), []publisher.Permission{forged, free})
		if err != nil || len(got) != test.want {
			t.Errorf("%s: permissions %+v (%v), want %d", name, got, err, test.want)
		}
		for _, permission := range got { // what is stored counts, not what the token says
			if permission.Policy == p.ID && permission.Pattern != p.Pattern {
				t.Errorf("%s: the permission is %+v", name, permission)
			}
		}
	}
}

func removePolicy(t *testing.T, fx *policyFixture, id registry.PolicyID) {
	t.Helper()
	must.Succeed(t, fx.service.Remove(t.Context(), authority.Operator(), id, nil))
}

func removeGrant(t *testing.T, fx *policyFixture, _ registry.PolicyID) {
	t.Helper()
	must.Succeed(t, fx.grants.Remove(t.Context(), newGrant(t, "ada", "com.example/*")))
}

func (fx *policyFixture) update(t *testing.T, id registry.PolicyID, change func(*publisher.Policy)) {
	t.Helper()
	must.Succeed(t, fx.store.Update(t.Context(), id, func(p *publisher.Policy) error { change(p); return nil }))
}
