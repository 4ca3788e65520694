package inprocess_test

import (
	"maps"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/adapters/memory/records"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
)

// TestRecordMethods wants an event of each method, by the operator and of no person.
func TestRecordMethods(t *testing.T) {
	log := records.NewAuditLog(records.New())
	methods := inprocess.NewMethods(audit.New(log, noon{}, dice{}))
	changes := []authority.MethodChange{
		{Action: "remove", ID: 7, Path: "/parking/{lot}.{format}", Service: "parking"},
		{Action: "import", ID: 8, Path: "/pets.{format}", Service: "pets"},
	}
	if err := methods.RecordMethods(t.Context(), changes...); err != nil {
		t.Fatal(err)
	}
	events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 10})
	if err != nil || len(events) != len(changes) {
		t.Fatalf("recorded is %+v (%v)", events, err)
	}
	for i, e := range events { // newest first
		c := changes[len(changes)-1-i]
		want := map[string]any{"action": c.Action, "methodId": float64(c.ID), "path": c.Path, "service": c.Service, "actor": "operator"}
		if e.Type != auth.MethodsChange || e.UserID != "" || !e.Success || !maps.Equal(e.Details, want) {
			t.Errorf("recorded is %+v, want %v", e, want)
		}
	}
}
