package tokens

import (
	"net/http"
	"testing"

	"github.com/tollgate-dev/tollgate/test/fixture"
)

// TestNetworksAreNotWidened checks that a token that is good from some networks makes only tokens
// that are good from these, and admits no workloads, which may be anywhere.
func TestNetworksAreNotWidened(t *testing.T) {
	t.Parallel()
	s := startSite(t, fixture.NewEnvironment(t, "embedded"))
	s.makeService(t)
	draft := func(networks ...string) map[string]any {
		return map[string]any{"name": "t", "scopes": []string{"admin:write"}, "networks": networks}
	}
	var bound token
	s.call(t, "POST", myTokens, draft("127.0.0.0/8", "::1/128"), s.operator.Bearer()...).
		WantStatus(t, http.StatusCreated).Decode(t, &bound)
	for _, c := range []struct {
		status   int
		networks []string
	}{
		{http.StatusForbidden, nil},
		{http.StatusForbidden, []string{"0.0.0.0/0"}},
		{http.StatusForbidden, []string{"127.0.0.1/32", "192.0.2.0/24"}},
		{http.StatusCreated, []string{"127.0.0.1/32"}},
	} {
		a := s.call(t, "POST", ciTokens, draft(c.networks...), bearer(bound.Token)...)
		if a.Status != c.status {
			t.Errorf("a token for %v: %d %s, want %d", c.networks, a.Status, a.Body, c.status)
		}
	}
	s.call(t, "POST", ciTokens, draft(), s.operator.Bearer()...).WantStatus(t, http.StatusCreated)
}
