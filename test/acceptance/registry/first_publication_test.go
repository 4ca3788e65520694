package registry

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestRoad goes from a new account to a published server that every person can read, and checks
// each condition on the way.
func TestRoad(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.Start(t)
		ada := e.NewPerson(t, "ada@example.com", "publish com.example/*")
		doc := fixture.NewServerDocument("com.example/weather", "1.0.0")

		a := apiclient.Call(t, "POST", s.API+"/v0.1/publish", doc).WantStatus(t, http.StatusUnauthorized)
		apiclient.WantRegistryError(t, a)
		if got := a.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
			t.Errorf("WWW-Authenticate is %q", got)
		}
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", doc, "Authorization", "Bearer nonsense").WantStatus(t,
			http.StatusUnauthorized)

		ada.Login(t, s)
		if ada.TrustLevel != "UNVERIFIED" {
			t.Errorf("trust level of a first login is %s", ada.TrustLevel)
		}
		a = apiclient.Call(t, "POST", s.API+"/v0.1/publish", doc, ada.Bearer()...).WantStatus(t, http.StatusForbidden)
		apiclient.WantRegistryError(t, a)
		if got := a.Header.Get("WWW-Authenticate"); !strings.Contains(got, "insufficient_user_authentication") {
			t.Errorf("WWW-Authenticate is %q", got)
		}

		ada.StepUp(t, e, s)
		a = apiclient.Call(t, "POST", s.API+"/v0.1/publish", fixture.NewServerDocument("org.example/weather", "1.0.0"),
			ada.Bearer()...).
			WantStatus(t, http.StatusForbidden)
		apiclient.WantRegistryError(t, a)

		published := apiclient.Call(t, "POST", s.API+"/v0.1/publish", doc, ada.Bearer()...).WantStatus(t, http.StatusOK)
		var response fixture.ServerRecord
		published.Decode(t, &response)
		wantDocument(t, response, doc, true)
		for name, value := range map[string]string{
			"publishedAt": response.Meta[fixture.OfficialKey].PublishedAt,
			"updatedAt":   response.Meta[fixture.OfficialKey].UpdatedAt,
		} {
			if _, err := time.Parse("2006-01-02T15:04:05.000000Z", value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", doc, ada.Bearer()...).WantStatus(t, http.StatusConflict)
		apiclient.Call(t, "POST", s.API+"/v0/publish", fixture.NewServerDocument("com.example/weather", "1.1.0"),
			ada.Bearer()...).WantStatus(t, http.StatusOK)

		readBack(t, s, doc)
	})
}

// readBack reads the versions of TestRoad in every way.
func readBack(t *testing.T, s *fixture.Service, doc map[string]any) {
	t.Helper()
	var list fixture.ServerPage
	apiclient.Call(t, "GET", s.API+"/v0.1/servers?search=WEATHER", nil).WantStatus(t, http.StatusOK).Decode(t, &list)
	if len(list.Servers) != 2 || list.Metadata.Count == nil || *list.Metadata.Count != 2 || list.Next() != "" {
		t.Fatalf("list is %+v", list)
	}
	wantDocument(t, list.Servers[0], doc, false)

	apiclient.Call(t, "GET", s.API+"/v0.1/servers?limit=1", nil).WantStatus(t, http.StatusOK).Decode(t, &list)
	if list.Next() == "" {
		t.Fatal("a page of one of two has no cursor")
	}
	apiclient.Call(t, "GET", s.API+"/v0.1/servers?limit=1&cursor="+list.Next(), nil).WantStatus(t, http.StatusOK).
		Decode(t, &list)
	if len(list.Servers) != 1 || list.Servers[0].Server["version"] != "1.1.0" {
		t.Fatalf("second page is %+v", list)
	}

	apiclient.Call(t, "GET", fixture.ServerURL(s, "com.example/weather", "/versions"), nil).WantStatus(t,
		http.StatusOK).Decode(t, &list)
	if len(list.Servers) != 2 || list.Servers[0].Server["version"] != "1.1.0" {
		t.Fatalf("versions are %+v", list)
	}
	var one fixture.ServerRecord
	apiclient.Call(t, "GET", fixture.ServerURL(s, "com.example/weather", "/versions/1.0.0"), nil).WantStatus(t,
		http.StatusOK).Decode(t, &one)
	wantDocument(t, one, doc, false)
	apiclient.Call(t, "GET", fixture.ServerURL(s, "com.example/weather", "/versions/latest"), nil).WantStatus(t,
		http.StatusOK).Decode(t, &one)
	if one.Server["version"] != "1.1.0" || !one.Meta[fixture.OfficialKey].IsLatest {
		t.Fatalf("latest is %+v", one)
	}
	apiclient.WantRegistryError(t,
		apiclient.Call(t, "GET", fixture.ServerURL(s, "com.example/weather", "/versions/9.9.9"), nil).WantStatus(t,
			http.StatusNotFound))
	apiclient.WantRegistryError(t,
		apiclient.Call(t, "GET", fixture.ServerURL(s, "com.example/none", "/versions"), nil).WantStatus(t,
			http.StatusNotFound))
}

// TestBrokenDocument checks that the error names the invalid field.
func TestBrokenDocument(t *testing.T) {
	t.Parallel()
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		t.Parallel()
		s := e.Start(t)
		p := e.NewPerson(t, "publisher@example.com", "publish *")
		p.Login(t, s)
		p.StepUp(t, e, s)
		broken := fixture.NewServerDocument("com.example/broken", "^1.0.0")
		broken["description"] = strings.Repeat("x", 101)
		a := apiclient.Call(t, "POST", s.API+"/v0.1/publish", broken, p.Bearer()...).WantStatus(t,
			http.StatusUnprocessableEntity)
		sentence := apiclient.WantRegistryError(t, a)
		for _, field := range []string{"version", "description"} {
			if !strings.Contains(sentence, field) {
				t.Errorf("%q does not name %s", sentence, field)
			}
		}
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", "{", p.Bearer()...).WantStatus(t, http.StatusBadRequest)
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", "[]", p.Bearer()...).WantStatus(t, http.StatusBadRequest)
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", "{}", append(p.Bearer(), "Content-Type", "text/plain")...).
			WantStatus(t, http.StatusUnsupportedMediaType)
		apiclient.Call(t, "POST", s.API+"/v0.1/publish", strings.Repeat(" ", 1<<20+1), p.Bearer()...).
			WantStatus(t, http.StatusRequestEntityTooLarge)
	})
}

// wantDocument checks that a response holds the document that was sent.
func wantDocument(t *testing.T, r fixture.ServerRecord, doc map[string]any, latest bool) {
	t.Helper()
	sent, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal(sent, &want); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(r.Server, want) {
		t.Errorf("document reads back as %v, want %v", r.Server, want)
	}
	meta := r.Meta[fixture.OfficialKey]
	if meta.Status != "active" || meta.IsLatest != latest ||
		!slices.Contains([]string{meta.PublishedAt}, meta.StatusChangedAt) {
		t.Errorf("meta is %+v", meta)
	}
}
