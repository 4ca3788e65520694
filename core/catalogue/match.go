package catalogue

import "strings"

// Matches reports whether a path below the API root is a call of the method: the same segments, any
// text in place of a parameter, and json or xml in place of the format.
func (m Method) Matches(path string) bool {
	if template, ok := strings.CutSuffix(m.Path, ".{format}"); ok {
		dot := strings.LastIndexByte(path, '.')
		return dot >= 0 && (path[dot+1:] == "json" || path[dot+1:] == "xml") && matchTemplate(template, path[:dot])
	}
	return matchTemplate(m.Path, path)
}

// matchTemplate reports whether a path has the segments of a template.
func matchTemplate(template, path string) bool {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return false
	}
	for i, w := range want {
		parameter := strings.HasPrefix(w, "{") && strings.HasSuffix(w, "}")
		if parameter && got[i] == "" || !parameter && w != got[i] {
			return false
		}
	}
	return true
}

// Find returns the method that a path below the API root is a call of, or false when no method
// matches. If several methods match, it returns the one with the fewest parameters, so that
// /buildings/list.json is the list and not the building "list".
func Find(methods []Method, path string) (Method, bool) {
	var found Method
	ok := false
	for _, m := range methods {
		if m.Matches(path) && (!ok || len(m.Parameters) < len(found.Parameters)) {
			found, ok = m, true
		}
	}
	return found, ok
}
