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
		"an empty store has no servers":                             hasNoServers,
		"a stored version is returned as it was stored":             returnsStoredVersion,
		"a document is returned byte by byte as it was stored":      documentsKeepTheirBytes,
		"the versions of a server are listed newest first":          listsNewestFirst,
		"the versions of a server are read in pages of each kind":   readsVersionPages,
		"pages have all versions of a server with many":             readsManyVersions,
		"an outline of a server has its versions without documents": returnsOutlines,
		"the releases of a locked server are listed oldest first":   listsOldestFirst,
		"the state of a version changes without its document":       changesState,
		"the document of a version can be replaced":                 replacesDocument,
		"the states of many versions change in one call":            changesManyStates,
		"deleted versions are returned only if they are requested":  hidesDeleted,
		"a call with a cancelled context fails":                     refusesEndedContext,

		"a second version with the same number is refused":                         refusesVersionTwice,
		"a second latest version of a server is refused":                           refusesSecondLatest,
		"a refused change stores nothing":                                          refusedStoresNothing,
		"a document with a taken URL is refused":                                   refusesTakenURL,
		"a taken URL is reported before a document with it is stored":              checksTakenURL,
		"the URL of a deleted version can be used by another server":               freesURLOfDeleted,
		"a URL can be used by another server after the document was replaced":      freesURLOfReplaced,
		"two versions of one server may have the same URL":                         sharesURLWithinServer,
		"a long URL is stored and checked like a short one":                        storesLongURL,
		"servers that share a URL can change after the check of URLs is turned on": enforcesUniqueURLsLater,
		"one of several parallel publications of a version is stored":              publishesVersionInParallel,
		"parallel publications of different versions are all stored":               publishesVersionsInParallel,
		"one of several parallel documents with the same URL is stored":            claimsURLInParallel,
		"parallel documents with the same URLs in another order do not deadlock":   claimsURLsWithoutDeadlock,
	}
	runParts(t, open, parts)
	RunLists(t, open)
}

// RunLists runs the part of RunServers about lists and searches.
func RunLists(t *testing.T, open func(t *testing.T) ServerStores) {
	t.Helper()
	runParts(t, open, map[string]func(t *testing.T, o opened){
		"a page begins after the version that its cursor names":                       beginsAfterCursor,
		"pages list every version once":                                               readsPages,
		"versions are listed in the order of their bytes":                             listsInByteOrder,
		"a search finds names that contain the text":                                  findsByText,
		"a filter by time returns versions that changed since then":                   listsUpdatedSince,
		"a filter by version returns that version of each server":                     listsExactVersion,
		"a filter for latest versions returns one version of each server":             listsLatestOnly,
		"several filters return only what all of them select":                         combinesFilters,
		"a filter by a range of names returns the servers in it":                      listsRanges,
		"a filter by many ranges of names returns the servers in each":                listsManyRanges,
		"a filter with an empty list of names returns nothing":                        selectsNothingWithoutNames,
		"deprecated versions can be left out of a list":                               leavesDeprecatedOut,
		"ranges of names work together with all other filters":                        combinesRangesAndFilters,
		"of servers whose latest version is deprecated, the other versions are found": findsUndeprecated,
		"lists follow changes of the status and of the latest version":                followsStatus,
	})
}

func runParts(t *testing.T, open func(t *testing.T) ServerStores, parts map[string]func(t *testing.T, o opened)) {
	t.Helper()
	for name, part := range parts {
		t.Run(name, func(t *testing.T) { part(t, opened{open(t)}) })
	}
}
