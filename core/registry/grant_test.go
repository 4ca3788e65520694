package registry

import "testing"

// TestParseGrant: the action operate is over everything, and the others need a pattern.
func TestParseGrant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ action, resource, want string }{
		{"publish", "com.example/*", "com.example/*"}, {"edit", "*", "*"}, {"review", "com.example/x", "com.example/x"},
		{"operate", "", "*"}, {"operate", "*", "*"},
		{"operate", "com.example/*", ""}, {"operate", "**", ""}, {"publish", "", ""}, {"Operate", "*", ""}, {
			"", "*", "",
		},
	} {
		g, err := ParseGrant("ada", c.action, c.resource)
		if (err == nil) != (c.want != "") ||
			err == nil && (g.Holder != "ada" || string(g.Action) != c.action || g.Pattern.String() != c.want) {
			t.Errorf("%q over %q: %+v, %v, want %q", c.action, c.resource, g, err, c.want)
		}
	}
}
