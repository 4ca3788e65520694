package program

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// maxStartAllocations is how many objects a package may make before main: enough for tables and regular expressions,
// too few for a parsed page. Each process makes them, also one that only prints its version.
const maxStartAllocations = 3500

// started matches what the runtime says about the start of one of our packages (GODEBUG=inittrace=1).
var started = regexp.MustCompile(`init (github\.com/tollgate-dev/tollgate/\S+) .* (\d+) allocs`)

// TestPackagesMakeOnlyTables checks how much each package makes before main, in a process that runs no test.
func TestPackagesMakeOnlyTables(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := started.FindAllSubmatch(out, -1)
	if len(found) < 20 {
		t.Fatalf("%d of our packages make something at the start:\n%s", len(found), out)
	}
	for _, m := range found {
		if n, _ := strconv.Atoi(string(m[2])); n > maxStartAllocations { // the expression wants digits
			t.Errorf("%s makes %s objects before main, want at most %d: make them when they are first used", m[1], m[2],
				maxStartAllocations)
		}
	}
}
