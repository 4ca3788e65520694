package auth_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/auth"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/test/must"
)

func wantInvalid(t *testing.T, what string, err error, code fault.Code) {
	t.Helper()
	f, ok := fault.As(err)
	if !ok || f.Kind != fault.Invalid || f.Code != code {
		t.Errorf("%q: %v, want fault.Invalid with code %s", what, err, code)
		return
	}
	if f.Details.Inner("fields") == nil {
		t.Errorf("%q: details %v name no field", what, f.Details)
	}
}

func TestParseEmail(t *testing.T) {
	for in, want := range map[string]auth.Email{
		"anna@example.com":                  "anna@example.com",
		"  Anna.Smith+x@Example.COM\t":      "anna.smith+x@example.com",
		"andre\u0301@example.com":           "andr\u00e9@example.com",
		"ANDR\u00c9@example.com":            "andr\u00e9@example.com",
		"o'brien@sub.example.co.uk":         "o'brien@sub.example.co.uk",
		strings.Repeat("a", 64) + "@x.test": auth.Email(strings.Repeat("a", 64) + "@x.test"),
		"root@localhost":                    "root@localhost",
	} {
		if got, err := auth.ParseEmail(in); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"", "   ", "a\x00@example.com", "\xff@example.com"} {
		_, err := auth.ParseEmail(in)
		wantInvalid(t, in, err, auth.CodeInvalidInput)
	}
	for _, in := range []string{
		"anna", "@example.com", "anna@", "anna@@example.com", "anna smith@example.com", "Anna <anna@example.com>",
		"<anna@example.com>",
		"anna@example.com, bert@example.com", "anna@example..com", "anna@.example.com", "anna@-example.com",
		`"anna"@example.com`,
		"anna@example.com\nbcc: x", "anna@[127.0.0.1]", "anna(x)@example.com", strings.Repeat("a", 65) + "@example.com",
		"a@" + strings.Repeat("b", 64) + ".com", "a@" + strings.Repeat("b.", 130) + "com", strings.Repeat("x", 1<<20),
	} {
		_, err := auth.ParseEmail(in)
		wantInvalid(t, in, err, auth.CodeValidation)
	}
}

func FuzzParseEmail(f *testing.F) {
	for _, seed := range []string{
		"anna@example.com", " A@B.c ", "andre\u0301@x.test", "\u0130@x.test", "a@b@c", "\x00", "<a@b.c>",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		email, err := auth.ParseEmail(s)
		if err != nil {
			return
		}
		again, err := auth.ParseEmail(string(email))
		if err != nil || again != email {
			t.Errorf("%q is %q, and that is %q, %v", s, email, again, err)
		}
	})
}

func TestPasswordRules(t *testing.T) {
	for _, in := range []string{
		"Abcdef1!", "Gr\u00fc\u00dfe 12 \u00c4", "\u041f\u0430\u0440\u043e\u043b\u044c1!",
		"Aa1!" + strings.Repeat("\u20ac", 124),
	} {
		p, err := auth.NewPassword("password", in)
		if err == nil {
			err = p.Check("password")
		}
		if err != nil {
			t.Errorf("%q: %v", in, err)
		}
	}
	for _, in := range []string{
		"Abcde1!", "abcdef1!", "ABCDEF1!", "Abcdefg!", "Abcdefg1", "Aa1!" + strings.Repeat("x", 125),
		"Aa1!" + strings.Repeat("x", 1<<16),
	} {
		p, err := auth.NewPassword("password", in)
		must.Succeed(t, err)
		wantInvalid(t, in, p.Check("password"), auth.CodeValidation)
	}
	for _, in := range []string{"", "Abcdef1!\x00", "Abcdef1!\xff"} {
		_, err := auth.NewPassword("password", in)
		wantInvalid(t, in, err, auth.CodeInvalidInput)
	}
}

func TestSecretsPrintAsPlaceholders(t *testing.T) {
	p, err := auth.NewPassword("password", "hush-hush")
	must.Succeed(t, err)
	root := auth.RootSecret("hush-hush hush-hush hush-hush hush-hush")
	key, err := root.Derive("test")
	must.Succeed(t, err)
	for _, s := range []any{
		p, root, key, auth.AccessToken("hush-hush"), auth.RefreshSecret("hush-hush"), auth.DeviceSecret("hush-hush"),
		auth.OTP("hush-hush"),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if out := fmt.Sprintf(verb, s); !strings.HasPrefix(out, "[") || strings.Contains(out, "hush") {
				t.Errorf("%T prints %s with %s", s, out, verb)
			}
		}
	}
}

func TestRootSecret(t *testing.T) {
	if _, err := auth.RootSecret(strings.Repeat("x", 31)).Derive("a"); err == nil {
		t.Error("a short secret was taken")
	}
	root := auth.RootSecret(strings.Repeat("x", 32))
	a, errA := root.Derive("a")
	b, errB := root.Derive("b")
	if errA != nil || errB != nil || a.Sum("x") == b.Sum("x") || a.Sum("x") == a.Sum("y") {
		t.Errorf("keys of two purposes, or two texts, agree: %v, %v", errA, errB)
	}
}

func newDeviceInfo(t *testing.T, f auth.DeviceFields) auth.DeviceInfo {
	t.Helper()
	d, err := auth.NewDeviceInfo(f)
	must.Succeed(t, err)
	return d
}

func TestDeviceInfoBounds(t *testing.T) {
	newDeviceInfo(t, auth.DeviceFields{})
	newDeviceInfo(t, auth.DeviceFields{UserAgent: strings.Repeat("\u20ac", 512)})
	_, err := auth.NewDeviceInfo(auth.DeviceFields{Timezone: strings.Repeat("x", 513)})
	wantInvalid(t, "timezone", err, auth.CodeValidation)
	for _, f := range []auth.DeviceFields{{UserAgent: "\x00"}, {Language: "\xff"}, {ScreenResolution: "a\x00"}} {
		_, err := auth.NewDeviceInfo(f)
		wantInvalid(t, fmt.Sprint(f), err, auth.CodeInvalidInput)
	}
	for _, all := range []string{strings.Repeat("x", 513), "\x00"} {
		_, err := auth.NewDeviceInfo(auth.DeviceFields{
			UserAgent: all, ScreenResolution: all, Timezone: all, Language: all,
		})
		f, _ := fault.As(err)
		if fields := f.Details.Inner("fields"); len(fields) != 4 {
			t.Errorf("four wrong fields: %v names %v", err, fields)
		}
	}
}

func TestIdentityIgnoresBrowserVersion(t *testing.T) {
	for _, pair := range [][2]string{
		{
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36 Edg/131.0.2903.51",
			"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.1.2",
		},
		{
			"Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0",
			"Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
		},
		{
			"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1",
			"Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/606.2 (KHTML, like Gecko) Version/18.2 Mobile/16A1 Safari/605.1",
		},
		{
			"Mozilla/4.0 (compatible; MSIE 8.0; Windows NT 6.1; Trident/4.0)",
			"Mozilla/5.0 (compatible; MSIE 10.0; Windows NT 6.1; Trident/6.0)",
		},
		{"curl/8.5.0", "curl/8.11.1"},
	} {
		a, b := newDeviceInfo(t, auth.DeviceFields{UserAgent: pair[0]}),
			newDeviceInfo(t, auth.DeviceFields{UserAgent: pair[1]})
		if a.Identity("u") != b.Identity("u") {
			t.Errorf("%s\n%s\nare two devices", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{"Mozilla/5.0 (Windows NT 10.0) Chrome/131.0", "Mozilla/5.0 (Windows NT 6.1) Chrome/131.0"},
		{"Mozilla/5.0 (X11) Chrome/131.0", "Mozilla/5.0 (X11) Firefox/131.0"},
		{"agent-1", "agent-2"},
		{"(((", "(("},
	} {
		a, b := newDeviceInfo(t, auth.DeviceFields{UserAgent: pair[0]}),
			newDeviceInfo(t, auth.DeviceFields{UserAgent: pair[1]})
		if a.Identity("u") == b.Identity("u") {
			t.Errorf("%s\n%s\nare one device", pair[0], pair[1])
		}
	}
}

// Moving characters from one field to the next makes another device: the fields are not just
// joined.
func TestIdentityKeepsFieldsApart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.StringMatching(`[a-z|:,]{2,20}`).Draw(rt, "text")
		i := rapid.IntRange(0, len(text)-1).Draw(rt, "cut")
		j := rapid.IntRange(i+1, len(text)).Draw(rt, "other cut")
		a := newDeviceInfo(t, auth.DeviceFields{ScreenResolution: text[:i], Timezone: text[i:]})
		b := newDeviceInfo(t, auth.DeviceFields{ScreenResolution: text[:j], Timezone: text[j:]})
		if a.Identity("u") == b.Identity("u") || a.Identity("u") == a.Identity("v") {
			rt.Fatalf("%q cut at %d and %d is one device", text, i, j)
		}
	})
}
