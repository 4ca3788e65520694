package publishing_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/history"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/receiving"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/ownership"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var epoch = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const (
	serverName     = "com.example/weather"
	trustedToken   = "full"    // the token of a caller whose session is trusted
	untrustedToken = "limited" // the token of the same caller, not trusted
)

// fixture is a publisher and its dependencies in memory.
type fixture struct {
	*publishing.Publisher
	servers   *fakedb.Servers
	held      *fakedb.Quarantine
	reviews   *fakedb.Reviews
	rules     *fakedb.ReviewRules
	grants    *fakedb.Grants
	authority *fakeAuthority
	checker   *checker
	clock     *clocktest.Manual
	runner    *runner
	callers   func(token string) authority.Caller
}

func newFixture(t *testing.T, c publishing.Config, granted ...registry.Action) *fixture {
	t.Helper()
	db := fakedb.New()
	w := &fixture{
		servers:   fakedb.NewServers(db, true),
		held:      fakedb.NewQuarantine(db),
		reviews:   fakedb.NewReviews(db),
		rules:     fakedb.NewReviewRules(db),
		grants:    fakedb.NewGrants(db),
		authority: &fakeAuthority{},
		checker:   &checker{refusals: map[string]error{}},
		clock:     clocktest.NewManual(epoch),
		runner:    &runner{db: db},
		callers:   person,
	}
	for _, a := range granted {
		w.grant(t, a, "com.example/*")
	}
	w.runner.authority = w.authority
	w.Publisher = publishing.New(c, w.ports(c))
	return w
}

// ports returns the dependencies of the publisher.
func (w *fixture) ports(c publishing.Config) publishing.Ports {
	return publishing.Ports{
		Ports:  change.Ports{Transactions: w.runner, Writer: w.servers, Quarantine: w.held, Acts: w.authority},
		Reader: w.servers, Grants: w.grants,
		Reviews: w.reviews, Approver: reviewing.Approver{Rules: w.rules, Reader: w.servers},
		ToolLists: receiving.New(receiving.Reviewed(c.Review), receiving.Ports{
			Lists: fakedb.NewToolLists(w.runner.db), Reviews: w.reviews, Backlog: w.reviews, Reader: w.servers, Events: w.events(),
			Entropy: &secretstest.Entropy{},
		}),
		Ownership: w.checker, Clock: w.clock, Entropy: &secretstest.Entropy{}, Events: w.events(),
		Ender: reviewing.MirrorEnder{
			Mirrored: fakedb.NewMirroredVersions(w.runner.db), Reviews: w.reviews, Reader: w.servers, Writer: w.servers,
			Quarantine: w.held, Events: w.events(),
		},
	}
}

// events returns a recorder of events in memory.
func (w *fixture) events() *announce.Recorder {
	return announce.New(announce.Ports{
		Webhooks: fakedb.NewWebhooks(w.runner.db), Deliveries: fakedb.NewDeliveries(w.runner.db),
		Encoder: eventdatatest.Encoder{}, Clock: w.clock, Entropy: &secretstest.Entropy{},
	})
}

func (w *fixture) grant(t *testing.T, a registry.Action, pattern string) {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	must.Succeed(t, err)
	must.Succeed(t, w.grants.Add(t.Context(), registry.GrantRecord{Grant: registry.Grant{Holder: "ada", Action: a, Pattern: p}}))
}

// publishAll publishes versions, a minute apart.
func (w *fixture) publishAll(t *testing.T, versions ...string) {
	t.Helper()
	for _, v := range versions {
		w.clock.Advance(time.Minute)
		if _, err := w.Publish(t.Context(), newRequest(document(v))); err != nil {
			t.Fatal(err)
		}
	}
	w.authority.acts = nil
}

// request is a request of the caller with a token.
type request struct {
	publishing.Request
	token string
}

func newRequest(body string) request { return requestBy(trustedToken, body) }

func requestBy(token, body string) request {
	return request{publishing.Request{Body: []byte(body)}, token}
}

func (w *fixture) Publish(ctx context.Context, r request) (publishing.Outcome, error) {
	return w.Publisher.Publish(ctx, w.callers(r.token), r.Request)
}

func (w *fixture) Replace(ctx context.Context, r request, of publishing.Target) (publishing.Outcome, error) {
	return w.Publisher.Replace(ctx, w.callers(r.token), r.Request, of)
}

func (w *fixture) Delete(ctx context.Context, r request, of publishing.Target) (registry.Record, error) {
	return w.Publisher.Delete(ctx, w.callers(r.token), r.Request, of)
}

func (w *fixture) SetStatus(ctx context.Context, r request, of publishing.Target) (registry.Record, error) {
	return w.Publisher.SetStatus(ctx, w.callers(r.token), r.Request, of)
}

func (w *fixture) SetStatusAll(
	ctx context.Context, r request, name string, room publishing.SizeCheck,
) (history.History, error) {
	return w.Publisher.SetStatusAll(ctx, w.callers(r.token), r.Request, name, room)
}

// person returns the person with a token; no one for another one.
func person(token string) authority.Caller {
	return authoritytest.Person(map[string]string{
		trustedToken: "ada", untrustedToken: "ada low", "stranger": "eve",
	}[token])
}

func newTarget(version string) publishing.Target {
	return publishing.Target{Name: serverName, Version: version}
}

// document returns a document of the server, with more properties if given.
func document(version string, more ...string) string {
	return `{"name":"` + serverName + `","description":"Forecasts","version":"` + version + `"` +
		strings.Join(append([]string{""}, more...), ",") + `}`
}

func npmPackage(identifier string) string {
	return `{"registryType":"npm","identifier":"` + identifier + `","version":"1.0.0","transport":{"type":"stdio"}}`
}

// pendingActsKey is the context key of the acts of a transaction.
type pendingActsKey struct{}

// runner runs transactions, may run them twice, and may fail at their end.
type runner struct {
	db        *fakedb.Database
	twice     bool
	atEnd     error
	authority *fakeAuthority
}

func (r *runner) Atomically(ctx context.Context, do func(context.Context) error) error {
	pending := &[]authority.Act{}
	ctx = context.WithValue(ctx, pendingActsKey{}, pending)
	once := func(last bool) error {
		*pending = nil
		return r.db.Atomically(ctx, func(ctx context.Context) error {
			if err := do(ctx); err != nil {
				return err
			}
			if !last {
				return fault.New(fault.Unavailable, "run again")
			}
			return r.atEnd
		})
	}
	if r.twice {
		_ = once(false) // lost against another transaction
	}
	if err := once(true); err != nil {
		return err
	}
	r.authority.acts = append(r.authority.acts, *pending...)
	return nil
}

// fakeAuthority keeps acts. Those that are recorded in a transaction count after its commit.
type fakeAuthority struct {
	acts  []authority.Act
	fails error
}

func (l *fakeAuthority) Record(ctx context.Context, a authority.Act) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.fails != nil {
		return l.fails
	}
	if pending, ok := ctx.Value(pendingActsKey{}).(*[]authority.Act); ok {
		*pending = append(*pending, a)
		return nil
	}
	l.acts = append(l.acts, a)
	return nil
}

// checker refuses packages by their identifier.
type checker struct {
	mu       sync.Mutex
	refusals map[string]error
	claims   []ownership.Claim
}

func (c *checker) Check(_ context.Context, claim ownership.Claim) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.claims = append(c.claims, claim)
	return c.refusals[claim.Identifier]
}

func (c *checker) Types() []string { return []string{"npm"} }

// requireActs checks the audit log: exactly these acts, all of them by ada.
func (w *fixture) requireActs(t *testing.T, want ...authority.Act) {
	t.Helper()
	for i := range want {
		if !want[i].Caller.IsRemote() {
			want[i].Caller = person(trustedToken)
		}
	}
	if !slices.Equal(w.authority.acts, want) {
		t.Errorf("the audit log holds %+v, want %+v", w.authority.acts, want)
	}
}

// wantFault checks that err is a fault of the kind.
func wantFault(t *testing.T, err error, kind fault.Kind, what string, args ...any) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf(what+": %v, want a fault of kind %s", append(args, err, kind)...)
	}
}
