package jsonstring_test

import (
	"encoding/json"
	"testing"

	"github.com/tollgate-dev/tollgate/adapters/internal/jsonstring"
)

func FuzzAppend(f *testing.F) {
	for _, seed := range []string{"", "plain", "\"", "\\", "\n", "\x00", "é", "\xff", "</script>", "\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var back string
		if err := json.Unmarshal(jsonstring.Append(nil, s), &back); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		want, _ := json.Marshal(s)
		var plain string
		_ = json.Unmarshal(want, &plain)
		if back != plain {
			t.Errorf("%q is decoded as %q", s, back)
		}
	})
}
