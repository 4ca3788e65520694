package registry

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
)

// checkOwner sets who answers for a server: a publisher may, what is no owner is refused, and all who may read the
// server read it.
func checkOwner(t *testing.T, r *registry) {
	name := "com.example.owner/server"
	r.publish(t, name, "1.0.0")
	path := "/x/dev.tollgate/servers/" + strings.ReplaceAll(name, "/", "%2F") + "/owner"
	want := func(owner, contact string) {
		t.Helper()
		var got struct{ Owner, Contact string }
		a := r.get(t, path).WantStatus(t, http.StatusOK)
		if a.Decode(t, &got); got.Owner != owner || got.Contact != contact || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("the owner is %s", a.Body)
		}
	}
	want("", "")
	for body, mention := range map[string]string{
		`[]`: "", `{}`: "owner", `{"contact":"a@example.com"}`: "owner", `{"owner":7}`: "owner", `{"owner":"x","contact":"javascript:x"}`: "contact",
		`{"owner":"` + strings.Repeat("x", 101) + `"}`: "owner", `{"owner":"a\u0000b"}`: "owner", `{"owner":"","contact":"a@example.com"}`: "owner",
	} {
		wantFault(t, r.send(t, "PUT", path, body), http.StatusBadRequest, mention)
	}
	want("", "")
	var got struct{ Owner, Contact string }
	r.send(t, "PUT", path, `{"owner":" Team <Weather> ","contact":"weather@example.com"}`).WantStatus(t, http.StatusOK).Decode(t, &got)
	if got.Owner != "Team <Weather>" || got.Contact != "weather@example.com" {
		t.Errorf("the answer is %+v", got)
	}
	want("Team <Weather>", "weather@example.com")
	r.send(t, "PUT", path, `{"owner":"Platform","contact":null}`).WantStatus(t, http.StatusOK)
	want("Platform", "")
	wantFault(t, apiclient.Call(t, "PUT", r.s.API+"/v0.1"+path, `{"owner":"x"}`), http.StatusUnauthorized)
	eve := r.NewWriter(t, r.s, "owner-eve@example.com", "publish com.other/*", "review *")
	wantFault(t, apiclient.Call(t, "PUT", r.s.API+"/v0.1"+path, `{"owner":"x"}`, eve.Bearer()...), http.StatusForbidden)
	none := "/x/dev.tollgate/servers/com.example.owner%2Fnone/owner"
	wantFault(t, r.get(t, none), http.StatusNotFound)
	wantFault(t, r.send(t, "PUT", none, `{"owner":"x"}`), http.StatusNotFound)
	wantFault(t, r.get(t, path+"?include_deleted=perhaps"), http.StatusBadRequest, "include_deleted")
	r.setStatus(t, name, "1.0.0", "deleted")
	wantFault(t, r.get(t, path), http.StatusNotFound)
	if a := r.get(t, path+"?include_deleted=true").WantStatus(t, http.StatusOK); !strings.Contains(string(a.Body), "Platform") {
		t.Errorf("with deleted versions: %s", a.Body)
	}
	r.send(t, "PUT", path, `{"owner":""}`).WantStatus(t, http.StatusOK)
}
