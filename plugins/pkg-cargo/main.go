// Command pkg-cargo is the ownership plugin for packages of registry type "cargo": a version of a
// crate claims a server by the token "mcp-name: NAME" in its readme (contract R-57). It reads
// metadata and the readme, and downloads no crate.
package main

import (
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

// version is set by the build.
var version string

func main() {
	r, err := open(os.Getenv)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeOwnership(r)
}

// Version implements [sdk.Versioner].
func (registry) Version() string { return version }
