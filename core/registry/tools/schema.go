package tools

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/jsonvalue"
)

// schemaChange is a difference of two schemas of what a tool takes.
type schemaChange struct {
	danger   Danger
	sentence string // what the tool does, without its name
	text     []Piece
}

// schemaText are the keywords of a schema that the model reads, and that change nothing of what the
// tool takes.
var schemaText = []string{"description", "title", "examples", "default", "$comment"}

// narrowing are the keywords by which a schema takes less than without them; a greater value of those
// that are true takes more, a smaller one of the others.
var narrowing = map[string]bool{
	"maxLength": true, "maxItems": true, "maxProperties": true, "maximum": true, "exclusiveMaximum": true,
	"minLength": false, "minItems": false, "minProperties": false, "minimum": false, "exclusiveMinimum": false,
	"multipleOf": false,
}

// maxDepth is how deep schemas are compared; below, a difference is one that takes more.
const maxDepth = 32

// schemas compares two schemas.
type schemas struct{ changes []schemaChange }

// compareSchemas returns what differs in what a tool takes. A difference whose meaning is not known
// counts as one that takes more.
func compareSchemas(before, after jsonvalue.Object) []schemaChange {
	s := schemas{}
	if (before == nil) != (after == nil) {
		s.more("has %s schema of what it takes", map[bool]string{true: "a new", false: "no"}[before == nil])
		return s.changes
	}
	s.compare("", before, after, 0)
	return s.changes
}

func (s *schemas) add(d Danger, format string, args ...any) {
	s.changes = append(s.changes, schemaChange{danger: d, sentence: fmt.Sprintf(format, args...)})
}

func (s *schemas) more(format string, args ...any) { s.add(TakesMore, format, args...) }

// compare compares the schemas of a path, which is empty for the whole.
func (s *schemas) compare(path string, before, after jsonvalue.Value, depth int) {
	if equal(before, after) {
		return
	}
	old, isOld := before.(jsonvalue.Object)
	now, isNow := after.(jsonvalue.Object)
	if !isOld || !isNow || depth > maxDepth {
		s.more("takes something else %s", in(path))
		return
	}
	for _, keyword := range keywords(old, now) {
		a, b := old[keyword], now[keyword]
		_, limits := narrowing[keyword]
		switch {
		case equal(a, b):
		case slices.Contains(schemaText, keyword):
			s.text(path, keyword, a, b)
		case keyword == "properties":
			s.properties(path, old.Inner(keyword), now.Inner(keyword), depth)
		case keyword == "required":
			s.required(in(path), old.List(keyword), now.List(keyword))
		case keyword == "enum" || keyword == "type":
			s.values(in(path), list(a), list(b))
		case keyword == "additionalProperties" && b == jsonvalue.Flag(false):
			s.add(Harmless, "takes no other parameters %s", in(path))
		case keyword == "items":
			s.compare(join(path, "items"), a, b, depth+1)
		case limits:
			s.limit(path, keyword, a, b)
		default:
			s.more("has another %s %s", quote(keyword), in(path))
		}
	}
}

// text adds the difference of a text that the model reads.
func (s *schemas) text(path, keyword string, before, after jsonvalue.Value) {
	s.add(Model, "has another %s %s", keyword, in(path))
	old, isOld := before.(jsonvalue.Text)
	now, isNow := after.(jsonvalue.Text)
	if (isOld || before == nil) && (isNow || after == nil) {
		s.changes[len(s.changes)-1].text = compareTexts(string(old), string(now))
	}
}

// properties adds the differences of the properties of a schema.
func (s *schemas) properties(path string, before, after jsonvalue.Object, depth int) {
	for _, name := range keywords(before, after) {
		old, wasThere := before[name]
		now, isThere := after[name]
		switch {
		case !wasThere:
			s.more("takes the new parameter %s", quote(join(path, name)))
		case !isThere:
			s.add(Harmless, "does not take the parameter %s any more", quote(join(path, name)))
		default:
			s.compare(join(path, name), old, now, depth+1)
		}
	}
}

// required adds the differences of what is required: without it, a tool takes more.
func (s *schemas) required(where string, old, now jsonvalue.List) {
	if missing := without(old, now); len(missing) > 0 {
		s.more("does not require %s any more %s", describeValues(missing), where)
	}
	if fresh := without(now, old); len(fresh) > 0 {
		s.add(Harmless, "requires %s now %s", describeValues(fresh), where)
	}
}

// values adds the differences of the values or types that are taken; without any, everything is.
func (s *schemas) values(where string, old, now jsonvalue.List) {
	switch {
	case len(now) == 0:
		s.more("takes any value %s", where)
		return
	case len(old) == 0:
		s.add(Harmless, "takes fewer values %s", where)
		return
	}
	if missing := without(old, now); len(missing) > 0 {
		s.add(Harmless, "does not take %s any more %s", describeValues(missing), where)
	}
	if fresh := without(now, old); len(fresh) > 0 {
		s.more("takes %s now %s", describeValues(fresh), where)
	}
}

// limit adds the difference of a limit.
func (s *schemas) limit(path, keyword string, before, after jsonvalue.Value) {
	old, isOld := number(before)
	now, isNow := number(after)
	danger := TakesMore
	if isNow && (before == nil || isOld && (now > old) != narrowing[keyword]) {
		danger = Harmless
	}
	s.add(danger, "has the limit %s of %s in place of %s %s", keyword, describeValue(after), describeValue(before), in(path))
}

// in returns where a difference is.
func in(path string) string {
	if path == "" {
		return "in its schema"
	}
	return "for " + quote(path)
}

// keywords returns the names of the members of both objects in their order.
func keywords(a, b jsonvalue.Object) []string {
	all := slices.Collect(maps.Keys(a))
	all = slices.AppendSeq(all, maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

// list returns a value that may be one in place of a list as a list.
func list(v jsonvalue.Value) jsonvalue.List {
	if values, isList := v.(jsonvalue.List); isList || v == nil {
		return values
	}
	return jsonvalue.List{v}
}

// without returns the values of one list that another one does not have.
func without(values, others jsonvalue.List) (rest jsonvalue.List) {
	known := map[string]bool{}
	for _, v := range others {
		known[key(v)] = true
	}
	for _, v := range values {
		if !known[key(v)] {
			rest = append(rest, v)
		}
	}
	return rest
}

// number returns the value of a number.
func number(v jsonvalue.Value) (float64, bool) {
	digits, ok := v.(jsonvalue.Exact)
	n, err := strconv.ParseFloat(string(digits), 64)
	return n, ok && err == nil
}

func equal(a, b jsonvalue.Value) bool { return reflect.DeepEqual(a, b) }

// key returns a text that is another one for each value.
func key(v jsonvalue.Value) string {
	text, err := json.Marshal(v)
	if err != nil { // no value that was parsed
		return ""
	}
	return string(text)
}

// maxValues is the greatest number of values in a sentence.
const maxValues = 5

// describeValues returns values for a sentence, separated by commas.
func describeValues(values jsonvalue.List) string {
	var texts []string
	for i, v := range values {
		if i == maxValues {
			texts = append(texts, fmt.Sprintf("and %d more", len(values)-i))
			break
		}
		texts = append(texts, describeValue(v))
	}
	return strings.Join(texts, ", ")
}

// describeValue returns a value for a sentence.
func describeValue(v jsonvalue.Value) string {
	switch value := v.(type) {
	case nil:
		return "none"
	case jsonvalue.Text:
		return quote(string(value))
	}
	return strings.Trim(quote(key(v)), `"`)
}
