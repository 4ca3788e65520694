// Command pkg-cargo is the ownership plugin for registry type "cargo": a version of a crate claims
// a server with the token "mcp-name: NAME" in its readme (contract R-57). The plugin reads only
// metadata and the readme, and does not download crates.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
)

func main() { os.Exit(sdk.RunOwnership(openRegistry(os.Getenv))) }
