package openapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestEveryAnswerIsChecked checks that CheckDescribed refuses responses that the description does
// not have, and responses to requests that it does not allow.
func TestEveryAnswerIsChecked(t *testing.T) {
	const (
		every  = "X-Request-Id: r-1\nX-Content-Type-Options: nosniff\nReferrer-Policy: no-referrer\nContent-Security-Policy: default-src 'none'; x\n"
		limits = "X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1795219200\n"
		open   = every +
			"Access-Control-Allow-Origin: *\nAccess-Control-Allow-Methods: GET, OPTIONS\nAccess-Control-Allow-Headers: Authorization, Content-Type\n"
		cached = open + "Vary: Accept-Encoding\nCache-Control: public, max-age=5, stale-while-revalidate=60, stale-if-error=86400\n"
		closed = every + "Cache-Control: no-store\n"
		wrong  = `{"error":"a sentence"}`
		mine   = `{"id":"` + someID + `","userId":"` + someID +
			`","trustLevel":"FULL_TRUST","deviceIdentity":"d","createdAt":"2026-01-31T12:00:00.000Z",` +
			`"lastActivity":"2026-01-31T12:00:00.000Z","expiresAt":"2026-01-31T12:00:00.000Z","ipAddress":"::1"}`
	)
	for name, c := range map[string]struct{ method, path, status, header, body, want string }{
		"error":             {"GET", "/v0.1/servers", "400", open, wrong, ""},
		"error with limits": {"GET", "/v0.1/servers", "400", open + limits, wrong, ""},
		"wrong form":        {"GET", "/v0.1/servers", "400", open, `{"error":"a sentence","message":"x"}`, "message"},
		"other part":        {"GET", "/devices", "401", closed + "WWW-Authenticate: Bearer", wrong, "error"},
		"no challenge":      {"GET", "/devices", "401", closed, authError("invalid_token", ""), "WWW-Authenticate"},
		"code of another": {
			"GET", "/devices", "401", closed + "WWW-Authenticate: Bearer", authError("access_denied", ""), "error",
		},
		"unknown detail": {"GET", "/devices", "403", closed, authError("access_denied", `"why":"x"`), "why"},
		"no time to wait": {
			"GET", "/devices", "429", closed + limits, authError("rate_limit_exceeded", `"retryAfter":1`),
			"Retry-After",
		},
		"no detail to wait": {
			"GET", "/devices", "429", closed + limits + "Retry-After: 1", authError("rate_limit_exceeded", ""),
			"retryAfter",
		},
		"something remains": {
			"GET", "/v0/servers", "429", open + "Retry-After: 1\n" + strings.Replace(limits, ": 0", ": 1", 1),
			wrong, "Remaining",
		},
		"status": {"GET", "/v0.1/servers", "418", open, wrong, "418"},
		"no number": {
			"GET", "/v0/servers", "400", open + "X-RateLimit-Limit: many", wrong, "X-RateLimit-Limit",
		},
		"half of the limits": {"GET", "/v0/servers", "400", open + "X-RateLimit-Limit: 5", wrong, "X-RateLimit"},
		"without a name": {
			"GET", "/v0/servers", "400", strings.Replace(open, "X-Request-Id: r-1\n", "", 1), wrong, "X-Request-Id",
		},
		"without a policy": {
			"GET", "/v0/servers", "400", strings.Replace(open, "'none'", "*", 1), wrong, "Content-Security-Policy",
		},
		"unknown header":     {"GET", "/v0/servers", "400", open + "X-Powered-By: x", wrong, "X-Powered-By"},
		"closed to browsers": {"GET", "/v0/servers", "400", every, wrong, "Access-Control"},
		"open to browsers":   {"POST", "/v0/publish", "400", open, wrong, "Access-Control"},
		"other media":        {"GET", "/v0/servers", "400", open + "Content-Type: text/plain", wrong, "text/plain"},
		"no JSON":            {"GET", "/v0/servers", "400", open, `{`, "JSON"},
		"wrong method":       {"POST", "/v0/validate", "405", every + "Allow: GET, HEAD", wrong, ""},
		"not that wrong":     {"POST", "/v0/servers", "200", open, wrong, "200"},
		"unknown path":       {"GET", "/v0/nothing", "404", open, wrong, ""},
		"unknown form":       {"GET", "/auth/nothing", "404", closed, wrong, "error"},
		"deep path":          {"GET", "/v2/courses/CS/135.json", "404", closed, `{"meta":{},"data":[]}`, "meta"},
		"body with 304":      {"GET", "/v0/servers", "304", cached + "ETag: \"0123456789abcdef\"", `{}`, "body"},
		"weak validator":     {"GET", "/v0/servers", "304", cached + "ETag: W/\"0123456789abcdef\"", ``, "ETag"},
		"enum":               {"GET", "/health", "200", closed, `{"status":"fine"}`, "status"},
		"no token":           {"GET", "/auth/session", "200", closed, mine, "token"},
		"limit": {
			"GET", "/v0/servers?limit=101", "200", cached + "ETag: \"0123456789abcdef\"",
			`{"servers":[],"metadata":{"count":0}}`, "limit",
		},
		"no boolean": {
			"GET", "/v0/servers?include_deleted=y", "304", cached + "ETag: \"0123456789abcdef\"", ``, "include_deleted",
		},
		"empty parameter": {"GET", "/v0/servers?limit=", "304", cached + "ETag: \"0123456789abcdef\"", ``, ""},
		"XML": {
			"GET", "/v2/none.xml", "404", closed + "Content-Type: application/xml", envelopeXML("404"), "",
		},
		"XML without number": {
			"GET", "/v2/none.xml", "404", closed + "Content-Type: application/xml", envelopeXML("x"), "status",
		},
		"XML of more": {
			"GET", "/v2/none.xml", "404", closed + "Content-Type: application/xml",
			envelopeXML("404</status><more/><status>404"), "more",
		},
		"no XML": {"GET", "/v2/none.xml", "404", closed + "Content-Type: application/xml", "{}", "XML"},
	} {
		a := apiclient.Response{Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(c.body)}
		for line := range strings.Lines(c.header) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			a.Header.Set(key, value)
		}
		var err error
		if a.Status, err = strconv.Atoi(c.status); err != nil {
			t.Fatal(err)
		}
		r, err := http.NewRequest(c.method, "http://api.example"+c.path, nil)
		must.Succeed(t, err)
		err = CheckDescribed(r, a)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

const someID = "3f30e8b6-c17c-44ae-8374-84c863f8b10c"

func authError(code, details string) string {
	return `{"error":"` + code + `","message":"m","details":{` + details + `}}`
}

func envelopeXML(status string) string {
	return `<response><meta><requests>1</requests><timestamp>1</timestamp><status>` + status +
		`</status><message>m</message><version>2.07</version><method></method></meta><data></data></response>`
}

// TestSentBodiesAreChecked checks that a response with 200 is refused when the body of the request
// does not match the description.
func TestSentBodiesAreChecked(t *testing.T) {
	d, err := ReadDescription()
	must.Succeed(t, err)
	for sent, want := range map[string]string{
		`{"method":"EMAIL_OTP"}`: "", `{"method":"PIGEON"}`: "method", `{}`: "method", `[]`: "object", `{`: "JSON",
	} {
		r, err := http.NewRequest("POST", "http://api.example/auth/step-up/initiate", strings.NewReader(sent))
		must.Succeed(t, err)
		r.Header.Set("Authorization", "Bearer x")
		o, item := d.operation(r)
		if err := d.checkRequest(o, item, r); (err == nil) != (want == "") ||
			err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", sent, err, want)
		}
	}
}
