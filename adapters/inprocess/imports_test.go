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

// TestRecordImport wants an event of each version, by the operator and of no person.
func TestRecordImport(t *testing.T) {
	log := records.NewAuditLog(records.New())
	imports := inprocess.NewImports(audit.New(log, noon{}, dice{}))
	versions := []authority.ImportedVersion{{ServerName: "com.example/a", Version: "1.0.0"}, {ServerName: "com.example/a", Version: "1.1.0"}}
	if err := imports.RecordImport(t.Context(), versions...); err != nil {
		t.Fatal(err)
	}
	events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 10})
	if err != nil || len(events) != len(versions) {
		t.Fatalf("recorded is %+v (%v)", events, err)
	}
	for i, e := range events { // newest first
		v := versions[len(versions)-1-i]
		want := map[string]any{"action": "import", "serverName": v.ServerName, "version": v.Version, "actor": "operator"}
		if e.Type != auth.RegistryChange || e.UserID != "" || !e.Success || !maps.Equal(e.Details, want) {
			t.Errorf("recorded is %+v, want %v", e, want)
		}
	}
}
