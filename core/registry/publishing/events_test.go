package publishing_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/core/registry/review"
	"github.com/tollgate-dev/tollgate/ports/eventdata/eventdatatest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
	"github.com/tollgate-dev/tollgate/test/must"
)

// wantEvents checks the events since the last call.
func (w *fixture) wantEvents(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := eventdatatest.Take(t, fakedb.NewDeliveries(w.runner.db)); !slices.Equal(got, want) {
		t.Errorf("%s: the events are %q, want %q", what, got, want)
	}
}

// TestChangesAreEvents checks that each change has its event, once and with the document and the
// status that readers get, also if its transaction runs twice; and that a change that is refused or
// rolled back has none (contract C-50).
func TestChangesAreEvents(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish, registry.ActionEdit)
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(w.runner.db))
	w.runner.twice = true
	titled := document("1.0.0", `"title":"New"`)
	at := serverName + "@"
	for _, c := range []struct {
		what string
		call func(*fixture) error
		want []string
	}{
		{
			"publish", publishCall(trustedToken, document("1.0.0")), []string{
				"published " + at + "1.0.0 active " + document("1.0.0"),
			},
		},
		{
			"publish a second version", publishCall(trustedToken, document("2.0.0")), []string{
				"published " + at + "2.0.0 active " + document("2.0.0"),
			},
		},
		{"replace", replaceCall(trustedToken, titled, "1.0.0"), []string{"replaced " + at + "1.0.0 active " + titled}},
		{
			"status", statusCall(trustedToken, `{"status":"deprecated"}`, "1.0.0"), []string{
				"status " + at + "1.0.0 deprecated " + titled,
			},
		},
		{
			"status of all", statusAllCall(trustedToken, `{"status":"deprecated","statusMessage":"old"}`), []string{
				"status " + at + " 2 versions, 2 documents",
			},
		},
		{"delete", deleteCall(trustedToken, "2.0.0"), []string{"status " + at + "2.0.0 deleted " + document("2.0.0")}},
	} {
		if err := c.call(w); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
		w.wantEvents(t, c.what, c.want...)
	}
	for name, call := range map[string]func(*fixture) error{
		"publish again":         publishCall(trustedToken, document("1.0.0")),
		"publish by a stranger": publishCall("stranger", document("3.0.0")),
		"replace a missing one": replaceCall(trustedToken, document("3.0.0"), "3.0.0"),
		"the same status":       statusCall(trustedToken, `{"status":"deprecated","statusMessage":"old"}`, "1.0.0"),
	} {
		if err := call(w); err == nil {
			t.Errorf("%s is not refused", name)
		}
		w.wantEvents(t, name)
	}
	w.runner.atEnd = fault.New(fault.Unavailable, "the database is away")
	for name, call := range map[string]func(*fixture) error{
		"publish, rolled back": publishCall(trustedToken, document("3.0.0")),
		"replace, rolled back": replaceCall(trustedToken, document("1.0.0"), "1.0.0"),
		"status, rolled back":  statusAllCall(trustedToken, `{"status":"active"}`),
	} {
		wantFault(t, call(w), fault.Unavailable, "%s", name)
		w.wantEvents(t, name)
	}
}

// TestReviewedEvents checks that a document that waits for review has an event of its own, and one that a rule
// approves has the event of the review before its own (contract C-50).
func TestReviewedEvents(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{Review: true, PendingMax: 5}, registry.ActionPublish, registry.ActionEdit)
	eventdatatest.AddWebhook(t, fakedb.NewWebhooks(w.runner.db))
	at := serverName + "@1.0.0 "
	must.Succeed(t, publishCall(trustedToken, document("1.0.0"))(w))
	w.wantEvents(t, "a document that waits", "review.submitted "+at+"pending")
	if err := w.rules.Add(t.Context(), review.Rule{
		ID: "rule", Pattern: mustPattern(t, "*"), When: review.Any,
	}); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, publishCall(trustedToken, document("1.0.0"))(w))
	w.wantEvents(t, "a document that a rule approves", "approved "+at+"approved",
		"published "+at+"active "+document("1.0.0"))
	must.Succeed(t, replaceCall(trustedToken, document("1.0.0", `"title":"New"`), "1.0.0")(w))
	w.wantEvents(t, "a replacement that a rule approves", "approved "+at+"approved",
		"replaced "+at+"active "+document("1.0.0", `"title":"New"`))
}
