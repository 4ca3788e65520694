package review

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// Difference is one value that differs between two documents.
type Difference struct {
	Path   string          // a JSON pointer (RFC 6901)
	Before jsonvalue.Value // nil if it is not there
	After  jsonvalue.Value // likewise
}

// Meta is the property of a document with data for programs, which comes last: a publisher can fill
// it with anything.
const Meta = "_meta"

// dangers are the properties of a document from which code comes, to which data goes, or which open
// a page, the most dangerous first.
var dangers = []string{"remotes", "packages", "repository", "websiteUrl", "icons", "$schema"}

// compareDanger orders two properties of a document by what a change of them can do: the dangerous
// ones, then others by name, then Meta.
func compareDanger(a, b string) int {
	return cmp.Or(cmp.Compare(dangerOf(a), dangerOf(b)), cmp.Compare(a, b))
}

func dangerOf(name string) int {
	i := slices.Index(dangers, name)
	switch {
	case name == Meta:
		return len(dangers) + 1
	case i < 0:
		return len(dangers)
	}
	return i
}

// IsMeta reports whether the difference is in Meta.
func (d Difference) IsMeta() bool {
	return d.Path == "/"+Meta || strings.HasPrefix(d.Path, "/"+Meta+"/")
}

// Ordered returns the JSON text of a document with its properties in the order of their danger,
// without Meta, and that of Meta; otherwise nil. It returns fault.Invalid for a text that is not a
// JSON object.
func Ordered(document []byte) (main, meta []byte, err error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return nil, nil, fault.Wrap(fault.Invalid, "the document is not a JSON object", err)
	}
	type property struct {
		name  string
		value json.RawMessage
	}
	var all []property
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, nil, fault.Wrap(fault.Invalid, "the document is not JSON", err)
		}
		p := property{}
		p.name, _ = name.(string) // the name of a property is always a text
		if err := decoder.Decode(&p.value); err != nil {
			return nil, nil, fault.Wrap(fault.Invalid, "the document is not JSON", err)
		}
		all = append(all, p)
	}
	if _, err := decoder.Token(); err != nil { // the end of the object
		return nil, nil, fault.Wrap(fault.Invalid, "the document is not JSON", err)
	}
	slices.SortStableFunc(all, func(a, b property) int { return compareDanger(a.name, b.name) })
	main = []byte("{")
	for _, p := range all {
		if p.name == Meta && meta == nil {
			meta = p.value
			continue
		}
		if len(main) > 1 {
			main = append(main, ',')
		}
		name, err := json.Marshal(p.name)
		if err != nil {
			return nil, nil, fault.Wrap(fault.Invalid, "the document is not JSON", err)
		}
		main = append(append(append(main, name...), ':'), p.value...)
	}
	return append(main, '}'), meta, nil
}

// Diff returns the differences between two JSON documents: of properties in the order of their
// danger, those of Meta last, and then by path. It compares the values of objects by name and those
// of arrays by position. Without a document before, there are none. It returns fault.Invalid if one
// is not JSON.
func Diff(before, after []byte) ([]Difference, error) {
	if before == nil {
		return nil, nil
	}
	var values [2]jsonvalue.Value
	for i, text := range [][]byte{before, after} {
		var err error
		if values[i], err = jsonvalue.Parse(text); err != nil {
			return nil, fault.Wrap(fault.Invalid, "the document is not JSON", err)
		}
	}
	return appendDifferences(nil, "", values[0], values[1]), nil
}

// appendDifferences appends the differences between two values at a path.
func appendDifferences(list []Difference, path string, before, after jsonvalue.Value) []Difference {
	switch b := before.(type) {
	case jsonvalue.Object:
		if a, ok := after.(jsonvalue.Object); ok {
			return appendMemberDifferences(list, path, b, a)
		}
	case jsonvalue.List:
		if a, ok := after.(jsonvalue.List); ok {
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
func isScalar(v jsonvalue.Value) bool {
	switch v.(type) {
	case jsonvalue.Object, jsonvalue.List:
		return false
	}
	return true
}

// pointerEscaper escapes a name for a JSON pointer (RFC 6901, section 3).
var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func appendMemberDifferences(list []Difference, path string, before, after jsonvalue.Object) []Difference {
	names := slices.Collect(maps.Keys(before))
	for name := range after {
		if _, both := before[name]; !both {
			names = append(names, name)
		}
	}
	if path == "" {
		slices.SortFunc(names, compareDanger)
	} else {
		slices.Sort(names)
	}
	for _, name := range names {
		list = appendDifferences(list, path+"/"+pointerEscaper.Replace(name), before[name], after[name])
	}
	return list
}

func appendItemDifferences(list []Difference, path string, before, after jsonvalue.List) []Difference {
	for i := range max(len(before), len(after)) {
		var b, a jsonvalue.Value
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
