// Command pkg-oci is the ownership plugin for registry type "oci", container images: an image
// claims a server with the label io.modelcontextprotocol.server.name in its configuration (contract
// For an image with several platforms, the label of one platform is enough. The plugin reads
// only manifests and configurations, not layers.
//
// The allowed registries are docker.io, ghcr.io, quay.io, gcr.io, mcr.microsoft.com, those below
// pkg.dev, and private ones that TOLLGATE_PACKAGE_REGISTRIES lists with their base URL and optional
// credentials: a username and a password, or a token.
//
// The plugin connects to three kinds of hosts: the registry; the token service that the registry
// names, with credentials only if the operator listed its host in tokenHosts, otherwise only over
// https and at a public address; and the known hosts where the public registries store their blobs.
// It follows no redirect to any other host.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

func main() { os.Exit(sdk.RunOwnership(openRegistries(os.Getenv))) }

func openRegistries(environment func(string) string) (registries, error) {
	client, err := registryclient.Open(registryclient.Config{Environment: environment})
	return registries{client: client}, err
}
