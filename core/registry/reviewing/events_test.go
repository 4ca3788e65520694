package reviewing_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// wantEvents checks the events since the last call.
func (fx *fixture) wantEvents(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := eventdatatest.Take(t, fakedb.NewDeliveries(fx.db)); !slices.Equal(got, want) {
		t.Errorf("%s: the events are %q, want %q", what, got, want)
	}
}

// TestDecisionsAreEvents checks that an approval is an event before that of its document, a
// rejection one alone, and that what waits has one, too (contract C-50).
func TestDecisionsAreEvents(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(fx.db))
	at := serverName + "@1.0.0 "
	first := fx.submit(t, "ada", document(serverName, "1.0.0"))
	fx.wantEvents(t, "a document that waits", "review.submitted "+at+"pending")
	if _, err := fx.service.Approve(t.Context(), request("ada"), first.Pending, ""); err == nil {
		t.Error("a submitter approves the own document")
	}
	fx.wantEvents(t, "an approval that is refused")
	fx.approve(t, "bea", first.Pending)
	fx.wantEvents(t, "an approval", "approved "+at+"approved", "published "+at+"active "+document(serverName, "1.0.0"))
	if _, err := fx.service.Approve(t.Context(), request("bea"), first.Pending, "fine"); err == nil {
		t.Error("a review is approved twice")
	}
	fx.wantEvents(t, "a second approval")

	fx.decideReplacement(t, `"title":"One"`, false)
	fx.wantEvents(t, "a replacement that is rejected", "review.submitted "+at+"pending", "rejected "+at+"rejected")
	fx.decideReplacement(t, `"title":"Two"`, true)
	fx.wantEvents(t, "a replacement that is approved", "review.submitted "+at+"pending", "approved "+at+"approved",
		"replaced "+at+"active "+document(serverName, "1.0.0", `"title":"Two"`))
}

// decideReplacement submits a replacement of the version 1.0.0 with a property, and decides it as
// an operator.
func (fx *fixture) decideReplacement(t *testing.T, property string, approve bool) {
	t.Helper()
	o, err := fx.replace(t, "ada", document(serverName, "1.0.0", property), "1.0.0")
	must.Succeed(t, err)
	decide := fx.service.Reject
	if approve {
		decide = fx.service.Approve
	}
	if shown, err := decide(t.Context(), authority.Operator(), o.Pending, "as asked"); err != nil ||
		(shown.State == review.Approved) != approve {
		t.Fatalf("the decision is %+v, %v", shown, err)
	}
}
