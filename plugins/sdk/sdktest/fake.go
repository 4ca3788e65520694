package sdktest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// Opened returns a plugin for a fake of its package registry, which answers by the handler until the test ends, and the base URL
// of that. open makes the plugin as its main does, with the environment looked up by the function.
func Opened[P sdk.Ownership](
	t *testing.T, fake http.Handler, open func(environment func(name string) string) (P, error),
) (plugin P, baseURL string) {
	t.Helper()
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	plugin, err := open(Configured(server.URL))
	if err != nil {
		t.Fatal(err)
	}
	return plugin, server.URL
}

// WantSentences checks claims, each of which must be refused with an error that holds the text it is listed under. The empty text
// stands for a claim that is borne out.
func WantSentences(t *testing.T, plugin sdk.Ownership, claims map[string]sdk.Claim) {
	t.Helper()
	for want, c := range claims {
		err := plugin.Check(t.Context(), c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s %s) = %v, want %q", c.Identifier, c.Version, err, want)
		}
	}
}

// WantRefused checks claims that are refused as they stand. A failure to find out is none: within a plugin only the error of the
// client tells them apart.
func WantRefused(t *testing.T, plugin sdk.Ownership, claims ...sdk.Claim) {
	t.Helper()
	for _, c := range claims {
		var failure *registryclient.Error
		if err := plugin.Check(t.Context(), c); err == nil || errors.As(err, &failure) {
			t.Errorf("Check(%q %q) = %v, want a refusal", c.Identifier, c.Version, err)
		}
	}
}
