package reviewing_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// model is what a registry with review must contain: which document of each version was approved
// last, and which reviews exist.
type model struct {
	approved map[string]string // by version
	pending  map[registry.ReviewID]submitted
}

// submitted is a document with its version and submitter.
type submitted struct{ version, document, by string }

// TestNothingUnapprovedIsServed publishes, replaces, decides, deletes and deprecates at random, and
// compares what readers get with the model after each step: nothing unapproved is ever readable,
// four eyes hold, and the latest version is right at every moment.
func TestNothingUnapprovedIsServed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		fx := newFixture(t)
		m := &model{approved: map[string]string{}, pending: map[registry.ReviewID]submitted{}}
		versions := []string{"1.0.0", "1.1.0", "2.0.0-rc.1"}
		draw := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(rt, label) }
		n := 0
		body := func(version string) string {
			n++
			return document(serverName, version, fmt.Sprintf(`"title":"%d"`, n))
		}
		submit := func(o publishing.Outcome, err error, s submitted) {
			if err != nil {
				return
			}
			if o.Pending == "" {
				rt.Fatalf("%+v was not submitted for review", s)
			}
			for id, other := range m.pending { // what was pending is superseded
				if other.version == s.version {
					delete(m.pending, id)
				}
			}
			m.pending[o.Pending] = s
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(*rapid.T) {
				s := submitted{version: draw("version", versions...), by: draw("person", "ada", "eve")}
				s.document = body(s.version)
				o, err := fx.publish(t, s.by, s.document)
				submit(o, err, s)
			},
			"replace": func(*rapid.T) {
				s := submitted{version: draw("version", versions...), by: draw("person", "ada", "eve")}
				s.document = body(s.version)
				o, err := fx.replace(t, s.by, s.document, s.version)
				submit(o, err, s)
			},
			"decide": func(*rapid.T) {
				by, approve := draw("reviewer", "ada", "bea", "eve"), rapid.Bool().Draw(rt, "approve")
				for id, s := range m.pending {
					decide := fx.service.Reject
					if approve {
						decide = fx.service.Approve
					}
					_, err := decide(t.Context(), request(by), id, "x")
					allowed := by == "bea" || by == "ada" && s.by != "ada"
					if allowed == fault.Is(err, fault.Forbidden) {
						rt.Fatalf("%s decides about %+v: %v", by, s, err)
					}
					if err == nil {
						delete(m.pending, id)
						if approve {
							m.approved[s.version] = s.document
						}
					}
				}
			},
			"status": func(*rapid.T) {
				status := draw("status", "active", "deprecated", "deleted")
				_, _ = fx.publisher.SetStatus(t.Context(), request("ada"), publishing.Request{
					Body: []byte(`{"status":"` + status + `"}`),
				},
					// refused if there is nothing to change
					publishing.Target{Name: serverName, Version: draw("version", versions...)})
			},
			"": func(rt *rapid.T) { m.check(t, rt, fx) },
		})
	})
}

// check compares what readers get with the model.
func (m *model) check(t *testing.T, rt *rapid.T, fx *fixture) {
	fx.clock.Advance(time.Second)
	p, err := fx.servers.List(t.Context(), registrystore.Query{Limit: 100, Deleted: true})
	must.Succeed(rt, err)
	if len(p.Records) != len(m.approved) {
		rt.Fatalf("%d versions are served, want %d", len(p.Records), len(m.approved))
	}
	latest := 0
	var releases []registry.Release
	for _, r := range p.Records {
		if string(r.Document) != m.approved[r.Version.String()] {
			rt.Fatalf("%s is served with %s, want %s", r.Version, r.Document, m.approved[r.Version.String()])
		}
		if releases = append(releases, r.Release); r.Latest {
			latest++
		}
	}
	if len(releases) > 0 && latest != 1 {
		rt.Fatalf("%d versions are latest, want one", latest)
	}
	pending, err := fx.service.List(t.Context(), authority.Operator(), reviewing.Query{Limit: "100"})
	if err != nil || len(pending.Reviews) != len(m.pending) {
		rt.Fatalf("%d reviews are pending, %v, want %d", len(pending.Reviews), err, len(m.pending))
	}
	for _, r := range pending.Reviews {
		if string(r.Document) != m.pending[r.ID].document {
			rt.Fatalf("review %s has %s, want %s", r.ID, r.Document, m.pending[r.ID].document)
		}
	}
	if len(releases) == 0 {
		return
	}
	// A lineage that computes the latest version again has nothing to change.
	l := registry.NewLineage(releases[0].Name, releases)
	for _, r := range releases {
		if r.Status != registry.StatusDeleted {
			if _, err := l.Replace(r.Version, fx.clock.Now()); err != nil {
				rt.Fatal(err)
			}
		}
	}
	for _, r := range l.Changes() {
		for _, before := range releases {
			if r.Version == before.Version && r.Latest != before.Latest {
				rt.Fatalf("%s is the latest: %v, want %v", r.Version, before.Latest, r.Latest)
			}
		}
	}
}
