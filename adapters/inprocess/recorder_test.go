package inprocess_test

import (
	"maps"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
)

// TestRecordChanges checks that each change is recorded as one event with the actor "operator" and
// without a user.
func TestRecordChanges(t *testing.T) {
	log := records.NewAuditLog(records.New())
	recorder := inprocess.NewRecorder(audit.New(log, clocktest.NewManual(noon), randomSource{}))
	cases := []struct {
		change  authority.Change
		kind    auth.EventType
		details map[string]any
	}{
		{
			authority.GrantChange{Holder: "anna", Given: true, Action: "publish", Resource: "com.example/*"}, auth.AccountChange,
			map[string]any{"action": "grant_add", "userId": "anna", "grant": "publish", "resource": "com.example/*"},
		},
		{
			authority.GrantChange{Holder: "anna", Action: "edit", Resource: "com.example/*"}, auth.AccountChange,
			map[string]any{"action": "grant_remove", "userId": "anna", "grant": "edit", "resource": "com.example/*"},
		},
		{
			authority.ImportedVersion{ServerName: "com.example/a", Version: "1.0.0"}, auth.RegistryChange,
			map[string]any{"action": "import", "serverName": "com.example/a", "version": "1.0.0"},
		},
		{
			authority.MethodChange{Action: "remove", ID: 7, Path: "/parking/{lot}.{format}", Service: "parking"}, auth.MethodsChange,
			map[string]any{"action": "remove", "methodId": float64(7), "path": "/parking/{lot}.{format}", "service": "parking"},
		},
	}
	var changes []authority.Change
	for _, c := range cases {
		changes = append(changes, c.change)
	}
	if err := recorder.RecordChanges(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
	events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 10})
	if err != nil || len(events) != len(cases) {
		t.Fatalf("got the events %+v and the error %v, want %d events", events, err, len(cases))
	}
	for i, e := range events { // newest first
		c := cases[len(cases)-1-i]
		c.details["actor"] = "operator"
		if e.Type != c.kind || e.UserID != "" || !e.Success || !maps.Equal(e.Details, c.details) {
			t.Errorf("got the event %+v, want %s %v", e, c.kind, c.details)
		}
	}
	if err := recorder.RecordChanges(t.Context(), nil); !fault.Is(err, fault.Internal) {
		t.Errorf("an unknown change: %v, want fault.Internal", err)
	}
}
