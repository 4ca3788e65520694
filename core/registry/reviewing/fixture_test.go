package reviewing_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/permit"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var epoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

const serverName = "com.example/weather"

// fixture is a registry with review in memory. ada and eve may publish and edit; bea and cem may
// review. The token of a person is the name; "NAME low" is a session without trust, "NAME risky"
// one at HIGH_RISK, "ci" a publisher by the policy of bea.
type fixture struct {
	config    reviewing.Config
	publisher *publishing.Publisher
	service   *reviewing.Service
	receiver  *receiving.Receiver
	db        *fakedb.Database
	servers   *fakedb.Servers
	store     *fakedb.Reviews
	held      *fakedb.Quarantine
	notices   *fakedb.ReviewNotices
	grants    *fakedb.Grants
	clock     *clocktest.Manual
	people    *people
	events    *announce.Recorder
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	return newFixtureWith(t, reviewing.Config{})
}

func newFixtureWith(t testing.TB, c reviewing.Config) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		config: c, db: db, servers: fakedb.NewServers(db, true), store: fakedb.NewReviews(db), held: fakedb.NewQuarantine(db),
		notices: fakedb.NewReviewNotices(db), grants: fakedb.NewGrants(db),
		clock: clocktest.NewManual(epoch), people: &people{},
	}
	for _, g := range []registry.Grant{
		{Holder: "ada", Action: registry.ActionPublish, Pattern: newPattern(t, "*")}, {
			Holder: "ada", Action: registry.ActionEdit, Pattern: newPattern(t, "*"),
		},
		{Holder: "eve", Action: registry.ActionPublish, Pattern: newPattern(t, "*")}, {
			Holder: "eve", Action: registry.ActionEdit, Pattern: newPattern(t, "*"),
		},
		{Holder: "ada", Action: registry.ActionReview, Pattern: newPattern(t, "com.example/*")},
		{Holder: "bea", Action: registry.ActionReview, Pattern: newPattern(t, "com.example/*")},
		{Holder: "bea", Action: registry.ActionPublish, Pattern: newPattern(t, "com.example/*")},
		{Holder: "cem", Action: registry.ActionReview, Pattern: newPattern(t, serverName)},
	} {
		must.Succeed(t, fx.grants.Add(t.Context(), registry.GrantRecord{Grant: g}))
	}
	stored := fakedb.NewPolicies(db)
	if err := stored.Add(t.Context(), publisher.Policy{
		ID: "policy", Method: publisher.DNS, Pattern: newPattern(t, "com.example/*"), Actions: []publisher.Action{
			publisher.Publish,
		}, CreatedBy: "bea",
	}); err != nil {
		t.Fatal(err)
	}
	checker := permit.NewChecker(permit.Config{Mode: publisher.ByPolicies},
		permit.CheckerPorts{Policies: stored, Grants: fx.grants, Makers: fx.people, Clock: fx.clock})
	entropy := &secretstest.Entropy{}
	fx.events = announce.New(announce.Ports{
		Webhooks: fakedb.NewWebhooks(db), Deliveries: fakedb.NewDeliveries(db), Encoder: eventdatatest.Encoder{},
		Clock: fx.clock, Entropy: &secretstest.Entropy{},
	})
	ender := reviewing.MirrorEnder{
		Mirrored: fakedb.NewMirroredVersions(db), Reviews: fx.store, Reader: fx.servers, Writer: fx.servers,
		Quarantine: fx.held, Events: fx.events, Recorder: fx.people,
	}
	fx.receiver = receiving.New(true, receiving.Ports{
		Lists: fakedb.NewToolLists(db), Reviews: fx.store, Backlog: fx.store, Reader: fx.servers, Events: fx.events, Entropy: entropy,
	})
	fx.publisher = publishing.New(publishing.Config{Review: true, PendingMax: 5}, publishing.Ports{
		Ports:  change.Ports{Transactions: db, Writer: fx.servers, Quarantine: fx.held, Acts: fx.people},
		Reader: fx.servers, Grants: fx.grants,
		Policies: checker, Reviews: fx.store,
		Approver:  reviewing.Approver{Config: c, Rules: fakedb.NewReviewRules(db), Reader: fx.servers},
		ToolLists: fx.receiver,
		Clock:     fx.clock, Entropy: entropy, Events: fx.events,
		Ender: ender,
	})
	fx.service = reviewing.New(c, reviewing.Ports{
		Ports:   change.Ports{Transactions: db, Writer: fx.servers, Quarantine: fx.held, Acts: fx.people},
		Reviews: fx.store, Backlog: fx.store, Rules: fakedb.NewReviewRules(db), Reader: fx.servers,
		ToolLists: fakedb.NewToolLists(db), Mirrors: fakedb.NewMirrors(db), Mirrored: fakedb.NewMirroredVersions(db), Ender: ender, Grants: fx.grants, Makers: fx.people, Notices: fx.notices,
		Notifier: fx.people,
		Recorder: fx.people, Cursors: page.NewSealer(make([]byte, 32)), Clock: fx.clock, Entropy: entropy,
		Events: fx.events,
	})
	return fx
}

func newPattern(t testing.TB, s string) registry.Pattern {
	t.Helper()
	p, err := registry.ParsePattern(s)
	must.Succeed(t, err)
	return p
}

func request(token string) authority.Caller {
	if token != "ci" {
		return authoritytest.Person(token)
	}
	pattern, err := registry.ParsePattern("com.example/*")
	if err != nil {
		return authority.Caller{}
	}
	return authority.NewPublisher(authority.Publisher{Method: publisher.DNS, Subject: "example.com",
		Permissions: []publisher.Permission{
			{Actions: []publisher.Action{publisher.Publish}, Pattern: pattern, Policy: "policy"},
		}}, authoritytest.Address())
}

// document returns a document of a version, with more properties if given.
func document(name, version string, more ...string) string {
	return `{"name":"` + name + `","description":"Forecasts","version":"` + version + `"` +
		strings.Join(append([]string{""}, more...), ",") + `}`
}

// publish publishes a document.
func (fx *fixture) publish(t testing.TB, token, body string) (publishing.Outcome, error) {
	return fx.publisher.Publish(t.Context(), request(token), publishing.Request{Body: []byte(body)})
}

// replace replaces the document of a version of the server.
func (fx *fixture) replace(t testing.TB, token, body, version string) (publishing.Outcome, error) {
	return fx.publisher.Replace(t.Context(), request(token), publishing.Request{Body: []byte(body)},
		publishing.Target{Name: serverName, Version: version})
}

// submit publishes a document and returns its outcome.
func (fx *fixture) submit(t testing.TB, token, body string) publishing.Outcome {
	t.Helper()
	fx.clock.Advance(time.Minute)
	o, err := fx.publish(t, token, body)
	must.Succeed(t, err)
	return o
}

// remove deletes a version of the server.
func (fx *fixture) remove(t testing.TB, version string) {
	t.Helper()
	_, err := fx.publisher.Delete(t.Context(), request("ada"), publishing.Request{},
		publishing.Target{Name: serverName, Version: version})
	must.Succeed(t, err)
}

func (fx *fixture) approve(t testing.TB, token string, id registry.ReviewID) {
	t.Helper()
	_, err := fx.service.Approve(t.Context(), request(token), id, "")
	must.Succeed(t, err)
}

func (fx *fixture) reject(t testing.TB, token string, id registry.ReviewID) {
	t.Helper()
	_, err := fx.service.Reject(t.Context(), request(token), id, "no")
	must.Succeed(t, err)
}

// requireState checks that reviews have a state.
func (fx *fixture) requireState(t testing.TB, want review.State, ids ...registry.ReviewID) {
	t.Helper()
	for _, id := range ids {
		if r, err := fx.store.Get(t.Context(), id); err != nil || r.State != want {
			t.Errorf("the review is %+v, %v, want it %s", r, err, want)
		}
	}
}

// addRule adds a rule that approves.
func (fx *fixture) addRule(t testing.TB, d reviewing.RuleDraft) review.Rule {
	t.Helper()
	rule, err := fx.service.AddRule(t.Context(), d)
	must.Succeed(t, err)
	return rule
}

// wantFault checks that err is a fault of the kind, with a text in its message.
func wantFault(t testing.TB, err error, kind fault.Kind, text, what string) {
	t.Helper()
	if !fault.Is(err, kind) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s: %v, want a fault of kind %s with %q", what, err, kind, text)
	}
}

// served returns the document that readers get for a version, or false.
func (fx *fixture) served(t testing.TB, name, version string) (string, bool) {
	t.Helper()
	n, err := registry.ParseName(name)
	must.Succeed(t, err)
	v, err := registry.ParseVersion(version)
	must.Succeed(t, err)
	r, err := fx.servers.Version(t.Context(), n, v, true)
	if fault.Is(err, fault.NotFound) {
		return "", false
	}
	must.Succeed(t, err)
	return string(r.Document), true
}

// people are the callers, their audit log and their notices.
type people struct {
	authority.ReviewNotifier

	mu        sync.Mutex
	acts      []authority.Act
	changes   []audit.Change
	waiting   []authority.WaitingNotice
	decisions []authority.DecisionNotice
	hidden    []authority.QuarantineNotice
	emails    int    // addresses that were read
	inactive  string // whose account is disabled
}

func (p *people) NotifyPublishers(n authority.QuarantineNotice) { p.hidden = append(p.hidden, n) }

func (p *people) Record(_ context.Context, a authority.Act) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.acts = append(p.acts, a)
	return nil
}

func (p *people) RecordChanges(_ context.Context, changes ...audit.Change) error {
	p.changes = append(p.changes, changes...)
	return nil
}

func (p *people) IsActive(_ context.Context, who string) (bool, error) { return who != p.inactive, nil }

func (p *people) EmailOf(_ context.Context, who string) (string, error) {
	p.emails++
	return who + "@example.com", nil
}

func (p *people) NotifyReviewer(n authority.WaitingNotice) { p.waiting = append(p.waiting, n) }

func (p *people) NotifySubmitter(n authority.DecisionNotice) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.decisions = append(p.decisions, n)
}
