package viewing_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/registry/viewing"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// fakeChanges are changes that a test makes.
type fakeChanges struct {
	registrystore.Changes
	views, reads int64
	hint         atomic.Uint64
	err          error
}

func (c *fakeChanges) Revision(context.Context) (registrystore.Revision, error) {
	c.reads++
	return registrystore.Revision{Changes: c.reads, Views: c.views}, c.err
}
func (*fakeChanges) ValidFor() time.Duration  { return time.Second }
func (*fakeChanges) AwayAfter() time.Duration { return time.Second }
func (c *fakeChanges) Hint() uint64           { return c.hint.Load() }

// fakeRecorder keeps changes.
type fakeRecorder struct {
	changes []audit.Change
	err     error
}

func (r *fakeRecorder) RecordChanges(_ context.Context, changes ...audit.Change) error {
	if r.err == nil {
		r.changes = append(r.changes, changes...)
	}
	return r.err
}

// fakeMembers are ada, who is in a group, the person low, and bea. Of cem it cannot say anything.
type fakeMembers struct{}

func (fakeMembers) MembershipOf(_ context.Context, who registry.Holder) (authority.Membership, error) {
	switch who {
	case holderOf("ada"):
		return authority.Membership{Groups: []string{"acme/ops", "acme/devs"}}, nil
	case holderOf("low"):
		return authority.Membership{Email: "low@example.com"}, nil
	case holderOf("bea"):
		return authority.Membership{Email: "bea@example.com", Groups: []string{"acme/dev", "other/devs"}}, nil
	case holderOf("cem"):
		return authority.Membership{}, fault.New(fault.Unavailable, "away")
	}
	return authority.Membership{}, fault.New(fault.NotFound, "no person")
}

func holderOf(name string) registry.Holder {
	holder, _ := authoritytest.Person(name).Person() // a person has one
	return holder
}

type fixture struct {
	gate     *viewing.Gate
	operator *viewing.Operator
	store    *fakedb.Views
	hooks    *fakedb.Webhooks
	sent     *fakedb.Deliveries
	changes  *fakeChanges
	recorder *fakeRecorder
	clock    *clocktest.Manual
}

func newFixture() *fixture {
	db := fakedb.New()
	fx := &fixture{
		store: fakedb.NewViews(db), hooks: fakedb.NewWebhooks(db), sent: fakedb.NewDeliveries(db), changes: &fakeChanges{}, recorder: &fakeRecorder{},
		clock: clocktest.NewManual(time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)),
	}
	fx.gate = viewing.NewGate(viewing.Config{}, viewing.GatePorts{
		Views: fx.store, Members: fakeMembers{}, Changes: fx.changes, Clock: fx.clock,
	})
	fx.operator = viewing.NewOperator(viewing.OperatorPorts{
		Transactions: db, Views: fx.store, Recorder: fx.recorder, Clock: fx.clock, Entropy: &secretstest.Entropy{},
		Events: announce.New(announce.Ports{
			Webhooks: fx.hooks, Deliveries: fx.sent, Encoder: eventdatatest.Encoder{}, Clock: fx.clock,
			Entropy: &secretstest.Entropy{},
		}),
	})
	return fx
}

func (fx *fixture) add(t *testing.T, d view.Draft) {
	t.Helper()
	if _, _, err := fx.operator.Put(t.Context(), d, nil); err != nil {
		t.Fatal(err)
	}
	fx.changes.views++
}

func (fx *fixture) addToken(t *testing.T, v view.Name, name string) view.Secret {
	t.Helper()
	secret, err := fx.operator.AddToken(t.Context(), v, name)
	must.Succeed(t, err)
	fx.changes.views++
	return secret
}

// enter enters a view as a caller.
func (fx *fixture) enter(t *testing.T, name string, secret view.Secret, who authority.Caller) (*view.View, error) {
	t.Helper()
	p, err := fx.gate.Find(t.Context(), name, secret)
	if err != nil {
		return nil, err
	}
	return p.Enter(t.Context(), who)
}

// wantEnter checks the kind of the error of Enter; "" for none.
func (fx *fixture) wantEnter(t *testing.T, name string, secret view.Secret, kinds ...fault.Kind) {
	t.Helper()
	v, err := fx.enter(t, name, secret, authority.Caller{})
	switch {
	case len(kinds) == 0 && (err != nil || string(v.Name) != name):
		t.Errorf("Enter(%s) = %v, %v", name, v, err)
	case len(kinds) > 0 && (!fault.Is(err, kinds[0]) || v != nil):
		t.Errorf("Enter(%s) = %v, %v, want %v", name, v, err, kinds[0])
	}
}

func TestEnter(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.add(t, view.Draft{Name: "open"})
	fx.add(t, view.Draft{Name: "inner", Access: "token"})
	fx.add(t, view.Draft{Name: "other", Access: "token"})
	a, b, c := fx.addToken(t, "inner", "a"), fx.addToken(t, "inner", "b"), fx.addToken(t, "other", "a")
	for _, secret := range []view.Secret{"", "x", a} {
		fx.wantEnter(t, "all", secret)
		fx.wantEnter(t, "open", secret)
		fx.wantEnter(t, "none", secret, fault.NotFound)
	}
	fx.wantEnter(t, "inner", a)
	fx.wantEnter(t, "inner", b)
	fx.wantEnter(t, "other", c)
	for _, secret := range []view.Secret{"", "x", c, a + "x", a[:len(a)-1]} {
		fx.wantEnter(t, "inner", secret, fault.Unauthenticated)
	}
}

// newToken returns a service account as the caller by a token with a scope.
func newToken(s scope.Scope) authority.Caller {
	return authority.NewToken(authority.Token{Owner: "service:ci", Scopes: scope.Set{s}}, authoritytest.Address())
}

// TestPrivate checks who may read what if reading needs a caller: a public view is public all the
// same, its token opens a view that has one, and only callers learn which views there are.
func TestPrivate(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.gate = viewing.NewGate(viewing.Config{Private: true}, viewing.GatePorts{
		Views: fx.store, Members: fakeMembers{}, Changes: fx.changes, Clock: fx.clock,
	})
	fx.add(t, view.Draft{Name: "open"})
	fx.add(t, view.Draft{Name: "people", Access: "people"})
	fx.add(t, view.Draft{Name: "some", Access: "people", People: []string{"Low@example.com"}, Groups: []string{"acme/devs"}})
	fx.add(t, view.Draft{Name: "inner", Access: "token"})
	secret := fx.addToken(t, "inner", "a")
	callers := map[string]authority.Caller{
		"ada": authoritytest.Person("ada"), "bea": authoritytest.Person("bea"), "cem": authoritytest.Person("cem"),
		"named":  authoritytest.Person("low"),
		"no one": {}, "low": authoritytest.Person("ada low"), "risky": authoritytest.Person("ada risky"),
		"reader": newToken(scope.Read), "editor": newToken(scope.Edit),
		"publisher": authority.NewPublisher(authority.Publisher{}, authoritytest.Address()),
	}
	const all = fault.Kind(0)
	for name, want := range map[string]map[string]fault.Kind{
		"":       {"no one": fault.Unauthenticated, "risky": fault.Forbidden, "editor": fault.Forbidden},
		"all":    {"no one": fault.Unauthenticated, "risky": fault.Forbidden, "editor": fault.Forbidden},
		"open":   {},
		"people": {"no one": fault.Unauthenticated, "risky": fault.Forbidden, "editor": fault.Forbidden},
		"some": {
			"no one": fault.Unauthenticated, "bea": fault.NotFound, "cem": fault.Unavailable, "risky": fault.Forbidden,
			"reader": fault.NotFound, "editor": fault.Forbidden, "publisher": fault.NotFound,
		},
		"none": {
			"ada": fault.NotFound, "bea": fault.NotFound, "cem": fault.NotFound, "named": fault.NotFound,
			"no one": fault.Unauthenticated, "low": fault.NotFound, "risky": fault.Forbidden, "reader": fault.NotFound,
			"editor": fault.Forbidden, "publisher": fault.NotFound,
		},
		"inner": {
			"ada": fault.NotFound, "bea": fault.NotFound, "cem": fault.NotFound, "named": fault.NotFound,
			"no one": fault.Unauthenticated, "low": fault.NotFound, "risky": fault.Forbidden, "reader": fault.NotFound,
			"editor": fault.Forbidden, "publisher": fault.NotFound,
		},
	} {
		for caller, who := range callers {
			_, err := fx.enter(t, name, "x", who)
			if want[caller] == all && err != nil || want[caller] != all && !fault.Is(err, want[caller]) {
				t.Errorf("%s enters %q: %v, want kind %v", caller, name, err, want[caller])
			}
		}
	}
	if v, err := fx.enter(t, "inner", secret, authority.Caller{}); err != nil || v.Name != "inner" {
		t.Errorf("with its token: %v, %v", v, err)
	}
	if _, err := fx.enter(t, "", secret, authority.Caller{}); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("the registry with the token of a view: %v", err)
	}
}

// TestPeople checks who may read the views of people if everybody may read the registry.
func TestPeople(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.add(t, view.Draft{Name: "people", Access: "people"})
	fx.add(t, view.Draft{Name: "some", Access: "people", Groups: []string{"acme/devs"}})
	secret := fx.addToken(t, "some", "a")
	for _, name := range []string{"people", "some"} {
		if _, err := fx.enter(t, name, "x", authority.Caller{}); !fault.Is(err, fault.Unauthenticated) {
			t.Errorf("no one enters %s: %v", name, err)
		}
		if v, err := fx.enter(t, name, "x", authoritytest.Person("ada")); err != nil || string(v.Name) != name {
			t.Errorf("ada enters %s: %v, %v", name, v, err)
		}
	}
	if _, err := fx.enter(t, "some", "x", authoritytest.Person("bea")); !fault.Is(err, fault.NotFound) {
		t.Errorf("bea: %v", err)
	}
	fx.wantEnter(t, "some", secret)
	if p, err := fx.gate.Find(t.Context(), "some", secret); err != nil || !p.IsPrivate() || p.NeedsCaller() {
		t.Errorf("with the token: %+v, %v", p, err)
	}
}

// TestChangesAreSeen: a change is seen when the hint changes, and at the latest a second later. A
// view that did not change stays the same one.
func TestChangesAreSeen(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.add(t, view.Draft{Name: "inner", Access: "token"})
	fx.add(t, view.Draft{Name: "open"})
	secret := fx.addToken(t, "inner", "a")
	fx.wantEnter(t, "inner", secret)
	before, err := fx.enter(t, "open", "", authority.Caller{})
	must.Succeed(t, err)
	reads := fx.changes.reads
	fx.wantEnter(t, "inner", secret)
	if fx.changes.reads != reads {
		t.Errorf("%d reads for one more request in the same second", fx.changes.reads-reads)
	}
	must.Succeed(t, fx.operator.RemoveToken(t.Context(), "inner", "a"))
	fx.changes.views++
	fx.clock.Advance(time.Second)
	fx.wantEnter(t, "inner", secret, fault.Unauthenticated)
	must.Succeed(t, fx.operator.Remove(t.Context(), "inner", nil))
	fx.changes.views++
	fx.changes.hint.Add(1)
	fx.wantEnter(t, "inner", secret, fault.NotFound)
	if after, err := fx.enter(t, "open", "", authority.Caller{}); err != nil || after != before {
		t.Errorf("an unchanged view is another one: %v, %v", after, err)
	}
}

// TestDatabaseAway: a view that was public can be entered, no other can, and the database is asked
// again after a while only.
func TestDatabaseAway(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.changes.err = errors.New("away")
	fx.wantEnter(t, "all", "")
	fx.wantEnter(t, "open", "", fault.Unavailable)
	fx.changes.err = nil
	fx.add(t, view.Draft{Name: "open"})
	fx.add(t, view.Draft{Name: "inner", Access: "token"})
	secret := fx.addToken(t, "inner", "a")
	fx.clock.Advance(time.Second)
	fx.wantEnter(t, "inner", secret)
	fx.changes.err = errors.New("away")
	fx.clock.Advance(time.Second)
	fx.wantEnter(t, "open", "")
	fx.wantEnter(t, "inner", secret, fault.Unavailable)
	fx.wantEnter(t, "none", "", fault.Unavailable)
	reads := fx.changes.reads
	fx.wantEnter(t, "inner", secret, fault.Unavailable)
	if fx.changes.reads != reads {
		t.Error("the database is read again at once")
	}
	fx.changes.err = nil
	fx.clock.Advance(time.Second)
	fx.wantEnter(t, "inner", secret)
}

// TestOperator: each change is recorded without the token, and refusals name what is wrong.
func TestOperator(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.add(t, view.Draft{Name: "team"})
	fx.addToken(t, "team", "a")
	must.Succeed(t, errors.Join(fx.operator.RemoveToken(t.Context(), "team", "a"),
		fx.operator.Remove(t.Context(), "team", nil)))
	want := []audit.Change{
		newViewChange("view_add", ""), newViewChange("view_token_add", "a"),
		newViewChange("view_token_remove", "a"), newViewChange("view_remove", ""),
	}
	if len(fx.recorder.changes) != len(want) {
		t.Fatalf("recorded %v", fx.recorder.changes)
	}
	for i, c := range fx.recorder.changes {
		if !reflect.DeepEqual(c, want[i]) {
			t.Errorf("change %d is %+v, want %+v", i, c, want[i])
		}
	}
	fx.recorder.err = errors.New("the log is away")
	if _, _, err := fx.operator.Put(t.Context(), view.Draft{Name: "team"}, nil); !errors.Is(err, fx.recorder.err) {
		t.Errorf("an addition that cannot be recorded: %v", err)
	}
	if list, err := fx.operator.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("it was added: %v, %v", list, err)
	}
}

// TestPut checks that a view is replaced with its tokens and its manager, that only a difference is
// recorded, and that the error of a check ends the change.
func TestPut(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	put := func(d view.Draft, check registry.Check[view.View]) (view.View, bool, error) {
		return fx.operator.Put(t.Context(), d, check)
	}
	if v, created, err := put(view.Draft{Name: "team", ManagedBy: "file"}, nil); err != nil || !created ||
		v.ManagedBy != "file" {
		t.Fatal(v, created, err)
	}
	fx.addToken(t, "team", "a")
	fx.recorder.changes = nil
	for range 2 {
		if v, created, err := put(view.Draft{Name: "team", Access: "token"}, nil); err != nil || created ||
			v.ManagedBy != "file" {
			t.Errorf("replaced by %+v, created %t, %v", v, created, err)
		}
	}
	want := newViewChange("view_change", "")
	want.Details["changes"] = audit.Details{"access": audit.List{audit.Text("public"), audit.Text("token")}}
	if !reflect.DeepEqual(fx.recorder.changes, []audit.Change{want}) {
		t.Errorf("recorded %+v, want %+v", fx.recorder.changes, want)
	}
	refusal := fault.New(fault.Stale, "changed")
	check := func(current *view.View) error {
		if current == nil || current.Access != view.WithToken {
			t.Errorf("checked is %+v", current)
		}
		return refusal
	}
	if _, _, err := put(view.Draft{Name: "team"}, check); !errors.Is(err, refusal) {
		t.Errorf("a refused change: %v", err)
	}
	if err := fx.operator.Remove(t.Context(), "team", check); !errors.Is(err, refusal) {
		t.Errorf("a refused removal: %v", err)
	}
	tokens, err := fx.operator.Tokens(t.Context(), "team")
	if v, err2 := fx.operator.Find(t.Context(), "team"); err != nil || err2 != nil || len(tokens) != 1 ||
		v.Access != view.WithToken {
		t.Errorf("the view is %+v with %v, %v, %v", v, tokens, err, err2)
	}
}

// newViewChange returns the audit event of the view team, or of a token of it.
func newViewChange(action audit.Action, token string) audit.Change {
	details := audit.Details{"view": audit.Text("team")}
	details.Set("token", token)
	details["kind"], details["key"] = audit.Text("view"), audit.Text("team")
	if token != "" {
		details["kind"], details["key"] = audit.Text("viewToken"), audit.Text("team "+token)
	}
	return audit.Change{Category: audit.RegistryChange, Action: action, ByOperator: true, Details: details}
}

// TestBounds: there are at most 100 views, and 100 tokens of a view.
func TestBounds(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	for i := range 100 {
		fx.add(t, view.Draft{Name: "v" + string(rune('a'+i/10)) + string(rune('a'+i%10))})
		fx.addToken(t, "vaa", "t"+string(rune('a'+i/10))+string(rune('a'+i%10)))
	}
	if _, _, err := fx.operator.Put(t.Context(), view.Draft{Name: "more"}, nil); !fault.Is(err, fault.Invalid) {
		t.Errorf("view 101: %v", err)
	}
	if _, err := fx.operator.AddToken(t.Context(), "vaa", "more"); !fault.Is(err, fault.Invalid) {
		t.Errorf("token 101: %v", err)
	}
	if _, err := fx.operator.AddToken(t.Context(), "vab", "more"); err != nil {
		t.Errorf("the first token of another view: %v", err)
	}
}

// TestKnown checks which views a reader learns of, and in which order.
func TestKnown(t *testing.T) {
	t.Parallel()
	fx := newFixture()
	fx.add(t, view.Draft{Name: "open"})
	fx.add(t, view.Draft{Name: "inner", Access: "token"})
	fx.add(t, view.Draft{Name: "people", Access: "people"})
	fx.add(t, view.Draft{Name: "some", Access: "people", Groups: []string{"acme/devs"}})
	for name, want := range map[string]string{"": "[open]", "ada risky": "[open]", "bea": "[inner open people]", "ada": "[inner open people some]"} {
		who := authority.Caller{}
		if name != "" {
			who = authoritytest.Person(name)
		}
		views, err := fx.gate.Known(t.Context(), who)
		var names []view.Name
		for _, v := range views {
			names = append(names, v.Name)
		}
		if got := fmt.Sprint(names); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", name, got, err, want)
		}
	}
	fx.changes.err = errors.New("away")
	fx.clock.Advance(time.Second)
	if _, err := fx.gate.Known(t.Context(), authoritytest.Person("ada")); !fault.Is(err, fault.Unavailable) {
		t.Errorf("while the database is away: %v", err)
	}
}
