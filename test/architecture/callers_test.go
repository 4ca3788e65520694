package architecture

import "testing"

func TestChanges(t *testing.T) {
	cases := []struct{ name, path, body, want string }{
		{"a lock in a use case", "core/registry/viewing/x.go", "var a = s.ports.Writer.Lock", "calls Writer.Lock"},
		{"a save in a use case", "core/registry/viewing/x.go", "var a = s.ports.Writer.Save", "calls Writer.Save"},
		{"a save of a mirror", "core/registry/mirroring/apply.go", "var a = c.ports.Writer.Save", ""},
		{"a lock in a store", "adapters/relational/x.go", "var a = s.ports.Writer.Lock", ""},
		{"a save of another thing", "core/registry/viewing/x.go", "var a = s.ports.Views.Save", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wantViolation(t,
				checkChanges(parseTree(t, map[string]string{c.path: "package x\n" + c.body + "\n"})), c.want)
		})
	}
}

func TestCallers(t *testing.T) {
	const port = "import \"" + module + "/ports/authority\"\n"
	cases := []struct {
		name, path, body string
		want             string // empty: allowed
	}{
		{
			"a person in a handler", "adapters/rest/x.go", port + "var a = authority.NewPerson",
			"mentions authority.NewPerson",
		},
		{
			"an operator in a use case", "core/registry/viewing/x.go", port + "var a = authority.Operator()",
			"mentions authority.Operator",
		},
		{"an operator in a command", "cmd/tollgate/operator/x.go", port + "var a = authority.Operator()", ""},
		{"a person of the authority", "adapters/inprocess/x.go", port + "var a = authority.NewPerson", ""},
		{"a person in a test", "core/registry/x_test.go", port + "var a = authority.NewPerson", ""},
		{"another function", "core/registry/x.go", port + "var a authority.Caller", ""},
		{"a token in a use case", "core/registry/viewing/x.go", "func F(token string) {}", "takes a token as text"},
		{
			"a token in a request", "core/registry/viewing/x.go", "type Request struct { Token string }",
			"takes a token as text",
		},
		{"a token of authentication", "core/auth/access/x.go", "func F(token string) {}", ""},
		{"a token in a handler", "adapters/rest/x.go", "func F(token string) {}", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			wantViolation(t,
				checkCallers(parseTree(t, map[string]string{c.path: "package x\n" + c.body + "\n"})), c.want)
		})
	}
}
