// Command pkg-mcpb is the ownership plugin for MCPB files (contract R-57). No registry knows the
// owner of such a file: the identifier is its https URL, and the plugin checks that the file there
// has the SHA-256 of the document. The file is hashed as it comes, up to MCPB_MAX_BYTES (64 MiB),
// and neither kept nor opened.
//
// The files allowed are releases and packages at github.com and gitlab.com, and what is below a base URL that
// TOLLGATE_PACKAGE_REGISTRIES names. No redirect to another host is followed but one: github.com and gitlab.com always redirect
// to the hosts where they store files, and those, by name and at public addresses only, may be followed to.
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
	plugin, err := open(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeOwnership(plugin)
}

func open(environment func(string) string) (bundles, error) {
	most, err := maxBytes(environment(maxBytesVariable))
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
	return bundles{client: client, hosts: hosts, most: most}, nil
}

// Version implements [sdk.Versioner].
func (bundles) Version() string { return version }
