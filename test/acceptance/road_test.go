package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestRoad walks from a new account to a published server that everybody can
// read, and looks at every gate on the way.
func TestRoad(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		ada := e.newPerson(t, "ada@example.com", "publish com.example/*")
		doc := document("com.example/weather", "1.0.0")

		a := call(t, "POST", s.api+"/v0.1/publish", doc).want(t, http.StatusUnauthorized)
		wantError(t, a)
		if got := a.header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
			t.Errorf("WWW-Authenticate is %q", got)
		}
		call(t, "POST", s.api+"/v0.1/publish", doc, "Authorization", "Bearer nonsense").want(t, http.StatusUnauthorized)

		ada.login(t, s)
		if ada.trustLevel != "UNVERIFIED" {
			t.Errorf("trust level of a first login is %s", ada.trustLevel)
		}
		a = call(t, "POST", s.api+"/v0.1/publish", doc, ada.bearer()...).want(t, http.StatusForbidden)
		wantError(t, a)
		if got := a.header.Get("WWW-Authenticate"); !strings.Contains(got, "insufficient_user_authentication") {
			t.Errorf("WWW-Authenticate is %q", got)
		}

		ada.stepUp(t, e, s)
		a = call(t, "POST", s.api+"/v0.1/publish", document("org.example/weather", "1.0.0"), ada.bearer()...).
			want(t, http.StatusForbidden)
		wantError(t, a)

		published := call(t, "POST", s.api+"/v0.1/publish", doc, ada.bearer()...).want(t, http.StatusOK)
		var response serverResponse
		published.decode(t, &response)
		wantDocument(t, response, doc, true)
		for name, value := range map[string]string{
			"publishedAt": response.Meta[officialKey].PublishedAt, "updatedAt": response.Meta[officialKey].UpdatedAt,
		} {
			if _, err := time.Parse("2006-01-02T15:04:05.000000Z", value); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		call(t, "POST", s.api+"/v0.1/publish", doc, ada.bearer()...).want(t, http.StatusConflict)
		call(t, "POST", s.api+"/v0/publish", document("com.example/weather", "1.1.0"), ada.bearer()...).want(t, http.StatusOK)

		readBack(t, s, doc)
	})
}

// readBack reads what TestRoad published, by every way of reading.
func readBack(t *testing.T, s *service, doc map[string]any) {
	t.Helper()
	var list serverList
	call(t, "GET", s.api+"/v0.1/servers?search=WEATHER", nil).want(t, http.StatusOK).decode(t, &list)
	if len(list.Servers) != 2 || list.Metadata.Count == nil || *list.Metadata.Count != 2 || list.Metadata.NextCursor != "" {
		t.Fatalf("list is %+v", list)
	}
	wantDocument(t, list.Servers[0], doc, false)

	call(t, "GET", s.api+"/v0.1/servers?limit=1", nil).want(t, http.StatusOK).decode(t, &list)
	if list.Metadata.NextCursor == "" {
		t.Fatal("a page of one of two has no cursor")
	}
	call(t, "GET", s.api+"/v0.1/servers?limit=1&cursor="+list.Metadata.NextCursor, nil).want(t, http.StatusOK).decode(t, &list)
	if len(list.Servers) != 1 || list.Servers[0].Server["version"] != "1.1.0" {
		t.Fatalf("second page is %+v", list)
	}

	call(t, "GET", serverURL(s, "com.example/weather", "/versions"), nil).want(t, http.StatusOK).decode(t, &list)
	if len(list.Servers) != 2 || list.Servers[0].Server["version"] != "1.1.0" {
		t.Fatalf("versions are %+v", list)
	}
	var one serverResponse
	call(t, "GET", serverURL(s, "com.example/weather", "/versions/1.0.0"), nil).want(t, http.StatusOK).decode(t, &one)
	wantDocument(t, one, doc, false)
	call(t, "GET", serverURL(s, "com.example/weather", "/versions/latest"), nil).want(t, http.StatusOK).decode(t, &one)
	if one.Server["version"] != "1.1.0" || !one.Meta[officialKey].IsLatest {
		t.Fatalf("latest is %+v", one)
	}
	wantError(t, call(t, "GET", serverURL(s, "com.example/weather", "/versions/9.9.9"), nil).want(t, http.StatusNotFound))
	wantError(t, call(t, "GET", serverURL(s, "com.example/none", "/versions"), nil).want(t, http.StatusNotFound))
}

// TestBrokenDocument wants a refusal that names the field.
func TestBrokenDocument(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "publisher@example.com", "publish *")
		p.login(t, s)
		p.stepUp(t, e, s)
		broken := document("com.example/broken", "^1.0.0")
		broken["description"] = strings.Repeat("x", 101)
		a := call(t, "POST", s.api+"/v0.1/publish", broken, p.bearer()...).want(t, http.StatusUnprocessableEntity)
		sentence := wantError(t, a)
		for _, field := range []string{"version", "description"} {
			if !strings.Contains(sentence, field) {
				t.Errorf("%q does not name %s", sentence, field)
			}
		}
		call(t, "POST", s.api+"/v0.1/publish", "{", p.bearer()...).want(t, http.StatusBadRequest)
		call(t, "POST", s.api+"/v0.1/publish", "[]", p.bearer()...).want(t, http.StatusBadRequest)
		call(t, "POST", s.api+"/v0.1/publish", "{}", append(p.bearer(), "Content-Type", "text/plain")...).
			want(t, http.StatusUnsupportedMediaType)
		call(t, "POST", s.api+"/v0.1/publish", strings.Repeat(" ", 1<<20+1), p.bearer()...).
			want(t, http.StatusRequestEntityTooLarge)
	})
}

// TestRefresh turns refresh tokens over and replays an old one.
func TestRefresh(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		p.login(t, s)
		first, access := p.refreshToken, p.accessToken
		var next struct{ AccessToken, RefreshToken string }
		a := call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": first}).want(t, http.StatusOK)
		a.decode(t, &next)
		if next.RefreshToken == first || next.AccessToken == "" {
			t.Fatalf("refresh answered %s", a.body)
		}
		if got := a.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		replay := call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": first})
		wantCode(t, replay.want(t, http.StatusForbidden), "access_denied")
		ended := call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": next.RefreshToken})
		wantCode(t, ended.want(t, http.StatusUnauthorized), "invalid_token")
		initiate := call(t, "POST", s.api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"},
			"Authorization", "Bearer "+access)
		wantCode(t, initiate.want(t, http.StatusUnauthorized), "invalid_token")
	})
}

// TestLockout wants the failure that fills the count answered like any other,
// and the next refused whatever the password.
func TestLockout(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		for _, email := range []string{p.email, "nobody@example.com"} {
			for range 5 {
				a := call(t, "POST", s.api+"/auth/login",
					map[string]any{"email": email, "password": "wrong", "deviceInfo": p.device})
				wantCode(t, a.want(t, http.StatusUnauthorized), "invalid_credentials")
			}
			a := call(t, "POST", s.api+"/auth/login",
				map[string]any{"email": email, "password": password, "deviceInfo": p.device})
			details := wantCode(t, a.want(t, http.StatusForbidden), "account_locked")
			if _, err := time.Parse(time.RFC3339, details["lockoutUntil"].(string)); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestStepUpTries wants the third wrong code to use the challenge up.
func TestStepUpTries(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		p.login(t, s)
		var challenge struct{ ChallengeID string }
		call(t, "POST", s.api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}, p.bearer()...).
			want(t, http.StatusOK).decode(t, &challenge)
		right := e.code(t, p.email)
		wrong := "000000"
		if right == wrong {
			wrong = "000001"
		}
		verify := func(otp string) answer {
			return call(t, "POST", s.api+"/auth/step-up/verify",
				map[string]string{"challengeId": challenge.ChallengeID, "otp": otp})
		}
		for range 3 {
			wantCode(t, verify(wrong).want(t, http.StatusUnauthorized), "invalid_otp")
		}
		a := verify(right).want(t, http.StatusTooManyRequests)
		if details := wantCode(t, a, "rate_limit_exceeded"); details["retryAfter"].(float64) < 1 {
			t.Errorf("retryAfter is %v", details["retryAfter"])
		}
	})
}

// TestOwnLimits wants the API's own limits, with their headers, on answers and
// errors.
func TestOwnLimits(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t, "AUTH_RATE_LIMIT=3", "REGISTRY_RATE_LIMIT=5")
		login := func() answer { return call(t, "POST", s.api+"/auth/login", "{}") }
		for i := range 3 {
			a := login().want(t, http.StatusBadRequest)
			wantLimit(t, a, "3", strconv.Itoa(2-i))
		}
		a := login().want(t, http.StatusTooManyRequests)
		wantLimit(t, a, "3", "0")
		details := wantCode(t, a, "rate_limit_exceeded")
		if retry := a.header.Get("Retry-After"); retry == "" || details["retryAfter"] == nil {
			t.Errorf("Retry-After is %q, retryAfter %v", retry, details["retryAfter"])
		}
		for i := range 5 {
			wantLimit(t, call(t, "GET", s.api+"/v0.1/servers", nil).want(t, http.StatusOK), "5", strconv.Itoa(4-i))
		}
		wantError(t, call(t, "GET", s.api+"/v0.1/servers", nil).want(t, http.StatusTooManyRequests))
		call(t, "GET", s.api+"/health", nil).want(t, http.StatusOK)
	})
}

// TestMethods checks that the listing has the first methods (contract M-9).
func TestMethods(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		var got struct {
			Meta map[string]any
			Data []map[string]any
		}
		a := call(t, "GET", s.api+"/v2/api/methods.json", nil).want(t, http.StatusOK)
		a.decode(t, &got)
		if len(got.Data) != 35 || got.Meta["status"] != 200.0 || got.Meta["method_id"] != 1103.0 || got.Meta["version"] != 2.07 {
			t.Fatalf("listing is %v with %d methods", got.Meta, len(got.Data))
		}
		first := got.Data[0]
		if first["method_id"] != 1081.0 || first["method_url"] != s.api+"/v2/api/services.{format}" ||
			!reflect.DeepEqual(first["parameters"], []any{"format"}) {
			t.Errorf("first method is %v", first)
		}
		call(t, "GET", s.api+"/v2/server/time.json", nil).want(t, http.StatusNotImplemented)
		call(t, "GET", s.api+"/v2/none.json", nil).want(t, http.StatusNotFound)
		call(t, "GET", s.api+"/v2/api/methods.json", nil).decode(t, &got)
		if got.Meta["requests"] != 2.0 {
			t.Errorf("requests is %v after two calls of other methods", got.Meta["requests"])
		}
		xml := call(t, "GET", s.api+"/v2/api/methods.xml", nil).want(t, http.StatusOK)
		if !strings.Contains(string(xml.body), "<parameters><item>format</item></parameters>") {
			t.Errorf("XML is %s", xml.body[:200])
		}
	})
}

// TestMethodChanges wants the next request to show what an operator changed
// while the service runs.
func TestMethodChanges(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		listing := func() string {
			return string(call(t, "GET", s.api+"/v2/api/methods.json", nil).want(t, http.StatusOK).body)
		}
		const entry = `{"method_id":7,"method_url":"%s/v2/parking/{lot}.{format}","service_id":5,"service_name":"parking","parameters":["lot","format"]}`
		want := fmt.Sprintf(entry, s.api)
		call(t, "GET", s.api+"/v2/parking/north.json", nil).want(t, http.StatusNotFound)
		e.tollgate(t, "", "methods", "add", "--id", "7", "--path", "/parking/{lot}.{format}", "--service-id", "5", "--service", "parking")
		if got := listing(); !strings.Contains(got, `"data":[`+want+",") {
			t.Errorf("after adding a method the listing begins %.300s", got)
		}
		call(t, "GET", s.api+"/v2/parking/north.json", nil).want(t, http.StatusNotImplemented)
		kept := e.tollgate(t, "", "methods", "list", "--output", "json")
		e.tollgate(t, "", "methods", "remove", "7")
		if got := listing(); strings.Contains(got, "parking") {
			t.Errorf("after removing the method the listing is %s", got)
		}
		e.tollgate(t, "[]", "methods", "import", "--replace", "-")
		if got := listing(); !strings.HasSuffix(got, `"data":[]}`) {
			t.Errorf("an empty listing is %s", got)
		}
		e.tollgate(t, kept, "methods", "import", "-")
		if got := listing(); strings.Count(got, `"method_id"`) != 37 || !strings.Contains(got, want) {
			t.Errorf("after the import the listing is %s", got)
		}
	})
}

// TestHealth looks at what an operator's tools look at.
func TestHealth(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		call(t, "GET", s.api+"/health", nil).want(t, http.StatusOK)
		var ready struct{ Dependencies map[string]string }
		call(t, "GET", s.api+"/ready", nil).want(t, http.StatusOK).decode(t, &ready)
		if len(ready.Dependencies) == 0 {
			t.Error("readiness names no dependency")
		}
		call(t, "GET", s.limitAPI+"/healthcheck", nil).want(t, http.StatusOK)
		for _, path := range []string{"/", "/debug/pprof/", "/rlconfig", "/stats", "/metrics"} {
			call(t, "GET", s.debug+path, nil).want(t, http.StatusOK)
		}
	})
}

// wantError wants the registry's form of an error and returns its sentence.
func wantError(t *testing.T, a answer) string {
	t.Helper()
	var body map[string]string
	if err := json.Unmarshal(a.body, &body); err != nil || len(body) != 1 || body["error"] == "" {
		t.Fatalf("body is %s, want one string, error", a.body)
	}
	return body["error"]
}

// wantCode wants the authentication API's form of an error and returns its
// details.
func wantCode(t *testing.T, a answer, code string) map[string]any {
	t.Helper()
	var body struct {
		Error   string
		Message string
		Details map[string]any
	}
	a.decode(t, &body)
	if body.Error != code || body.Message == "" || body.Details == nil {
		t.Fatalf("body is %s, want code %s", a.body, code)
	}
	return body.Details
}

func wantLimit(t *testing.T, a answer, limit, remaining string) {
	t.Helper()
	if got := a.header.Get("X-RateLimit-Limit"); got != limit {
		t.Errorf("X-RateLimit-Limit is %q, want %s", got, limit)
	}
	if got := a.header.Get("X-RateLimit-Remaining"); got != remaining {
		t.Errorf("X-RateLimit-Remaining is %q, want %s", got, remaining)
	}
	if _, err := strconv.ParseInt(a.header.Get("X-RateLimit-Reset"), 10, 64); err != nil {
		t.Error(err)
	}
}

// wantDocument wants a response that holds the document as it was sent.
func wantDocument(t *testing.T, r serverResponse, doc map[string]any, latest bool) {
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
	meta := r.Meta[officialKey]
	if meta.Status != "active" || meta.IsLatest != latest || !slices.Contains([]string{meta.PublishedAt}, meta.StatusChangedAt) {
		t.Errorf("meta is %+v", meta)
	}
}

// TestOperatorShutsOut wants what an operator decides to count at once, in the
// service that runs.
func TestOperatorShutsOut(t *testing.T) {
	each(t, func(t *testing.T, e *environment) {
		s := e.start(t)
		p := e.newPerson(t, "ada@example.com")
		p.login(t, s)
		try := func(password string) answer {
			return call(t, "POST", s.api+"/auth/login", map[string]any{"email": p.email, "password": password, "deviceInfo": p.device})
		}
		login := func() answer { return try(password) }
		e.tollgate(t, "", "user", "lock", "--email", p.email)
		if d := wantCode(t, login().want(t, http.StatusForbidden), "account_locked"); d["lockoutUntil"] != "9999-12-31T23:59:59.000Z" {
			t.Errorf("the lock of an operator has the details %v", d)
		}
		unknown := call(t, "POST", s.api+"/auth/login", map[string]any{"email": "nobody@example.com", "password": "wrong", "deviceInfo": p.device})
		if wrong := try("wrong"); wrong.status != http.StatusUnauthorized || !bytes.Equal(wrong.body, unknown.body) {
			t.Errorf("a wrong password is answered %d %s, that of nobody %s", wrong.status, wrong.body, unknown.body)
		}
		call(t, "GET", s.api+"/sessions", nil, p.bearer()...).want(t, http.StatusOK) // a lock leaves living sessions alone
		e.tollgate(t, "", "user", "unlock", "--email", p.email)
		p.login(t, s)

		e.tollgate(t, "", "user", "disable", "--email", p.email)
		wantCode(t, login().want(t, http.StatusUnauthorized), "invalid_credentials")
		wantCode(t, call(t, "POST", s.api+"/auth/refresh", map[string]string{"refreshToken": p.refreshToken}).
			want(t, http.StatusUnauthorized), "invalid_token")
		for call(t, "GET", s.api+"/sessions", nil, p.bearer()...).status == http.StatusOK {
			// A copy of the session passes for less than a second more.
		}
		wantCode(t, call(t, "GET", s.api+"/sessions", nil, p.bearer()...), "invalid_token")
		e.tollgate(t, "", "user", "enable", "--email", p.email)
		p.login(t, s)
	})
}
