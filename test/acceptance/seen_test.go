package acceptance

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// seen holds each seenAnswer that a test got.
var seen sync.Map

// seenAnswer is a status of an operation; those below /v0 count for those below
// /v0.1.
type seenAnswer struct {
	operation string
	status    int
}

func (s seenAnswer) String() string { return s.operation + " " + strconv.Itoa(s.status) }

// unseenStatuses are described and yet not asked for here by every operation
// that may answer them, and why.
var unseenStatuses = map[int]string{
	http.StatusInternalServerError: "nobody can make the service fail from outside; tests of adapters/rest do",
	http.StatusServiceUnavailable:  "a dependency is taken away under some operations only",
	http.StatusTooManyRequests:     "operations share the limit of their part, which some of them use up",
}

// wholeRun reports whether all tests ran, in both environments.
func wholeRun() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short() && os.Getenv("TEST_DATABASE_URL") != "" && os.Getenv("TEST_VALKEY_URL") != ""
}

// tellUnseen writes what is described and was answered by no test, and tells
// whether there is nothing of that kind.
func tellUnseen(w io.Writer) bool {
	d, err := readDescription()
	if err != nil {
		fmt.Fprintln(w, err)
		return false
	}
	var unseen []string
	for _, p := range d.paths {
		for _, o := range p.item.Operations() {
			for code := range o.Responses.Map() {
				status, err := strconv.Atoi(code)
				if err != nil || unseenStatuses[status] != "" || strings.HasSuffix(o.OperationID, "V0") { // "default" is no status
					continue
				}
				if answer := (seenAnswer{o.OperationID, status}); !isSeen(answer) {
					unseen = append(unseen, answer.String())
				}
			}
		}
	}
	if len(unseen) == 0 {
		return true
	}
	slices.Sort(unseen)
	fmt.Fprintf(w, "openapi.yaml describes answers that no test got:\n  %s\n", strings.Join(unseen, "\n  "))
	return false
}

func isSeen(a seenAnswer) bool {
	_, ok := seen.Load(a)
	return ok
}
