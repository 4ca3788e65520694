package authapi

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/rest/jsonbody"
	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
)

// FuzzLogin checks that any text is either parsed as a login with the values of the text, or
// rejected with a code and a message.
func FuzzLogin(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"email":"a@example.com","password":"p","deviceInfo":{"userAgent":"x"}}`,
		`{"email":"a@example.com","password":"p","deviceInfo":{"userAgent":null,"language":1}}`,
		`{"email":"\u0000","password":"\ud800","deviceInfo":[]}`, "\xef\xbb\xbf{}", `{"email":{"email":1}}`,
		`{"email":"a@example.com","password":"p","deviceInfo":{"userAgent":"x","userAgent":"y"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := jsonbody.Parse(text, true)
		if err == nil {
			err = fieldError(b.Problems())
		}
		if err == nil {
			in, readErr := readLogin(b)
			if err = readErr; err == nil {
				checkLogin(t, text, in.Email, in.Password, in.Device)
				return
			}
		}
		refusal, ok := fault.As(err)
		if !ok || refusal.Kind != fault.Invalid || refusal.Message == "" ||
			CodeOf(refusal, 400) != auth.CodeInvalidInput && refusal.Code != auth.CodeValidation {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

func checkLogin(t *testing.T, text []byte, email auth.Email, password auth.Password, device auth.DeviceInfo) {
	t.Helper()
	var sent map[string]any
	if err := json.Unmarshal(text, &sent); err != nil {
		t.Fatalf("%q was accepted: %v", text, err)
	}
	for _, s := range []string{string(email), password.Reveal()} {
		if s == "" || strings.ContainsRune(s, 0) {
			t.Errorf("%q: the login has %q", text, s)
		}
	}
	info, _ := sent["deviceInfo"].(map[string]any)
	if want, _ := info["userAgent"].(string); device.UserAgent() != want {
		t.Errorf("%q: user agent %q", text, device.UserAgent())
	}
}
