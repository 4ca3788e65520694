package apiclient

import (
	"encoding/json"
	"strconv"
	"testing"
)

// WantRegistryError fails the test unless the response has the registry's form of an error, and
// returns the message.
func WantRegistryError(t *testing.T, a Response) string {
	t.Helper()
	var body map[string]string
	if err := json.Unmarshal(a.Body, &body); err != nil || len(body) != 1 || body["error"] == "" {
		t.Fatalf("body is %s, want one string, error", a.Body)
	}
	return body["error"]
}

// WantAuthError fails the test unless the response has the authentication API's form of an error
// with the given code, and returns the details.
func WantAuthError(t *testing.T, a Response, code string) map[string]any {
	t.Helper()
	var body struct {
		Error   string
		Message string
		Details map[string]any
	}
	a.Decode(t, &body)
	if body.Error != code || body.Message == "" || body.Details == nil {
		t.Fatalf("body is %s, want code %s", a.Body, code)
	}
	return body.Details
}

// WantOwnLimit checks the headers of the API's own limit in a response.
func WantOwnLimit(t *testing.T, a Response, limit, remaining string) {
	t.Helper()
	if got := a.Header.Get("X-RateLimit-Limit"); got != limit {
		t.Errorf("X-RateLimit-Limit is %q, want %s", got, limit)
	}
	if got := a.Header.Get("X-RateLimit-Remaining"); got != remaining {
		t.Errorf("X-RateLimit-Remaining is %q, want %s", got, remaining)
	}
	if _, err := strconv.ParseInt(a.Header.Get("X-RateLimit-Reset"), 10, 64); err != nil {
		t.Error(err)
	}
}
