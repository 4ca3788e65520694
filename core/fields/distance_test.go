package fields_test

import (
	"testing"

	"github.com/tollgate-dev/tollgate/core/fields"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	all := []string{"com.example/*", "corp/engineers", "corp/sales", "x"}
	for text, want := range map[string]string{
		"corp/enginers": "corp/engineers", "Corp/Engineers": "corp/engineers", "com.exmple/*": "com.example/*", "y": "", "corp/support": "", "": "",
	} {
		if got := fields.Nearest(text, all); got != want {
			t.Errorf("nearest to %q: %q, want %q", text, got, want)
		}
	}
}
