package tools_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry/tools"
	"github.com/tollgate-dev/tollgate/test/must"
)

// others are what other servers show while the corpora are inspected.
var others = tools.Listed{
	Servers: map[string]bool{"com.example/bank": true},
	Tools:   map[string]string{"send_payment": "com.example/bank", "pay": "com.example/bank", "search": "com.example/bank"},
}

// corpus returns the lines of a file of testdata, and of each its first fields and the list of its tool.
func corpus(t *testing.T, file string, fields int, visit func(line string, first []string, l tools.List)) int {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	must.Succeed(t, err)
	n := 0
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		n++
		line = strings.TrimSuffix(line, "\n")
		parts := strings.Split(line, "\t")
		for i, p := range parts {
			parts[i], err = strconv.Unquote(`"` + strings.ReplaceAll(p, `"`, `\"`) + `"`)
			must.Succeed(t, err)
		}
		properties := map[string]any{}
		for _, p := range parts[fields+2:] {
			name, description, _ := strings.Cut(p, "=")
			properties[name] = map[string]string{"type": "string", "description": description}
		}
		sent, err := json.Marshal(map[string]any{"tools": []any{map[string]any{
			"name": parts[fields], "description": parts[fields+1],
			"inputSchema": map[string]any{"type": "object", "properties": properties},
		}}})
		must.Succeed(t, err)
		l, err := tools.Parse(sent)
		must.Succeed(t, err)
		visit(line, parts[:fields], l)
	}
	return n
}

// TestAttacks checks that each published kind of attack gets a hint with a reason.
func TestAttacks(t *testing.T) {
	n := corpus(t, "attacks.txt", 1, func(line string, first []string, l tools.List) {
		found := tools.Inspect(l, others)
		if !slices.ContainsFunc(found, func(f tools.Finding) bool { return string(f.Suspicion) == first[0] }) {
			t.Errorf("%s\ngets %v", line, found)
		}
		for _, f := range found {
			if f.Reason == "" || f.Where == "" || f.Found == "" || f.Tool == "" || tools.WriteOut(f.Found) != f.Found {
				t.Errorf("%s\ngets an incomplete hint: %+v", line, f)
			}
		}
	})
	if n < 40 {
		t.Errorf("there are %d attacks, want 40", n)
	}
}

// TestHarmlessTools checks that at most 2 % of harmless tools get a hint.
func TestHarmlessTools(t *testing.T) {
	hinted := 0
	n := corpus(t, "harmless.txt", 0, func(line string, _ []string, l tools.List) {
		if found := tools.Inspect(l, others); len(found) > 0 && found[0].Suspicion != tools.Shadow {
			hinted++
			t.Logf("%s\ngets %+v", line, found)
		}
	})
	if n < 300 || hinted*50 > n {
		t.Errorf("%d of %d harmless tools get a hint, want at most 2 %% of 300", hinted, n)
	}
}
