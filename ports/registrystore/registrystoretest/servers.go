// Package registrystoretest has the contract tests of ports/registrystore.
package registrystoretest

import (
	"testing"

	"github.com/tollgate-dev/tollgate/ports/registrystore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// ServerStores are an empty store that requires unique remote URLs, and its transactions.
type ServerStores struct {
	Reader registrystore.ServerReader
	Writer registrystore.ServerWriter
	Free   registrystore.ServerWriter // writes to the same store, without unique remote URLs
	Runner transaction.Runner
}

// RunServers runs the tests of the stores of servers. open is called for each test.
func RunServers(t *testing.T, open func(t *testing.T) ServerStores) {
	t.Helper()
	parts := map[string]func(t *testing.T, o opened){
		"an empty store":                          emptyStore,
		"what was stored comes back":              comesBack,
		"documents keep their bytes":              documentsKeepTheirBytes,
		"versions are listed newest first":        newestFirst,
		"versions page by page":                   versionPages,
		"a server with many versions":             manyVersions,
		"an outline has no documents":             outlines,
		"locked releases are listed oldest first": oldestFirst,
		"a state changes without its document":    stateChanges,
		"a document is replaced":                  documentReplaced,
		"many states change at once":              manyStates,
		"deleted versions are hidden":             deletedHidden,
		"the end of a context is told":            endedContext,

		"a page begins behind a version": pageBegins,
		"pages to the end":               readsPages,
		"order is bytewise":              bytewise,
		"search":                         search,
		"updated since":                  updatedSince,
		"an exact version":               exactVersion,
		"latest only":                    latestOnly,
		"filters together":               filtersTogether,
		"ranges of names":                rangesOfNames,
		"many ranges of names":           manyRangesOfNames,
		"no name":                        noNames,
		"without deprecated versions":    withoutDeprecated,
		"ranges with all filters":        rangesWithFilters,
		"behind a deprecated latest":     behindDeprecated,
		"listings follow the status":     changingStatus,

		"a version exists once":                existsOnce,
		"one version is latest":                oneLatest,
		"a refused change stores nothing":      refusedStoresNothing,
		"a remote URL belongs to one server":   remoteURLOwned,
		"a remote URL is checked before":       remoteURLChecked,
		"a deleted version gives its URL up":   remoteURLGivenUp,
		"another document gives the URL up":    remoteURLReplaced,
		"two versions share their server's":    remoteURLShared,
		"a remote URL may be long":             remoteURLLong,
		"remote URLs become unique later":      remoteURLUniqueLater,
		"parallel publications of one version": parallelOne,
		"parallel publications of versions":    parallelVersions,
		"parallel claims of one URL":           parallelClaims,
		"claims crosswise":                     crosswiseClaims,
	}
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, opened{open(t)}) })
	}
}
