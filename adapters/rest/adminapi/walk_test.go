package adminapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestKinds makes, reads, changes and removes objects of every kind. Who may do that is checked by
// TestRoutes.
func TestKinds(t *testing.T) {
	s := openSite(t, "PUBLIC_URL=https://tools.example.com", "OAUTH=on")
	s.e.WantAuditEvents(t, `"action":"mirror_run"`)
	for _, k := range s.kinds(t) {
		t.Run(k.List, func(t *testing.T) {
			s.refuseWrong(t, k)
			one, tag := s.makeOne(t, k)
			tag = s.changeOne(t, k, one, tag)
			s.readPages(t, k)
			s.removeOne(t, k, one, tag)
			s.keepManaged(t, k)
		})
	}
}

// add makes an object with a number.
func (s *site) add(t *testing.T, status int, k kind, n int, header ...string) apiclient.Response {
	t.Helper()
	if k.Name != "" {
		body := k.Body
		if k.Vary != "" && n > 0 {
			body = with(k.Body, object{k.Vary: fmt.Sprint(k.Body[k.Vary], n)})
		}
		return s.want(t, status, "PUT", k.Path+"/"+k.nameOf(n), body, header...)
	}
	body := k.Body
	if n > 0 {
		body = with(k.Body, object{k.Vary: fmt.Sprint(k.Body[k.Vary], n)})
	}
	return s.want(t, status, "POST", k.Path, body, header...)
}

// nameOf returns the name of an object with a number.
func (k kind) nameOf(n int) string { return fmt.Sprint(k.Name, "-", n) }

// refuseWrong sends every wrong body, and checks that none is stored.
func (s *site) refuseWrong(t *testing.T, k kind) {
	t.Helper()
	before, method, path := s.items(t, k, ""), "POST", k.Path
	if k.Name != "" {
		method, path = "PUT", k.Path+"/wrong"
		s.wantWrong(t, k.key(), method, k.Path+"/no%20name", k.Body)
		s.wantWrong(t, k.key(), method, k.Path+"/%ff", k.Body)
		s.wantWrong(t, "force", method, path+"?force=x", k.Body)
	}
	for _, w := range append(k.Wrong, wrong{"other", object{"other": 1}}) {
		s.wantWrong(t, w.field, method, path, with(k.Body, w.members))
	}
	s.want(t, http.StatusBadRequest, method, path, `{"other":1,"other":1}`)
	if after := s.items(t, k, "?limit=100"); len(after) != len(before) {
		t.Errorf("before the refusals there are %v, and after them %v", before, after)
	}
}

// read sends a request of the operator for something whose order or state differs in each run.
func (s *site) read(t *testing.T, path string) apiclient.Response {
	t.Helper()
	return s.do(t, "GET", path, nil, s.olga.Bearer()...)
}

// items returns the objects in a list.
func (s *site) items(t *testing.T, k kind, query string) (all []object) {
	t.Helper()
	list := decode(t, s.read(t, k.Path+query).WantStatus(t, http.StatusOK))
	found, _ := list[k.List].([]any)
	if count := list["metadata"].(object)["count"]; count != float64(len(found)) {
		t.Errorf("the list %v of %d has the count %v", list, len(found), count)
	}
	for _, one := range found {
		all = append(all, one.(object))
	}
	return all
}

// makeOne makes an object, under the condition that there is none, and reads it. It returns its
// path and ETag.
func (s *site) makeOne(t *testing.T, k kind) (path, tag string) {
	t.Helper()
	if k.Name != "" {
		s.add(t, http.StatusPreconditionFailed, k, 0, "If-Match", "*")
	}
	a := s.add(t, http.StatusCreated, k, 0, "If-None-Match", "*")
	made, tag := decode(t, a), a.Header.Get("ETag")
	wantMembers(t, made, k.Body)
	if made["managedBy"] != "" || tag == "" {
		t.Errorf("the object with the ETag %s is %s", tag, a.Body)
	}
	if secret := text(made, "secret"); secret != "" {
		s.keep(t, secret)
	}
	path = k.Path + "/" + text(made, "id")
	if k.Name != "" {
		path = k.Path + "/" + k.nameOf(0)
		s.add(t, http.StatusPreconditionFailed, k, 0, "If-None-Match", "*")
	} else {
		s.addAgain(t, k)
	}
	if !k.Unread {
		a := s.want(t, http.StatusOK, "GET", path, nil)
		wantMembers(t, decode(t, a), k.Body)
		if a.Header.Get("ETag") != tag {
			t.Errorf("an object that was made with the ETag %s is read with %s", tag, a.Header.Get("ETag"))
		}
	}
	return path, tag
}

// addAgain adds the same object again. A second one is removed.
func (s *site) addAgain(t *testing.T, k kind) {
	t.Helper()
	if a := s.add(t, k.Twice, k, 0); k.Twice == http.StatusCreated {
		if secret := text(decode(t, a), "secret"); secret != "" {
			s.keep(t, secret)
		}
		s.want(t, http.StatusNoContent, "DELETE", k.Path+"/"+text(decode(t, a), "id"), nil)
	}
}

// wantMembers checks that an object has members, but for secrets, which are never shown.
func wantMembers(t *testing.T, got, want object) {
	t.Helper()
	encoded, err := json.Marshal(want)
	must.Succeed(t, err)
	var members object
	must.Succeed(t, json.Unmarshal(encoded, &members))
	for name, value := range members {
		if name != "clientSecret" && name != "headers" && name != "secondFactor" && !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s is %v, want %v", name, got[name], value)
		}
	}
}

// changeOne changes an object under the condition that it is still the same. It returns the new
// ETag.
func (s *site) changeOne(t *testing.T, k kind, path, tag string) string {
	t.Helper()
	if k.Change == nil {
		return tag
	}
	method, body := k.changes()
	s.want(t, http.StatusPreconditionFailed, method, path, body, "If-Match", `"stale"`)
	a := s.want(t, http.StatusOK, method, path, body, "If-Match", tag)
	changed := a.Header.Get("ETag")
	wantMembers(t, decode(t, a), body)
	if changed == tag || changed == "" {
		t.Errorf("a changed object has the ETag %s and had %s", changed, tag)
	}
	s.want(t, http.StatusPreconditionFailed, method, path, body, "If-Match", tag)
	if again := s.want(t, http.StatusOK, method, path, body).Header.Get("ETag"); again != changed {
		t.Errorf("the same object has the ETags %s and %s", changed, again)
	}
	if k.Name == "" {
		for _, w := range k.Wrong {
			if members := with(w.members, nil); len(members) > 0 {
				s.wantWrong(t, w.field, method, path, members)
			}
		}
		s.wantWrong(t, "other", method, path, object{"other": 1})
	}
	return changed
}

// changes returns the method and the body of a change.
func (k kind) changes() (method string, body object) {
	if k.Name == "" {
		return "PATCH", k.Change
	}
	return "PUT", with(k.Body, k.Change)
}

// readPages reads a list of three objects whole and in pages, and checks to what a cursor belongs.
func (s *site) readPages(t *testing.T, k kind) {
	t.Helper()
	for n := 1; n < 3; n++ {
		if secret := text(decode(t, s.add(t, http.StatusCreated, k, n)), "secret"); secret != "" {
			s.keep(t, secret)
		}
	}
	whole, paged, cursor := s.items(t, k, ""), []object{}, ""
	for range whole {
		query := "?limit=1&cursor=" + url.QueryEscape(cursor)
		paged = append(paged, s.items(t, k, query)...)
		next, _ := decode(t, s.read(t, k.Path+query))["metadata"].(object)
		if cursor = text(next, "nextCursor"); cursor != "" {
			s.wantWrong(t, "cursor", "GET", k.Path+"?other=x&cursor="+url.QueryEscape(cursor), nil)
		}
	}
	if len(whole) < 3 || cursor != "" || !reflect.DeepEqual(paged, whole) {
		t.Errorf("in pages, with %q at the end, the list is\n%v\nand whole\n%v", cursor, paged, whole)
	}
	for _, wrong := range []string{"limit=0", "limit=101", "limit=x", "cursor=x", "cursor=%00"} {
		name, _, _ := strings.Cut(wrong, "=")
		s.wantWrong(t, name, "GET", k.Path+"?"+wrong, nil)
	}
}

// removeOne removes an object under the condition that it is still the same, and finds it no more.
func (s *site) removeOne(t *testing.T, k kind, path, tag string) {
	t.Helper()
	s.want(t, http.StatusPreconditionFailed, "DELETE", path, nil, "If-Match", `"stale"`)
	s.wantWrong(t, "force", "DELETE", path+"?force=x", nil)
	s.want(t, http.StatusNoContent, "DELETE", path, nil, "If-Match", tag)
	s.want(t, http.StatusNotFound, "DELETE", path, nil)
	s.want(t, http.StatusNotFound, "DELETE", path, nil, "If-Match", "*")
	if !k.Unread {
		s.want(t, http.StatusNotFound, "GET", path, nil)
	}
	if k.Name == "" && k.Change != nil {
		s.want(t, http.StatusNotFound, "PATCH", path, k.Change)
	}
}

// keepManaged checks that an object of a state in a file is changed and removed with force=true
// only, and that it keeps its manager.
func (s *site) keepManaged(t *testing.T, k kind) {
	t.Helper()
	entry := with(k.Body, k.State)
	if k.Name != "" {
		entry[k.key()] = "managed"
	} else {
		entry[k.Vary] = fmt.Sprint(entry[k.Vary], "-managed")
	}
	state := object{"apiVersion": "tollgate.dev/v1", "kind": "State", k.List: []any{entry}}
	s.want(t, http.StatusOK, "POST", "/apply?owner=platform", state)
	path := k.Path + "/managed"
	for _, one := range s.items(t, k, "") {
		if k.Name == "" && one["managedBy"] == "platform" {
			path = k.Path + "/" + text(one, "id")
		}
	}
	wantManaged := func(method string, body any) {
		t.Helper()
		for _, query := range []string{"", "?force=false"} {
			if a := s.want(t, http.StatusConflict, method, path+query, body); !strings.Contains(string(a.Body),
				"the file of platform") {
				t.Errorf("%s of a managed object: %s", method, a.Body)
			}
		}
	}
	if method, body := k.changes(); k.Change != nil {
		wantManaged(method, body)
		wantMembers(t, decode(t, s.want(t, http.StatusOK, method, path+"?force=true", body)),
			object{"managedBy": "platform"})
	}
	wantManaged("DELETE", nil)
	s.want(t, http.StatusNoContent, "DELETE", path+"?force=true", nil)
}
