package decideapi

import (
	"context"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/trustlevel"
)

const bearer = "Authorization: Bearer key\nContent-Type: application/json\n"

// TestEvaluation: one question (Authorization API 1.0, section 6), with what is wrong by its name.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	s.answer.ID, s.answer.Reason = "7", access.ByRule
	const (
		who    = `"subject":{"type":"person","id":"ada@example.com","properties":{"x":[1]}}`
		tool   = `"resource":{"type":"mcp_tool","id":"forecast","properties":{"server":"com.example/weather","x":1}}`
		server = `"resource":{"type":"mcp_server","id":"com.example/weather"}`
		calls  = `"action":{"name":"tools/call"}`
		lists  = `"action":{"name":"tools/list"}`
	)
	for body, want := range map[string]string{
		`{` + who + `,` + tool + `,` + calls + `,"context":{"time":"x"}}`:                                 `200 {"decision":true,"context":{"reason":"rule","decisionId":"7"}}`,
		`{` + who + `,` + server + `,` + lists + `}`:                                                      `200 {"decision":true,`,
		`{` + tool + `,` + calls + `}`:                                                                    `400 {"error":"invalid_input","message":"subject.id is missing`,
		`{` + who + `,` + calls + `}`:                                                                     `400 {"error":"invalid_input","message":"resource.id is missing`,
		`{` + who + `,` + tool + `}`:                                                                      `400 {"error":"invalid_input","message":"action.name is missing`,
		`{` + who + `,` + server + `,` + calls + `}`:                                                      `400 {"error":"invalid_input","message":"resource.type must`,
		`{` + who + `,` + tool + `,` + lists + `}`:                                                        `400 {"error":"invalid_input","message":"resource.type must`,
		`{` + who + `,` + calls + `,"resource":{"type":"file","id":"x"}}`:                                 `400 {"error":"invalid_input","message":"resource.type must`,
		`{` + who + `,` + calls + `,"resource":{"type":"prompt","id":"x","properties":{"server":"a/b"}}}`: `400 {"error":"invalid_input","message":"resource.type must`,
		`{"subject":{"type":"identity","id":"ada"},` + server + `,` + lists + `}`:                         `400 {"error":"invalid_input","message":"subject.properties.iss is`,
		`{` + who + `,` + calls + `,"resource":{"type":"mcp_tool","id":"x"}}`:                             `400 {"error":"invalid_input","message":"resource.properties.server is`,
		`{"subject":7}`: `400 {"error":"invalid_input","message":"subject must not be a JSON number"`,
		`[]`:            `400 {"error":"invalid_input","message":"the body is not a JSON object"`,
		``:              `400 {"error":"invalid_input","message":"the body is not a JSON object"`,
	} {
		a := s.call(t, "POST", evaluationPath, bearer, body)
		if got := strings.TrimSpace(strings.Join([]string{map[int]string{200: "200", 400: "400"}[a.status], a.body}, " ")); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %d %s, want %s", body, a.status, a.body, want)
		}
	}
	if s.asked.Subject.String() != "person:ada@example.com" || s.asked.Server != "com.example/weather" {
		t.Errorf("asked %+v", s.asked)
	}
	s.answer.Effect, s.answer.Reason, s.answer.Required = access.Challenge, access.InsufficientTrust, trustlevel.FullTrust
	a := s.call(t, "POST", evaluationPath, bearer, `{`+who+`,`+tool+`,`+calls+`}`)
	if a.body != `{"decision":false,"context":{"reason":"insufficient_trust","requiredTrustLevel":"FULL_TRUST","decisionId":"7"}}` {
		t.Errorf("too little trust: %s", a.body)
	}
}

// TestEvaluationsOfGateways: what gateways ask by the binding COAZ-MCP of OpenID, draft 1 (github.com/openid/authzen,
// profiles/authzen-coaz-mcp-binding-1_0.md, section 6): default mappings, with the server in addition where they
// have none.
func TestEvaluationsOfGateways(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	var kind, id string
	s.api.ports.Named = func(_ context.Context, k, i string) (access.Subject, error) {
		kind, id = k, i
		return ada, nil
	}
	const (
		sub     = `"subject":{"type":"identity","id":"ada@example.com"}`
		weather = `"context":{"agent":"a","server":"com.example/weather"}`
	)
	for body, want := range map[string]string{
		sub + `,"action":{"name":"tools/list"},"resource":{"type":"mcp_server","id":"https://tools.example.com/mcp"}`:                                                         "person ada@example.com:  https tools.example.com /mcp tools/list ",
		sub + `,"action":{"name":"tools/call"},"resource":{"type":"tool","id":"forecast"},` + weather:                                                                         "person ada@example.com: com.example/weather    tools/call forecast",
		sub + `,"action":{"name":"tools/call"},"resource":{"type":"tool","id":"forecast","properties":{"server":"https://b.example:8443"}}`:                                   "person ada@example.com:  https b.example:8443  tools/call forecast",
		sub + `,"action":{"name":"prompts/get"},"resource":{"type":"prompt","id":"p"},` + weather:                                                                             "person ada@example.com: com.example/weather    prompts/* p",
		sub + `,"action":{"name":"resources/read"},"resource":{"type":"resource","id":"file:///x"},` + weather:                                                                "person ada@example.com: com.example/weather    resources/* file:///x",
		sub + `,"action":{"name":"tasks/get"},"resource":{"type":"task","id":"7"},` + weather:                                                                                 "person ada@example.com: com.example/weather    other 7",
		`"subject":{"type":"identity","id":"u1","properties":{"iss":"https://login.example.com"}},"action":{"name":"initialize"},"resource":{"type":"mcp_server","id":"a/b"}`: "jwt https://login.example.com u1: a/b    other ",
		`"subject":{"type":"identity","id":"https://login.example.com u1"},"action":{"name":"initialize"},"resource":{"type":"mcp_server","id":"a/b"}`:                        "jwt https://login.example.com u1: a/b    other ",
	} {
		a := s.call(t, "POST", evaluationPath, bearer, "{"+body+"}")
		q := s.asked
		got := kind + " " + id + ": " + strings.Join([]string{
			q.Server, q.Address.Scheme, q.Address.Host, q.Address.Path, string(q.Call.Class), q.Call.Name}, " ")
		if a.status != 200 || got != want {
			t.Errorf("%s: %d %s, asked %q, want %q", body, a.status, a.body, got, want)
		}
	}
}

// TestEvaluationDefaults: an entry takes each member of subject, resource, action and context that it leaves out from the
// top level (section 7.1).
func TestEvaluationDefaults(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	var asked []string
	s.api.ports.Decide = func(_ context.Context, q deciding.Question) (deciding.Answer, error) {
		asked = append(asked, q.Server+" "+q.Call.Tool())
		return s.answer, nil
	}
	a := s.call(t, "POST", evaluationsPath, bearer, `{"subject":{"type":"person"},"action":{"name":"tools/call"},`+
		`"resource":{"type":"mcp_tool","properties":{"server":"a/b"}},"context":{"server":"a/c"},"evaluations":[`+
		`{"subject":{"id":"ada@example.com"},"resource":{"id":"get"}},`+
		`{"subject":{"id":"ada@example.com"},"resource":{"id":"put","properties":{"server":"c/d"}}},`+
		`{"subject":{"id":"ada@example.com"},"resource":{"id":"put","properties":{}}},`+
		`{"resource":{"id":"get"}}]}`)
	if got := strings.Join(asked, ", "); a.status != 200 || got != "a/b get, c/d put, a/c put" || !strings.Contains(a.body, "subject.id is missing") {
		t.Errorf("%d %s, asked %s", a.status, a.body, got)
	}
}

// TestEvaluations: several questions, with defaults and each semantic (section 7).
func TestEvaluations(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	reads := 0
	named := s.api.ports.Named
	s.api.ports.Named = func(ctx context.Context, kind, id string) (access.Subject, error) {
		reads++
		return named(ctx, kind, id)
	}
	s.api.ports.Decide = func(_ context.Context, q deciding.Question) (deciding.Answer, error) {
		a := deciding.Answer{Decision: access.Decision{Effect: access.Deny, Reason: access.ByDefault}}
		if strings.HasPrefix(q.Call.Tool(), "get") {
			a.Effect = access.Allow
		}
		return a, nil
	}
	tool := func(name string) string {
		return `{"resource":{"type":"mcp_tool","id":"` + name + `","properties":{"server":"a/b"}}}`
	}
	ask := func(semantic string, list ...string) response {
		return s.call(t, "POST", evaluationsPath, bearer, `{"subject":{"type":"person","id":"ada@example.com"},"action":{"name":"tools/call"},`+
			`"options":{"evaluations_semantic":"`+semantic+`"},"evaluations":[`+strings.Join(list, ",")+`]}`)
	}
	for semantic, want := range map[string]string{
		"": "true false error true", "execute_all": "true false error true",
		"deny_on_first_deny": "true false", "permit_on_first_permit": "true",
	} {
		a := ask(semantic, tool("get_a"), tool("put"), `{"resource":{"type":"file","id":"x"}}`, tool("get_b"))
		var got []string
		for _, part := range strings.Split(a.body, `{"decision":`)[1:] {
			word, _, _ := strings.Cut(part, ",")
			if strings.Contains(part, `"error":{"status":400,"message":"resource.type must`) {
				word = "error"
			}
			got = append(got, word)
		}
		if a.status != 200 || strings.Join(got, " ") != want {
			t.Errorf("%s: %d %s, want %s", semantic, a.status, a.body, want)
		}
	}
	if reads != 4 {
		t.Errorf("the subject was read %d times in four requests", reads)
	}
	if a := ask("first"); a.status != 400 || !strings.Contains(a.body, "options.evaluations_semantic must be") {
		t.Errorf("another semantic: %+v", a)
	}
	many := make([]string, 101)
	for i := range many {
		many[i] = tool("get")
	}
	if a := ask("", many...); a.status != 400 || !strings.Contains(a.body, `"evaluations must have at most 100`) {
		t.Errorf("101 evaluations: %+v", a)
	}
	if a := ask("", many[1:]...); a.status != 200 || strings.Count(a.body, `"decision":true`) != 100 {
		t.Errorf("100 evaluations: %d", a.status)
	}
	single := `{"subject":{"type":"person","id":"x"},"action":{"name":"ping"},"resource":{"type":"mcp_server","id":"a/b"}}`
	if a := s.call(t, "POST", evaluationsPath, bearer, single); a.body != `{"decision":false,"context":{"reason":"default"}}` {
		t.Errorf("without a list: %+v", a)
	}
}

// TestEvaluationCallers: only callers with the scope decide get an answer.
func TestEvaluationCallers(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]int{"key": 400, "other key": 403, "ada": 403, "bad": 401, "": 401} {
		a := newSite(on).call(t, "POST", evaluationPath, "Authorization: Bearer "+token, "{}")
		if a.status != want || (a.header.Get("WWW-Authenticate") == "") != (want == 400) {
			t.Errorf("%q: %+v", token, a)
		}
	}
	if a := newSite(Config{}).call(t, "POST", evaluationPath, bearer, "{}"); a.status != 501 {
		t.Errorf("off: %+v", a)
	}
	text := strings.Replace(bearer, jsonType, "text/plain", 1)
	if a := newSite(on).call(t, "POST", evaluationPath, text, "{}"); a.status != 400 || !strings.Contains(a.body, "Content-Type must be") {
		t.Errorf("text: %+v", a)
	}
}

// TestConfiguration: the metadata of the decision point (section 9).
func TestConfiguration(t *testing.T) {
	t.Parallel()
	a := newSite(Config{On: true, PublicURL: "https://tollgate.example.com/"}).call(t, "GET", configurationPath, "", "")
	if a.status != 200 || a.body != `{"policy_decision_point":"https://tollgate.example.com",`+
		`"access_evaluation_endpoint":"https://tollgate.example.com/access/v1/evaluation",`+
		`"access_evaluations_endpoint":"https://tollgate.example.com/access/v1/evaluations"}` {
		t.Errorf("%+v", a)
	}
	for _, c := range []Config{on, {PublicURL: "https://tollgate.example.com"}} {
		if a := newSite(c).call(t, "GET", configurationPath, "", ""); a.status != 404 {
			t.Errorf("%+v", a)
		}
	}
}
