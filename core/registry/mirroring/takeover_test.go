package mirroring_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authority/authoritytest"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/test/must"
)

// noActs records nothing.
type noActs struct{}

func (noActs) Record(context.Context, authority.Act) error { return nil }

// publishBy publishes a version of a server as a person, a minute later.
func (fx *fixture) publishBy(who, server, version string) (publishing.Outcome, error) {
	fx.t.Helper()
	fx.clock.Advance(time.Minute)
	return fx.publisher.Publish(fx.t.Context(), authoritytest.Person(who), publishing.Request{
		Body: fmt.Appendf(nil, `{"name":%q,"description":"Ours","version":%q}`, server, version),
	})
}

// newTaken returns a registry whose mirror has the versions 1.0.0 and 2.0.0, which is deprecated,
// of a server that ada may publish.
func newTaken(t *testing.T, review bool, more ...recordsource.Entry) *fixture {
	t.Helper()
	fx := newFixture(t, review, mirror.Draft{Include: []string{"*", "com.corp/*"}, Review: string(mirror.Trusted)})
	fx.grant(registry.ActionPublish, "com.corp/*")
	fx.upstream.entries = append(active("com.corp/x", "com.free/x"),
		entry("com.corp/x", "2.0.0", registry.StatusDeprecated, ""))
	fx.upstream.entries = append(fx.upstream.entries, more...)
	if _, _, err := fx.sync(mirroring.Options{}); err != nil {
		t.Fatal(err)
	}
	fx.wantEvents("published com.corp/x@1.0.0", "published com.free/x@1.0.0", "published com.corp/x@2.0.0")
	return fx
}

const shadowed = "shadowed com.corp/x: com.corp/x was published here, and what is here comes first"

// TestLocalPublicationWins publishes a server that a mirror had first (contract C-72).
func TestLocalPublicationWins(t *testing.T) {
	t.Parallel()
	for version, want := range map[string][]string{
		"3.0.0": {
			"com.corp/x@1.0.0 deleted local", "com.corp/x@2.0.0 deleted local", "com.corp/x@3.0.0 active local",
			"com.free/x@1.0.0 active",
		},
		"1.0.0": {"com.corp/x@1.0.0 active local", "com.corp/x@2.0.0 deleted local", "com.free/x@1.0.0 active"},
	} {
		fx := newTaken(t, false)
		fx.audit.changes = nil
		o, err := fx.publishBy("ada", "com.corp/x", version)
		if err != nil || !o.Latest || !o.PublishedAt.Equal(o.UpdatedAt) || o.Origin != (registry.Origin{}) {
			t.Fatalf("publish %s = %+v, %v", version, o, err)
		}
		fx.wantListed(want...)
		fx.wantEvents("status com.corp/x@", "published com.corp/x@"+version)
		for _, c := range fx.audit.changes {
			if c.Action != "mirror_status" || c.Details.Text("mirror") != "corp" ||
				c.Details.Text("serverName") != "com.corp/x" {
				t.Errorf("the audit log has %+v", c)
			}
		}
		if ended := len(want) - 2; len(fx.audit.changes) != ended {
			t.Errorf("the audit log has %+v, want %d", fx.audit.changes, ended)
		}
		for range 2 {
			if s := fx.wantSync(mirroring.Options{Full: true}, shadowed); s.Servers != 1 {
				t.Errorf("the summary is %+v", s)
			}
		}
		fx.wantListed(want...)
		if _, err := fx.publishBy("ada", "com.corp/x", "4.0.0"); err != nil {
			t.Error(err)
		}
		fx.wantEvents("published com.corp/x@4.0.0")
	}
}

// TestWhoWinsNames checks that only a person with a grant to publish that is not over everything
// wins.
func TestWhoWinsNames(t *testing.T) {
	t.Parallel()
	fx := newTaken(t, false)
	add := func(holder registry.Holder, action registry.Action, pattern string) {
		if err := fx.grants.Add(t.Context(), registry.GrantRecord{Grant: registry.Grant{
			Holder: holder, Action: action, Pattern: fx.pattern(pattern),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	add("all", registry.ActionPublish, "*")
	add("all", registry.ActionEdit, "com.corp/*")
	add("all", registry.ActionReview, "com.corp/*")
	if _, err := fx.publishBy("all", "com.corp/x", "3.0.0"); !fault.Is(err, fault.Forbidden) ||
		!strings.Contains(err.Error(), "the mirror corp") {
		t.Errorf("with a grant over everything: %v", err)
	}
	target := publishing.Target{Name: "com.corp/x", Version: "1.0.0"}
	put := publishing.Request{Body: []byte(`{"name":"com.corp/x","description":"Ours","version":"1.0.0"}`)}
	if _, err := fx.publisher.Replace(t.Context(), authoritytest.Person("all"), put, target); !fault.Is(err,
		fault.Forbidden) {
		t.Errorf("PUT: %v", err)
	}
	fx.wantEvents()
}

// TestTakeoverAndQuarantine checks that a takeover is refused for what is in quarantine, and that
// the release of a version that it ended leaves it deleted.
func TestTakeoverAndQuarantine(t *testing.T) {
	t.Parallel()
	fx := newTaken(t, false)
	server := quarantining.Target{ServerName: "com.corp/x"}
	one := quarantining.Target{ServerName: "com.corp/x", Version: "1.0.0"}
	fx.hide(server)
	fx.hide(one)
	for _, version := range []string{"3.0.0", "1.0.0"} {
		if _, err := fx.publishBy("ada", "com.corp/x", version); !fault.Is(err, fault.Forbidden) ||
			!strings.Contains(err.Error(), "it sends mail") {
			t.Errorf("publish %s of what is in quarantine: %v", version, err)
		}
	}
	fx.release(server)
	if _, err := fx.publishBy("ada", "com.corp/x", "3.0.0"); err != nil {
		t.Fatal(err)
	}
	fx.release(one)
	fx.wantListed("com.corp/x@1.0.0 deleted local", "com.corp/x@2.0.0 deleted local", "com.corp/x@3.0.0 active local",
		"com.free/x@1.0.0 active")
}

// TestTakeoverWithReview checks that the mirror goes on until the document is approved, and does
// not touch what waits.
func TestTakeoverWithReview(t *testing.T) {
	t.Parallel()
	fx := newTaken(t, true)
	o, err := fx.publishBy("ada", "com.corp/x", "1.0.0")
	if err != nil || o.Pending == "" || o.Latest {
		t.Fatalf("publish = %+v, %v", o, err)
	}
	mirrored := []string{"com.corp/x@1.0.0 active", "com.corp/x@2.0.0 deprecated", "com.free/x@1.0.0 active"}
	fx.wantListed(mirrored...)
	fx.wantEvents("review.submitted com.corp/x@1.0.0")
	fx.upstream.entries[0] = entry("com.corp/x", "1.0.0", registry.StatusActive, " and more")
	fx.wantSync(mirroring.Options{Full: true}, "replaced com.corp/x@1.0.0")
	fx.wantEvents("replaced com.corp/x@1.0.0")
	fx.approve(o.Pending)
	fx.wantListed("com.corp/x@1.0.0 active local", "com.corp/x@2.0.0 deleted local", "com.free/x@1.0.0 active")
	fx.wantEvents("status com.corp/x@", "approved com.corp/x@1.0.0", "published com.corp/x@1.0.0")
	fx.wantSync(mirroring.Options{Full: true}, shadowed)
}

// TestReviewsOfTakenServers checks that a takeover ends the reviews of the mirror, and that the
// mirror does not end those of a person.
func TestReviewsOfTakenServers(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, true, mirror.Draft{Include: []string{"com.corp/*"}})
	fx.grant(registry.ActionPublish, "com.corp/*")
	fx.upstream.entries = active("com.corp/x")
	fx.wantSync(mirroring.Options{}, "submitted com.corp/x@1.0.0")
	approve := func(server, version string) {
		t.Helper()
		list, err := fx.reviews.List(t.Context(), authority.Operator(), reviewing.Query{})
		must.Succeed(t, err)
		i := slices.IndexFunc(list.Reviews, func(r review.Shown) bool {
			return r.Name.String() == server && r.Version.String() == version
		})
		fx.approve(list.Reviews[i].ID)
	}
	approve("com.corp/x", "1.0.0")
	fx.upstream.entries = append(active("com.corp/x", "com.corp/y"),
		entry("com.corp/x", "2.0.0", registry.StatusActive, ""))
	fx.wantSync(mirroring.Options{}, "submitted com.corp/x@2.0.0", "submitted com.corp/y@1.0.0")
	for server, version := range map[string]string{"com.corp/x": "9.0.0", "com.corp/z": "1.0.0"} {
		if o, err := fx.publishBy("ada", server, version); err != nil || o.Pending == "" {
			t.Fatal(o, err)
		}
	}
	fx.upstream.entries = append(fx.upstream.entries, active("com.corp/z")...)
	fx.wantSync(mirroring.Options{},
		"shadowed com.corp/z@1.0.0: a document of this version that was submitted here waits for review")
	approve("com.corp/x", "9.0.0")
	waiting, err := fx.reviews.List(t.Context(), authority.Operator(), reviewing.Query{})
	if err != nil || len(waiting.Reviews) != 2 || waiting.Reviews[0].Name.String() != "com.corp/y" ||
		waiting.Reviews[1].Name.String() != "com.corp/z" {
		t.Errorf("waiting are %+v, %v", waiting.Reviews, err)
	}
	fx.wantListed("com.corp/x@1.0.0 deleted local", "com.corp/x@9.0.0 active local")
}
