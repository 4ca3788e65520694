package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// instruction is one of a container file.
type instruction struct{ name, rest string }

var instructionLine = regexp.MustCompile(`^[A-Z]+ `)

func instructions(t *testing.T) []instruction {
	t.Helper()
	var list []instruction
	for line := range strings.Lines(read(t, "Containerfile")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !instructionLine.MatchString(line) {
			t.Fatalf("no instruction: %q", line)
		}
		name, rest, _ := strings.Cut(line, " ")
		list = append(list, instruction{name, rest})
	}
	return list
}

// TestContainerfile wants an image of nothing but our files, which does not run as root.
func TestContainerfile(t *testing.T) {
	var final map[string]string
	for _, i := range instructions(t) {
		switch i.name {
		case "FROM":
			final = map[string]string{"FROM": i.rest}
			if strings.HasSuffix(i.rest, ":latest") || i.rest != "scratch" && !strings.Contains(i.rest, ":") {
				t.Errorf("FROM %s names no version", i.rest)
			}
		case "ADD":
			t.Errorf("ADD %s unpacks and downloads; COPY does not", i.rest)
		case "COPY", "RUN", "ARG", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD", "VOLUME", "WORKDIR":
			final[i.name] = i.rest
		default:
			t.Errorf("unknown instruction %s", i.name)
		}
	}
	if final["FROM"] != "scratch" || final["RUN"] != "" {
		t.Errorf("the image is made from %s and runs %q", final["FROM"], final["RUN"])
	}
	if !regexp.MustCompile(`^[1-9]\d+:[1-9]\d+$`).MatchString(final["USER"]) {
		t.Errorf("USER %s is no number of somebody else than root", final["USER"])
	}
	for _, name := range []string{"ENTRYPOINT", "CMD"} { // without a shell only lists work
		var words []string
		if json.Unmarshal([]byte(final[name]), &words) != nil {
			t.Errorf("%s %s is no list", name, final[name])
		}
	}
	all := known(t)
	for _, port := range []string{"PORT", "RATELIMIT_HTTP_PORT", "GRPC_PORT", "DEBUG_PORT"} {
		if !slices.Contains(strings.Fields(final["EXPOSE"]), all[port].Default) {
			t.Errorf("EXPOSE %s does not name %s", final["EXPOSE"], all[port].Default)
		}
	}
	values := map[string]string{}
	for word := range strings.FieldsSeq(final["ENV"]) {
		name, value, _ := strings.Cut(word, "=")
		values[name] = value
	}
	checkEnvironment(t, values)
}

// TestBuildContext wants all folders with code in the image's build, and nothing that is nobody's business.
func TestBuildContext(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(read(t, "Containerfile.dockerignore")), "\n")
	if lines[0] != "*" {
		t.Errorf("the list begins with %s, want everything left out", lines[0])
	}
	top, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range top {
		name := entry.Name()
		built := entry.IsDir() && !strings.HasPrefix(name, ".") && !slices.Contains([]string{"bin", "data", "deploy", "docs", "test"}, name) ||
			slices.Contains([]string{"go.mod", "go.sum", "Makefile"}, name)
		if slices.Contains(lines, "!"+name) != built {
			t.Errorf("%s: in the list is %v, want %v", name, !built, built)
		}
	}
}
