package requestid_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tollgate-dev/tollgate/core/requestid"
)

func TestValid(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "!~": true, "7f3c:a/b=(c)": true, strings.Repeat("x", 128): true,
		"": false, strings.Repeat("x", 129): false, "a b": false, "a\tb": false, "a\r\nb": false, "a\x00": false,
		"a\x7f": false, "ä": false,
	} {
		if got := requestid.Valid(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

func TestOwnIdsAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var random [12]byte
		copy(random[:], rapid.SliceOfN(rapid.Byte(), 12, 12).Draw(t, "random"))
		if id := string(requestid.Append(nil, random)); !requestid.Valid(id) || len(id) != 24 {
			t.Errorf("%q", id)
		}
	})
}

func TestContext(t *testing.T) {
	if id := requestid.FromContext(t.Context()); id != "" {
		t.Errorf("a context without an id has %q", id)
	}
	if id := requestid.FromContext(requestid.NewContext(t.Context(), "a")); id != "a" {
		t.Errorf("got %q, want a", id)
	}
}
