package architecture

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tollgate-dev/tollgate/test/must"
)

// parseTree parses a tree of files, given as path and text.
func parseTree(t *testing.T, files map[string]string) []source {
	t.Helper()
	root := fstest.MapFS{}
	for name, text := range files {
		root[name] = &fstest.MapFile{Data: []byte(text)}
	}
	all, err := loadSources(root)
	must.Succeed(t, err)
	return all
}

// wantViolation checks that there is exactly one violation, and that it contains the text; with an
// empty text, that there is none.
func wantViolation(t *testing.T, found []violation, want string) {
	t.Helper()
	switch {
	case want == "" && len(found) > 0:
		t.Errorf("unexpected violations: %v", found)
	case want != "" && len(found) != 1:
		t.Errorf("got %d violations %v, want one with %q", len(found), found, want)
	case want != "" && !strings.Contains(found[0].String(), want):
		t.Errorf("got %q, want it to contain %q", found[0], want)
	}
}

func TestLocate(t *testing.T) {
	cases := map[string]location{
		"core/fault":                   {kernel, "fault"},
		"core/page":                    {kernel, "page"},
		"core/registry":                {model, "registry"},
		"core/auth/risk":               {model, "auth"},
		"core/auth/trust":              {model, "auth"},
		"core/ratelimit/ruleset":       {model, "ratelimit"},
		"core/ratelimit/ruleset/match": {model, "ratelimit"},
		"core/auth/signin":             {useCase, "auth"},
		"core/registry/publishing":     {useCase, "registry"},
		"ports/counter":                {port, "counter"},
		"ports/counter/countertest":    {contract, "counter"},
		"adapters/rest":                {driving, "rest"},
		"adapters/rest/registryapi":    {driving, "rest"},
		"adapters/restore":             {driven, "restore"},
		"adapters/relational/postgres": {driven, "relational"},
		"adapters/inprocess":           {bridge, "inprocess"},
		"adapters/internal/tlsfiles":   {part, "internal"},
		"plugins/sdk/proto/tollgate":   {protocol, "plugins/sdk/proto/tollgate"},
		"plugins/sdk/handshake":        {protocol, "plugins/sdk/handshake"},
		"plugins/sdk/sdktest":          {sdk, "plugins/sdk/sdktest"},
		"plugins/otp-log":              {pluginBinary, "plugins/otp-log"},
		"plugins/pkg-npm/lookup":       {pluginBinary, "plugins/pkg-npm/lookup"},
		"wiring":                       {wiring, "wiring"},
		"wiring/settings":              {wiring, "wiring"},
		"cmd/tollgate":                 {command, "tollgate"},
		"test/load":                    {spanning, "load"},
		"test/await":                   {waiting, "await"},
		"docs/examples/xds":            {example, "docs/examples/xds"},
		"core":                         {unknownRing, "core"},
		"adapters":                     {unknownRing, "adapters"},
		"elsewhere/x":                  {unknownRing, "elsewhere/x"},
		".":                            {unknownRing, "."},
	}
	for dir, want := range cases {
		if got := locationOf(dir); got != want {
			t.Errorf("locate(%q) = %v, want %v", dir, got, want)
		}
	}
}

func TestRings(t *testing.T) {
	const ours = module + "/"
	cases := []struct {
		name, from, imports string
		want                string // empty: allowed
	}{
		{"kernel on the standard library", "core/fault", "errors", ""},
		{"kernel on a hexagon", "core/page", ours + "core/registry", "a kernel may not import a model"},
		{"model on the kernel", "core/registry", ours + "core/fault", ""},
		{"model on a port", "core/registry", ours + "ports/clock", "a model may not import a port"},
		{"model on its use case", "core/auth", ours + "core/auth/signin", "a model may not import a use case"},
		{"model on its pure part", "core/auth", ours + "core/auth/risk", ""},
		{"pure part on a use case", "core/auth/risk", ours + "core/auth/signin", "a model may not import a use case"},
		{
			"model on another hexagon", "core/auth", ours + "core/registry",
			"a model of auth may not import a model of registry",
		},
		{"use case on its model", "core/registry/publishing", ours + "core/registry", ""},
		{"use case on a port", "core/registry/publishing", ours + "ports/registrystore", ""},
		{"use case on its sibling", "core/auth/stepup", ours + "core/auth/signin", ""},
		{
			"use case on another hexagon's model", "core/registry/publishing", ours + "core/auth",
			"a use case of registry may not import a model of auth",
		},
		{
			"use case on another hexagon's use case", "core/auth/signin", ours + "core/ratelimit/decide",
			"a use case of auth may not import a use case of ratelimit",
		},
		{
			"use case on an adapter", "core/auth/signin", ours + "adapters/memory",
			"a use case may not import a driven adapter",
		},
		{
			"use case on a suite", "core/auth/signin", ours + "ports/clock/clocktest",
			"a use case may not import a contract suite",
		},
		{"use case on wiring", "core/auth/signin", ours + "wiring", "a use case may not import a wiring"},

		{"port on a model", "ports/counter", ours + "core/ratelimit", ""},
		{"port on a use case", "ports/counter", ours + "core/ratelimit/decide", "a port may not import a use case"},
		{"port on a port", "ports/counter", ours + "ports/clock", "a port may not import a port"},
		{"suite on its port", "ports/counter/countertest", ours + "ports/counter", ""},
		{"suite on how tests wait", "ports/counter/countertest", ours + "test/await", ""},
		{"tests of an adapter on how tests wait", "adapters/otlp/otlptest", ours + "test/await", ""},
		{
			"adapter on how tests wait", "adapters/otlp", ours + "test/await",
			"a driven adapter may not import a waiting test",
		},
		{
			"suite on a spanning test", "ports/counter/countertest", ours + "test/instance",
			"a contract suite may not import a spanning test",
		},
		{
			"suite on an adapter", "ports/counter/countertest", ours + "adapters/memory",
			"a contract suite may not import a driven adapter",
		},

		{"driving adapter on a use case", "adapters/rest/authapi", ours + "core/auth/signin", ""},
		{"driving adapter in its tree", "adapters/rest/registryapi", ours + "adapters/rest", ""},
		{
			"driving adapter on its kind", "adapters/debugapi", ours + "adapters/rest",
			"a driving adapter of debugapi may not import a driving adapter of rest",
		},
		{"driving adapter on a shared part", "adapters/rest", ours + "adapters/internal/tlsfiles", ""},
		{
			"shared part on the core", "adapters/internal/tlsfiles", ours + "core/auth",
			"a shared part may not import a model",
		},
		{
			"driving adapter on a driven one", "adapters/rest", ours + "adapters/valkey",
			"a driving adapter may not import a driven adapter",
		},
		{"driven adapter on a port", "adapters/valkey", ours + "ports/counter", ""},
		{
			"driven adapter on a use case", "adapters/valkey", ours + "core/ratelimit/decide",
			"a driven adapter may not import a use case",
		},
		{
			"driven adapter on its kind", "adapters/valkey", ours + "adapters/memory",
			"a driven adapter of valkey may not import a driven adapter of memory",
		},
		{
			"driven adapter on a driving one", "adapters/valkey", ours + "adapters/debugapi",
			"a driven adapter may not import a driving adapter",
		},
		{"driven adapter in its tree", "adapters/relational/postgres", ours + "adapters/relational/database", ""},
		{
			"two databases of one tree", "adapters/relational/postgres", ours + "adapters/relational/sqlite",
			"these folders of one adapter are independent",
		},
		{
			"dialect on a store", "adapters/relational/postgres", ours + "adapters/relational/authrecords",
			"these folders of one adapter are independent",
		},
		{"driven adapter on the plugin protocol", "adapters/pluginhost", ours + "plugins/sdk/handshake", ""},
		{
			"a database on a model", "adapters/relational/database", ours + "core/registry",
			"this folder serves all hexagons and may not import a model",
		},
		{
			"a dialect on a model", "adapters/relational/sqlite", ours + "core/auth",
			"this folder serves all hexagons and may not import a model",
		},
		{"a store on a model", "adapters/relational/registryrecords", ours + "core/registry", ""},
		{
			"driven adapter on a plugin", "adapters/pluginhost", ours + "plugins/otp-log",
			"a driven adapter may not import a plugin binary",
		},
		{"bridge on a use case", "adapters/inprocess", ours + "core/ratelimit/decide", ""},
		{
			"bridge on an adapter", "adapters/inprocess", ours + "adapters/memory",
			"a bridge adapter may not import a driven adapter",
		},

		{"plugin on the SDK", "plugins/otp-log", ours + "plugins/sdk", ""},
		{"plugin on the protocol", "plugins/otp-log", ours + "plugins/proto", ""},
		{
			"plugin on a plugin", "plugins/otp-sms", ours + "plugins/otp-log",
			"a plugin binary may not import a plugin binary",
		},
		{
			"plugin on a use case", "plugins/pkg-npm", ours + "core/registry/publishing",
			"a plugin binary may not import a use case",
		},
		{
			"plugin on an adapter", "plugins/pkg-npm", ours + "adapters/valkey",
			"a plugin binary may not import a driven adapter",
		},
		{
			"SDK on a suite", "plugins/sdk/sdktest", ours + "ports/courier/couriertest",
			"a plugin SDK may not import a contract suite",
		},
		{"SDK on a use case", "plugins/sdk", ours + "core/auth/stepup", "a plugin SDK may not import a use case"},
		{
			"protocol on the SDK", "plugins/sdk/handshake", ours + "plugins/sdk",
			"a plugin protocol may not import a plugin SDK",
		},

		{"wiring on an adapter", "wiring", ours + "adapters/rest", ""},
		{"wiring on a command", "wiring", ours + "cmd/tollgate", "a wiring may not import a command"},
		{"wiring on a test", "wiring", ours + "test/load", "a wiring may not import a spanning test"},
		{"command on wiring", "cmd/tollgate", ours + "wiring/settings", ""},
		{"command on its own package", "cmd/tollgate/operator", ours + "cmd/tollgate/cli", ""},
		{
			"command on another command", "cmd/ratelimit-client", ours + "cmd/tollgate/cli",
			"a command of ratelimit-client may not import a command of tollgate",
		},
		{"example on the core", "docs/examples/xds", ours + "core/ratelimit", "a example may not import a model"},
		{"command on a test", "cmd/tollgate", ours + "test/load", "a command may not import a spanning test"},
		{"test on anything", "test/acceptance", ours + "cmd/tollgate", ""},
		{"a folder without a ring", "elsewhere", "errors", "belongs to no ring"},
		{"on a folder without a ring", "core/auth", ours + "internal/x", "a model may not import a no ring"},

		{"core on os", "core/auth", "os", "must not use I/O"},
		{"core on os/exec", "core/auth/signin", "os/exec", "must not use I/O"},
		{"core on net", "core/auth", "net", "must not use I/O"},
		{"core on net/http", "core/auth", "net/http", "must not use I/O"},
		{"core on net/url", "core/registry", "net/url", ""},
		{"core on net/netip", "core/auth", "net/netip", ""},
		{"core on net/mail", "core/auth", "net/mail", ""},
		{"core on nets", "core/auth", "netsomething", ""},
		{"core on database/sql", "core/auth", "database/sql", "must not use I/O"},
		{"port on log/slog", "ports/clock", "log/slog", "must not use I/O"},
		{"port on math/rand/v2", "ports/secrets", "math/rand/v2", "must not use I/O"},
		{"core on crypto/rand", "core/auth", "crypto/rand", "must not use I/O"},
		{"core on crypto/sha256", "core/auth", "crypto/sha256", ""},
		{"port on io/fs", "ports/rulesource", "io/fs", "must not use I/O"},
		{"port on testing", "ports/clock", "testing", "must not use I/O"},
		{"suite on testing", "ports/clock/clocktest", "testing", ""},
		{"suite on os", "ports/clock/clocktest", "os", "must not use I/O"},
		{"adapter on os", "adapters/runtimedir", "os", ""},

		{"core on a pure module", "core/registry", "golang.org/x/text/unicode/norm", ""},
		{"core on another part of it", "core/registry", "golang.org/x/text/language", "that the table lists as pure"},
		{"core on uuid", "core/auth", "github.com/google/uuid", "that the table lists as pure"},
		{
			"port on generated types", "ports/counter", "google.golang.org/protobuf/proto",
			"that the table lists as pure",
		},
		{"core on rapid", "core/auth", "pgregory.net/rapid", "that the table lists as pure"},
		{"suite on rapid", "ports/counter/countertest", "pgregory.net/rapid", ""},
		{"suite on a driver", "ports/counter/countertest", "github.com/uptrace/bun", "that the table lists as pure"},
		{"adapter on a driver", "adapters/relational/database", "github.com/uptrace/bun", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			text := "package x\n\nimport _ \"" + c.imports + "\"\n"
			found := checkRings(parseTree(t, map[string]string{c.from + "/x.go": text}))
			wantViolation(t, found, c.want)
			if c.want != "" && !strings.Contains(found[0].String(), c.from) {
				t.Errorf("%q does not name the folder %s", found[0], c.from)
			}
		})
	}
}

func TestRingsLeaveTestsAlone(t *testing.T) {
	all := parseTree(t, map[string]string{
		"core/auth/signin/x_test.go": "package x\n\nimport _ \"" + module + "/adapters/memory\"\n",
	})
	wantViolation(t, checkRings(all), "")
}

func TestRingsReadEveryBuildTag(t *testing.T) {
	all := parseTree(t, map[string]string{"core/auth/x_plan9.go": "//go:build plan9\n\npackage x\n\nimport _ \"os\"\n"})
	wantViolation(t, checkRings(all), "core/auth/x_plan9.go:5: imports os")
}

func TestLoadPassesOver(t *testing.T) {
	all := parseTree(t, map[string]string{
		"core/auth/a.go":            "package auth",
		"core/auth/testdata/b.go":   "no Go at all",
		".bin/c.go":                 "no Go at all",
		"data/d.go":                 "no Go at all",
		"core/registry/_draft/e.go": "no Go at all",
		"core/auth/notes.md":        "no Go at all",
	})
	if len(all) != 1 || all[0].path != "core/auth/a.go" {
		t.Errorf("got %d files, want core/auth/a.go alone", len(all))
	}
}

func TestLoadRefusesWhatDoesNotParse(t *testing.T) {
	if _, err := loadSources(fstest.MapFS{"core/auth/a.go": {Data: []byte("no Go at all")}}); err == nil {
		t.Error("a file that does not parse went unnoticed")
	}
}
