// Package ceiling tests the script that holds the cost of the tests under the ceiling of seconds.txt. It has no code.
package ceiling

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// table is what the cases compare with.
const table = "# package, make test, make test-race\nsum 20 10\nothers 1 2\na/b 8 -\nc 3 4\n"

// TestCheck checks which measurements are over the ceiling, and whom the script names.
func TestCheck(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	must.Succeed(t, err)
	for _, c := range []struct {
		name, column, times string
		over                string // the package to look at, empty if all is well
	}{
		{"below", "test", "a/b 7 1|c 2 1|d 0.9 0", ""},
		{"below twice the line", "test", "a/b 8 0|c 3 2.9", ""},
		{"twice the line, for the system too", "test", "a/b 1 0|c 3 3.1", "c"},
		{"no line of its own", "test", "d 1.5 0.6", "d"},
		{"a column", "race", "c 5 0", ""},
		{"a package that is not to run", "race", "a/b 9 0", "a/b"},
		{"the sum", "test", "a/b 15 0|c 5.5 0", "a/b"},
		{"nothing ran", "test", "", ""},
		{"a run without a ceiling", "long", "a/b 90 0", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var lines strings.Builder
			for one := range strings.SplitSeq(c.times, "|") {
				if one != "" {
					fmt.Fprintf(&lines, "%s/%s\n", root, one)
				}
			}
			out, err := check(t, c.column, lines.String(), table)
			if found := strings.Contains(out, "over: "); found != (c.over != "") || found != (err != nil) {
				t.Fatalf("error %v, output:\n%s", err, out)
			}
			if c.over != "" && (!strings.Contains(out, "over: "+c.over+"\n") || strings.Count(out, "over: ") != 1) {
				t.Errorf("it names others than %s:\n%s", c.over, out)
			}
		})
	}
	if out, err := check(t, "test", "", "sum 20 10\n"); err == nil || !strings.Contains(out, "no line sum or others") {
		t.Errorf("a table without lines: %v, %s", err, out)
	}
}

// TestSpeed checks how much longer the lines are on a machine that is slower, and that the script says so always.
func TestSpeed(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	must.Succeed(t, err)
	for _, c := range []struct {
		name, speed, said string
		fits, over        int // seconds of a/b, below and above twice its line 8
	}{
		{"not measured", "", "A loop took 0.000 s, usually 0.100: all lines are 1.00 times as long.\n", 16, 17},
		{"faster", "0.05\n", "A loop took 0.050 s, usually 0.100: all lines are 1.00 times as long.\n", 16, 17},
		{"a little slower", "0.11\n", "A loop took 0.110 s, usually 0.100: all lines are 1.10 times as long.\n", 17, 18},
		{"by the median", "0.05\n0.12\n0.9\n", "A loop took 0.120 s, usually 0.100: all lines are 1.20 times as long.\n", 19, 20},
		{"a quarter more", "0.2\n", "A loop took 0.200 s, usually 0.100: all lines are 2.50 times as long.\n", 40, 41},
		{"at most four times", "9\n", "A loop took 9.000 s, usually 0.100: all lines are 4.00 times as long.\n", 64, 65},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			slow := strings.Replace(table, "sum 20", "sum 100", 1) + "loop 0.1 0.2\n"
			for seconds, fits := range map[int]bool{c.fits: true, c.over: false} {
				out, err := check(t, "test", fmt.Sprintf("%s/a/b %d 0\n", root, seconds), slow, c.speed)
				if (err == nil) != fits || !strings.Contains(out, c.said) {
					t.Errorf("%d seconds: %v, %s", seconds, err, out)
				}
			}
		})
	}
	if out, err := check(t, "test", root+"/c 5 0\n"+root+"/a/b 15 1\n", table+"loop 0.1 0.2\n", "0.11\n"); err != nil {
		t.Errorf("the sum does not grow: %v, %s", err, out)
	}
	if out, err := check(t, "race", root+"/c 5 0\n", table+"loop 0.1 0.2\n", "0.21\n"); err != nil ||
		!strings.Contains(out, "A loop took 0.210 s, usually 0.200: all lines are 1.05 times as long.\n") {
		t.Errorf("in the column race: %v, %s", err, out)
	}
}

// check runs the script with a file of times, a table, and measures of the machine's speed.
func check(t *testing.T, column, times, table string, speed ...string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{"times": times, "table": table, "speed": strings.Join(speed, "")}
	for name, content := range paths {
		paths[name] = filepath.Join(dir, name)
		must.Succeed(t, os.WriteFile(paths[name], []byte(content), 0o600))
	}
	out, err := exec.Command("./check.sh", column, paths["times"], paths["table"], paths["speed"]).CombinedOutput()
	return string(out), err
}

// TestMeasured checks that the script that go test starts for each package notes the processor that a process and its
// children used, and passes the output and the exit status on.
func TestMeasured(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "cpu")
	cmd := exec.Command("./cpu.sh", "bash", "-c", "for ((i = 0; i < 30000; i++)); do :; done; echo out; echo err >&2; exit 3")
	cmd.Env = append(os.Environ(), "TEST_CPU_FILE="+file)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil || cmd.ProcessState.ExitCode() != 3 || string(out) != "out\n" || stderr.String() != "err\n" {
		t.Errorf("it ended with %v, output %q, errors %q", err, out, &stderr)
	}
	line, err := os.ReadFile(file)
	dir, _ := os.Getwd() // a wrong one does not match
	if want := regexp.MustCompile(`^` + regexp.QuoteMeta(dir) + ` 0\.\d*[1-9]\d* \d+\.\d+\n$`); err != nil || !want.Match(line) {
		t.Errorf("it noted %q, error %v", line, err)
	}
}

// TestTimesAreSaidOnce checks that the pages say how long the tests take as the table does, and that the ceiling fits
// into that time on two cores.
func TestTimesAreSaidOnce(t *testing.T) {
	t.Parallel()
	lines := map[string][]string{}
	for line := range strings.Lines(read(t, "seconds.txt")) {
		if fields := strings.Fields(line); len(fields) == 3 && !strings.HasPrefix(line, "#") {
			lines[fields[0]] = fields[1:]
		}
	}
	for i, command := range []string{"make test", "make test-race"} {
		minutes, err := strconv.Atoi(lines["minutes"][i])
		seconds, err2 := strconv.Atoi(lines["sum"][i])
		if err != nil || err2 != nil || seconds > minutes*60*2 {
			t.Errorf("%s: %q seconds of the processor do not fit into %q minutes of two cores", command, lines["sum"][i], lines["minutes"][i])
		}
		said := fmt.Sprintf("%d minutes on two cores", minutes)
		pages := []string{"CONTRIBUTING.md"}
		if i == 0 {
			pages = append(pages, "README.md")
		}
		for _, page := range pages {
			for line := range strings.Lines(read(t, "../../"+page)) {
				if (strings.Contains(line, "`"+command+"`") || strings.HasPrefix(line, command+" ")) &&
					strings.Contains(line, " minutes") && !strings.Contains(line, said) {
					t.Errorf("%s says of %s not %q: %s", page, command, said, line)
				}
			}
			if !strings.Contains(read(t, "../../"+page), said) {
				t.Errorf("%s does not say %q of %s", page, said, command)
			}
		}
	}
}

// TestSkippedTestsExist checks that each test that make test-race leaves out is one that make test runs.
func TestSkippedTestsExist(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(read(t, "../../Makefile"), "\nALONE := ")
	line, _, _ := strings.Cut(rest, "\n")
	names := regexp.MustCompile(`[A-Z]\w{3,}`).FindAllString(strings.ReplaceAll(line, "^Test", ""), -1)
	var tests strings.Builder
	for _, folder := range []string{"adapters/relational/database", "adapters/relational/registryrecords", "core/ratelimit/lease"} {
		files, err := filepath.Glob("../../" + folder + "/*_test.go")
		must.Succeed(t, err)
		for _, file := range files {
			tests.WriteString(read(t, file))
		}
	}
	for _, name := range names {
		if !strings.Contains(tests.String(), "\nfunc Test"+name+"(") {
			t.Errorf("there is no Test%s", name)
		}
	}
	if len(names) < 2 {
		t.Errorf("the tests that are left out are %q", names)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must.Succeed(t, err)
	return string(text)
}
