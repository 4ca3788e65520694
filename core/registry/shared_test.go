package registry_test

import (
	"fmt"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/test/must"
)

func TestSharedWith(t *testing.T) {
	t.Parallel()
	const (
		remote  = `{"remotes":[{"type":"streamable-http","url":"https://DB.example.com:443/mcp"},{"type":"sse","url":"https://b.example/"}]}`
		same    = `{"remotes":[{"type":"sse","url":"https://db.example.com/mcp"},{"type":"sse","url":"https://c.example/"}]}`
		path    = `{"remotes":[{"type":"sse","url":"https://db.example.com/other"}]}`
		npm     = `{"packages":[{"registryType":"npm","identifier":"@acme/db","version":"1.1.0"}]}`
		older   = `{"packages":[{"registryType":"npm","identifier":"@acme/db","version":"1.0.0"}]}`
		private = `{"packages":[{"registryType":"npm","registryBaseUrl":"https://npm.example","identifier":"@acme/db","version":"1.0.0"}]}`
		pypi    = `{"packages":[{"registryType":"pypi","identifier":"@acme/db","version":"1.1.0"}]}`
		oci     = `{"packages":[{"registryType":"oci","identifier":"images.example:5000/acme/db:1.1.0"}]}`
		digest  = `{"packages":[{"registryType":"oci","identifier":"images.example:5000/acme/db@sha256:00"}]}`
		other   = `{"packages":[{"registryType":"oci","identifier":"images.example:5000/acme/other:1.1.0"}]}`
		twice   = `{"packages":[{"registryType":"npm","identifier":"@acme/db","version":"1.0.0"},` +
			`{"registryType":"npm","identifier":"@acme/db","version":"1.0.0"}],"remotes":[]}`
	)
	for name, c := range map[string]struct {
		target, version string
		status          registry.Status
		want            string
	}{
		"the same remote, written in another way": {remote, same, registry.StatusActive, "[{1.0.0 [https://db.example.com/mcp]}]"},
		"a deprecated version is listed":          {remote, same, registry.StatusDeprecated, "[{1.0.0 [https://db.example.com/mcp]}]"},
		"a deleted version is not":                {remote, same, registry.StatusDeleted, "[]"},
		"another path":                            {remote, path, registry.StatusActive, "[]"},
		"the package in another version":          {npm, older, registry.StatusActive, "[{1.0.0 [npm @acme/db 1.0.0]}]"},
		"the package of another registry":         {npm, private, registry.StatusActive, "[]"},
		"the name in another type":                {npm, pypi, registry.StatusActive, "[]"},
		"an image by its digest": {
			oci, digest, registry.StatusActive, "[{1.0.0 [oci images.example:5000/acme/db@sha256:00]}]",
		},
		"another image":            {oci, other, registry.StatusActive, "[]"},
		"a package twice":          {npm, twice, registry.StatusActive, "[{1.0.0 [npm @acme/db 1.0.0]}]"},
		"nothing is offered":       {`{}`, `{}`, registry.StatusActive, "[]"},
		"what is not a document":   {`[]`, `x`, registry.StatusActive, "[]"},
		"remotes are not packages": {remote, npm, registry.StatusActive, "[]"},
	} {
		target, version := stored(t, "1.1.0", c.target, registry.StatusDeleted), stored(t, "1.0.0", c.version, c.status)
		itself := stored(t, "1.1.0", c.target, registry.StatusActive)
		if got := fmt.Sprint(registry.SharedWith(target, []registry.Record{itself, version})); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// stored returns a version of a server with a document.
func stored(t *testing.T, version, document string, s registry.Status) registry.Record {
	t.Helper()
	v, err := registry.ParseVersion(version)
	must.Succeed(t, err)
	return registry.Record{Release: registry.Release{Version: v, Status: s}, Document: []byte(document)}
}
