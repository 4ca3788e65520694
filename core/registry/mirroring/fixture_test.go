package mirroring_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/secrets/secretstest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

var epoch = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// upstream is another registry.
type upstream struct {
	entries []recordsource.Entry
	fails   error                     // of each read
	changed []recordsource.Entry      // what a read with Since returns; nil for everything
	reads   []time.Time               // Since of each read
	during  func(ctx context.Context) // is called while a list is read; optional
}

// Read implements recordsource.Registries.
func (u *upstream) Read(ctx context.Context, r recordsource.ListRequest) (recordsource.List, error) {
	u.reads = append(u.reads, r.Since)
	if u.during != nil {
		u.during(ctx)
	}
	if u.fails != nil {
		return nil, u.fails
	}
	entries := u.entries
	if !r.Since.IsZero() && u.changed != nil {
		entries = u.changed
	}
	l := &list{records: len(entries)}
	for _, e := range entries {
		name := ""
		if draft, err := registry.ParseDraft(e.Document); err == nil {
			name = draft.Name()
		}
		i := slices.IndexFunc(l.servers, func(s recordsource.Server) bool { return s.Name == name })
		if i < 0 {
			i = len(l.servers)
			l.servers = append(l.servers, recordsource.Server{Name: name})
		}
		l.servers[i].Entries = append(l.servers[i].Entries, e)
	}
	slices.SortStableFunc(l.servers, func(a, b recordsource.Server) int { return strings.Compare(a.Name, b.Name) })
	return l, ctx.Err()
}

// list implements recordsource.List.
type list struct {
	servers []recordsource.Server
	records int
	next    int
}

func (l *list) Next(ctx context.Context) (recordsource.Server, error) {
	if l.next == len(l.servers) {
		return recordsource.Server{}, io.EOF
	}
	l.next++
	return l.servers[l.next-1], ctx.Err()
}

func (l *list) Rewind()      { l.next = 0 }
func (l *list) Records() int { return l.records }
func (l *list) Close() error { return nil }

// entry is a record of the other registry, with a part of the document.
func entry(server, version string, status registry.Status, more string) recordsource.Entry {
	return recordsource.Entry{
		Document: []byte(fmt.Sprintf(`{"name":%q,"description":"Forecasts%s","version":%q}`, server, more, version)),
		Recorded: recordsource.Recorded{Status: string(status), PublishedAt: epoch.AddDate(-1, 0, len(version))},
	}
}

func active(servers ...string) (all []recordsource.Entry) {
	for _, s := range servers {
		all = append(all, entry(s, "1.0.0", registry.StatusActive, ""))
	}
	return all
}

// fixture is a registry in memory with the mirror corp.
type fixture struct {
	*mirroring.Operator

	t         *testing.T
	db        *fakedb.Database
	servers   *fakedb.Servers
	mirrored  *fakedb.MirroredVersions
	stored    *fakedb.Mirrors
	reviews   *reviewing.Service
	publisher *publishing.Publisher
	held      *fakedb.Quarantine
	grants    *fakedb.Grants
	clock     *clocktest.Manual
	upstream  *upstream
	audit     *auditLog
}

// auditLog keeps what was recorded.
type auditLog struct{ changes []audit.Change }

func (a *auditLog) RecordChanges(_ context.Context, changes ...audit.Change) error {
	a.changes = append(a.changes, changes...)
	return nil
}

// waiter lets no time pass, and ends with the context.
type waiter struct{}

func (waiter) Wait(ctx context.Context, _ time.Duration) bool {
	<-ctx.Done()
	return false
}

func newFixture(t *testing.T, review bool, d mirror.Draft) *fixture {
	t.Helper()
	db := fakedb.New()
	fx := &fixture{
		t: t, db: db, servers: fakedb.NewServers(db, true), mirrored: fakedb.NewMirroredVersions(db),
		stored: fakedb.NewMirrors(db),
		held:   fakedb.NewQuarantine(db), grants: fakedb.NewGrants(db), clock: clocktest.NewManual(epoch),
		upstream: &upstream{}, audit: &auditLog{},
	}
	entropy := &secretstest.Entropy{}
	recorder := fx.events()
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(db))
	store, rules := fakedb.NewReviews(db), fakedb.NewReviewRules(db)
	fx.Operator = mirroring.NewOperator(mirroring.Config{Review: review, Reserved: fx.reserved()}, mirroring.Ports{
		Transactions: db, Mirrors: fx.stored, Mirrored: fx.mirrored, Writer: fx.servers, Reader: fx.servers,
		Quarantine: fx.held, Grants: fx.grants,
		Reviews: store, Approver: reviewing.Approver{Rules: rules, Reader: fx.servers}, Events: recorder,
		Recorder: fx.audit,
		Source:   fx.upstream, Clock: fx.clock, Waiter: waiter{}, Entropy: entropy,
	})
	ender := reviewing.MirrorEnder{
		Mirrored: fx.mirrored, Reviews: store, Reader: fx.servers, Writer: fx.servers, Quarantine: fx.held,
		Events: recorder, Recorder: fx.audit,
	}
	fx.publisher = publishing.New(publishing.Config{Review: review, PendingMax: 9}, publishing.Ports{
		Ports:  change.Ports{Transactions: db, Writer: fx.servers, Quarantine: fx.held, Acts: noActs{}},
		Reader: fx.servers, Grants: fx.grants,
		Reviews: store, Approver: reviewing.Approver{Rules: rules, Reader: fx.servers},
		Ender: ender, Events: recorder, Clock: fx.clock, Entropy: entropy,
	})
	fx.reviews = reviewing.New(reviewing.Config{}, reviewing.Ports{
		Ports:   change.Ports{Transactions: db, Writer: fx.servers, Quarantine: fx.held, Acts: noActs{}},
		Reviews: store, Backlog: store, Rules: rules, Reader: fx.servers, ToolLists: fakedb.NewToolLists(db),
		Mirrors: fx.stored, Mirrored: fx.mirrored, Ender: ender,
		Recorder: fx.audit, Events: recorder, Cursors: page.NewSealer(make([]byte, 32)), Clock: fx.clock,
		Entropy: entropy,
	})
	d.Name = "corp"
	if d.URL == "" {
		d.URL = "https://registry.example.com"
	}
	if _, _, err := fx.Put(t.Context(), d, nil); err != nil {
		t.Fatal(err)
	}
	return fx
}

// reserved returns what no mirror may take.
func (fx *fixture) reserved() []registry.Pattern {
	return []registry.Pattern{fx.pattern("com.secret/*")}
}

func (fx *fixture) pattern(s string) registry.Pattern {
	fx.t.Helper()
	p, err := registry.ParsePattern(s)
	must.Succeed(fx.t, err)
	return p
}

// grant gives ada a grant.
func (fx *fixture) grant(action registry.Action, pattern string) {
	fx.t.Helper()
	if err := fx.grants.Add(fx.t.Context(), registry.GrantRecord{Grant: registry.Grant{
		Holder: "ada", Action: action, Pattern: fx.pattern(pattern),
	}}); err != nil {
		fx.t.Fatal(err)
	}
}

// hide puts a target in quarantine.
func (fx *fixture) hide(target quarantining.Target) {
	fx.t.Helper()
	_, err := fx.quarantine().Add(fx.t.Context(), authority.Operator(),
		quarantining.Draft{Target: target, Reason: "it sends mail"})
	must.Succeed(fx.t, err)
}

func (fx *fixture) release(target quarantining.Target) {
	fx.t.Helper()
	must.Succeed(fx.t, fx.quarantine().Release(fx.t.Context(), authority.Operator(), target))
}

func (fx *fixture) approve(id registry.ReviewID) {
	fx.t.Helper()
	_, err := fx.reviews.Approve(fx.t.Context(), authority.Operator(), id, "")
	must.Succeed(fx.t, err)
}

// collect reports outcomes to lines.
func collect(lines *[]string) func(mirroring.Outcome) {
	return func(out mirroring.Outcome) {
		line := string(out.Verdict) + " " + out.Name
		if out.Version != "" {
			line += "@" + out.Version
		}
		if out.Reason != "" {
			line += ": " + out.Reason
		}
		*lines = append(*lines, line)
	}
}

// sync reads the other registry a minute later, and returns the outcomes, each as a line.
func (fx *fixture) sync(o mirroring.Options) (mirroring.Summary, []string, error) {
	fx.t.Helper()
	fx.clock.Advance(time.Minute)
	lines := []string{}
	o.Report = collect(&lines)
	s, err := fx.Sync(fx.t.Context(), "corp", o)
	return s, lines, err
}

// wantSync checks the outcomes of a read that succeeds.
func (fx *fixture) wantSync(o mirroring.Options, want ...string) mirroring.Summary {
	fx.t.Helper()
	s, got, err := fx.sync(o)
	must.Succeed(fx.t, err)
	if len(got)+len(want) > 0 && !slices.Equal(got, want) {
		fx.t.Errorf("the read gave\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	return s
}

// wantListed checks what readers see, deleted versions too: each version as "name@version status".
func (fx *fixture) wantListed(want ...string) {
	fx.t.Helper()
	found, err := fx.servers.List(fx.t.Context(), registrystore.Query{Limit: 1000, Deleted: true})
	must.Succeed(fx.t, err)
	got := []string{}
	for _, r := range found.Records {
		line := r.Name.String() + "@" + r.Version.String() + " " + string(r.Status)
		if r.Origin == (registry.Origin{}) {
			line += " local"
		}
		got = append(got, line)
	}
	if len(got)+len(want) > 0 && !slices.Equal(got, want) {
		fx.t.Errorf("listed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// wantEvents checks the events since the last call.
func (fx *fixture) wantEvents(want ...string) {
	fx.t.Helper()
	got := eventdatatest.Take(fx.t, fakedb.NewDeliveries(fx.db))
	for i, body := range got {
		got[i] = strings.Join(strings.Fields(body)[:2], " ")
	}
	if len(got)+len(want) > 0 && !slices.Equal(got, want) {
		fx.t.Errorf("events: %q, want %q", got, want)
	}
}

func (fx *fixture) state() mirror.State {
	fx.t.Helper()
	all, err := fx.List(fx.t.Context())
	if err != nil || len(all) != 1 {
		fx.t.Fatal(all, err)
	}
	return all[0].State
}

// publishLocal publishes a version of a server here.
func (fx *fixture) publishLocal(server, version string) {
	fx.t.Helper()
	name, _ := registry.ParseName(server)
	v, _ := registry.ParseVersion(version)
	err := fx.db.Atomically(fx.t.Context(), func(ctx context.Context) error {
		releases, err := fx.servers.Lock(ctx, name)
		if err != nil {
			return err
		}
		l := registry.NewLineage(name, releases)
		if _, err := l.Publish(v, fx.clock.Now()); err != nil {
			return err
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{Release: r, Document: []byte(`{}`)})
		}
		return fx.servers.Save(ctx, changes)
	})
	must.Succeed(fx.t, err)
}

// events returns a recorder of events in memory.
func (fx *fixture) events() *announce.Recorder {
	return announce.New(announce.Ports{
		Webhooks: fakedb.NewWebhooks(fx.db), Deliveries: fakedb.NewDeliveries(fx.db), Encoder: eventdatatest.Encoder{},
		Clock: fx.clock, Entropy: &secretstest.Entropy{},
	})
}

// quarantine returns the quarantine of the registry.
func (fx *fixture) quarantine() *quarantining.Service {
	return quarantining.New(quarantining.Ports{
		Ports:   change.Ports{Transactions: fx.db, Writer: fx.servers, Quarantine: fx.held, Acts: noActs{}},
		Mirrors: fakedb.NewMirrors(fx.db),
		Events:  fx.events(), Clock: fx.clock,
	})
}
