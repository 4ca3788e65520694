package inprocess_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/audit"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/oauth"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/toolserver"
	"github.com/tollgate-dev/tollgate/ports/accessstore"
	"github.com/tollgate-dev/tollgate/ports/authorization"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// listed are servers as decisions know them.
type listed []access.Listing

func (listed) Snapshot(ctx context.Context, do func(context.Context) error) error { return do(ctx) }
func (listed) Changed(context.Context, string) (c accessstore.Changes, err error) { return c, nil }
func (listed) Named(context.Context, []string) ([]access.Listing, error)          { return nil, nil }
func (l listed) Page(context.Context, string) ([]access.Listing, string, error)   { return l, "", nil }
func (listed) AddCalls(context.Context, int64, []accessstore.Calls) error         { return nil }
func (listed) CallsOf(context.Context, string, int64) (c accessstore.Calls, err error) {
	return c, nil
}

// still is a registry that does not change.
type still struct{}

func (still) Revision(context.Context) (r registrystore.Revision, err error) { return r, nil }
func (still) ValidFor() time.Duration                                        { return time.Second }
func (still) AwayAfter() time.Duration                                       { return time.Minute }
func (still) Hint() uint64                                                   { return 0 }
func (still) Removals(uint64) ([]string, uint64, bool)                       { return nil, 0, false }

// versions are the versions of each server, the newest first.
type versions struct {
	registrystore.ServerReader
	documents map[string][]string
	reads     *int
}

func (v versions) Versions(_ context.Context, q registrystore.VersionsQuery) (page registrystore.Page, err error) {
	*v.reads++
	all := v.documents[q.Name.String()]
	for i, text := range all {
		r := registry.Record{Document: []byte(text)}
		r.Name = q.Name
		if r.Version, err = registry.ParseVersion(fmt.Sprintf("1.0.%d", len(all)-i)); err != nil {
			return page, err
		}
		page.Records = append(page.Records, r)
	}
	return page, nil
}

// reviews are approved ones by the versions.
type reviews struct {
	registrystore.Reviews
	by map[string]string
}

func (r reviews) List(_ context.Context, q registrystore.ReviewQuery) (page registrystore.ReviewPage, err error) {
	for text, by := range r.by {
		version, err := registry.ParseVersion(text)
		if err != nil || q.State != review.Approved {
			return page, err
		}
		page.Reviews = append(page.Reviews, review.Review{Name: q.Name, Version: version, DecidedBy: by, State: review.Approved})
	}
	return page, nil
}

// TestGate has what the authorization server learns of the servers of a resource, and whether a person could
// call them.
func TestGate(t *testing.T) {
	t.Parallel()
	db, clk := fakedb.New(), clocktest.NewManual(noon)
	none := func() uint64 { return 0 }
	must.Succeed(t, fakedb.NewAccounts(db).Create(t.Context(), auth.Account{ID: "ada", Email: "ada@example.com", State: auth.AccountActive}))
	name := func(text string) toolserver.Name {
		n, err := toolserver.ParseName(text)
		must.Succeed(t, err)
		return n
	}
	weather, twin := name("com.example/weather"), name("org.other/twin")
	rule, err := access.ParseRule(rulesOf("com.example/*", "vscode"))
	must.Succeed(t, err)
	rules := fakedb.NewAccessRules(db)
	must.Succeed(t, rules.Save(t.Context(), rule))
	reads := 0
	gate := inprocess.NewGate(inprocess.GatePorts{
		Decisions: deciding.New(deciding.Config{StaleMax: time.Minute}, deciding.Ports{
			Rules: rules, Changes: still{}, Members: newMembers(db, clk, none), Clock: clk,
			Servers: listed{{Name: weather, Remotes: []string{toolURL + "/"}}, {Name: twin, Withdrawn: []string{toolURL}, Quarantined: true}},
		}),
		Servers: versions{reads: &reads, documents: map[string][]string{weather.String(): {
			`{"title": "New weather", "remotes": [{"type": "streamable-http", "url": "https://new.example.com/mcp"}]}`,
			`{"title": "Weather", "remotes": [{"type": "streamable-http", "url": "HTTPS://tools.example.com/mcp"}]}`,
		}}},
		Reviews: reviews{by: map[string]string{"1.0.1": "rita", "1.0.2": ""}}, Clock: clk, Changes: none,
	})
	for range 2 {
		all, err := gate.Servers(t.Context(), toolURL, []toolserver.Name{weather})
		want := oauth.Server{
			Name: weather, Title: "Weather", URL: toolURL, Publisher: "com.example", Listed: true, Reviewed: true,
		}
		if err != nil || len(all) != 1 || all[0] != want {
			t.Errorf("the named server is %+v, %v", all, err)
		}
	}
	if reads != 1 {
		t.Errorf("%d reads", reads)
	}
	all, err := gate.Servers(t.Context(), toolURL, nil)
	if err != nil || len(all) != 2 || oauth.Closed(all) == "" || all[1].Name != twin || !all[1].Quarantined || all[1].Listed {
		t.Errorf("all servers are %+v, %v", all, err)
	}
	if all, err = gate.Servers(t.Context(), "https://new.example.com/mcp", []toolserver.Name{weather}); err != nil || all[0].Listed || all[0].Reviewed {
		t.Errorf("of a version that is not listed any more: %+v, %v", all, err)
	}
	for client, want := range map[oauth.ClientID]bool{"vscode": true, "other": false} {
		if _, ok, err := gate.Permits(t.Context(), authorization.Question{UserID: "ada", Client: client, Server: weather}); err != nil || ok != want {
			t.Errorf("%s: %v, %v", client, ok, err)
		}
	}
}

func rulesOf(servers, client string) audit.Details {
	return audit.Details{
		"name": audit.Text("r"), "order": audit.Number(1), "effect": audit.Text("allow"), "subjects": audit.Texts([]string{"everyone"}),
		"servers": audit.Texts([]string{servers}), "clients": audit.Texts([]string{client}),
	}
}
