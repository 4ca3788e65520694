package review_test

import (
	"slices"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry/review"
)

// TestWarnings checks that every argument that comes before a package is named, whatever it looks
// like.
func TestWarnings(t *testing.T) {
	t.Parallel()
	const rest = " comes before the package good, so the command may start something else"
	for document, want := range map[string][]string{
		`{}`: nil,
		`{"packages":[{"identifier":"good","packageArguments":[{"type":"positional","value":"serve"}]}]}`:                nil,
		`{"packages":[{},{"identifier":"good","runtimeArguments":[{"type":"positional","value":"mirror-mcp@latest"}]}]}`: {`packages[1].runtimeArguments[0]: "mirror-mcp@latest"` + rest},
		`{"packages":[{"identifier":"good","runtimeArguments":[{"type":"named","name":"-y"},{"type":"named","name":"--package","value":"evil"}]}]}`: {
			`packages[0].runtimeArguments[0]: "-y"` + rest, `packages[0].runtimeArguments[1]: "--package evil"` + rest},
		`{"packages":[{"identifier":"good","runtimeArguments":[{"type":"positional","valueHint":"pkg"},{"type":"positional"}]}]}`: {`packages[0].runtimeArguments[0]: "pkg"` + rest},
	} {
		if got, err := review.Warnings([]byte(document)); err != nil || !slices.Equal(got, want) {
			t.Errorf("Warnings(%s) = %q, %v, want %q", document, got, err, want)
		}
	}
	if _, err := review.Warnings([]byte(`[]`)); !fault.Is(err, fault.Invalid) {
		t.Errorf("of an array: %v, want fault.Invalid", err)
	}
}
