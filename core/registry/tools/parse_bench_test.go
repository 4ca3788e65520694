package tools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// BenchmarkParse parses a list of nearly the greatest size.
func BenchmarkParse(b *testing.B) {
	var all []string
	for i := range 900 {
		all = append(all, fmt.Sprintf(`{"name":"t%d","description":%q,"inputSchema":{"type":"object","properties":{"path":{"type":"string","description":%q}}}}`,
			i, strings.Repeat("what it does ", 40), strings.Repeat("where it is ", 40)))
	}
	text := []byte(`{"tools":[` + strings.Join(all, ",") + `]}`)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := tools.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
