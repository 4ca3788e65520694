package review

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Difference is one value that differs between two documents.
type Difference struct {
	Path   string // a JSON pointer (RFC 6901)
	Before any    // a decoded JSON value; nil if it is not there
	After  any    // likewise
}

// Diff returns the differences between two JSON documents, ordered by path. It compares the values
// of objects by name and those of arrays by position. Without a document before, there are none. It
// returns fault.Invalid if one is not JSON.
func Diff(before, after []byte) ([]Difference, error) {
	if before == nil {
		return nil, nil
	}
	var values [2]any
	for i, text := range [][]byte{before, after} {
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&values[i]); err != nil {
			return nil, fault.Wrap(fault.Invalid, "the document is not JSON", err)
		}
	}
	return appendDifferences(nil, "", values[0], values[1]), nil
}

// appendDifferences appends the differences between two values at a path.
func appendDifferences(list []Difference, path string, before, after any) []Difference {
	switch b := before.(type) {
	case map[string]any:
		if a, ok := after.(map[string]any); ok {
			return appendMemberDifferences(list, path, b, a)
		}
	case []any:
		if a, ok := after.([]any); ok {
			return appendItemDifferences(list, path, b, a)
		}
	default:
		if isScalar(after) && before == after {
			return list
		}
	}
	return append(list, Difference{path, before, after})
}

// isScalar reports whether a decoded JSON value is neither an object nor an array, and so can be
// compared.
func isScalar(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return false
	}
	return true
}

// pointerEscaper escapes a name for a JSON pointer (RFC 6901, section 3).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func appendMemberDifferences(list []Difference, path string, before, after map[string]any) []Difference {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		list = appendDifferences(list, path+"/"+pointerEscaper.Replace(name), before[name], after[name])
	}
	return list
}

func appendItemDifferences(list []Difference, path string, before, after []any) []Difference {
	for i := range max(len(before), len(after)) {
		var b, a any
		if i < len(before) {
			b = before[i]
		}
		if i < len(after) {
			a = after[i]
		}
		list = appendDifferences(list, path+"/"+strconv.Itoa(i), b, a)
	}
	return list
}
