package inprocess_test

import (
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/inprocess"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/auth/audit"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/publisher"
	"github.com/tollgate-dev/tollgate/ports/authority"
	"github.com/tollgate-dev/tollgate/ports/authstore"
	"github.com/tollgate-dev/tollgate/ports/clock/clocktest"
	"github.com/tollgate-dev/tollgate/test/fakedb"
)

// TestRecordPolicyChanges checks that the change of a policy has the person as its user, and that of
// an operator command has none.
func TestRecordPolicyChanges(t *testing.T) {
	log := fakedb.NewAuditLog(fakedb.New())
	clock := clocktest.NewManual(noon)
	recorder := inprocess.NewRecorder(audit.New(log, clock, randomSource{}))
	for _, actor := range []auth.UserID{"anna", ""} {
		for _, given := range []bool{true, false} {
			clock.Advance(time.Second)
			err := recorder.RecordChanges(t.Context(), authority.PolicyChange{
				Actor: string(actor), Given: given, Policy: "p1", Method: publisher.DNS, Subject: "example.com", Pattern: "com.example/*",
				Actions: []publisher.Action{publisher.Publish},
			})
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"action": "publisher_remove", "policy": "p1", "method": "dns", "publisher": "example.com", "resource": "com.example/*",
				"actions": []any{"publish"},
			}
			if given {
				want["action"] = "publisher_add"
			}
			if actor == "" {
				want["actor"] = "operator"
			}
			events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 1}) // the newest
			if err != nil || len(events) != 1 || events[0].UserID != actor || !events[0].Success || events[0].Type != auth.AccountChange ||
				!reflect.DeepEqual(events[0].Details, want) {
				t.Errorf("actor %q, given %v: the event is %+v, error %v; want %v", actor, given, events, err, want)
			}
		}
	}
}

// TestRecordChanges checks that each change is recorded as one event with the actor "operator" and
// without a user.
func TestRecordChanges(t *testing.T) {
	log := fakedb.NewAuditLog(fakedb.New())
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
			authority.ViewChange{Action: "view_add", View: "team"}, auth.RegistryChange,
			map[string]any{"action": "view_add", "view": "team"},
		},
		{
			authority.ViewChange{Action: "view_token_add", View: "team", Token: "acme"}, auth.RegistryChange,
			map[string]any{"action": "view_token_add", "view": "team", "token": "acme"},
		},
		{
			authority.MirrorChange{Given: true, Mirror: "corp", URL: "https://example.com"}, auth.RegistryChange,
			map[string]any{"action": "mirror_add", "mirror": "corp", "url": "https://example.com"},
		},
		{
			authority.MirrorChange{Mirror: "corp", URL: "https://example.com", Purged: true}, auth.RegistryChange,
			map[string]any{"action": "mirror_remove", "mirror": "corp", "url": "https://example.com", "purged": true},
		},
		{
			authority.MirroredVersion{Mirror: "corp", ServerName: "com.example/a", Version: "1.0.0", Change: "added"}, auth.RegistryChange,
			map[string]any{"action": "mirror_added", "mirror": "corp", "serverName": "com.example/a", "version": "1.0.0"},
		},
		{
			authority.MirroredVersion{Mirror: "corp", ServerName: "com.example/a", Version: "1.0.0", Change: "submitted", Review: "r"}, auth.RegistryChange,
			map[string]any{"action": "mirror_submitted", "mirror": "corp", "serverName": "com.example/a", "version": "1.0.0", "review": "r"},
		},
		{
			authority.WebhookChange{Action: "webhook_add", Webhook: "w", Host: "example.com"}, auth.RegistryChange,
			map[string]any{"action": "webhook_add", "webhook": "w", "host": "example.com"},
		},
		{
			authority.WebhookChange{Action: "webhook_redeliver", Webhook: "w", Host: "example.com", Event: "e"}, auth.RegistryChange,
			map[string]any{"action": "webhook_redeliver", "webhook": "w", "host": "example.com", "event": "e"},
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
	events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 50})
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

// TestRecordByPerson checks that a person who acts as an operator is named as the actor of each change,
// and that such a change is not in the log of that person.
func TestRecordByPerson(t *testing.T) {
	log := fakedb.NewAuditLog(fakedb.New())
	recorder := inprocess.NewRecorder(audit.New(log, clocktest.NewManual(noon), randomSource{}))
	changes := []authority.Change{
		authority.GrantChange{Holder: "bert", Given: true, Action: "publish", Resource: "com.example/*"},
		authority.PolicyChange{Policy: "p1", Method: publisher.DNS, Subject: "example.com", Pattern: "com.example/*"},
		authority.WebhookChange{Action: "webhook_add", Webhook: "w", Host: "example.com"},
		authority.MirrorChange{Given: true, Mirror: "corp", URL: "https://example.com"},
	}
	if err := recorder.RecordChanges(audit.By(t.Context(), "anna"), changes...); err != nil {
		t.Fatal(err)
	}
	events, _, err := log.Search(t.Context(), authstore.AuditQuery{Limit: 50})
	if err != nil || len(events) != len(changes) {
		t.Fatalf("got the events %+v and the error %v, want %d events", events, err, len(changes))
	}
	for _, e := range events {
		if e.Details["actor"] != "anna" || e.UserID != "" {
			t.Errorf("got the event %+v, want the actor anna and no user", e)
		}
	}

	own := authority.PolicyChange{Actor: "carl", Policy: "p1", Method: publisher.DNS, Subject: "example.com", Pattern: "com.example/*"}
	if err := recorder.RecordChanges(audit.By(t.Context(), "anna"), own); err != nil {
		t.Fatal(err)
	}
	events, _, err = log.Search(t.Context(), authstore.AuditQuery{UserID: "carl", Limit: 50})
	if err != nil || len(events) != 1 || events[0].Details["actor"] != nil {
		t.Errorf("the change of a policy by its person is %+v, error %v; want no actor", events, err)
	}
}
