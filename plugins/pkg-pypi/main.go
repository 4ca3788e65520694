// Command pkg-pypi is the ownership plugin for registry type "pypi": a version of a package claims
// a server with the token "mcp-name: NAME" in its description (contract R-57). The plugin reads
// only metadata and does not download packages.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() { os.Exit(sdk.RunOwnership(openRegistry(os.Getenv))) }
