package catalogue

import "strings"

// Matches tells whether a path below the API root is a call of the method: the
// same segments, any text where the template has a parameter, and json or xml
// for the format.
func (m Method) Matches(path string) bool {
	if template, ok := strings.CutSuffix(m.Path, ".{format}"); ok {
		dot := strings.LastIndexByte(path, '.')
		return dot >= 0 && (path[dot+1:] == "json" || path[dot+1:] == "xml") && matches(template, path[:dot])
	}
	return matches(m.Path, path)
}

func matches(template, path string) bool {
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

// Find returns the method that a path below the API root is a call of. Where
// several match, it is the one with the fewest parameters, so that
// /buildings/list.json is the list and no building of that name.
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
