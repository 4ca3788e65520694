package operator_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestMethodsRoundTrip checks that the list that a command prints is one that another imports.
func TestMethodsRoundTrip(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	before := e.RunCommand(t, "", "methods", "list", "-o", "json")
	if n := strings.Count(before, `"method_id"`); n != 35 {
		t.Errorf("there are %d methods at first", n)
	}
	const other = `[{"method_id":1,"path":"/a","service_id":1,"service_name":"a","parameters":[]}]`
	e.RunCommand(t, other, "methods", "import", "--replace", "-")
	e.RunCommand(t, before, "methods", "import", "--replace", "-")
	if after := e.RunCommand(t, "", "methods", "list", "-o", "json"); after != before {
		t.Errorf("after the import of the exported list, the list is %s", after)
	}
	var events []struct {
		UserID  string
		Details struct{ Action, Actor string }
	}
	e.ReadCommand(t, &events, "audit", "search", "--type", "METHODS_CHANGE", "--limit", "0")
	for _, event := range events {
		if event.UserID != "" || event.Details.Actor != "operator" ||
			event.Details.Action != "import" && event.Details.Action != "remove" {
			t.Errorf("unexpected event %+v", event)
		}
	}
	if len(events) != 2*35+2 {
		t.Errorf("%d events, want one for each change", len(events))
	}
}

// TestMirrorSync reads a registry at once on the database; the service reads it soon, and shows the
// mirror.
func TestMirrorSync(t *testing.T) {
	s := openSite(t, &fixture.Transcript{}, fixture.NewEnvironment(t, "embedded"))
	s.RunCommand(t, "", "mirror", "add", "public", s.upstream, "--include", "com.example/*")
	if out := s.Settle(s.RunCommand(t, "", "mirror", "sync", "public", "--full", "-o", "json")); !strings.Contains(out,
		`"shadowed": 1`) || !strings.Contains(out, `"records": 2`) || !strings.Contains(out, `"full": true`) {
		t.Errorf("mirror sync: %s", out)
	}
	s.Environ = append(s.Environ, "TOLLGATE_TOKEN="+s.boss.AccessToken)
	out := s.Settle(s.RunCommand(t, "", "mirror", "sync", "public", "--server", s.service.API))
	if !strings.Contains(out, "\npublic UPSTREAM ") {
		t.Errorf("mirror sync at the service: %s", out)
	}
}

// TestValidateAsTheAPI checks that the command finds in a document what the API finds.
func TestValidateAsTheAPI(t *testing.T) {
	e := fixture.NewEnvironment(t, "embedded")
	s := e.Start(t)
	const bad = `{"name":"weather","description":"Forecasts","version":"^1.0.0","colour":1}`
	type document struct{ Issues []map[string]string }
	var found []document
	out, _, _ := e.TryCommand(t, bad, "registry", "validate", "-o", "json", "-")
	fixture.DecodeJSON(t, out, &found)
	var want document
	apiclient.Call(t, "POST", s.API+"/v0.1/validate", bad).WantStatus(t, 200).Decode(t, &want)
	if len(want.Issues) == 0 || !reflect.DeepEqual(found[0], want) {
		t.Errorf("the command finds %v, the API %v", found[0].Issues, want.Issues)
	}
}
