package jsonbody

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

// policyBody is what a body with the members of a policy contains.
type policyBody struct {
	method, domain string
	actions        []string
	claims         map[string]string
	expiresAt      time.Time
}

// readPolicyBody reads a body in the way of addPolicy.
func readPolicyBody(text []byte) (policyBody, error) {
	b, err := Parse(text, false)
	if err != nil {
		return policyBody{}, err
	}
	p := policyBody{
		b.Text("method"), b.OptionalText("domain"), b.Texts("actions"), b.TextMap("claims"), b.Time("expiresAt"),
	}
	return p, b.Err()
}

// TestWrongBodiesAreNamed requires that the error of each wrong body names the member and is of
// kind Invalid.
func TestWrongBodiesAreNamed(t *testing.T) {
	t.Parallel()
	for body, message := range map[string]string{
		``:                                    "body is empty; it must be a JSON object",
		" \n\t":                               "body is empty; it must be a JSON object",
		`{`:                                   "body is not valid JSON",
		`{} {}`:                               "body is not valid JSON",
		"{\"method\":\"\xff\"}":               "body is not valid JSON",
		"\xef\xbb\xbf{}":                      "body is not valid JSON",
		`null`:                                "body must be a JSON object",
		`[]`:                                  "body must be a JSON object",
		`"dns"`:                               "body must be a JSON object",
		`{}`:                                  "method is missing",
		`{"Method":"dns"}`:                    "method is missing",
		`{"method":null}`:                     "method is missing",
		`{"method":""}`:                       "method must not be empty",
		`{"method":1}`:                        "method must be a string without NUL",
		`{"method":"a\u0000"}`:                "method must be a string without NUL",
		`{"method":"dns","method":"dns"}`:     "method occurs twice",
		`{"other":1,"\u006fther":2}`:          "other occurs twice",
		`{"method":"dns","domain":{}}`:        "domain must be a string without NUL",
		`{"method":"dns","domain":"\u0000"}`:  "domain must be a string without NUL",
		`{"method":"dns","actions":"status"}`: "actions must be a list of one or more strings",
		`{"method":"dns","actions":[]}`:       "actions must be a list of one or more strings",
		`{"method":"dns","actions":[1]}`:      "actions must be a list of one or more strings",
		`{"method":"dns","actions":["publish",null]}`: "actions[1] must be a string without NUL",
		`{"method":"dns","actions":["\u0000"]}`:       "actions[0] must be a string without NUL",
		`{"method":"dns","claims":[]}`:                "claims must be an object of strings",
		`{"method":"dns","claims":"ref"}`:             "claims must be an object of strings",
		`{"method":"dns","claims":{"ref":1}}`:         "claims.ref must be a string that is not empty",
		`{"method":"dns","claims":{"ref":null}}`:      "claims.ref must be a string that is not empty",
		`{"method":"dns","claims":{"ref":""}}`:        "claims.ref must be a string that is not empty",
		`{"method":"dns","claims":{"ref":"a\u0000"}}`: "claims.ref must be a string that is not empty",
		`{"method":"dns","claims":{"r":"a","r":"b"}}`: "claims.r occurs twice",
		`{"method":"dns","expiresAt":"tomorrow"}`:     "expiresAt must be an RFC 3339 time, for example 2027-01-01T00:00:00Z",
		`{"method":"dns","expiresAt":""}`:             "expiresAt must be an RFC 3339 time, for example 2027-01-01T00:00:00Z",
		`{"method":"dns","expiresAt":1800000000}`:     "expiresAt must be a string without NUL",
		`{"method":7,"actions":7,"claims":7}`:         "method must be a string without NUL",
	} {
		_, err := readPolicyBody([]byte(body))
		f, ok := fault.As(err)
		if !ok || f.Kind != fault.Invalid || f.Message != message {
			t.Errorf("%q: %v, want %q", body, err, message)
		}
	}
}

// TestMembersAreRead requires that members are read by their exact names, that null is the same as
// a missing optional member, and that other members are ignored.
func TestMembersAreRead(t *testing.T) {
	t.Parallel()
	p, err := readPolicyBody([]byte(` {"method": "dns", "domain": null, "actions": [ "publish" , "status" ], "other": {"a": [null]},
		"claims": {"ref": "refs/heads/main", "a b": "ü"}, "expiresAt": "2027-01-01T00:00:00+01:00"} `))
	must.Succeed(t, err)
	if p.method != "dns" || p.domain != "" || !slices.Equal(p.actions, []string{"publish", "status"}) ||
		len(p.claims) != 2 ||
		p.claims["ref"] != "refs/heads/main" || p.claims["a b"] != "ü" ||
		!p.expiresAt.Equal(time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)) {
		t.Errorf("the body is read as %+v", p)
	}
	p, err = readPolicyBody([]byte(`{"method":"dns","actions":null,"claims":null,"expiresAt":null}`))
	if err != nil || p.actions != nil || p.claims != nil || !p.expiresAt.IsZero() {
		t.Errorf("a body with null is read as %+v, %v", p, err)
	}
}

// TestNullableText requires that a text may be missing or null, but not empty.
func TestNullableText(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{`{}`: "", `{"v":null}`: "", `{"v":"1"}`: "1"} {
		b, err := Parse([]byte(body), false)
		must.Succeed(t, err)
		if got := b.NullableText("v"); got != want || b.Err() != nil {
			t.Errorf("%s: %q, %v, want %q", body, got, b.Err(), want)
		}
	}
	b, err := Parse([]byte(`{"v":""}`), false)
	must.Succeed(t, err)
	if b.NullableText("v"); b.Err() == nil || b.Err().Error() != "v must not be empty" {
		t.Errorf("an empty text: %v", b.Err())
	}
}

// TestLongNamesAreClipped requires that an error repeats only the beginning of a long name.
func TestLongNamesAreClipped(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", 10_000)
	_, err := readPolicyBody([]byte(`{"` + name + `":1,"` + name + `":2}`))
	if f, ok := fault.As(err); !ok || len(f.Message) > 400 {
		t.Errorf("the error is %v", err)
	}
}

// FuzzBody checks that any text is either read with the values of the text, or refused with an
// error of kind Invalid and a message.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"method":"dns","domain":"example.com","actions":["publish"]}`,
		`{"method":"a","method":"b"}`,
		`{"method":"oidc","claims":{"sub":"a","sub":"b"}}`,
		`{"method":"oidc","claims": {"sub":"a"},"expiresAt":"2027-01-01T00:00:00Z"}`,
		`{"method":"\u0000"}`, `{"method":"\ud800"}`, `{"method":"dns","actions":[null]}`, "\xef\xbb\xbf{}",
		`{"":1,"":2}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := readPolicyBody(text)
		if err == nil {
			checkPolicyBody(t, text, p)
			return
		}
		if refusal, ok := fault.As(err); !ok || refusal.Kind != fault.Invalid || refusal.Message == "" {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

// checkPolicyBody checks that what was read are the values of the text.
func checkPolicyBody(t *testing.T, text []byte, p policyBody) {
	t.Helper()
	var sent map[string]any
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatalf("%q was accepted: %v", text, err)
	}
	if p.method == "" || p.method != sent["method"] || strings.ContainsRune(p.method, 0) {
		t.Errorf("%q: method is %q", text, p.method)
	}
	if want, _ := sent["domain"].(string); p.domain != want {
		t.Errorf("%q: domain is %q", text, p.domain)
	}
	actions, _ := sent["actions"].([]any)
	if len(actions) != len(p.actions) {
		t.Fatalf("%q: actions are %q", text, p.actions)
	}
	for i, action := range p.actions {
		if actions[i] != action {
			t.Errorf("%q: actions[%d] is %q", text, i, action)
		}
	}
	claims, _ := sent["claims"].(map[string]any)
	if len(claims) != len(p.claims) {
		t.Fatalf("%q: claims are %q", text, p.claims)
	}
	for name, value := range p.claims {
		if value == "" || claims[name] != value {
			t.Errorf("%q: claim %q is %q", text, name, value)
		}
	}
}
