// Command pkg-pypi is the ownership plugin for registry type "pypi": a version of a package claims
// a server with the token "mcp-name: NAME" in its description (contract R-57). The plugin reads
// only metadata and does not download packages.
package main

import (
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// version is set by the build.
var version string

func main() {
	r, err := openRegistry(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeOwnership(r)
}

// Version implements [sdk.Versioner].
func (registry) Version() string { return version }
