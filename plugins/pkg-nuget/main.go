// Command pkg-nuget is the ownership plugin for registry type "nuget": a package claims a server
// with the token "mcp-name: NAME" in its readme (contract R-57). The plugin reads only the feed's
// service index, its list of versions and the readme, and does not download packages.
//
// The public feed is api.nuget.org. The base URL of a private feed in TOLLGATE_PACKAGE_REGISTRIES
// is that of its service index; v3/index.json is appended to a base URL that does not end in
// ".json". All URLs in a service index must be on the host of the index.
package main

import (
	"os"

	"github.com/tollgate-dev/tollgate/plugins/sdk"
	"github.com/tollgate-dev/tollgate/plugins/sdk/registryclient"
)

// publicFeed is the URL of the public feed. Server documents use it with and without the path of
// the service index.
const publicFeed = "https://api.nuget.org"

func main() { os.Exit(sdk.RunOwnership(openFeeds(os.Getenv))) }

func openFeeds(environment func(string) string) (feedChecker, error) {
	client, err := registryclient.Open(registryclient.Config{
		Defaults: []string{publicFeed + indexPath, publicFeed}, Environment: environment,
	})
	return feedChecker{client: client}, err
}
