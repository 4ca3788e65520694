package architecture

import "testing"

func TestDocNames(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"its own name": {"// read reads.\nfunc read() {}", ""},
		"an older name": {
			"// open reads.\nfunc read() {}", "core/x/x.go:3: the comment of read begins with open",
		},
		"another function": {
			"// Write reads.\nfunc Read() {}\nfunc Write() {}", "the comment of Read begins with Write",
		},
		"a method":            {"// read reads.\nfunc (a b) close() {}", "the comment of close begins with read"},
		"a sentence":          {"// It reads.\nfunc read() {}", ""},
		"a name with a colon": {"// TestA: it reads.\nfunc TestA() {}", ""},
		"an older test": {
			"// TestB: it reads.\nfunc TestA() {}\nfunc TestB() {}", "the comment of TestA begins with TestB",
		},
		"no comment":           {"func read() {}", ""},
		"a directive":          {"//nolint:funlen // long\nfunc read() {}", ""},
		"a comment of a value": {"// open is a value.\nvar read = 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			wantViolation(t,
				checkDocNames(parseTree(t, map[string]string{"core/x/x.go": "package x\n" + c.body + "\n"})), c.want)
		})
	}
}
