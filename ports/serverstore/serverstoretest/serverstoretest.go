// Package serverstoretest is the contract of ports/serverstore: every adapter
// of that port passes Run.
package serverstoretest

import (
	"testing"

	"github.com/tollgate-dev/tollgate/ports/serverstore"
	"github.com/tollgate-dev/tollgate/ports/transaction"
)

// Opened is an empty store of an adapter that wants remote URLs to be unique.
type Opened struct {
	Reader serverstore.Reader
	Writer serverstore.Writer
	Free   serverstore.Writer // to the same store, where remote URLs need not be unique
	Runner transaction.Runner
}

// Run checks an adapter. open is called for every part of the contract.
func Run(t *testing.T, open func(t *testing.T) Opened) {
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
		"pages to the end":               pages,
		"order is bytewise":              bytewise,
		"search":                         search,
		"updated since":                  updatedSince,
		"an exact version":               exactVersion,
		"latest only":                    latestOnly,
		"filters together":               filtersTogether,
		"listings follow the status":     changingStatus,

		"a version exists once":                existsOnce,
		"one version is latest":                oneLatest,
		"a refused change stores nothing":      refusedStoresNothing,
		"a remote URL belongs to one server":   remoteURLOwned,
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
