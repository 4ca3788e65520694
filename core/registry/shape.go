package registry

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fields"
)

// check checks one value and reports what is wrong with it.
type check func(r *report, at location, v *node)

// shape is one table of the rules of documents (contract ): the properties that an
// object may have.
type shape struct {
	table      string
	properties []property
}

type property struct {
	name     string
	required bool
	check    check
}

// location is the path of a value, and the rules that apply to it.
type location struct {
	path string
	rule string // table, or table/property
}

var plainKey = regexp.MustCompile(`^[$A-Za-z_][$A-Za-z0-9_-]*$`)

func (p location) key(name string) location {
	switch name = shorten(name); {
	case !plainKey.MatchString(name):
		p.path += "[" + strconv.Quote(name) + "]"
	case p.path == "":
		p.path = name
	default:
		p.path += "." + name
	}
	return p
}

func (p location) index(i int) location {
	p.path += "[" + strconv.Itoa(i) + "]"
	return p
}

func (p location) withRule(rule string) location {
	p.rule = rule
	return p
}

// objectCheck returns the check of an object with the properties of a table. together are checks of
// several properties of the object.
func objectCheck(s shape, together ...check) check {
	return func(r *report, at location, v *node) {
		if !checkKind(r, at, v, kindObject) {
			return
		}
		at.rule = s.table
		for i := range v.members {
			s.checkMember(r, at, &v.members[i])
		}
		for _, p := range s.properties {
			if p.required && v.property(p.name) == nil {
				r.addProblem(v, at.key(p.name).withRule(s.table+"/"+p.name), schemaProblem("required", "is required"))
			}
		}
		for _, c := range together {
			c(r, at, v)
		}
	}
}

// checkMember checks one member of an object, which must be a property of the table.
func (s shape) checkMember(r *report, at location, m *member) {
	for _, p := range s.properties {
		if p.name != m.name {
			continue
		}
		if m.value.kind != kindNull {
			p.check(r, at.key(p.name).withRule(s.table+"/"+p.name), &m.value)
		}
		return
	}
	if r.isFull() {
		r.more++
		return
	}
	r.addProblem(&m.value, at.key(m.name), schemaProblem("additionalProperties",
		"is not a property of %s, the most similar one is %q", s.table, s.nearestProperty(m.name)))
}

// nearestProperty returns the property with the most similar name.
func (s shape) nearestProperty(name string) string {
	name = strings.ToLower(shorten(name))
	return slices.MinFunc(s.properties, func(a, b property) int {
		return fields.EditDistance(name, strings.ToLower(a.name)) - fields.EditDistance(name, strings.ToLower(b.name))
	}).name
}

// stringCheck returns the check of a string. It reports only the first broken rule.
func stringCheck(rules ...func(string) *problem) check {
	return func(r *report, at location, v *node) {
		if !checkKind(r, at, v, kindString) {
			return
		}
		for _, rule := range rules {
			if p := rule(v.text); p != nil {
				r.addProblem(v, at, p)
				return
			}
		}
	}
}

// enumRule returns the rule of a string that has one of a few values.
func enumRule(values ...string) func(string) *problem {
	return func(s string) *problem {
		if slices.Contains(values, s) {
			return nil
		}
		return schemaProblem("enum", "must be one of %s, not %s", strings.Join(values, ", "), quote(s))
	}
}

func booleanCheck(r *report, at location, v *node) { checkKind(r, at, v, kindBoolean) }

// listOf returns the check of an array whose items have the given check.
func listOf(item check) check {
	return func(r *report, at location, v *node) {
		if !checkKind(r, at, v, kindArray) {
			return
		}
		for i := range v.items {
			item(r, at.index(i), &v.items[i])
		}
	}
}

// mapOf returns the check of an object with any keys, whose values have the given check.
func mapOf(value check) check {
	return func(r *report, at location, v *node) {
		if !checkKind(r, at, v, kindObject) {
			return
		}
		for i := range v.members {
			value(r, at.key(v.members[i].name), &v.members[i].value)
		}
	}
}

// checkKind reports whether a value has the kind, and adds a problem if not.
func checkKind(r *report, at location, v *node, want kind) bool {
	if v.kind == want {
		return true
	}
	r.addProblem(v, at, schemaProblem("type", "must be %s, not %s", want, v.kind))
	return false
}

// findDuplicates reports properties that an object has twice. JSON does not say which of them is
// valid (RFC 8259, section 4), and readers would differ.
func findDuplicates(r *report, at location, v *node) {
	for i := range v.items {
		findDuplicates(r, at.index(i), &v.items[i])
	}
	if len(v.members) == 0 {
		return
	}
	seen := make(map[string]bool, len(v.members))
	for i := range v.members {
		m := &v.members[i]
		if seen[m.name] {
			r.addProblem(&m.value, at.key(m.name).withRule("json"), &problem{
				IssueJSON, "duplicate", "occurs twice in the same object",
			})
		}
		seen[m.name] = true
		findDuplicates(r, at.key(m.name), &m.value)
	}
}
