package methods

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestMethods checks that the listing has the first methods (contract M-9).
func TestMethods(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := e.Start(t)
		var got struct {
			Meta map[string]any
			Data []map[string]any
		}
		a := apiclient.Call(t, "GET", s.API+"/v2/api/methods.json", nil).WantStatus(t, http.StatusOK)
		a.Decode(t, &got)
		if len(got.Data) != 35 || got.Meta["status"] != 200.0 || got.Meta["method_id"] != 1103.0 ||
			got.Meta["version"] != 2.07 {
			t.Fatalf("listing is %v with %d methods", got.Meta, len(got.Data))
		}
		first := got.Data[0]
		if first["method_id"] != 1081.0 || first["method_url"] != s.API+"/v2/api/services.{format}" ||
			!reflect.DeepEqual(first["parameters"], []any{"format"}) {
			t.Errorf("first method is %v", first)
		}
		apiclient.Call(t, "GET", s.API+"/v2/server/time.json", nil).WantStatus(t, http.StatusNotImplemented)
		apiclient.Call(t, "GET", s.API+"/v2/none.json", nil).WantStatus(t, http.StatusNotFound)
		apiclient.Call(t, "GET", s.API+"/v2/api/methods.json", nil).Decode(t, &got)
		if got.Meta["requests"] != 2.0 {
			t.Errorf("requests is %v after two calls of other methods", got.Meta["requests"])
		}
		xml := apiclient.Call(t, "GET", s.API+"/v2/api/methods.xml", nil).WantStatus(t, http.StatusOK)
		if !strings.Contains(string(xml.Body), "<parameters><item>format</item></parameters>") {
			t.Errorf("XML is %s", xml.Body[:200])
		}
	})
}

// TestMethodChanges checks that the next request shows the changes of an operator while the service
// runs.
func TestMethodChanges(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		e.WantAuditEvents(t)
		s := e.Start(t)
		listing := func() string {
			return string(apiclient.Call(t, "GET", s.API+"/v2/api/methods.json", nil).WantStatus(t, http.StatusOK).Body)
		}
		const entry = `{"method_id":7,"method_url":"%s/v2/parking/{lot}.{format}","service_id":5,"service_name":"parking","parameters":["lot","format"]}`
		want := fmt.Sprintf(entry, s.API)
		apiclient.Call(t, "GET", s.API+"/v2/parking/north.json", nil).WantStatus(t, http.StatusNotFound)
		e.RunCommand(t, "", "methods", "add", "--id", "7", "--path", "/parking/{lot}.{format}", "--service-id", "5",
			"--service", "parking")
		if got := listing(); !strings.Contains(got, `"data":[`+want+",") {
			t.Errorf("after adding a method the listing begins %.300s", got)
		}
		apiclient.Call(t, "GET", s.API+"/v2/parking/north.json", nil).WantStatus(t, http.StatusNotImplemented)
		kept := e.RunCommand(t, "", "methods", "list", "--output", "json")
		e.RunCommand(t, "", "methods", "remove", "7")
		if got := listing(); strings.Contains(got, "parking") {
			t.Errorf("after removing the method the listing is %s", got)
		}
		e.RunCommand(t, "[]", "methods", "import", "--replace", "-")
		if got := listing(); !strings.HasSuffix(got, `"data":[]}`) {
			t.Errorf("an empty listing is %s", got)
		}
		e.RunCommand(t, kept, "methods", "import", "-")
		if got := listing(); strings.Count(got, `"method_id"`) != 37 || !strings.Contains(got, want) {
			t.Errorf("after the import the listing is %s", got)
		}
	})
}
