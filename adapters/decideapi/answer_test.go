package decideapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

var (
	ada = access.NewSubject(access.Member{Kind: access.Person, ID: "ada@example.com", Trust: trustlevel.Unverified})
	bot = access.NewSubject(access.Member{Kind: access.Service, ID: "bot", Trust: trustlevel.FullTrust})
)

const (
	scopeParameter    = `scope="mcp-registry:read"`
	metadataParameter = `resource_metadata="https://tools.example.com/base/.well-known/oauth-protected-resource"`
)

var public = Config{PublicURL: "https://tools.example.com/base/"}

func decision(who access.Subject, d access.Decision) deciding.Answer {
	return deciding.Answer{Decision: d, Subject: who, ID: "7"}
}

// TestRefusals checks status, challenge and body of each kind of refusal, with and without the id of
// a JSON-RPC request.
func TestRefusals(t *testing.T) {
	t.Parallel()
	deny := func(reason access.Reason) access.Decision {
		return access.Decision{Effect: access.Deny, Reason: reason}
	}
	challenge := func(reason access.Reason) access.Decision {
		return access.Decision{Effect: access.Challenge, Reason: reason}
	}
	low := challenge(access.InsufficientTrust)
	low.Required = trustlevel.FullTrust
	const stepUp = `Bearer error="insufficient_user_authentication", ` +
		`error_description="a session at FULL_TRUST is required", acr_values="FULL_TRUST"`
	for name, c := range map[string]struct {
		who          access.Subject
		decision     access.Decision
		status       int
		plain, aware string // WWW-Authenticate without and with PUBLIC_URL
		code         string
	}{
		"a rule":          {ada, deny(access.ByRule), 403, "", "", "access_denied"},
		"not listed":      {ada, deny(access.NotListed), 403, "", "", "access_denied"},
		"quarantine":      {access.Subject{}, deny(access.Quarantined), 403, "", "", "access_denied"},
		"unreadable":      {ada, deny(access.Unreadable), 403, "", "", "access_denied"},
		"other headers":   {ada, deny(access.HeaderMismatch), 403, "", "", "access_denied"},
		"no token":        {access.Subject{}, challenge(access.ByDefault), 401, "Bearer " + scopeParameter, "Bearer " + scopeParameter + ", " + metadataParameter, "invalid_token"},
		"trust of nobody": {access.Subject{}, low, 401, "Bearer " + scopeParameter, "Bearer " + scopeParameter + ", " + metadataParameter, "invalid_token"},
		"a bad token": {
			access.Refused(), challenge(access.InvalidToken), 401, `Bearer error="invalid_token", ` + scopeParameter,
			`Bearer error="invalid_token", ` + scopeParameter + ", " + metadataParameter, "invalid_token",
		},
		"too little trust": {ada, low, 403, stepUp + ", " + scopeParameter, stepUp + ", " + scopeParameter + ", " + metadataParameter, "insufficient_trust"},
	} {
		c.decision.Rule, c.decision.Server = "secret-rule", "com.example/weather"
		q := deciding.Question{Call: access.NewCall("tools/call", "forecast")}
		plain, aware := Config{}.newAnswer(decision(c.who, c.decision), &q), public.newAnswer(decision(c.who, c.decision), &q)
		if plain.allowed() || plain.status != c.status || plain.challenge != c.plain || aware.challenge != c.aware {
			t.Errorf("%s: %d %q and %q", name, plain.status, plain.challenge, aware.challenge)
		}
		if plain.decisionID != "7" {
			t.Errorf("%s: the ids of two decisions are %q and %q", name, plain.decisionID, aware.decisionID)
		}
		var body errorResponse
		if err := json.Unmarshal(plain.body, &body); err != nil || string(body.Error) != c.code || body.Message == "" ||
			body.Details == nil {
			t.Errorf("%s: %s, error %v", name, plain.body, err)
		}
		for _, id := range []string{`7`, `"a\"b"`, `null`} {
			q.Call.ID = []byte(id)
			checkRPC(t, Config{}.newAnswer(decision(c.who, c.decision), &q).body, id, body.Message)
		}
		for _, word := range []string{"forecast", "secret-rule"} {
			if strings.Contains(string(plain.body)+plain.challenge, word) {
				t.Errorf("%s: the answer names %s", name, word)
			}
		}
	}
}

func checkRPC(t *testing.T, text []byte, id, message string) {
	t.Helper()
	var body struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   struct {
			Code    int    `json:"code"`
			Message string `json:"message"`
		} `json:"error"`
	}
	err := json.Unmarshal(text, &body)
	if err != nil || body.Version != "2.0" || string(body.ID) != id || body.Error.Code != -32001 || body.Error.Message != message {
		t.Errorf("%s, error %v", text, err)
	}
}

// TestAllowed checks the headers of a call that may be forwarded.
func TestAllowed(t *testing.T) {
	t.Parallel()
	allow := access.Decision{Effect: access.Allow, Reason: access.ByRule, Rule: "r", Server: "com.example/weather"}
	for name, c := range map[string]struct {
		who  access.Subject
		call access.Call
		want [5]string
	}{
		"a person": {ada, access.NewCall("tools/call", "forecast"), [5]string{"person:ada@example.com", "com.example/weather", "forecast", "UNVERIFIED", "r"}},
		"a list":   {bot, access.NewCall("tools/list", ""), [5]string{"service:bot", "com.example/weather", "", "FULL_TRUST", "r"}},
		"anyone":   {access.Subject{}, access.NewCall("", ""), [5]string{"", "com.example/weather", "", "", "r"}},
		"a tool that is no text of a header": {
			bot, access.NewCall("tools/call", "a\r\nx-evil: 1"),
			[5]string{"service:bot", "com.example/weather", "=?base64?YQ0KeC1ldmlsOiAx?=", "FULL_TRUST", "r"},
		},
		"a tool that looks like one": {
			bot, access.NewCall("tools/call", "=?base64?YQ==?="),
			[5]string{"service:bot", "com.example/weather", "=?base64?PT9iYXNlNjQ/WVE9PT89?=", "FULL_TRUST", "r"},
		},
	} {
		a := Config{StripToken: true}.newAnswer(decision(c.who, allow), &deciding.Question{Call: c.call})
		if !a.allowed() || a.status != 200 || !a.stripToken || a.body != nil || a.challenge != "" {
			t.Errorf("%s: %+v", name, a)
		}
		for i, h := range a.headers {
			wanted := "x-tollgate-" + [...]string{"subject", "server", "tool", "trust", "rule"}[i]
			if h.value != c.want[i] || h.name != wanted {
				t.Errorf("%s: %s is %q, want %q", name, h.name, h.value, c.want[i])
			}
		}
	}
}
