package mirroring_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
	"github.com/tollgate-dev/tollgate/core/registry/mirroring"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/core/registry/reviewing"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/recordsource"
	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/test/must"
)

// pending returns the reviews that wait.
func (fx *fixture) pending() []review.Shown {
	fx.t.Helper()
	p, err := fx.reviews.List(fx.t.Context(), authority.Operator(), reviewing.Query{State: "pending", Limit: "100"})
	must.Succeed(fx.t, err)
	return p.Reviews
}

func TestDocumentsOfMirrorsWaitForReview(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, true, mirror.Draft{})
	fx.upstream.entries = active("com.example/a", "com.example/b")
	fx.wantSync(mirroring.Options{}, "submitted com.example/a@1.0.0", "submitted com.example/b@1.0.0")
	fx.wantListed()
	fx.wantEvents("review.submitted com.example/a@1.0.0", "review.submitted com.example/b@1.0.0")
	fx.wantSync(mirroring.Options{Full: true})
	waiting := fx.pending()
	if len(waiting) != 2 || waiting[0].Submitter.Key != "mirror:corp" || waiting[0].Kind != review.NewServer {
		t.Fatalf("waiting: %+v", waiting)
	}
	fx.approve(waiting[0].ID)
	if _, err := fx.reviews.Reject(t.Context(), authority.Operator(), waiting[1].ID, "not for us"); err != nil {
		t.Fatal(err)
	}
	fx.wantListed("com.example/a@1.0.0 active")
	fx.wantEvents("approved com.example/a@1.0.0", "rejected com.example/b@1.0.0", "published com.example/a@1.0.0")
	found, err := fx.servers.List(t.Context(), registrystore.Query{Limit: 1})
	if err != nil || !found.Records[0].PublishedAt.Equal(epoch.AddDate(-1, 0, 5)) ||
		found.Records[0].Origin.Mirror != "corp" {
		t.Errorf("the approved version is %+v, %v", found.Records, err)
	}
	fx.wantSync(mirroring.Options{Full: true}) // what was rejected is not submitted again

	fx.upstream.entries = []recordsource.Entry{
		entry("com.example/a", "1.0.0", registry.StatusDeprecated, " and more"),
		entry("com.example/b", "1.0.0", registry.StatusActive, " and less"),
	}
	fx.wantSync(mirroring.Options{Full: true}, "submitted com.example/a@1.0.0",
		"status com.example/a@1.0.0: deprecated", "submitted com.example/b@1.0.0")
	fx.wantListed("com.example/a@1.0.0 deprecated")
	for _, r := range fx.pending() {
		fx.approve(r.ID)
	}
	fx.wantListed("com.example/a@1.0.0 deprecated", "com.example/b@1.0.0 active")
	fx.wantSync(mirroring.Options{Full: true})
}

func TestPendingDocumentsFollowTheOtherRegistry(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, true, mirror.Draft{})
	fx.upstream.entries = active("com.example/a", "com.example/b", "com.example/c")
	fx.wantSync(mirroring.Options{}, "submitted com.example/a@1.0.0", "submitted com.example/b@1.0.0",
		"submitted com.example/c@1.0.0")
	fx.upstream.entries = []recordsource.Entry{
		entry("com.example/a", "1.0.0", registry.StatusActive, " and more"),
		entry("com.example/b", "1.0.0", registry.StatusDeleted, ""), active("com.example/c")[0],
	}
	fx.wantSync(mirroring.Options{Full: true}, "submitted com.example/a@1.0.0")
	waiting := fx.pending()
	if len(waiting) != 2 || waiting[0].Name.String() != "com.example/c" || waiting[1].Name.String() != "com.example/a" {
		t.Fatalf("waiting: %+v", waiting)
	}
	fx.wantListed()
	fx.upstream.entries[1] = active("com.example/b")[0]
	fx.wantSync(mirroring.Options{Full: true}, "submitted com.example/b@1.0.0")
	if _, err := fx.Remove(t.Context(), "corp", false, nil); err != nil {
		t.Fatal(err)
	}
	if left := fx.pending(); len(left) > 0 {
		t.Errorf("after the removal of the mirror, %d reviews wait", len(left))
	}
	if _, err := fx.reviews.Approve(t.Context(), authority.Operator(), waiting[0].ID, ""); !fault.Is(err,
		fault.Conflict) {
		t.Errorf("an approval after the removal of the mirror returned %v", err)
	}
	fx.wantListed()
}

// TestLocalServersBeforeApproval checks that a document of a mirror is not listed in a server that
// was published here while the document waited.
func TestLocalServersBeforeApproval(t *testing.T) {
	t.Parallel()
	fx := newFixture(t, true, mirror.Draft{})
	fx.upstream.entries = active("com.example/a")
	fx.wantSync(mirroring.Options{}, "submitted com.example/a@1.0.0")
	fx.publishLocal("com.example/a", "0.1.0")
	if _, err := fx.reviews.Approve(t.Context(), authority.Operator(), fx.pending()[0].ID, ""); !fault.Is(err,
		fault.Conflict) {
		t.Errorf("the approval returned %v, want fault.Conflict", err)
	}
	fx.wantListed("com.example/a@0.1.0 active local")
}

func TestTrustedMirrorsAndRulesNeedNoReview(t *testing.T) {
	t.Parallel()
	trusted := newFixture(t, true, mirror.Draft{Review: "trusted"})
	trusted.upstream.entries = active("com.example/a")
	trusted.wantSync(mirroring.Options{}, "added com.example/a@1.0.0")

	fx := newFixture(t, true, mirror.Draft{})
	if _, err := fx.reviews.AddRule(t.Context(), reviewing.RuleDraft{
		Pattern: "com.example/*", Publisher: "mirror:corp", When: "any",
	}); err != nil {
		t.Fatal(err)
	}
	fx.upstream.entries = active("com.example/a", "org.example/b")
	fx.wantSync(mirroring.Options{}, "added com.example/a@1.0.0", "submitted org.example/b@1.0.0")
	fx.wantListed("com.example/a@1.0.0 active")
	fx.wantEvents("approved com.example/a@1.0.0", "review.submitted org.example/b@1.0.0", "published com.example/a@1.0.0")
}
