package audit_test

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/audit"
)

func TestServerHistory(t *testing.T) {
	// done returns a successful event: "action version review rule note", "-" for nothing.
	done := func(text string) audit.Event {
		d := audit.Details{}
		for i, name := range []string{"action", "version", "review", "rule", "note"} {
			if words := strings.Fields(text); i < len(words) && words[i] != "-" {
				d[name] = audit.Text(words[i])
			}
		}
		return audit.Event{Category: audit.RegistryChange, Success: true, Details: d}
	}
	refused, elsewhere := done("publish 3"), done("publish 3")
	refused.Success, elsewhere.Category = false, audit.AccountChange
	events := []audit.Event{
		done("publish 5 r5"), refused, elsewhere, done("reject 4 r4"), done("publish 4 r4"), done("webhook_add -"),
		done("status 2"), done("publish 2 r2 rule"), done("approve 1 r1 - secret"), done("publish 1 r1"), done("import 0"),
	}
	h := audit.NewServerHistory(events)
	var got []string
	for _, e := range h {
		got = append(got, string(e.Action())+e.Details.Text("version")+e.Details.Text("note"))
	}
	if want := "status2 publish2 approve1 publish1 import0"; strings.Join(got, " ") != want {
		t.Errorf("the history is %q, want %q", got, want)
	}
	if events[8].Details.Text("note") != "secret" {
		t.Error("the event itself lost its note")
	}
	for version, want := range map[string][2]audit.Action{
		"0": {"import", ""}, "1": {"publish", "approve"}, "2": {"publish", ""}, "4": {}, "5": {},
	} {
		for i, e := range []*audit.Event{h.Published(version), h.Approved(version)} {
			action := audit.Action("")
			if e != nil {
				action = e.Action()
			}
			if action != want[i] {
				t.Errorf("version %s has %q, want %q", version, action, want[i])
			}
		}
	}
}
