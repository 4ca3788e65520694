package decideapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/core/access"
	"github.com/tollgate-dev/tollgate/core/access/deciding"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// site is a listener with the part for proxies. It answers by the recorder.
type site struct {
	*recorder

	api    *API
	app    *fiber.App
	answer deciding.Answer
}

func newSite(c Config) *site {
	a, r := newAPI(c)
	s := &site{recorder: r, api: a, answer: deciding.Answer{Decision: access.Decision{Effect: access.Allow}, Subject: ada}}
	a.ports.Decide = func(ctx context.Context, q deciding.Question) (deciding.Answer, error) {
		if _, err := r.decide(ctx, q); err != nil {
			return deciding.Answer{}, err
		}
		return s.answer, nil
	}
	a.ports.Named = func(_ context.Context, kind, id string) (access.Subject, error) {
		if kind == "person" && id == "ada@example.com" {
			return ada, nil
		}
		return access.Refused(), nil
	}
	w := NewWeb(a, func(*fiber.Ctx) netip.Addr { return netip.MustParseAddr("198.51.100.7") })
	s.app = fiber.New(fiber.Config{ErrorHandler: func(c *fiber.Ctx, err error) error {
		if f, ok := fault.As(err); ok {
			return w.WriteFault(c.Status(map[fault.Kind]int{
				fault.Invalid: 400, fault.Unauthenticated: 401, fault.Forbidden: 403, fault.NotFound: 404, fault.Unsupported: 501,
				fault.Unavailable: 503,
			}[f.Kind]), f)
		}
		var status *fiber.Error
		if errors.As(err, &status) {
			return c.SendStatus(status.Code)
		}
		return err
	}})
	w.Mount(s.app)
	return s
}

// response is what a test looks at.
type response struct {
	status int
	header http.Header
	body   string
}

// call sends a request with lines of headers, and a body if it is not empty.
func (s *site) call(t *testing.T, method, path, headers, body string) response {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	for line := range strings.Lines(headers) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		r.Header.Add(name, value)
	}
	a, err := s.app.Test(r, -1)
	must.Succeed(t, err)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	must.Succeed(t, err)
	return response{a.StatusCode, a.Header, string(text)}
}

const (
	key       = "X-Tollgate-Key: key\n"
	forwarded = key + "X-Forwarded-Method: POST\nX-Forwarded-Proto: https\nX-Forwarded-Host: tools.example.com\nX-Forwarded-Uri: /mcp?x=1\n"
	original  = key + "X-Original-Method: POST\nX-Original-URL: https://tools.example.com/mcp?x=1\n"
)

var on = Config{On: true}

// TestMissingHeaders: the error about a header that is missing names the headers of both kinds, unless the
// request has some of one.
func TestMissingHeaders(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	for headers, want := range map[string]string{
		key:                            "X-Forwarded-Method: it is missing, and so are X-Original-Method and X-Original-URL, which nginx sends",
		key + "X-Original-URI: /mcp\n": "X-Forwarded-Method: it is missing, and so are X-Original-Method",
		key + "X-Original-URL: https://tools.example.com/mcp\n":      "X-Original-Method: it is missing",
		key + "X-Original-Method: POST\n":                            "X-Original-URL: it is missing",
		key + "X-Forwarded-Method: POST\nX-Forwarded-Proto: https\n": "X-Forwarded-Host: it is missing",
	} {
		if a := s.call(t, "GET", httpPath, headers, ""); a.status != 400 || !strings.Contains(a.body, want) {
			t.Errorf("%q: %d %s, want %s", headers, a.status, a.body, want)
		}
	}
}

// TestForwarded: both kinds of headers describe the same request.
func TestForwarded(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	for _, headers := range []string{forwarded, original} {
		a := s.call(t, "GET", httpPath, headers+"Authorization: Bearer ada", "")
		who, err := s.asked.Caller.Person()
		if a.status != 200 || err != nil || who != "ada" || s.asked.From.String() != "198.51.100.7" ||
			s.asked.Address != (access.Address{Scheme: "https", Host: "tools.example.com", Path: "/mcp?x=1"}) ||
			s.asked.Call.Problem != access.Unreadable {
			t.Errorf("%d, asked %+v, error %v", a.status, s.asked, err)
		}
		if got := a.header.Get("x-tollgate-subject"); got != "person:ada@example.com" {
			t.Errorf("the subject is %q", got)
		}
	}
	body := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"forecast"}}`
	if a := s.call(t, "POST", httpPath, forwarded, body); a.status != 200 || s.asked.Call.Tool() != "forecast" {
		t.Errorf("with a body: %d, asked %+v", a.status, s.asked)
	}
	s.call(t, "GET", httpPath, key+"X-Forwarded-Method: post\nX-Tollgate-Server: com.example/weather", "")
	if s.asked.Server != "com.example/weather" || s.asked.Call.Problem != access.Unreadable {
		t.Errorf("a name that is stated, and a method in lower case: %+v", s.asked)
	}
	for _, headers := range []string{
		key + "X-Forwarded-Method: OPTIONS\nX-Tollgate-Server: a/b", key + "X-Original-Method: OPTIONS\nX-Original-URL: https://a/b",
	} {
		s.asked = deciding.Question{}
		if a := s.call(t, "GET", httpPath, headers, ""); a.status != 204 || s.asked.Server != "" {
			t.Errorf("OPTIONS: %d, asked %+v", a.status, s.asked)
		}
	}
}

// TestHostileForwarded: headers that are there twice, of two kinds of proxies, or not at all, are
// refused by their name and decide nothing.
func TestHostileForwarded(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	without := func(headers, name string) string {
		var kept strings.Builder
		for line := range strings.Lines(headers) {
			if !strings.HasPrefix(line, name) {
				kept.WriteString(line)
			}
		}
		return kept.String()
	}
	for headers, name := range map[string]string{
		forwarded + "X-Forwarded-Uri: /other":                                 "X-Forwarded-Uri",
		forwarded + "X-Forwarded-Host: other.example":                         "X-Forwarded-Host",
		forwarded + "X-Forwarded-Method: GET":                                 "X-Forwarded-Method",
		forwarded + "X-Forwarded-Proto: http":                                 "X-Forwarded-Proto",
		forwarded + "X-Original-URL: https://other.example/":                  "X-Forwarded-Uri",
		forwarded + "X-Original-Method: GET":                                  "X-Original-Method",
		forwarded + "X-Tollgate-Server: a/b\nX-Tollgate-Server: c/d":          "x-tollgate-server",
		original + "X-Original-URL: https://other.example/":                   "X-Original-URL",
		original + "X-Original-Method: GET":                                   "X-Original-Method",
		original + "X-Forwarded-Uri: /other":                                  "X-Forwarded-Uri",
		original + "X-Forwarded-Method: GET":                                  "X-Forwarded-Method",
		without(original, "X-Original-Method"):                                "X-Original-Method",
		without(original, "X-Original-Method") + "X-Forwarded-Method: GET":    "X-Forwarded-Method",
		without(forwarded, "X-Forwarded-Method"):                              "X-Forwarded-Method",
		without(forwarded, "X-Forwarded-Method") + "X-Original-Method: GET":   "X-Original-Method",
		without(forwarded, "X-Forwarded-Proto"):                               "X-Forwarded-Proto",
		without(forwarded, "X-Forwarded-Host"):                                "X-Forwarded-Host",
		without(forwarded, "X-Forwarded-Uri"):                                 "X-Forwarded-Uri",
		key + "X-Original-Method: GET\nX-Original-URL: tools.example.com/mcp": "X-Original-URL",
		key: "X-Forwarded-Method",
	} {
		s.asked = deciding.Question{Server: "nothing was asked"}
		a := s.call(t, "GET", httpPath, headers, "")
		if a.status != 400 || !strings.Contains(a.body, `"message":"`+name) || s.asked.Server != "nothing was asked" {
			t.Errorf("%s: %d %s, asked %+v; want a refusal of %s", headers, a.status, a.body, s.asked, name)
		}
	}
	// What programs read in different ways is passed on as it is, for core/access to refuse.
	for url, want := range map[string]access.Address{
		"https://good.example@bad.example/mcp":   {Scheme: "https", Host: "good.example@bad.example", Path: "/mcp"},
		`https://good.example\@bad.example/mcp`:  {Scheme: "https", Host: `good.example\@bad.example`, Path: "/mcp"},
		"https://good.example?@bad.example/mcp":  {Scheme: "https", Host: "good.example", Path: "?@bad.example/mcp"},
		"https://good.example/a/%2e%2e/b%2Fc?d":  {Scheme: "https", Host: "good.example", Path: "/a/%2e%2e/b%2Fc?d"},
		"https://GOOD.example:443//mcp;x#/other": {Scheme: "https", Host: "GOOD.example:443", Path: "//mcp;x#/other"},
	} {
		if s.call(t, "GET", httpPath, key+"X-Original-Method: GET\nX-Original-URL: "+url, ""); s.asked.Address != want {
			t.Errorf("%s is %+v", url, s.asked.Address)
		}
	}
}

// TestProxies: who may ask. Others get 403 for everything, also OPTIONS.
func TestProxies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config Config
		key    string
		status int
	}{
		"a key": {on, "key", 200}, "no key": {on, "", 403}, "a bad key": {on, "bad", 403}, "another scope": {on, "other key", 403},
		"a person": {on, "ada", 403}, "off": {Config{}, "key", 501},
		"a network":      {Config{On: true, Networks: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/32")}}, "", 200},
		"another":        {Config{On: true, Networks: []netip.Prefix{netip.MustParsePrefix("198.51.100.7/32")}}, "", 403}, // is the client
		"away":           {on, "away", 503},
		"two keys, bad":  {on, "bad\nX-Tollgate-Key: key", 403},
		"another scheme": {on, "Bearer key", 403},
	} {
		s := newSite(c.config)
		for _, method := range []string{"GET", "HEAD", "POST", "OPTIONS"} {
			want := c.status
			a := s.call(t, method, httpPath, strings.Replace(forwarded, "Key: key", "Key: "+c.key, 1), "")
			if a.status != want || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("%s, %s: %d %v %s", name, method, a.status, a.header, a.body)
			}
		}
	}
}

// TestSeveralTypes: of two headers Content-Type the server library keeps the last, and a tool server may
// take the first.
func TestSeveralTypes(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	for types, readable := range map[string]bool{
		"": true, "Content-Type: application/json\n": true, "CONTENT-TYPE: application/json; charset=utf-7\n": false,
		"Content-Type: application/json; charset=utf-7\nContent-Type: application/json\n": false,
		"Content-Type: application/json\nContent-Type: application/json\n":                false,
		"Content-Encoding: identity\nContent-Encoding: br\n":                              false,
	} {
		s.call(t, "POST", httpPath, forwarded+types, `{"method":"tools/list"}`)
		if (s.asked.Call.Problem == "") != readable {
			t.Errorf("%q: %+v", types, s.asked.Call)
		}
	}
}

// TestUpgrades: nothing is decided about what a connection carries as another protocol.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	s := newSite(on)
	for _, method := range []string{"GET", "POST"} {
		for upgrade, readable := range map[string]bool{"": method == "GET", "Upgrade: websocket\n": false, "Connection: Upgrade\nUpgrade: h2c\n": false} {
			s.call(t, "GET", httpPath, strings.Replace(forwarded, "POST", method, 1)+upgrade, "")
			if (s.asked.Call.Problem == "") != readable {
				t.Errorf("%s, %q: %+v", method, upgrade, s.asked.Call)
			}
		}
	}
}

// TestOptions: what browsers ask before a call passes, and what has a body is decided.
func TestOptions(t *testing.T) {
	t.Parallel()
	options := strings.Replace(forwarded, "POST", "OPTIONS", 1)
	s := newSite(on)
	s.answer.Effect = access.Deny
	if a := s.call(t, "OPTIONS", httpPath, options, ""); a.status != 204 {
		t.Errorf("without a body: %+v", a)
	}
	if a := s.call(t, "OPTIONS", httpPath, options+"Content-Type: application/json\n", ""); a.status != 403 {
		t.Errorf("with the type of a body: %+v", a)
	}
	if a := s.call(t, "POST", httpPath, options, `{"method":"tools/list"}`); a.status != 403 || s.asked.Call.Problem != access.Unreadable {
		t.Errorf("with a body: %+v, asked %+v", a, s.asked.Call)
	}
}

// TestAnswers: what a proxy gets of calls that are not allowed.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(Config{On: true, PublicURL: "https://tollgate.example.com"})
	s.answer = deciding.Answer{ID: "7", Decision: access.Decision{Effect: access.Deny, Reason: access.ByRule, Rule: "secret"}}
	a := s.call(t, "POST", httpPath, forwarded, `{"jsonrpc":"2.0","id":"x","method":"tools/list"}`)
	if a.status != 403 || a.header.Get("x-tollgate-decision-id") != "7" || a.header.Get("Content-Type") != "application/json" ||
		a.body != `{"jsonrpc":"2.0","id":"x","error":{"code":-32001,"message":"the call is not allowed"}}` {
		t.Errorf("denied: %+v", a)
	}
	s.answer.Effect = access.Challenge
	a = s.call(t, "GET", httpPath, forwarded, "")
	if a.status != 401 || a.header.Get("WWW-Authenticate") !=
		`Bearer scope="mcp-registry:read", resource_metadata="https://tollgate.example.com/.well-known/oauth-protected-resource`+
			`/servers?resource=https%3A%2F%2Ftools.example.com%2Fmcp"` {
		t.Errorf("challenged: %+v", a)
	}
	s.err = fault.New(fault.Unavailable, "away")
	if a := s.call(t, "GET", httpPath, forwarded, ""); a.status != 503 {
		t.Errorf("away: %+v", a)
	}
}

// TestChallenges checks which metadata a challenge names: that of the address which the client has called and of
// the name that the proxy states, and that of the registry for an address or a name of which clients could make
// something else. Neither writes anything else into the header.
func TestChallenges(t *testing.T) {
	t.Parallel()
	s := newSite(Config{On: true, PublicURL: "https://tollgate.example.com/base/"})
	s.answer = deciding.Answer{ID: "7", Decision: access.Decision{Effect: access.Challenge, Reason: access.ByRule}}
	const here, servers = "https://tollgate.example.com/base/.well-known/oauth-protected-resource", "/servers"
	const caddy, nginx = "X-Forwarded-Method: GET\nX-Forwarded-Proto: https\n", "X-Original-Method: GET\n"
	const name = "x-tollgate-server: com.example/weather\n"
	long := "/" + strings.Repeat("%22", 400)
	for headers, want := range map[string]string{
		nginx + "X-Original-URL: http://Tools.example.com:80/mcp?token=x": servers + "?resource=http%3A%2F%2Ftools.example.com%2Fmcp",
		nginx + "X-Original-URL: https://tools.example.com/\n" + name:     servers + "/com.example/weather?resource=https%3A%2F%2Ftools.example.com",
		caddy + "X-Forwarded-Host: a.example:8443\nX-Forwarded-Uri: /a&b/'c'\n" + name: servers +
			"/com.example/weather?resource=https%3A%2F%2Fa.example%3A8443%2Fa%26b%2F%27c%27",
		// A proxy that states the name need not state the address.
		nginx + name:                             "",
		nginx + "X-Original-URL: /mcp\n" + name:  "",
		caddy + "X-Forwarded-Uri: /mcp\n" + name: "",
		caddy + "X-Forwarded-Host: a.example\nX-Forwarded-Host: b.example\nX-Forwarded-Uri: /\n" + name: "",
		// What a client wrote into its address, and a name that no one checks.
		nginx + `X-Original-URL: https://a.example/", error="x`:                            "",
		nginx + "X-Original-URL: https://a.example/\x01":                                   "",
		nginx + `X-Original-URL: https://a.example\, b="c/`:                                "",
		nginx + "X-Original-URL: javascript://a.example/%0aalert(1)":                       "",
		nginx + "X-Original-URL: https://user:secret@a.example/":                           "",
		nginx + "X-Original-URL: https://a.example" + long:                                 "",
		nginx + "X-Original-URL: https://a.example/\nx-tollgate-server: ../../admin":       servers + "?resource=https%3A%2F%2Fa.example",
		nginx + "X-Original-URL: https://a.example/\nx-tollgate-server: com.example/.well": servers + "?resource=https%3A%2F%2Fa.example",
		nginx + "X-Original-URL: https://a.example/\nx-tollgate-server: a/b\", x=\"y":      servers + "?resource=https%3A%2F%2Fa.example",
	} {
		a := s.call(t, "GET", httpPath, "x-tollgate-key: key\n"+headers, "")
		if got := a.header.Get("WWW-Authenticate"); a.status != 401 || got != `Bearer scope="mcp-registry:read", resource_metadata="`+here+want+`"` {
			t.Errorf("%q: %d %s", headers, a.status, got)
		}
	}
}
