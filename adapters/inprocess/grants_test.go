package inprocess_test

import (
	"context"
	"maps"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// TestRecordGrant wants a grant to be an event that names the holder, by the operator, and in no one's own log.
func TestRecordGrant(t *testing.T) {
	for action, given := range map[string]bool{"grant_add": true, "grant_remove": false} {
		log := records.NewAuditLog(records.New())
		grants := inprocess.NewGrants(audit.New(log, noon{}, dice{}))
		change := authority.GrantChange{Holder: "anna", Given: given, Action: "publish", Resource: "com.example/*"}
		if err := grants.RecordGrant(context.Background(), change); err != nil {
			t.Fatal(err)
		}
		events, _, err := log.Search(context.Background(), authstore.AuditQuery{Limit: 10})
		want := map[string]any{"action": action, "userId": "anna", "grant": "publish", "resource": "com.example/*", "actor": "operator"}
		if err != nil || len(events) != 1 || events[0].UserID != "" || events[0].Type != auth.AccountChange || !events[0].Success || !maps.Equal(events[0].Details, want) {
			t.Errorf("recorded is %+v (%v), want %v", events, err, want)
		}
	}
}
