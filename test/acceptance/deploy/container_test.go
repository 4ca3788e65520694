package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/test/must"
)

// instruction is a line of a Containerfile: its name and its arguments.
type instruction struct{ name, rest string }

var instructionLine = regexp.MustCompile(`^[A-Z]+ `)

// readInstructions returns the instructions of the Containerfile in order.
func readInstructions(t *testing.T) []instruction {
	t.Helper()
	var list []instruction
	for line := range strings.Lines(readDeployFile(t, "Containerfile")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !instructionLine.MatchString(line) {
			t.Fatalf("not an instruction: %q", line)
		}
		name, rest, _ := strings.Cut(line, " ")
		list = append(list, instruction{name, rest})
	}
	return list
}

// TestContainerfile checks that the image contains only the project's files and that it does not
// run as root.
func TestContainerfile(t *testing.T) {
	var final map[string]string
	for _, i := range readInstructions(t) {
		switch i.name {
		case "FROM":
			final = map[string]string{"FROM": i.rest}
			if strings.HasSuffix(i.rest, ":latest") || i.rest != "scratch" && !strings.Contains(i.rest, ":") {
				t.Errorf("FROM %s has no version", i.rest)
			}
		case "ADD":
			t.Errorf("ADD %s may unpack or download files: use COPY", i.rest)
		case "COPY", "RUN", "ARG", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD", "VOLUME", "WORKDIR":
			final[i.name] = i.rest
		default:
			t.Errorf("unknown instruction %s", i.name)
		}
	}
	if final["FROM"] != "scratch" || final["RUN"] != "" {
		t.Errorf("the final image is FROM %s and runs %q, want FROM scratch without RUN", final["FROM"], final["RUN"])
	}
	if !regexp.MustCompile(`^[1-9]\d+:[1-9]\d+$`).MatchString(final["USER"]) {
		t.Errorf("USER %s must be UID:GID, both greater than 0", final["USER"])
	}
	for _, name := range []string{"ENTRYPOINT", "CMD"} { // the image has no shell, so only the JSON form works
		var words []string
		if json.Unmarshal([]byte(final[name]), &words) != nil {
			t.Errorf("%s %s is not a JSON list of strings", name, final[name])
		}
	}
	all := knownSettings(t)
	for _, port := range []string{"PORT", "RATELIMIT_HTTP_PORT", "GRPC_PORT", "DEBUG_PORT"} {
		if !slices.Contains(strings.Fields(final["EXPOSE"]), all[port].Default) {
			t.Errorf("EXPOSE %s does not contain %s, the default of %s", final["EXPOSE"], all[port].Default, port)
		}
	}
	values := map[string]string{}
	for word := range strings.FieldsSeq(final["ENV"]) {
		name, value, _ := strings.Cut(word, "=")
		values[name] = value
	}
	checkEnvironment(t, values)
}

// TestBuildContext checks that the build context of the image contains every folder with code and
// no other folder.
func TestBuildContext(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(readDeployFile(t, "Containerfile.dockerignore")), "\n")
	if lines[0] != "*" {
		t.Errorf("the first line is %s, want *, which excludes everything", lines[0])
	}
	top, err := os.ReadDir("../../..")
	must.Succeed(t, err)
	for _, entry := range top {
		name := entry.Name()
		built := entry.IsDir() && !strings.HasPrefix(name, ".") &&
			!slices.Contains([]string{"bin", "data", "deploy", "test"}, name) ||
			slices.Contains([]string{"go.mod", "go.sum", "Makefile"}, name)
		if slices.Contains(lines, "!"+name) != built {
			t.Errorf("%s: included in the build context: %v, want %v", name, !built, built)
		}
	}
}
