package catalogue

import (
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/core/fault"
)

func TestParseCallback(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "f", "_", "$", ".", "jQuery1.fn_$2", strings.Repeat("a", 64)} {
		if got, err := ParseCallback(s); err != nil || got != s {
			t.Errorf("ParseCallback(%q) = %q, %v, want it as it is", s, got, err)
		}
	}
	for _, s := range []string{
		"1a", "a b", "a(", "a\n", "a;alert", "é", "a[0]", "a\x00", "a/", strings.Repeat("a", 65),
	} {
		if _, err := ParseCallback(s); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "callback ") {
			t.Errorf("ParseCallback(%q) = %v, want a fault that names the callback", s, err)
		}
	}
}
