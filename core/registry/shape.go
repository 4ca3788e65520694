package registry

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// check looks at one value and reports what is wrong with it.
type check func(r *report, at place, v *node)

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

// place is where a value stands and which rules it is under.
type place struct {
	path string
	rule string // table, or table/property
}

var plainKey = regexp.MustCompile(`^[$A-Za-z_][$A-Za-z0-9_-]*$`)

func (p place) key(name string) place {
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

func (p place) index(i int) place {
	p.path += "[" + strconv.Itoa(i) + "]"
	return p
}

func (p place) under(rule string) place {
	p.rule = rule
	return p
}

// object is the check of a table, and of what its properties owe each other.
func object(s shape, together ...check) check {
	return func(r *report, at place, v *node) {
		if !ofKind(r, at, v, kindObject) {
			return
		}
		at.rule = s.table
		for i := range v.members {
			s.member(r, at, &v.members[i])
		}
		for _, p := range s.properties {
			if p.required && v.get(p.name) == nil {
				r.add(v, at.key(p.name).under(s.table+"/"+p.name), schemaProblem("required", "is required"))
			}
		}
		for _, c := range together {
			c(r, at, v)
		}
	}
}

func (s shape) member(r *report, at place, m *member) {
	for _, p := range s.properties {
		if p.name != m.name {
			continue
		}
		if m.value.kind != kindNull {
			p.check(r, at.key(p.name).under(s.table+"/"+p.name), &m.value)
		}
		return
	}
	if r.full() {
		r.more++
		return
	}
	r.add(&m.value, at.key(m.name), schemaProblem("additionalProperties",
		"is no property of %s, the nearest known one is %q", s.table, s.nearest(m.name)))
}

// nearest returns the property whose name is written most alike.
func (s shape) nearest(name string) string {
	name = strings.ToLower(shorten(name))
	return slices.MinFunc(s.properties, func(a, b property) int {
		return editDistance(name, strings.ToLower(a.name)) - editDistance(name, strings.ToLower(b.name))
	}).name
}

// editDistance counts the characters to add, drop or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// text is the check of a string: of its rules, the first one broken counts.
func text(rules ...func(string) *problem) check {
	return func(r *report, at place, v *node) {
		if !ofKind(r, at, v, kindString) {
			return
		}
		for _, rule := range rules {
			if p := rule(v.text); p != nil {
				r.add(v, at, p)
				return
			}
		}
	}
}

// enum is the rule of a string that has one of a few values.
func enum(values ...string) func(string) *problem {
	return func(s string) *problem {
		if slices.Contains(values, s) {
			return nil
		}
		return schemaProblem("enum", "must be one of %s, not %s", strings.Join(values, ", "), quote(s))
	}
}

func boolean(r *report, at place, v *node) { ofKind(r, at, v, kindBoolean) }

// listOf is the check of an array of which each item passes another check.
func listOf(item check) check {
	return func(r *report, at place, v *node) {
		if !ofKind(r, at, v, kindArray) {
			return
		}
		for i := range v.items {
			item(r, at.index(i), &v.items[i])
		}
	}
}

// mapOf is the check of an object with keys of any name.
func mapOf(value check) check {
	return func(r *report, at place, v *node) {
		if !ofKind(r, at, v, kindObject) {
			return
		}
		for i := range v.members {
			value(r, at.key(v.members[i].name), &v.members[i].value)
		}
	}
}

func ofKind(r *report, at place, v *node, want kind) bool {
	if v.kind == want {
		return true
	}
	r.add(v, at, schemaProblem("type", "must be %s, not %s", want, v.kind))
	return false
}

// findDuplicates reports properties that an object has twice. JSON leaves open
// which of them counts (RFC 8259, 4), and readers would differ.
func findDuplicates(r *report, at place, v *node) {
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
			r.add(&m.value, at.key(m.name).under("json"), &problem{IssueJSON, "duplicate", "stands twice in the same object"})
		}
		seen[m.name] = true
		findDuplicates(r, at.key(m.name), &m.value)
	}
}
