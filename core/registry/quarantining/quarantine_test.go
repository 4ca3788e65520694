package quarantining_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/page"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/announce"
	"github.com/tollgate-dev/tollgate/core/registry/change"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

const (
	serverA = "com.example/a"
	serverB = "com.example/b"
)

var epoch = time.Date(2026, time.November, 21, 12, 0, 0, 0, time.UTC)

// as returns the caller with a token: the name of a person at FULL_TRUST, or "low", "risky" or
// "publisher".
func as(token string) authority.Caller {
	switch token {
	case "publisher":
		return authority.NewPublisher(authority.Publisher{}, authoritytest.Address())
	case "risky", "low":
		token = "ada " + token
	case "operator":
		return authority.Operator()
	}
	return authoritytest.Person(token)
}

// fakePeople keeps the acts of people and operators, and fails on request.
type fakePeople struct {
	authority.ReviewNotifier

	acts    []authority.Act
	notices []authority.QuarantineNotice
	fails   error
}

func (p *fakePeople) NotifyPublishers(n authority.QuarantineNotice) { p.notices = append(p.notices, n) }

func (p *fakePeople) Record(_ context.Context, a authority.Act) error {
	if p.fails == nil {
		p.acts = append(p.acts, a)
	}
	return p.fails
}

type fixture struct {
	service *quarantining.Service
	db      *fakedb.Database
	servers *fakedb.Servers
	store   *fakedb.Quarantine
	grants  *fakedb.Grants
	people  *fakePeople
}

// newFixture returns a registry with the versions 1.0.0 and 2.0.0 of two servers. Ada may review
// both, bea only the second, and may publish everything.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := fakedb.New()
	f := &fixture{
		db: db, servers: fakedb.NewServers(db, true), store: fakedb.NewQuarantine(db), grants: fakedb.NewGrants(db),
		people: &fakePeople{},
	}
	f.service = quarantining.New(quarantining.Ports{
		Ports:   change.Ports{Transactions: db, Writer: f.servers, Quarantine: f.store, Acts: f.people},
		Reader:  f.servers,
		Mirrors: fakedb.NewMirrors(db), Notifier: f.people,
		Clock:  clocktest.NewManual(epoch),
		Grants: f.grants, Cursors: page.NewSealer([]byte(strings.Repeat("k", 32))),
		Events: announce.New(announce.Ports{
			Webhooks: fakedb.NewWebhooks(db), Deliveries: fakedb.NewDeliveries(db), Encoder: eventdatatest.Encoder{},
			Clock: clocktest.NewManual(epoch), Entropy: fixedEntropy{},
		}),
	})
	f.grant(t, "ada", registry.ActionReview, "com.example/*")
	f.grant(t, "bea", registry.ActionReview, serverB)
	f.grant(t, "bea", registry.ActionPublish, "*")
	f.publish(t, serverA, "https://a.example/mcp")
	f.publish(t, serverB, "https://b.example/mcp")
	return f
}

func (f *fixture) grant(t *testing.T, holder registry.Holder, a registry.Action, pattern string) {
	t.Helper()
	p, err := registry.ParsePattern(pattern)
	must.Succeed(t, err)
	must.Succeed(t, f.grants.Add(t.Context(), registry.GrantRecord{Grant: registry.Grant{Holder: holder, Action: a, Pattern: p}}))
}

// publish stores the versions 1.0.0 and 2.0.0 of a server.
func (f *fixture) publish(t *testing.T, server string, url registry.RemoteURL) {
	t.Helper()
	err := f.db.Atomically(t.Context(), func(ctx context.Context) error {
		name, err := registry.ParseName(server)
		if err != nil {
			return err
		}
		releases, err := f.servers.Lock(ctx, name)
		if err != nil {
			return err
		}
		l := registry.NewLineage(name, releases)
		for _, text := range []string{"1.0.0", "2.0.0"} {
			v, err := registry.ParseVersion(text)
			if err != nil {
				return err
			}
			if _, err := l.Publish(v, epoch); err != nil {
				return err
			}
		}
		var changes []registrystore.Change
		for _, r := range l.Changes() {
			changes = append(changes, registrystore.Change{
				Release: r, Document: []byte(`{"remotes":[{"type":"sse","url":"` + string(url) + `"}]}`), Remotes: []registry.RemoteURL{url},
			})
		}
		return f.servers.Save(ctx, changes)
	})
	must.Succeed(t, err)
}

// hide puts a target in quarantine by an operator command.
func (f *fixture) hide(t *testing.T, of quarantining.Target, reason string) (registry.Quarantined, error) {
	t.Helper()
	return f.service.Add(t.Context(), authority.Operator(), quarantining.Draft{Target: of, Reason: reason})
}

func (f *fixture) add(t *testing.T, token, server, version, reason string) (registry.Quarantined, error) {
	t.Helper()
	return f.service.Add(t.Context(), as(token), quarantining.Draft{
		Target: quarantining.Target{ServerName: server, Version: version}, Reason: reason,
	})
}

func (f *fixture) release(t *testing.T, token, server, version string) error {
	t.Helper()
	return f.service.Release(t.Context(), as(token), quarantining.Target{ServerName: server, Version: version})
}

// describe returns the versions of a server, each as version, status, message and a star if it is
// the latest.
func (f *fixture) describe(t *testing.T, server string) string {
	t.Helper()
	name, err := registry.ParseName(server)
	must.Succeed(t, err)
	found, err := f.servers.Versions(t.Context(), registrystore.VersionsQuery{Name: name, Deleted: true})
	must.Succeed(t, err)
	var all []string
	for _, r := range found.Records {
		all = append(all,
			fmt.Sprintf("%s %s %s%s", r.Version, r.Status, r.StatusMessage, map[bool]string{true: "*"}[r.Latest]))
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func TestAddAndRelease(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.describe(t, serverA)
	q, err := f.add(t, "ada", serverA, "2.0.0", "it sends mail")
	if err != nil || q.Name.String() != serverA || q.Version.String() != "2.0.0" || q.Reason != "it sends mail" ||
		q.By != "ada" || q.Since.Before(epoch) {
		t.Fatalf("Add = %+v, %v", q, err)
	}
	wantEqual(t, f.describe(t, serverA), "1.0.0 active *, 2.0.0 deleted it sends mail", "the server")
	whole, err := f.add(t, "ada", serverA, "", "all of it")
	if err != nil || whole.Version != (registry.Version{}) {
		t.Fatalf("Add of the server = %+v, %v", whole, err)
	}
	wantEqual(t, f.describe(t, serverA), "1.0.0 deleted all of it, 2.0.0 deleted it sends mail*", "the server")
	must.Succeed(t, f.release(t, "ada", serverA, "2.0.0"))
	wantEqual(t, f.describe(t, serverA), "1.0.0 deleted all of it, 2.0.0 deleted all of it*", "the server")
	must.Succeed(t, f.release(t, "ada", serverA, ""))
	wantEqual(t, f.describe(t, serverA), before, "after the release")
	var acts []string
	for _, a := range f.people.acts {
		wantEqual(t, a.Caller, as("ada"), "the act has the caller")
		acts = append(acts, strings.Join([]string{string(a.Action), a.ServerName, a.Version, a.Note, a.Reason}, "|"))
	}
	want := []string{
		"quarantine|com.example/a|2.0.0|it sends mail|", "quarantine|com.example/a||all of it|",
		"release|com.example/a|2.0.0||", "release|com.example/a|||",
	}
	wantEqual(t, acts, want, "the audit log")
}

// TestOrderOfErrors checks each error of Add and of Release, and that all but the first are
// recorded.
func TestOrderOfErrors(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 501)
	for name, c := range map[string]struct {
		token, server, version, reason string
		kind                           fault.Kind
		want                           string
	}{
		"no token": {"", "", "", "", fault.Unauthenticated, "an access token is required"},
		"a publisher": {
			"publisher", serverA, "", long, fault.Forbidden,
			"the token of a publisher may only publish and change status: sign in as a person",
		},
		"no grant": {"eve", serverA, "", long, fault.Forbidden, "you have no review permission for com.example/a"},
		"another action": {
			"bea", serverA, "", long, fault.Forbidden, "you have no review permission for com.example/a",
		},
		"no grant, an unknown server": {
			"eve", "com.example/none", "", "r", fault.Forbidden, "you have no review permission for com.example/none",
		},
		"no grant, a bad name": {
			"eve", "none", "", "r", fault.Forbidden, "you have no review permission on this registry",
		},
		"little trust": {"low", serverA, "", long, fault.Forbidden, "step up first"},
		"a reason that is too long": {
			"ada", "com.example/none", "", long, fault.Invalid, "reason must have at most 500 characters, and has 501",
		},
		"no reason":          {"ada", "com.example/none", "", " ", fault.Invalid, "reason must say why, in words"},
		"no name":            {"ada", "", "", "r", fault.Invalid, "serverName is missing"},
		"a bad name":         {"ada", "none", "", "r", fault.NotFound, "server not found"},
		"an unknown server":  {"ada", "com.example/none", "", "r", fault.NotFound, "server not found"},
		"an unknown version": {"ada", serverA, "3.0.0", "r", fault.NotFound, "server version not found"},
		"a bad version":      {"ada", serverA, "latest", "r", fault.NotFound, "server version not found"},
		"a version of an unknown server": {
			"ada", "com.example/none", "1.0.0", "r", fault.NotFound, "server version not found",
		},
		"a server that is there already": {
			"ada", serverB, "", "r", fault.Conflict, "com.example/b is in quarantine already",
		},
		"a version that is there already": {
			"ada", serverB, "1.0.0", "r", fault.Conflict, "com.example/b 1.0.0 is in quarantine already",
		},
		"release without a token": {"", serverB, "", "release", fault.Unauthenticated, "an access token is required"},
		"release by a publisher": {
			"publisher", serverB, "", "release", fault.Forbidden,
			"the token of a publisher may only publish and change status: sign in as a person",
		},
		"release without a grant": {
			"eve", serverB, "", "release", fault.Forbidden, "you have no review permission for com.example/b",
		},
		"release with little trust": {"low", serverB, "", "release", fault.Forbidden, "step up first"},
		"release without a name":    {"ada", "", "", "release", fault.Invalid, "serverName is missing"},
		"release of what is not there": {
			"ada", serverA, "", "release", fault.NotFound, "com.example/a is not in quarantine",
		},
		"release of another version": {
			"ada", serverB, "2.0.0", "release", fault.NotFound, "com.example/b 2.0.0 is not in quarantine",
		},
		"release of an unknown server": {
			"ada", "com.example/none", "", "release", fault.NotFound, "com.example/none is not in quarantine",
		},
		"release of a version with a typo": {
			"ada", serverB, "latest", "release", fault.NotFound, "server version not found",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			for _, version := range []string{"", "1.0.0"} {
				if _, err := f.hide(t, quarantining.Target{ServerName: serverB, Version: version}, "r"); err != nil {
					t.Fatal(err)
				}
			}
			f.people.acts = nil
			before := f.describe(t, serverA) + f.describe(t, serverB)
			var err error
			if c.reason == "release" {
				err = f.release(t, c.token, c.server, c.version)
			} else {
				_, err = f.add(t, c.token, c.server, c.version, c.reason)
			}
			if !fault.Is(err, c.kind) || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
			wantEqual(t, f.describe(t, serverA)+f.describe(t, serverB), before,
				"the refused call changed %s into", before)
			if recorded := len(f.people.acts) == 1 &&
				f.people.acts[0].Reason == c.want; recorded != (c.kind != fault.Unauthenticated) {
				t.Errorf("the audit log has %+v", f.people.acts)
			}
		})
	}
}

// TestBodyIsReadOnceTheCallerIsKnown checks when the body is read, and that its error is recorded.
func TestBodyIsReadOnceTheCallerIsKnown(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bad := fault.New(fault.Invalid, "body is not valid JSON")
	for token, want := range map[string]fault.Kind{"": fault.Unauthenticated, "eve": fault.Invalid} {
		_, err := f.service.Add(t.Context(), as(token), quarantining.Draft{Target: quarantining.Target{Malformed: bad}})
		if !fault.Is(err, want) {
			t.Errorf("token %q: %v", token, err)
		}
	}
	if len(f.people.acts) != 1 || f.people.acts[0].Reason != "body is not valid JSON" {
		t.Errorf("the audit log has %+v", f.people.acts)
	}
}

// TestChangeAndAuditGoTogether checks that nothing changes if the change cannot be recorded.
func TestChangeAndAuditGoTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.people.fails = fault.New(fault.Unavailable, "away")
	before := f.describe(t, serverA)
	if _, err := f.add(t, "ada", serverA, "", "r"); !errors.Is(err, f.people.fails) ||
		f.describe(t, serverA) != before {
		t.Errorf("Add without an audit log: %v, %s", err, f.describe(t, serverA))
	}
	if list := f.readPages(t, "operator", ""); len(list) > 0 {
		t.Errorf("the operator sees %q", list)
	}
}

// TestReleaseOfTakenURL checks that a version whose URL another server has now stays in quarantine.
func TestReleaseOfTakenURL(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.add(t, "ada", serverA, "", "r"); err != nil {
		t.Fatal(err)
	}
	f.publish(t, "com.example/c", "https://a.example/mcp")
	before := f.describe(t, serverA)
	if err := f.release(t, "ada", serverA, ""); !fault.Is(err, fault.Conflict) || f.describe(t, serverA) != before {
		t.Errorf("Release = %v, the server is %s", err, f.describe(t, serverA))
	}
}

func TestOperator(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	target := quarantining.Target{ServerName: serverA, Version: "1.0.0"}
	if _, err := f.hide(t, target, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("Add without a reason: %v", err)
	}
	if q, err := f.hide(t, target, "r"); err != nil || q.By != "" {
		t.Fatalf("Add = %+v, %v", q, err)
	}
	must.Succeed(t, f.service.Release(t.Context(), authority.Operator(), target))
	want := []authority.Act{
		{Caller: authority.Operator(), Action: "quarantine", ServerName: serverA, Version: "1.0.0", Note: "r"},
		{Caller: authority.Operator(), Action: "release", ServerName: serverA, Version: "1.0.0"},
	}
	wantEqual(t, f.people.acts, want, "recorded")
}

// TestList checks what each caller sees, and reads it in pages of every size.
func TestList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var all []string
	for i := range 120 { // more than an operator reads at once
		server := fmt.Sprintf("org.example/s%03d", i)
		f.publish(t, server, registry.RemoteURL("https://"+server))
		if _, err := f.hide(t, quarantining.Target{ServerName: server}, "r"); err != nil {
			t.Fatal(err)
		}
		f.grant(t, "many", registry.ActionReview, server)
		all = append(all, server+" ")
	}
	for _, target := range []quarantining.Target{
		{ServerName: serverB, Version: "2.0.0"}, {ServerName: serverB}, {ServerName: serverA, Version: "1.0.0"},
	} {
		if _, err := f.hide(t, target, "r"); err != nil {
			t.Fatal(err)
		}
	}
	example := []string{serverA + " 1.0.0", serverB + " ", serverB + " 2.0.0"}
	if _, err := f.service.List(t.Context(), as("risky"), quarantining.Query{}); !fault.Is(err, fault.Forbidden) ||
		err.Error() != "verify first" {
		t.Errorf("the list at HIGH_RISK: %v, want it refused", err)
	}
	for token, want := range map[string][]string{"ada": example, "bea": example[1:], "many": all, "low": example} {
		for _, limit := range []string{"", "1", "2", "7", "100"} {
			if got := f.readPages(t, token, limit); !slices.Equal(got, want) {
				t.Errorf("%s sees %q by %s, want %q", token, got, limit, want)
			}
		}
	}
	if list := f.readPages(t, "operator", ""); len(list) != 123 {
		t.Errorf("the operator's list has %d entries", len(list))
	}
}

// readPages returns all entries that a caller sees, page by page.
func (f *fixture) readPages(t *testing.T, token, limit string) (all []string) {
	t.Helper()
	q := quarantining.Query{Limit: limit}
	for {
		p, err := f.service.List(t.Context(), as(token), q)
		must.Succeed(t, err)
		for _, e := range p.Entries {
			all = append(all, e.Name.String()+" "+e.Version.String())
		}
		if q.Cursor = p.NextCursor; q.Cursor == "" {
			return all
		}
	}
}

func TestListErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	foreign := page.NewSealer([]byte(strings.Repeat("k", 32))).Seal([]byte("1\x00a\x00b"))
	for name, c := range map[string]struct {
		token string
		query quarantining.Query
		kind  fault.Kind
		word  string
	}{
		"no token":                 {"", quarantining.Query{}, fault.Unauthenticated, "token"},
		"no grant":                 {"eve", quarantining.Query{Limit: "x"}, fault.Forbidden, "review"},
		"a publisher":              {"publisher", quarantining.Query{}, fault.Forbidden, "person"},
		"limit 0":                  {"ada", quarantining.Query{Limit: "0"}, fault.Invalid, "limit"},
		"limit 101":                {"ada", quarantining.Query{Limit: "101"}, fault.Invalid, "limit"},
		"a text as limit":          {"ada", quarantining.Query{Limit: "x"}, fault.Invalid, "limit"},
		"no cursor":                {"ada", quarantining.Query{Cursor: "x"}, fault.Invalid, "cursor"},
		"a cursor of another list": {"ada", quarantining.Query{Cursor: foreign}, fault.Invalid, "cursor"},
	} {
		if _, err := f.service.List(t.Context(), as(c.token), c.query); !fault.Is(err, c.kind) ||
			!strings.Contains(err.Error(), c.word) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(f.people.acts) > 0 {
		t.Errorf("reads are recorded: %+v", f.people.acts)
	}
}

// fixedEntropy fills everything with zeros.
type fixedEntropy struct{}

func (fixedEntropy) Fill(p []byte) { clear(p) }

// TestReleaseNeedsFourEyes checks that no one releases what they published, also through a policy,
// neither the version nor its server; others and operators do (contract C-24).
func TestReleaseNeedsFourEyes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.grant(t, "bea", registry.ActionReview, serverA)
	f.publishAs(t, serverA, "3.0.0", "cem", "ada") // the makers of two policies
	for _, version := range []string{"3.0.0", ""} {
		if _, err := f.add(t, "ada", serverA, version, "it sends mail"); err != nil {
			t.Fatal(err)
		}
		if err := f.release(t, "ada", serverA, version); !fault.Is(err, fault.Forbidden) ||
			!strings.Contains(err.Error(), "published yourself, or through a policy") {
			t.Errorf("an own version %q: %v, want fault.Forbidden", version, err)
		}
		if n := len(f.people.acts); f.people.acts[n-1].Action != "release" || f.people.acts[n-1].Reason == "" {
			t.Errorf("the last act is %+v, want the refusal", f.people.acts[n-1])
		}
		if err := f.release(t, "bea", serverA, version); err != nil {
			t.Errorf("by another reviewer: %v", err)
		}
	}
	for _, version := range []string{"1.0.0", "3.0.0"} {
		if _, err := f.add(t, "ada", serverA, version, "it sends mail"); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.release(t, "ada", serverA, "1.0.0"); err != nil {
		t.Errorf("a version of somebody else: %v", err)
	}
	if err := f.service.Release(t.Context(), authority.Operator(), quarantining.Target{
		ServerName: serverA, Version: "3.0.0",
	}); err != nil {
		t.Errorf("an operator: %v", err)
	}
}

// publishAs stores a version for which people are responsible.
func (f *fixture) publishAs(t *testing.T, server, version string, people ...registry.Holder) {
	t.Helper()
	err := f.db.Atomically(t.Context(), func(ctx context.Context) error {
		draft, err := registry.ParseDraft(
			[]byte(`{"name":"` + server + `","description":"d","version":"` + version + `"}`))
		if err != nil {
			return err
		}
		doc, err := draft.Document()
		if err != nil {
			return err
		}
		releases, err := f.servers.Lock(ctx, doc.Name())
		if err != nil {
			return err
		}
		l := registry.NewLineage(doc.Name(), releases)
		if _, err := l.Publish(doc.Version(), epoch); err != nil {
			return err
		}
		return f.servers.Save(ctx, registrystore.ChangesOf(l, &doc, people...))
	})
	must.Succeed(t, err)
}

// wantEqual checks that both are deeply equal.
func wantEqual[V any](t *testing.T, got, want V, what string, args ...any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf(what+": got %v, want %v", append(args, got, want)...)
	}
}
