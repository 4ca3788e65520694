package declaring_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
	"github.com/tollgate-dev/tollgate/core/registry/event"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/core/registry/service"
	"github.com/tollgate-dev/tollgate/core/registry/view"
	"github.com/tollgate-dev/tollgate/core/scope"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestExportChangesNothing makes random objects by hand and by files, and checks that what is
// exported changes nothing when any owner applies it.
func TestExportChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		fx := newFixture(t)
		for range rapid.IntRange(0, 40).Draw(r, "objects") {
			makers := []func(*rapid.T, *fixture, string) error{
				makeGrant, makeService, makePolicy, makeView, makeMirror, makeWebhook, makeRule,
			}
			owner := rapid.SampledFrom([]string{"", "team", "other"}).Draw(r, "owner")
			_ = rapid.SampledFrom(makers).Draw(r, "kind")(r, fx, owner) // it may exist, or be refused
		}
		fx.clock.Advance(2 * time.Hour) // policies have expired
		exported, err := fx.Export(t.Context(), "")
		must.Succeed(r, err)
		fx.log.changes = nil
		for _, owner := range []string{"team", "fresh"} {
			got, err := fx.applyDocument(declaring.Request{Document: toNode(exported), Owner: owner})
			if err != nil || strings.Contains(got, "{") {
				r.Fatalf("the export applied by %s: %v\n%s", owner, err, got)
			}
		}
		own, err := fx.Export(t.Context(), "team")
		must.Succeed(r, err)
		got, err := fx.applyDocument(declaring.Request{Document: toNode(own), Owner: "team"})
		if err != nil || strings.Contains(got, "{") {
			r.Fatalf("the export of the owner: %v\n%s", err, got)
		}
		if len(fx.log.changes) != 0 {
			r.Fatalf("recorded %+v", fx.log.changes)
		}
	})
}

// TestExportsOfEqualSites applies one document to two sites on which people have other ids: the exports
// are the same text, ordered by what the document names.
func TestExportsOfEqualSites(t *testing.T) {
	var exports []string
	for _, ids := range [][2]registry.Holder{{"p1", "p2"}, {"p2", "p1"}} {
		fx := newFixture(t)
		ports := fx.ports
		ports.People = func(context.Context) (map[registry.Holder]string, error) {
			return map[registry.Holder]string{ids[0]: "ana@example.com", ids[1]: "bo@example.com"}, nil
		}
		fx.Service = declaring.New(ports)
		fx.mustApply(declaring.Request{}, `'grants':[{'person':'bo@example.com','action':'edit','resource':'com.b/*'},
			{'person':'ana@example.com','action':'publish','resource':'com.a/*'},
			{'person':'bo@example.com','action':'publish','resource':'com.a/*'}],
			'webhooks':[{'url':'https://b.example','events':['status']},{'url':'https://a.example','events':['status']}]`)
		exported, err := fx.Export(t.Context(), "")
		must.Succeed(t, err)
		exports = append(exports, marshal(t, exported))
	}
	if exports[0] != exports[1] {
		t.Errorf("the exports differ:\n%s\n%s", exports[0], exports[1])
	}
	at := -1
	for _, part := range []string{
		"'person':'ana@", "'action':'edit','person':'bo@", "'action':'publish','person':'bo@", "https://a.", "https://b.",
	} {
		next := strings.Index(exports[0], part)
		if next <= at {
			t.Errorf("%s is at %d, after %d, of %s", part, next, at, exports[0])
		}
		at = next
	}
}

var somePattern = rapid.SampledFrom([]string{"*", "com.example/*", "com.example.data/a", "io.github.acme/*"})

func somePatterns(r *rapid.T, name string) []string {
	return rapid.SliceOfN(somePattern, 0, 3).Draw(r, name)
}

func one(r *rapid.T, name string, values ...string) string {
	return rapid.SampledFrom(values).Draw(r, name)
}

func makeGrant(r *rapid.T, fx *fixture, owner string) error {
	holder := registry.Holder(one(r, "holder", "p1", "p2", "gone", "service:a", "service:gone"))
	g, err := registry.ParseGrant(holder, one(r, "action", "publish", "edit", "operate"), somePattern.Draw(r, "resource"))
	if err != nil {
		return err
	}
	_, err = fx.ports.GrantChanges.Create(fx.t.Context(), registry.GrantRecord{Grant: g, ManagedBy: owner})
	return err
}

func makeService(r *rapid.T, fx *fixture, owner string) error {
	d := service.Draft{
		Name: one(r, "name", "a", "b"), Description: one(r, "description", "", "x \u00e4"), State: one(r, "state", "", "disabled"),
	}
	for range rapid.IntRange(0, 2).Draw(r, "workloads") {
		d.Workloads = append(d.Workloads, service.WorkloadDraft{
			Issuer: "https://ci.example.com", Subject: one(r, "subject", "a", "job:*"), Audience: one(r, "audience", "", "here"),
			Claims: map[string]string{"branch": "main"}, Scopes: []string{string(scope.Publish), string(scope.Edit)},
		})
	}
	a, err := fx.services.Parse(d)
	if err != nil {
		return err
	}
	a.ManagedBy = owner
	_, _, err = fx.services.Put(fx.t.Context(), a, nil)
	return err
}

func makePolicy(r *rapid.T, fx *fixture, owner string) error {
	d := publisher.Draft{ManagedBy: owner, Owner: registry.Holder(one(r, "person", "", "p1", "gone"))}
	if rapid.Bool().Draw(r, "expires") {
		d.ExpiresAt = epoch.Add(time.Hour)
	}
	switch d.Method = one(r, "method", "dns", "oidc", "github-oidc"); d.Method {
	case "dns":
		d.Domain, d.Pattern = "example.com", one(r, "pattern", "com.example/*", "com.example/a")
		d.KeyFingerprint = one(r, "key", "", "ed25519:AAAABBBB")
	default:
		d.Pattern, d.Claims = somePattern.Draw(r, "pattern"), map[string]string{"repository": one(r, "repository", "a/b", "c/d")}
		d.Issuer = map[string]string{"oidc": "https://ci.example.com"}[d.Method]
	}
	d.Actions = rapid.SampledFrom([][]string{nil, {"publish"}, {"status", "publish"}}).Draw(r, "actions")
	_, err := fx.ports.Policies.Add(fx.t.Context(), authority.Operator(), d)
	return err
}

func makeView(r *rapid.T, fx *fixture, owner string) error {
	d := view.Draft{
		Name: one(r, "name", "a", "b", "c"), Include: somePatterns(r, "include"), Exclude: somePatterns(r, "exclude"),
		Deprecated: one(r, "deprecated", "", "hide"), Access: one(r, "access", "", "token", "people"), ManagedBy: owner,
	}
	if d.Access == "people" {
		d.Groups = rapid.SampledFrom([][]string{nil, {"acme/devs", "acme/ops"}}).Draw(r, "groups")
		d.People = rapid.SampledFrom([][]string{nil, {"ada@example.com"}}).Draw(r, "people")
	}
	_, _, err := fx.views.Put(fx.t.Context(), d, nil)
	return err
}

func makeMirror(r *rapid.T, fx *fixture, owner string) error {
	_, _, err := fx.mirrors.Put(fx.t.Context(), mirror.Draft{
		Name: one(r, "name", "a", "b"), URL: one(r, "url", "https://a.example", "https://a.example/registries/v/t/tgview_1/"),
		Include: somePatterns(r, "include"), Exclude: somePatterns(r, "exclude"), Review: one(r, "review", "", "trusted"),
		Interval:  time.Duration(rapid.IntRange(0, 3).Draw(r, "hours")) * 90 * time.Minute,
		Flags:     mirror.Flags{Lenient: rapid.Bool().Draw(r, "lenient")},
		ManagedBy: owner,
	}, nil)
	return err
}

func makeWebhook(r *rapid.T, fx *fixture, owner string) error {
	_, _, err := fx.ports.Webhooks.Add(fx.t.Context(), event.Draft{
		URL: one(r, "url", "https://a.example", "https://b.example/x?y=z"), Pattern: somePattern.Draw(r, "pattern"),
		Events:    rapid.SampledFrom([][]string{{"status"}, {"status", "published"}, {"published", "status"}}).Draw(r, "events"),
		ManagedBy: owner,
	})
	return err
}

func makeRule(r *rapid.T, fx *fixture, owner string) error {
	_, err := fx.ports.Reviews.AddRule(fx.t.Context(), reviewing.RuleDraft{
		Pattern: somePattern.Draw(r, "pattern"), Publisher: one(r, "publisher", "", "p1", "gone"),
		When: one(r, "when", "any", "same-origins"), ManagedBy: owner,
	})
	return err
}
