package runtimedir

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tollgate-dev/tollgate/ports/rulesource/rulesourcetest"
	"github.com/tollgate-dev/tollgate/test/must"
)

const tenAMinute = "\ndescriptors: [{key: k, rate_limit: {unit: minute, requests_per_unit: 10}}]"

// TestContract offers each configuration in a folder of its own, and then replaces the root, which
// is a link, so that it leads to that folder.
func TestContract(t *testing.T) {
	rulesourcetest.Run(t, func(t *testing.T) rulesourcetest.Subject {
		dir := t.TempDir()
		releases := 0
		offer := func(t *testing.T, domains ...string) {
			t.Helper()
			releases++
			release := "release" + strconv.Itoa(releases)
			must.Succeed(t, os.MkdirAll(filepath.Join(dir, release, "config"), 0o750))
			for _, domain := range domains {
				writeFile(t, filepath.Join(dir, release, "config", domain+".yaml"), "domain: "+domain+tenAMinute)
			}
			swapLink(t, release, filepath.Join(dir, "current"))
		}
		return rulesourcetest.Subject{
			Source: New(Config{Root: filepath.Join(dir, "current"), AppDirectory: "config", WatchRoot: true},
				discardLog()),
			Offer: offer,
			OfferUnreadable: func(t *testing.T, domains ...string) {
				offer(t, domains...)
				swapLink(t, "nowhere", filepath.Join(dir, "current", "config", "unreadable.yaml"))
			},
		}
	})
}
