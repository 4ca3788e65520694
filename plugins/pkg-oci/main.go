// Command pkg-oci is the ownership plugin for container images (contract R-57): an image claims a
// server by the label io.modelcontextprotocol.server.name of its configuration; of an image for
// many platforms, any one may. It reads manifests and configurations only, never a layer.
//
// The registries allowed are docker.io, ghcr.io, quay.io, gcr.io, mcr.microsoft.com and those below pkg.dev; private ones are
// named by their base URL in TOLLGATE_PACKAGE_REGISTRIES, where a username and a password, or a token, may open them.
//
// Three kinds of host are reached, and no other: the registry; the one where it says that tokens are given, if the operator named
// it in tokenHosts, or else, without credentials, over https and at a public address; and, for the public registries, those where they are known to keep their blobs, to which they redirect each
// time. Apart from these, no redirect to another host is followed.
package main

import (
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// version is set by the build.
var version string

func main() {
	client, err := registryclient.Open(registryclient.Config{Environment: os.Getenv})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeOwnership(registries{client: client})
}

// Version implements [sdk.Versioner].
func (registries) Version() string { return version }
