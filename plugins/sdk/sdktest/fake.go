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

// OpenPlugin starts a fake package registry with the handler fake until the test ends, and returns
// a plugin that uses it, and its base URL. open must create the plugin as its main function does,
// from the environment variables that the function returns.
func OpenPlugin[P sdk.Ownership](
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

// WantSentences checks each claim and fails the test unless the error contains the key of the
// claim. The key is empty for a claim that the registry confirms.
func WantSentences(t *testing.T, plugin sdk.Ownership, claims map[string]sdk.Claim) {
	t.Helper()
	for want, c := range claims {
		err := plugin.Check(t.Context(), c)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("Check(%s %s) = %v, want %q", c.Identifier, c.Version, err, want)
		}
	}
}

// WantRefused checks each claim and fails the test unless the plugin refuses it. An error of type
// *[registryclient.Error] is not a refusal, but a check that could not be completed.
func WantRefused(t *testing.T, plugin sdk.Ownership, claims ...sdk.Claim) {
	t.Helper()
	for _, c := range claims {
		var failure *registryclient.Error
		if err := plugin.Check(t.Context(), c); err == nil || errors.As(err, &failure) {
			t.Errorf("Check(%q %q) = %v, want a refusal", c.Identifier, c.Version, err)
		}
	}
}
