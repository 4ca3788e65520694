// Command pkg-mcpb is the ownership plugin for registry type "mcpb", MCPB files. The identifier is
// the file's https URL, and the plugin checks that the file there has the SHA-256 checksum of the
// server document (contract R-57). It computes the checksum while it downloads, up to
// MCPB_MAX_BYTES (64 MiB), and does not store or open the file.
//
// The allowed files are releases and packages of github.com and gitlab.com, and files below a base
// URL of TOLLGATE_PACKAGE_REGISTRIES. The plugin follows no redirect to another host, except from
// github.com and gitlab.com to the known hosts where they store files, at public addresses only.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

func main() { os.Exit(sdk.RunOwnership(openBundles(os.Getenv))) }

func openBundles(environment func(string) string) (bundles, error) {
	most, err := parseMaxBytes(environment(maxBytesVariable))
	if err != nil {
		return bundles{}, err
	}
	hosts := publicHosts()
	var bases []string
	for _, h := range hosts {
		bases = append(bases, h.base)
	}
	client, err := registryclient.Open(registryclient.Config{Defaults: bases, Environment: environment})
	if err != nil {
		return bundles{}, err
	}
	return bundles{client: client, hosts: hosts, maxBytes: most}, nil
}
