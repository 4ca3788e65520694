package architecture

import "testing"

func TestUseCases(t *testing.T) {
	const ours = module + "/core/registry/"
	shared := []string{"core/registry/history", "core/registry/change"}
	allowed := map[string][]string{"core/registry/declaring": {"core/registry/mirroring"}}
	for _, c := range []struct{ name, from, imports, want string }{
		{"one that the table does not list", "core/registry/reviewing", ours + "browsing", "imports the use case core/registry/browsing"},
		{"one that the table lists", "core/registry/declaring", ours + "mirroring", ""},
		{"one that the table lists for another", "core/registry/requesting", ours + "mirroring", "imports the use case"},
		{"what is shared", "core/registry/reviewing", ours + "history", ""},
		{"what is shared, by what is shared", "core/registry/change", ours + "history", "imports the use case"},
		{"a model", "core/registry/reviewing", ours + "review", ""},
		{"by an adapter", "adapters/rest/registryapi", ours + "browsing", ""},
		{"by tests", "core/registry/reviewing/reviewingtest", ours + "browsing", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := map[string]string{c.from + "/x.go": "package x\n\nimport _ \"" + c.imports + "\"\n"}
			if c.from != "core/registry/declaring" {
				files["core/registry/declaring/x.go"] = "package declaring\n\nimport _ \"" + ours + "mirroring\"\n"
			}
			wantViolation(t, checkUseCases(parseTree(t, files), shared, allowed), c.want)
		})
	}
	unused := checkUseCases(parseTree(t, map[string]string{"core/registry/declaring/x.go": "package declaring"}), shared, allowed)
	wantViolation(t, unused, "core/registry/declaring: does not import core/registry/mirroring")
}

func TestLongestChain(t *testing.T) {
	chain := longestChain(map[string][]string{"a": {"b", "d"}, "b": {"c"}, "d": {}, "e": {"a"}})
	if chain != 4 {
		t.Errorf("e, a, b and c are %d packages in a row", chain)
	}
}
