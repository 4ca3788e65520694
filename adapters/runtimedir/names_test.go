package runtimedir

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/ratelimit"
	"github.com/tollgate-dev/tollgate/core/ratelimit/ruleset"
)

// TestFilesOfOtherNames checks the warning about files that are ignored because of their names, and
// the error for a directory without rule files.
func TestFilesOfOtherNames(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"config", "rules.conf", "more.YAML", ".hidden"} {
		writeFile(t, filepath.Join(root, name), "domain: "+name)
	}
	_, _, err := New(Config{Root: root}, discardLog()).Read(t.Context())
	if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "rules.conf") {
		t.Errorf("Read of a directory without rule files returned %v", err)
	}
	writeFile(t, filepath.Join(root, "rules.yaml"), "domain: shop")
	sources, warnings, err := New(Config{Root: root}, discardLog()).Read(t.Context())
	if err != nil || len(sources) != 1 {
		t.Fatalf("sources %v, %v", sources, err)
	}
	if len(warnings) != 1 || strings.Contains(warnings[0], "hidden") {
		t.Fatalf("warnings %q", warnings)
	}
	for _, name := range []string{"config", "rules.conf", "more.YAML"} {
		if !strings.Contains(warnings[0], filepath.Join(root, name)) {
			t.Errorf("%q does not name %s", warnings[0], name)
		}
	}
}

func TestManyFilesOfOtherNamesAreCounted(t *testing.T) {
	names := slices.Repeat([]string{"a"}, maxListed+3)
	if got := joinPaths(names); !strings.HasSuffix(got, "a and 3 more") {
		t.Errorf("%q", got)
	}
}

// TestAcceptsFilesOfTheEnvoyService checks files that the Envoy rate limit service accepts.
func TestAcceptsFilesOfTheEnvoyService(t *testing.T) {
	const rule = "descriptors: [{key: k, rate_limit: {unit: hour, requests_per_unit: 7}}]\n"
	for name, test := range map[string]struct {
		content  string
		warnings int
	}{
		"--- at the end":            {"domain: shop\n" + rule + "---\n", 0},
		"several --- and a comment": {"---\ndomain: shop\n" + rule + "---\n# nothing\n---\n...\n", 0},
		"a name next to the domain": {"name: listener\ndomain: shop\n" + rule, 0},
		"a domain twice":            {"domain: other\ndomain: shop\n" + rule, 1},
		"a limit twice, the last counts": {
			"domain: shop\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1, unit: hour, requests_per_unit: 7}}]\n", 2,
		},
	} {
		source, warnings := parseFile("f.yaml", []byte(test.content))
		set, err := ruleset.Compile([]ruleset.Source{source}, ruleset.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := set.Match("shop", []ratelimit.Entry{{Key: "k", Value: "v"}})
		if r == nil || r.Limit != (ratelimit.Limit{RequestsPerUnit: 7, Unit: ratelimit.Hour}) {
			t.Errorf("%s: rule %+v", name, r)
		}
		if len(warnings) != test.warnings {
			t.Errorf("%s: warnings %q, want %d", name, warnings, test.warnings)
		}
	}
	for name, content := range map[string]string{
		"a second document":      "domain: shop\n---\ndomain: other\n",
		"a name in a descriptor": "domain: shop\ndescriptors: [{key: k, name: n}]\n",
	} {
		if source, _ := parseFile("f.yaml", []byte(content)); len(source.Faults) == 0 {
			t.Errorf("%s is accepted", name)
		}
	}
}
