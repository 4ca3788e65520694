package proxies

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestDecisions sends what a proxy sends, and looks for what was denied in the audit log, by the id of
// the decision.
func TestDecisions(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		e.WantAuditEvents(t, `"count":`, `"effect":"challenge"`) // they are written a second or a minute later
		denied := s.ask(t, s.Service, s.robot, "forecast").WantStatus(t, http.StatusForbidden)
		if body := string(denied.Body); body != `{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"the call is not allowed"}}` {
			t.Errorf("the body is %s", body)
		}
		id := denied.Header.Get("X-Tollgate-Decision-Id")
		var found struct {
			Events []struct {
				ID, Type string
				Details  object
			}
		}
		await.Until(t, "the event of the decision "+id, func() bool {
			s.manage(t, "GET", "/audit?id="+id, nil, http.StatusOK).Decode(t, &found)
			return len(found.Events) == 1
		})
		event := found.Events[0]
		if event.ID != id || event.Type != "ACCESS_DECISION" || event.Details["actor"] != "service:robot" ||
			event.Details["serverName"] != weather || event.Details["tool"] != "forecast" || event.Details["reason"] != "default" {
			t.Errorf("the event is %+v", event)
		}
		if text := e.RunCommand(t, "", "audit", "search", "--id", id, "--output", "jsonl"); !strings.Contains(text, `"tool":"forecast"`) ||
			strings.Contains(text, "argument") || strings.Contains(text, s.robot[12:]) {
			t.Errorf("the command found %s", text)
		}
		s.manage(t, "GET", "/audit?id=x", nil, http.StatusBadRequest)
		s.setRule(t, "forecasts", object{"tools": []string{"forecast"}})
		s.awaitAnswer(t, "the rule", s.robot, "forecast", http.StatusOK)
		allowed := s.ask(t, s.Service, s.robot, "forecast")
		for name, want := range map[string]string{
			"subject": "service:robot", "server": weather, "tool": "forecast", "trust": "FULL_TRUST", "rule": "forecasts",
		} {
			if got := allowed.Header.Get("x-tollgate-" + name); got != want {
				t.Errorf("x-tollgate-%s is %q", name, got)
			}
		}
		if got := s.Metric("tollgate_decide_total", "server", weather, "effect", "deny", "reason", "default", "mode", "enforce"); got != 1 {
			t.Errorf("%v denials are counted", got)
		}
		anonymous := s.ask(t, s.Service, "", "forecast").WantStatus(t, http.StatusUnauthorized)
		metadata := publicURL + "/.well-known/oauth-protected-resource/servers?resource=https%3A%2F%2Ftools.example.com%2Fweather%2Fmcp"
		if got := anonymous.Header.Get("WWW-Authenticate"); got != `Bearer scope="mcp-registry:read", resource_metadata="`+metadata+`"` {
			t.Errorf("the challenge is %s", got)
		}
		described := apiclient.Call(t, "GET", s.API+strings.TrimPrefix(metadata, publicURL), nil).WantStatus(t, http.StatusOK)
		if !strings.Contains(string(described.Body), `"resource":"`+weatherURL+`"`) {
			t.Errorf("the metadata is %s", described.Body)
		}
		checkMetadata(t, s.API)
	})
}

// checkMetadata reads the metadata of a tool server in its three places, as clients and pages of browsers do.
func checkMetadata(t *testing.T, service string) {
	t.Helper()
	for _, place := range []string{"", "/com.example%2Fweather", "/com.example/weather"} {
		address := service + "/.well-known/oauth-protected-resource/servers" + place
		named := address + "?resource=https%3A%2F%2Ftools.example.com%2Fweather%2Fmcp"
		got := apiclient.Call(t, "GET", named, nil).WantStatus(t, http.StatusOK)
		apiclient.Call(t, "GET", named, nil, "If-None-Match", got.Header.Get("ETag")).WantStatus(t, http.StatusNotModified)
		apiclient.Call(t, "GET", address+"?resource=mcp", nil).WantStatus(t, http.StatusBadRequest)
		apiclient.Call(t, "OPTIONS", named, nil, "Origin", "https://example.com", "Access-Control-Request-Method", "GET").
			WantStatus(t, http.StatusNoContent)
	}
}

// TestMethods sends each method that a proxy may use, for each answer.
func TestMethods(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.setRule(t, "all", object{})
	s.awaitAnswer(t, "the rule", s.robot, "forecast", http.StatusOK)
	for _, method := range []string{"HEAD", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		ask := func(status int, header []string) {
			t.Helper()
			apiclient.Call(t, method, s.API+"/decide/http", nil, header...).WantStatus(t, status)
		}
		ask(http.StatusOK, s.forwarded(s.robot, "GET", weatherURL))
		ask(http.StatusOK, []string{
			"x-tollgate-key", s.key, "X-Original-Method", "GET", "X-Original-URL", weatherURL, "Authorization", "Bearer " + s.robot,
		})
		ask(http.StatusNoContent, s.forwarded("", "OPTIONS", weatherURL))
		ask(http.StatusUnauthorized, s.forwarded("", "GET", weatherURL))
		ask(http.StatusForbidden, s.forwarded(s.robot, "GET", "https://tools.example.com/other"))
		ask(http.StatusForbidden, []string{"X-Forwarded-Method", "GET"})
		ask(http.StatusForbidden, []string{"x-tollgate-key", s.robot, "X-Forwarded-Method", "GET"})
		ask(http.StatusForbidden, []string{"x-tollgate-key", s.newToken(t, "robot", "decide"), "X-Forwarded-Method", "GET"})
		ask(http.StatusBadRequest, []string{"x-tollgate-key", s.key})
	}
	for spelling, status := range map[string]int{
		"https://tools.example.com/weather/mcp/x?token=y":    http.StatusOK,
		"https://tools.example.com/weather/mcp2":             http.StatusForbidden,
		"https://tools.example.com/weather/mcp/%2e%2e/other": http.StatusForbidden,
		`https://tools.example.com/weather/mcp/..\other`:     http.StatusForbidden,
		"https://tools.example.com@evil.example/weather/mcp": http.StatusForbidden,
	} {
		a := apiclient.Call(t, "GET", s.API+"/decide/http", nil, s.forwarded(s.robot, "GET", spelling)...)
		if a.Status != status {
			t.Errorf("%s: %d %s", spelling, a.Status, a.Body)
		}
	}
	off := s.environment.Start(t, "DECIDE=off")
	for _, method := range []string{"HEAD", "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		apiclient.Call(t, method, off.API+"/decide/http", nil, s.forwarded(s.robot, "GET", weatherURL)...).
			WantStatus(t, http.StatusNotImplemented)
	}
	near := s.environment.Start(t, append(settings(), "DECIDE_NETWORKS=127.0.0.0/8")...)
	apiclient.Call(t, "GET", near.API+"/decide/http", nil, s.forwarded(s.robot, "GET", weatherURL)[2:]...).WantStatus(t, http.StatusOK)
}

// TestStrangers: callers who are not admitted count against the limit of the API, and their bodies are not
// read. Callers who are do not count.
func TestStrangers(t *testing.T) {
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	limited := s.environment.Start(t, append(settings(), "API_RATE_LIMIT=6")...)
	for range 3 {
		status := sendHeader(t, limited, "POST /access/v1/evaluation HTTP/1.1\r\nAuthorization: Bearer "+strings.Repeat("x", 43)+"\r\nContent-Length: 1000000")
		if status != "401" {
			t.Errorf("a body that is announced: %s", status)
		}
		apiclient.Call(t, "POST", limited.API+"/decide/http", nil, "X-Forwarded-Method", "GET").WantStatus(t, http.StatusForbidden)
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		apiclient.Call(t, method, limited.API+"/decide/http", nil).WantStatus(t, http.StatusTooManyRequests)
	}
	for _, path := range []string{"/access/v1/evaluation", "/access/v1/evaluations"} {
		apiclient.Call(t, "POST", limited.API+path, object{}).WantStatus(t, http.StatusTooManyRequests)
	}
	for range 9 {
		apiclient.Call(t, "GET", limited.API+"/decide/http", nil, s.forwarded("", "GET", weatherURL)...).WantStatus(t, http.StatusUnauthorized)
	}
	off := s.environment.Start(t, "DECIDE=off", "API_RATE_LIMIT=1")
	apiclient.Call(t, "POST", off.API+"/access/v1/evaluation", object{}).WantStatus(t, http.StatusNotImplemented)
	apiclient.Call(t, "POST", off.API+"/decide/http", object{}).WantStatus(t, http.StatusTooManyRequests)
}

// sendHeader sends the header of a request, and no body, and returns the status.
func sendHeader(t *testing.T, to *fixture.Service, header string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(to.API, "http://"))
	must.Succeed(t, err)
	defer func() { _ = connection.Close() }() // the response was read
	_, err = io.WriteString(connection, header+"\r\nHost: tollgate\r\n\r\n")
	must.Succeed(t, err)
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	must.Succeed(t, err)
	defer response.Body.Close()
	return strconv.Itoa(response.StatusCode)
}

// TestBodies sends bodies that Tollgate and a tool server could read in different ways.
func TestBodies(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		s.setRule(t, "forecasts", object{"tools": []string{"forecast"}})
		s.awaitAnswer(t, "the rule", s.robot, "forecast", http.StatusOK)
		const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"forecast"}}`
		const other = `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"delete"}}`
		for name, c := range map[string]struct {
			chunks []string
			status string
		}{
			"a call":                   {[]string{call}, "200"},
			"a call in chunks":         {[]string{call[:9], call[9:60], call[60:]}, "200"},
			"a batch":                  {[]string{"[" + call + "]"}, "403"},
			"a batch of two in chunks": {[]string{"[" + call, "," + other + "]"}, "403"},
			"two calls":                {[]string{call, other}, "403"},
			"another tool in chunks":   {[]string{other[:50], other[50:]}, "403"},
			"a part":                   {[]string{call[:len(call)-2]}, "403"},
			"nothing":                  {nil, "403"},
			"a large one":              {[]string{`{"x":"` + strings.Repeat("a", 64<<10) + `",`, call[1:]}, "403"},
			"a chunk that is cut":      {[]string{call, "cut"}, "400"},
		} {
			if got := s.sendChunks(t, c.chunks); got != c.status {
				t.Errorf("%s: %s, want %s", name, got, c.status)
			}
		}
	})
}

// sendChunks sends the question about a body with the transfer encoding chunked, and returns the status.
// A chunk cut says that more follows than does.
func (s *site) sendChunks(t *testing.T, chunks []string) string {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.API, "http://"))
	must.Succeed(t, err)
	defer func() { _ = connection.Close() }() // the response was read
	request := "POST /decide/http HTTP/1.1\r\nHost: tollgate\r\nConnection: close\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
	header := s.forwarded(s.robot, "POST", weatherURL)
	for i := 0; i < len(header); i += 2 {
		request += header[i] + ": " + header[i+1] + "\r\n"
	}
	request += "\r\n"
	end := "0\r\n\r\n"
	for _, chunk := range chunks {
		if chunk == "cut" {
			request, end = request+"ff\r\n", ""
			break
		}
		request += fmt.Sprintf("%x\r\n%s\r\n", len(chunk), chunk)
	}
	if _, err := io.WriteString(connection, request+end); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, connection.(*net.TCPConn).CloseWrite())
	text, err := io.ReadAll(connection)
	must.Succeed(t, err)
	_, status, _ := strings.Cut(string(text), " ")
	status, _, _ = strings.Cut(status, " ")
	return status
}

// TestFresh: a change of a rule, quarantine, the end of a session and of an account hold on another
// instance too.
func TestFresh(t *testing.T) {
	fixture.InEnvironment(t, func(t *testing.T, e *fixture.Environment) {
		s := startSite(t, e)
		ada := e.NewWriter(t, s.Service, "ada@example.com")
		s.setRule(t, "all", object{"subjects": []string{"everyone"}})
		for _, token := range []string{s.robot, ada.AccessToken} {
			s.awaitAnswer(t, "the rule", token, "forecast", http.StatusOK)
		}
		s.setRule(t, "no-forecast", object{"order": 1, "effect": "deny", "subjects": []string{"anyone"}, "tools": []string{"fore*"}})
		s.awaitAnswer(t, "the denial", s.robot, "forecast", http.StatusForbidden)
		s.awaitAnswer(t, "another tool", s.robot, "warnings", http.StatusOK)
		s.manage(t, "DELETE", "/access-rules/no-forecast", nil, http.StatusNoContent)
		s.awaitAnswer(t, "the end of the denial", s.robot, "forecast", http.StatusOK)

		e.RunCommand(t, "", "session", "end", "--email", "ada@example.com", "--all")
		s.awaitAnswer(t, "the end of the sessions", ada.AccessToken, "forecast", http.StatusUnauthorized)
		ada.Login(t, s.Service)
		s.awaitAnswer(t, "another session", ada.AccessToken, "forecast", http.StatusOK)
		e.RunCommand(t, "", "user", "disable", "--email", "ada@example.com")
		s.awaitAnswer(t, "a leaver", ada.AccessToken, "forecast", http.StatusUnauthorized)

		e.RunCommand(t, "", "registry", "quarantine", weather, "--reason", "it sends data")
		s.awaitAnswer(t, "quarantine", s.robot, "forecast", http.StatusForbidden)
	})
}
