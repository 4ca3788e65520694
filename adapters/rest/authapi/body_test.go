package authapi_test

import (
	"strings"
	"testing"
)

func TestUnreadableBodies(t *testing.T) {
	s := serve(t)
	for _, body := range []string{
		"", " ", "{", "[]", "null", `"text"`, "1", "{}{}", "{\"a\":\"\xff\"}", "\ufeff{}", strings.Repeat("[", 16_000),
	} {
		for _, e := range endpoints() {
			if e.body == "" {
				continue
			}
			a := s.callSignedIn(t, e.method, e.path, body)
			a.expectError(t, 400, "invalid_input")
			if named := strings.Contains(a.body, "body is empty"); named != (strings.TrimSpace(body) == "") {
				t.Errorf("%q: %s", body, a.body)
			}
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("called %v", s.calls)
	}
}

// TestDuplicateMembers expects an error that names the member for a body with two members of one
// name in one object, at any depth, from every endpoint.
func TestDuplicateMembers(t *testing.T) {
	s := serve(t)
	login := func(more string) string {
		return `{"email":"a@example.com","password":"p","deviceInfo":{}` + more + `}`
	}
	long := strings.Repeat("é", 3_000)
	for _, c := range []struct{ body, name string }{
		{login(`,"email":"b@example.com"`), "email"},
		{login(`,"email":"a@example.com"`), "email"},
		{login(`,"emai\u006c":"b@example.com"`), "email"},
		{login(`,"deviceInfo":null`), "deviceInfo"},
		{
			`{"email":"a@example.com","password":"p","deviceInfo":{"language":"de","timezone":"UTC","language":"en"}}`,
			"deviceInfo.language",
		},
		{login(`,"other":1e999,"other":2`), "other"},
		{login(`,"other":[{"a":{}},{"a":{"b":1,"b":2}}]`), "other.a.b"},
		{login(`,"` + long + `":1,"` + long + `":2`), strings.Repeat("é", 50) + "…"},
	} {
		r := s.callSignedIn(t, "POST", "/auth/login", c.body).expectError(t, 400, "invalid_input")
		named, _ := r.Details["fields"].(map[string]any)
		if len(named) != 1 || named[c.name] == nil || !strings.HasPrefix(r.Message, c.name+" occurs twice") {
			t.Errorf("%.200s: the fields are %v, the message is %q, want %q", c.body, r.Details, r.Message, c.name)
		}
	}
	for _, e := range endpoints() {
		if e.body != "" {
			name := strings.Split(e.body, `"`)[1]
			if r := s.callSignedIn(t, e.method, e.path, `{"`+name+`":1,`+e.body[1:]).expectError(t, 400,
				"invalid_input"); r.fieldNames() != name {
				t.Errorf("%s %s with %s twice: the fields are %v", e.method, e.path, name, r.Details)
			}
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("called %v", s.calls)
	}
	for _, body := range []string{
		login(`,"other":[{"a":1},{"a":2,"b":{"a":3}}],"Email":"b@example.com"`),
		login(`,"a":[` + strings.Repeat("[],", 5_000) + `[]]`),
	} {
		if a := s.callSignedIn(t, "POST", "/auth/login", body); a.status != 200 {
			t.Errorf("%.200s: %d %s", body, a.status, a.body)
		}
	}
}

func TestInvalidFields(t *testing.T) {
	s := serve(t)
	const id = `"challengeId":"` + someID + `"`
	long := strings.Repeat("x", 513)
	for _, c := range []struct{ path, body, code, fields string }{
		{"/auth/login", `{}`, "invalid_input", "email password deviceInfo"},
		{
			"/auth/login", `{"email":null,"password":null,"deviceInfo":null}`, "invalid_input",
			"email password deviceInfo",
		},
		{"/auth/login", `{"email":"","password":"","deviceInfo":{}}`, "invalid_input", "email password"},
		{"/auth/login", `{"email":" ","password":"p","deviceInfo":{}}`, "invalid_input", "email"},
		{"/auth/login", `{"email":1,"password":[],"deviceInfo":"x"}`, "invalid_input", "email password deviceInfo"},
		{"/auth/login",
			`{"email":"a\u0000@example.com","password":"\u0000","deviceInfo":{"userAgent":"\u0000","timezone":1}}`,
			"invalid_input", "email password deviceInfo.userAgent deviceInfo.timezone"},
		{"/auth/login", `{"email":"nobody","password":"p","deviceInfo":{}}`, "validation_error", "email"},
		{"/auth/login", `{"email":"nobody","deviceInfo":{}}`, "invalid_input", "email password"},
		{"/auth/login", `{"Email":"a@example.com","password":"p","deviceInfo":{}}`, "invalid_input", "email"},
		{"/auth/login",
			`{"email":"nobody","password":"p","deviceInfo":{"userAgent":"` + strings.Repeat("é", 513) + `"}}`,
			"validation_error", "email deviceInfo.userAgent"},
		{"/auth/login",
			`{"email":"a@example.com","password":"p","deviceInfo":{"userAgent":"` + long + `","timezone":"` +
				long + `"}}`,
			"validation_error", "deviceInfo.userAgent deviceInfo.timezone"},
		{"/auth/password", `{"newPassword":"short"}`, "invalid_input", "currentPassword newPassword"},
		{"/auth/password", `{"currentPassword":"p"}`, "invalid_input", "newPassword"},
		{"/auth/refresh", `{}`, "invalid_input", "refreshToken"},
		{"/auth/refresh", `{"refreshToken":""}`, "invalid_input", "refreshToken"},
		{"/auth/refresh", `{"refreshToken":"a\u0000"}`, "invalid_input", "refreshToken"},
		{"/auth/logout", `{}`, "invalid_input", "sessionId"},
		{"/auth/logout", `{"sessionId":"x"}`, "validation_error", "sessionId"},
		{"/auth/step-up/initiate", `{}`, "invalid_input", "method"},
		{"/auth/step-up/initiate", `{"method":"email_otp"}`, "validation_error", "method"},
		{"/auth/step-up/verify", `{}`, "invalid_input", "challengeId otp"},
		{"/auth/step-up/verify", `{` + id + `,"otp":123456}`, "invalid_input", "otp"},
		{"/auth/step-up/verify", `{"challengeId":"x","otp":"123456"}`, "validation_error", "challengeId"},
		{"/auth/step-up/resend", `{"challengeId":"x"}`, "validation_error", "challengeId"},
	} {
		r := s.callSignedIn(t, "POST", c.path, c.body).expectError(t, 400, c.code)
		if r.fieldNames() != c.fields {
			t.Errorf("%s %s: the fields are %v, want %q", c.path, c.body, r.Details, c.fields)
		}
	}
	for _, c := range []struct{ method, path, body, code, fields string }{
		{"PUT", "/devices/" + someID + "/trust", `{}`, "invalid_input", "trustStatus"},
		{"PUT", "/devices/" + someID + "/trust", `{"trustStatus":"trusted"}`, "validation_error", "trustStatus"},
		{"PUT", "/devices/x/trust", `{"trustStatus":"no"}`, "validation_error", "trustStatus id"},
		{"DELETE", "/devices/x", "", "validation_error", "id"},
		{"DELETE", "/sessions/" + someID + "0", "", "validation_error", "id"},
	} {
		r := s.callSignedIn(t, c.method, c.path, c.body).expectError(t, 400, c.code)
		if r.fieldNames() != c.fields {
			t.Errorf("%s %s: the fields are %v, want %q", c.path, c.body, r.Details, c.fields)
		}
	}
	if len(s.calls) != 0 {
		t.Errorf("called %v", s.calls)
	}
}
