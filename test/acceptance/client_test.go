package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
)

const password = "Correct-Horse-7-Battery"

// answer is what an HTTP call got.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// decode reads the answer's body, which must be JSON.
func (a answer) decode(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal(a.body, into); err != nil {
		t.Fatalf("answer %d is no JSON: %v\n%s", a.status, err, a.body)
	}
}

// want fails the test unless the answer has the status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.status != status {
		t.Fatalf("status is %d, want %d: %s", a.status, status, a.body)
	}
	return a
}

// call sends one request. A body that is not a string or bytes is sent as JSON.
func call(t *testing.T, method, address string, body any, header ...string) answer {
	t.Helper()
	a, err := try(method, address, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// try is call for where a connection may fail. header holds names and values
// in turn. Every answer of the API is checked against its description.
func try(method, address string, body any, header ...string) (answer, error) {
	return tryBy(http.DefaultClient, method, address, body, header...)
}

// tryBy is try by a client of one's own.
func tryBy(client *http.Client, method, address string, body any, header ...string) (answer, error) {
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	case []byte:
		content = bytes.NewReader(b)
	default:
		encoded, err := json.Marshal(b)
		if err != nil {
			return answer{}, fmt.Errorf("encode body: %w", err)
		}
		content = bytes.NewReader(encoded)
	}
	req, err := http.NewRequest(method, address, content)
	if err != nil {
		return answer{}, fmt.Errorf("make request: %w", err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("call: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // the body was read whole
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, body: read}
	if _, other := undescribed.Load(req.URL.Host); !other {
		if err := asDescribed(req, a); err != nil {
			return answer{}, err
		}
	}
	return a, nil
}

// person is somebody who signs in, with what the last sign-in gave.
type person struct {
	email        string
	device       map[string]string
	accessToken  string
	refreshToken string
	trustLevel   string
	deviceToken  string
}

// newPerson adds an account with the given grants, each "action resource".
func (e *environment) newPerson(t *testing.T, email string, grants ...string) *person {
	t.Helper()
	e.tollgate(t, password+"\n", "user", "add", "--email", email, "--name", "A Person", "--password-stdin")
	for _, g := range grants {
		action, resource, _ := strings.Cut(g, " ")
		e.tollgate(t, "", "grant", "add", "--email", email, "--action", action, "--resource", resource)
	}
	return &person{email: email, device: map[string]string{
		"userAgent":        "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
		"screenResolution": "1920x1080", "timezone": "Europe/Berlin", "language": "de-DE",
	}}
}

// login signs the person in.
func (p *person) login(t *testing.T, s *service) {
	t.Helper()
	a := call(t, "POST", s.api+"/auth/login",
		map[string]any{"email": p.email, "password": password, "deviceInfo": p.device},
		"X-Device-Token", p.deviceToken).want(t, http.StatusOK)
	var got struct {
		AccessToken, RefreshToken, TrustLevel string
		ExpiresIn                             int
		RequiresMFA                           *bool
	}
	a.decode(t, &got)
	if got.AccessToken == "" || got.RefreshToken == "" || got.ExpiresIn != 900 || got.RequiresMFA == nil || *got.RequiresMFA {
		t.Fatalf("login answered %s", a.body)
	}
	p.accessToken, p.refreshToken, p.trustLevel = got.AccessToken, got.RefreshToken, got.TrustLevel
}

// bearer returns the header that carries the person's access token.
func (p *person) bearer() []string { return []string{"Authorization", "Bearer " + p.accessToken} }

// stepUp raises the person's session with the code that the plugin wrote.
func (p *person) stepUp(t *testing.T, e *environment, s *service) {
	t.Helper()
	var challenge struct {
		ChallengeID, Method, ExpiresAt string
		AttemptsRemaining              int
	}
	call(t, "POST", s.api+"/auth/step-up/initiate", map[string]string{"method": "EMAIL_OTP"}, p.bearer()...).
		want(t, http.StatusOK).decode(t, &challenge)
	if challenge.Method != "EMAIL_OTP" || challenge.AttemptsRemaining != 3 {
		t.Fatalf("challenge is %+v", challenge)
	}
	var verified struct {
		Success       bool
		NewTrustLevel string
	}
	a := call(t, "POST", s.api+"/auth/step-up/verify",
		map[string]string{"challengeId": challenge.ChallengeID, "otp": e.code(t, p.email)}).want(t, http.StatusOK)
	a.decode(t, &verified)
	if !verified.Success || verified.NewTrustLevel != "FULL_TRUST" {
		t.Fatalf("verify answered %s", a.body)
	}
	p.trustLevel, p.deviceToken = verified.NewTrustLevel, a.header.Get("X-Device-Token")
}

// code returns the last code that the plugin delivered to a recipient. The
// plugin writes it before it answers, so it is there once a challenge is.
func (e *environment) code(t *testing.T, recipient string) string {
	t.Helper()
	content, err := os.ReadFile(e.otpLog)
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for line := range bytes.Lines(content) {
		var entry struct{ Time, Channel, Recipient, Code string }
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if entry.Recipient == recipient {
			code = entry.Code
		}
	}
	if len(code) != 6 {
		t.Fatalf("no code of six digits for %s in %s", recipient, content)
	}
	return code
}

// document returns a server document.
func document(name, version string) map[string]any {
	return map[string]any{
		"$schema": "https://static.modelcontextprotocol.io/schemas/2025-10-17/server.schema.json",
		"name":    name, "description": "Answers what the weather will be", "version": version,
		"remotes": []any{map[string]any{"type": "streamable-http", "url": "https://" + url.PathEscape(strings.ReplaceAll(name, "/", ".")) + "/mcp"}},
		"_meta":   map[string]any{"com.example/publisher-provided": map[string]any{"build": 7.0, "big": "12345678901234567890"}},
	}
}

// serverURL returns the address of a server, with a suffix.
func serverURL(s *service, name, suffix string) string {
	return s.api + "/v0.1/servers/" + url.PathEscape(name) + suffix
}

type serverResponse struct {
	Server map[string]any `json:"server"`
	Meta   map[string]struct {
		Status, StatusChangedAt, PublishedAt, UpdatedAt string
		IsLatest                                        bool
	} `json:"_meta"`
}

const officialKey = "io.modelcontextprotocol.registry/official"

type serverList struct {
	Servers  []serverResponse `json:"servers"`
	Metadata struct {
		NextCursor string
		Count      *int
	} `json:"metadata"`
}
