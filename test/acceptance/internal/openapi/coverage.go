// Package openapi checks each response that acceptance tests get of the API against openapi.yaml, and that they get
// all responses which it describes.
package openapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/tollgate-dev/tollgate/test/apiclient"
	"github.com/tollgate-dev/tollgate/test/await"
	"github.com/tollgate-dev/tollgate/test/fixture"
	"github.com/tollgate-dev/tollgate/test/instance"
)

// received holds the operation and the status of each response that a test of this package got, in
// the form of responseName. Responses below /v0 count for those below /v0.1.
var received sync.Map

func responseName(operation string, status int) string {
	return strings.TrimSuffix(operation, "V0") + " " + strconv.Itoa(status)
}

// uncheckedStatuses are the statuses that the tests need not get from every operation that
// describes them, and the reasons.
var uncheckedStatuses = map[int]string{
	http.StatusInternalServerError: "a test cannot make the service fail from outside; tests of adapters/rest do",
	http.StatusServiceUnavailable:  "the tests stop a dependency under some operations only",
	http.StatusTooManyRequests:     "operations share the limit of their part, which some of them use up",
}

// uncheckedResponses are the responses that the tests need not get, by responseName, and the
// reasons.
var uncheckedResponses = map[string]string{
	"adminPutView 422":       "it takes 100 views; tests of core/registry/viewing do",
	"adminAddViewToken 422":  "it takes 100 tokens; tests of core/registry/viewing do",
	"adminPutMirror 422":     "it takes 50 mirrors",
	"adminAddWebhook 422":    "it takes 50 webhooks; tests of core/registry/notifying do",
	"adminAddReviewRule 422": "it takes 1000 rules; tests of core/registry/reviewing do",
	"putAccessRule 422":      "it takes 10000 rules; tests of core/access/ruling do",
	"adminPutClient 422":     "it takes 1000 clients; tests of core/managing do",
	"adminPutResource 422":   "it takes 1000 resources; tests of core/managing do",
	"adminPutCollection 422": "it takes 50 collections; tests of core/managing do",
	"adminPutToolSource 422": "it takes 200 tool sources; tests of core/managing do",
	"recordServerTools 409":  "it takes 4 MiB of lists; tests of core/registry/tools do",
	"addPublisher 409":       "it takes minutes to add 2000 policies; tests of core/registry/delegating do",
}

// Main is fixture.Main for acceptance tests.
func Main(m *testing.M) {
	apiclient.Check = CheckDescribed
	fixture.Main(m, CheckCoverage)
}

// MainOfWaiting is Main for a package whose tests wait most of their time: eight of those that are
// parallel run at once.
func MainOfWaiting(m *testing.M) {
	await.AtOnce("8")
	Main(m)
}

// CheckCoverage returns an error when openapi.yaml describes a response that no acceptance test
// got. The tests of one run are spread over packages, and each package runs in its own process.
// Each process stores what it got; the last one to end checks. Where only some packages run, no
// process checks.
func CheckCoverage() error {
	dir, err := instance.RunFolder("tollgate-responses")
	if err != nil {
		return err
	}
	unlock, err := instance.LockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if err := writeReceived(dir); err != nil {
		return err
	}
	all, complete, err := readReceived(dir)
	if err != nil || !complete {
		return err
	}
	_ = os.RemoveAll(dir) // the next run removes what is left
	return reportMissing(all)
}

// writeReceived writes the responses that this package got to a file that is named after the
// package.
func writeReceived(dir string) error {
	var names []string
	received.Range(func(name, _ any) bool {
		names = append(names, name.(string))
		return true
	})
	text, err := json.Marshal(names)
	if err != nil {
		return fmt.Errorf("encode the received responses: %w", err)
	}
	working, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("folder of the package: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(working)), text, 0o600); err != nil {
		return fmt.Errorf("write the received responses: %w", err)
	}
	return nil
}

// readReceived returns the responses that all packages got. It reports whether every package has
// written its own.
func readReceived(dir string) (all map[string]bool, complete bool, err error) {
	packages, err := filepath.Glob("../*/main_test.go")
	if err != nil {
		return nil, false, fmt.Errorf("list the packages: %w", err)
	}
	all = map[string]bool{}
	for _, path := range packages {
		text, err := os.ReadFile(filepath.Join(dir, filepath.Base(filepath.Dir(path))))
		if os.IsNotExist(err) {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("read the received responses: %w", err)
		}
		var names []string
		if err := json.Unmarshal(text, &names); err != nil {
			return nil, false, fmt.Errorf("decode the received responses: %w", err)
		}
		for _, name := range names {
			all[name] = true
		}
	}
	return all, true, nil
}

// reportMissing returns an error that lists the described responses that are not in all.
func reportMissing(all map[string]bool) error {
	d, err := ReadDescription()
	if err != nil {
		return err
	}
	var missing []string
	for _, p := range d.paths {
		for _, o := range p.item.Operations() {
			for code := range o.Responses.Map() {
				status, err := strconv.Atoi(code)
				// "default" is not a status
				if err != nil || uncheckedStatuses[status] != "" || strings.HasSuffix(o.OperationID, "V0") {
					continue
				}
				if name := responseName(o.OperationID, status); !all[name] && uncheckedResponses[name] == "" {
					missing = append(missing, name)
				}
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	return fmt.Errorf("openapi.yaml describes responses that no acceptance test got:\n  %s",
		strings.Join(missing, "\n  "))
}
