// Command pkg-nuget is the ownership plugin for NuGet packages (contract R-57): a package claims a
// server by the token "mcp-name: NAME" in its readme. It asks the feed's service index where things
// are, tells an unknown package from an unknown version by the feed's list of versions, and
// downloads no package.
//
// The public feed is api.nuget.org. A private one is named, in TOLLGATE_PACKAGE_REGISTRIES, by the address of its service index;
// a base URL that does not end in ".json" stands for v3/index.json below it. All that a service index leads to must be on its
// own host.
package main

import (
	"fmt"
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// publicFeed is the host of the public feed; documents name it with and without the path of its service index.
const publicFeed = "https://api.nuget.org"

// version is set by the build.
var version string

func main() {
	client, err := registryclient.Open(registryclient.Config{
		Defaults: []string{publicFeed + indexPath, publicFeed}, Environment: os.Getenv,
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	sdk.ServeOwnership(gallery{client: client})
}

// Version implements [sdk.Versioner].
func (gallery) Version() string { return version }
