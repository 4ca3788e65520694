package people

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/fixture"
)

// find returns the e-mail addresses of the people whom a query finds, without their domain, and the
// cursor of the next page.
func (s *site) find(t *testing.T, query string) (names, cursor string) {
	t.Helper()
	page := s.want(t, http.StatusOK, "GET", people+"?"+query, nil)
	found, _ := page["people"].([]any)
	metadata, _ := page["metadata"].(object)
	if metadata["count"] != float64(len(found)) {
		t.Errorf("%s: the count is %v of %d", query, metadata["count"], len(found))
	}
	var list []string
	for _, one := range found {
		person, _ := one.(object)
		list = append(list, strings.TrimSuffix(fmt.Sprint(person["email"]), "@example.com"))
	}
	cursor, _ = metadata["nextCursor"].(string)
	return strings.Join(list, " "), cursor
}

// wantFields checks that a request of the operator is refused with exactly these fields.
func (s *site) wantFields(t *testing.T, method, path string, body any, fields ...string) {
	t.Helper()
	a := apiclient.Call(t, method, s.API+path, body, s.operator.Bearer()...).WantStatus(t, http.StatusBadRequest)
	named, _ := apiclient.WantAuthError(t, a, "validation_error")["fields"].(object)
	if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, fields) {
		t.Errorf("%s %s: the fields %v are named, want %v", method, path, got, fields)
	}
}

// TestPeopleAreFound lists people by a part of the address or the name, by state, and in pages.
func TestPeopleAreFound(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		ids := map[string]string{}
		for _, name := range []string{"dora", "ada", "lou", "per_cent%"} {
			ids[name] = s.add(t, name+"@example.com")
		}
		ids["ivy"], _ = s.invite(t, "ivy@example.com")
		s.want(t, http.StatusOK, "POST", people+"/"+ids["lou"]+"/lock", nil)
		s.want(t, http.StatusOK, "POST", people+"/"+ids["dora"]+"/disable", nil)
		s.want(t, http.StatusOK, "PATCH", people+"/"+ids["ada"], object{"name": `Ünal \ Lovelace`})
		for query, want := range map[string]string{
			"": "ada dora ivy lou olga per_cent%", "q=": "ada dora ivy lou olga per_cent%", "q=LOV": "ada", "q=ADA%40": "ada",
			"q=%C3%9Cnal": "ada", "q=_": "per_cent%", "q=%25": "per_cent%", "q=%5C": "ada", "q=A+Person&state=locked": "lou",
			"q=nobody": "", "q=example.com&state=invited": "ivy", "state=active": "ada olga per_cent%",
			"state=disabled": "dora", "state=": "ada dora ivy lou olga per_cent%", "limit=100&state=locked": "lou",
		} {
			if got, next := s.find(t, query); got != want || next != "" {
				t.Errorf("%q finds %q and the cursor %q, want %q", query, got, next, want)
			}
		}
		all, cursor := s.find(t, "limit=4&q=e")
		rest, end := s.find(t, "limit=4&q=e&cursor="+cursor)
		if all != "ada dora ivy lou" || rest != "olga per_cent%" || end != "" {
			t.Errorf("the pages are %q and %q, then %q", all, rest, end)
		}
		if got, next := s.find(t, "limit=6"); next != "" || strings.Count(got, " ") != 5 {
			t.Errorf("a full last page has %q and the cursor %q", got, next)
		}
		for query, fields := range map[string][]string{
			"limit=0": {"limit"}, "limit=101": {"limit"}, "limit=x": {"limit"}, "state=gone": {"state"}, "state=ACTIVE": {"state"},
			"cursor=x": {"cursor"}, "cursor=" + cursor[:len(cursor)-2]: {"cursor"},
			"cursor=" + cursor: {"cursor"}, "q=ada&cursor=" + cursor: {"cursor"}, "q=e&state=active&cursor=" + cursor: {"cursor"}, "q=%00": {"q"}, "q=%ff": {"q"},
			"limit=-1&state=x&cursor=y&q=a%00": {"cursor", "limit", "q", "state"},
		} {
			s.wantFields(t, "GET", people+"?"+query, nil, fields...)
		}
		own := people + "/" + ids["ada"]
		for _, list := range []string{own + "/sessions", own + "/devices"} {
			for query, field := range map[string]string{"limit=0": "limit", "cursor=x": "cursor", "cursor=" + cursor: "cursor"} {
				s.wantFields(t, "GET", list+"?"+query, nil, field)
			}
		}
	})
}

// TestSessionsInPages lists sessions and devices of a person one by one.
func TestSessionsInPages(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		ada := s.e.NewPerson(t, "ada@example.com")
		for _, agent := range []string{"curl/8.5.0", "Mozilla/5.0 Firefox/140.0", "Wget/1.21"} {
			ada.Device = map[string]string{"userAgent": agent}
			ada.Login(t, s.Service)
		}
		_, id := fixture.ReadSession(t, s.Service, ada)
		for _, list := range []string{"sessions", "devices"} {
			seen, cursor := map[any]bool{}, ""
			for range 3 {
				page := s.want(t, http.StatusOK, "GET", people+"/"+id+"/"+list+"?limit=1&cursor="+url.QueryEscape(cursor), nil)
				items, _ := page[list].([]any)
				if len(items) != 1 {
					t.Fatalf("a page of %s has %v", list, items)
				}
				item, _ := items[0].(object)
				seen[item["id"]] = true
				metadata, _ := page["metadata"].(object)
				cursor, _ = metadata["nextCursor"].(string)
			}
			if len(seen) != 3 || cursor != "" {
				t.Errorf("%d %s are listed, then %q", len(seen), list, cursor)
			}
		}
	}, fixture.RelaxedRiskSettings...)
}

// TestPersonPatch changes the name and the telephone number of a person, alone and together, and
// sends values that break a rule: all are named, and nothing is changed.
func TestPersonPatch(t *testing.T) {
	inSite(t, func(t *testing.T, s *site) {
		s.e.WantAuditEvents(t)
		one := people + "/" + s.add(t, "ada@example.com")
		const phone = "+441632960961"
		for _, c := range []struct {
			body        object
			name, phone string
		}{
			{object{"phone": phone}, "A Person", phone}, {object{"name": " Ada "}, "Ada", phone}, {object{}, "Ada", phone},
			{object{"name": strings.Repeat("é", 200), "phone": ""}, strings.Repeat("é", 200), ""},
			{object{"name": "Ada", "phone": phone}, "Ada", phone},
		} {
			if got := s.want(t, http.StatusOK, "PATCH", one, c.body); got["name"] != c.name || got["phone"] != c.phone {
				t.Errorf("%v: the person is %v", c.body, got)
			}
		}
		for body, fields := range map[string][]string{
			`{"name": ""}`: {"name"}, `{"name": null}`: {"name"}, `{"name": "a\nb"}`: {"name"}, `{"name": 1}`: {"name"},
			`{"name": "` + strings.Repeat("é", 201) + `"}`: {"name"}, `{"name": "a\u0000"}`: {"name"},
			`{"phone": "030 123"}`: {"phone"}, `{"phone": "+0301234567"}`: {"phone"}, `{"phone": 49}`: {"phone"},
			`{"name": " ", "phone": "x", "state": "locked"}`: {"name", "phone", "state"}, `{"email": "a@example.com"}`: {"email"},
			`{"name": "Eve", "password": "x"}`: {"password"},
		} {
			s.wantFields(t, "PATCH", one, body, fields...)
		}
		for _, body := range []string{``, `[]`, `"x"`, `{`, `{"name": "a", "name": "b"}`} {
			apiclient.Call(t, "PATCH", s.API+one, body, s.operator.Bearer()...).WantStatus(t, http.StatusBadRequest)
		}
		now := apiclient.Call(t, "GET", s.API+one, nil, s.operator.Bearer()...).WantStatus(t, http.StatusOK)
		tag := now.Header.Get("ETag")
		s.wantCode(t, http.StatusPreconditionFailed, "precondition_failed", "PATCH", one, object{"name": "Eve"}, "If-None-Match", "*")
		if got := s.want(t, http.StatusOK, "PATCH", one, object{"name": "Ada L"}, "If-Match", tag); got["name"] != "Ada L" {
			t.Errorf("the person is %v", got)
		}
		s.wantCode(t, http.StatusPreconditionFailed, "precondition_failed", "PATCH", one, object{"phone": ""}, "If-Match", tag)
	})
}
