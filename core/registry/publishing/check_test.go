package publishing_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/publishing"
	"github.com/tollgate-dev/tollgate/test/must"
)

// TestCheck: Check has a finding for each check of Publish, changes nothing and records nothing, also
// for a caller whose session is not trusted.
func TestCheck(t *testing.T) {
	t.Parallel()
	packages := document("2.0.0", `"packages":[`+npmPackage("a")+","+npmPackage("b")+"]")
	good := []string{"your permission: ok", "quarantine and mirrors: ok", "the version is new: ok"}
	with := func(more ...string) []string { return append(slices.Clone(good), more...) }
	for name, c := range map[string]struct {
		config   publishing.Config
		body     string
		token    string
		refusals map[string]error
		want     []string
	}{
		"all right":        {body: document("2.0.0"), want: good},
		"not trusted":      {body: document("2.0.0"), token: untrustedToken, want: good},
		"published before": {body: document("1.0.0"), want: []string{good[0], good[1], "the version is new: refused"}},
		"no grant": {body: strings.ReplaceAll(document("2.0.0"), "com.example", "com.example2"), want: []string{
			"your permission: refused", good[1], good[2],
		}},
		"writes off": {config: publishing.Config{WritesOff: true}, body: document("2.0.0"), want: []string{
			"your permission: refused", good[1], good[2],
		}},
		"a remote": {
			body: document("2.0.0", `"remotes":[{"type":"sse","url":"https://example.com/sse"}]`),
			want: with("remote addresses: ok"),
		},
		"packages": {
			body: packages, refusals: map[string]error{"a": notOwned},
			want: with("package npm a: refused", "package npm b: ok"),
		},
		"a registry that is away": {
			body: packages, refusals: map[string]error{"b": away},
			want: with("package npm a: ok", "package npm b: open"),
		},
		"packages, warned": {
			config: publishing.Config{Checks: publishing.ChecksWarn}, body: packages,
			refusals: map[string]error{"a": notOwned}, want: with("package npm a: open", "package npm b: ok"),
		},
		"packages, off": {
			config: publishing.Config{Checks: publishing.ChecksOff}, body: packages,
			want: with("package npm a: open", "package npm b: open"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t, publishing.Config{}, registry.ActionPublish)
			w.publishAll(t, "1.0.0")
			w.checker.refusals = c.refusals
			p := publishing.New(c.config, w.ports(c.config))
			token := c.token
			if token == "" {
				token = trustedToken
			}
			findings, err := p.Check(t.Context(), w.callers(token), []byte(c.body))
			must.Succeed(t, err)
			var got []string
			for _, f := range findings {
				state := "ok"
				switch {
				case f.Err != nil:
					state = "refused"
				case f.Open != "":
					state = "open"
				}
				got = append(got, fmt.Sprintf("%s: %s", f.Subject, state))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the findings are %q, want %q", got, c.want)
			}
			w.requireActs(t)
			if versions, err := w.servers.Outline(t.Context(), mustName(t), true); err != nil || len(versions) != 1 {
				t.Errorf("the server has %d versions, error %v", len(versions), err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	w := newFixture(t, publishing.Config{}, registry.ActionPublish)
	if _, err := w.Check(t.Context(), w.callers("nobody"), []byte(document("1.0.0"))); !fault.Is(err, fault.Unauthenticated) {
		t.Errorf("without a caller: %v", err)
	}
	for _, body := range []string{"", "[]", `{"name":"com.example/weather"}`} {
		if _, err := w.Check(t.Context(), w.callers(trustedToken), []byte(body)); !fault.Is(err, fault.Invalid) {
			t.Errorf("the document %q: %v", body, err)
		}
	}
}

func mustName(t *testing.T) registry.Name {
	t.Helper()
	name, err := registry.ParseName(serverName)
	must.Succeed(t, err)
	return name
}
