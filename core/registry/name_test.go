package registry

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestParseName(t *testing.T) {
	t.Parallel()
	good := []string{
		"a/b", "com.example/weather", "-./._-", "COM.Example/My_Server-1.0",
		strings.Repeat("a", 100) + "/" + strings.Repeat("b", 99),
	}
	for _, s := range good {
		if n, err := ParseName(s); err != nil || n.String() != s {
			t.Errorf("ParseName(%q) = %q, %v, want it as it is", s, n, err)
		}
	}
	bad := []string{
		"", "a", "ab", "a/", "/b", "//b", "abc", "a/b/c", "a_b/c", "a/b c", "a/b\n", "a/é", "a/b\x00", "a%2Fb",
		strings.Repeat("a", 200) + "/",
	}
	for _, s := range bad {
		if _, err := ParseName(s); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "name must") {
			t.Errorf("ParseName(%q) = %v, want a fault that says what a name must be", s, err)
		}
	}
}

// TestInNames: every part of a name can occur in a name.
func TestInNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-zA-Z0-9.-]{1,99}/[a-zA-Z0-9._-]{1,100}`).Draw(t, "name")
		from := rapid.IntRange(0, len(name)).Draw(t, "from")
		to := rapid.IntRange(from, len(name)).Draw(t, "to")
		if part := name[from:to]; !CanBeInName(part) {
			t.Errorf("%q is in %q, and is said to be in no name", part, name)
		}
	})
	for _, s := range []string{"a b", "a%", "a*", "a/b/c", "é", "\u212a", "\x00", "\xff", strings.Repeat("a", 201)} {
		if CanBeInName(s) {
			t.Errorf("%q is in no name", s)
		}
	}
}

func TestParseVersion(t *testing.T) {
	t.Parallel()
	good := []string{
		"1", "1.0.0", "v1.0.0", "V2", "1.0.0-2.0.0", "1.0.0-alpha+001", "2026.11.21", "Latest", "LATEST", "1.2.3.x",
		"x.y", "xx", "x1",
		"1.x-beta", "1.2.3.4", "draft", "~draft", "spring - summer", "a b c", "1.0.0 final", "<none>", "1,2", "1.0.0|2",
		"next", "alpha*",
		"-", "1 -2", "日本", strings.Repeat("é", 255), "1.2.3-x", "0x1f", "1.0.x86",
	}
	for _, s := range good {
		if v, err := ParseVersion(s); err != nil || v.String() != s {
			t.Errorf("ParseVersion(%q) = %q, %v, want it as it is", s, v, err)
		}
	}
	bad := []string{
		"", "latest", strings.Repeat("1", 256), "1.0\x00",
		"^1.2.3", "~1.2.3", ">=1.2.3", "<=1.2.3", ">1.2.3", "<1.2.3", "=1.2.3", "^ 1.2.3", ">=  1", "^v1.2", "~1.x",
		">=*", " ^1.2.3 ", "<\t2",
		">=1.0.0-rc.1+build", "1.0.0 - 2.0.0", "1 - 2", "v1.0 - v2.0", "1.x - 2", "1.0.0||2.0.0", "1.0.0 || 2.0.0",
		"a||b", "||",
		"1.x", "1.X", "1.*", "1.2.x", "1.2.*", "1.x.x", "x.2", "*.*", "v1.x", "1.x.3", "*", "x", "X", " * ",
		">=1.0.0 <2.0.0", ">= 1.0.0 < 2.0.0", "^1 ~2 =3", ">=1.0.0,<2.0.0",
	}
	for _, s := range bad {
		if _, err := ParseVersion(s); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "version must") {
			t.Errorf("ParseVersion(%q) = %v, want a fault that says what a version must be", s, err)
		}
	}
}

func TestParseActionAndStatus(t *testing.T) {
	t.Parallel()
	for _, a := range []Action{ActionPublish, ActionEdit, ActionReview} {
		if got, err := ParseAction(string(a)); got != a || err != nil {
			t.Errorf("ParseAction(%q) = %q, %v", a, got, err)
		}
	}
	for _, s := range []Status{StatusActive, StatusDeprecated, StatusDeleted} {
		if got, err := ParseStatus(string(s)); got != s || err != nil {
			t.Errorf("ParseStatus(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "Publish", "delete", "Active", "removed"} {
		if _, err := ParseAction(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseAction(%q) = %v, want a fault of kind Invalid", s, err)
		}
		if _, err := ParseStatus(s); !fault.Is(err, fault.Invalid) {
			t.Errorf("ParseStatus(%q) = %v, want a fault of kind Invalid", s, err)
		}
	}
}
