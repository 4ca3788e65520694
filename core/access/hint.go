package access

import (
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// Hint is what a rule requires of the tools of calls (contract W-9): a trait, or with Not before it that a tool does
// not have it.
type Hint string

// The hints without Not.
const (
	ReadOnly    Hint = "readOnly"
	Destructive Hint = "destructive"
	Idempotent  Hint = "idempotent"
	OpenWorld   Hint = "openWorld"

	Not = "not:"
)

// maxHints is how many hints a rule may have.
const maxHints = 4

// Hints returns all hints, each also with Not.
func Hints() (all []Hint) {
	for _, h := range [...]Hint{ReadOnly, Destructive, Idempotent, OpenWorld} {
		all = append(all, h, Not+h)
	}
	return all
}

func parseHint(s string) (Hint, error) { return fault.OneOf("hint", s, Hints()...) }

// trait returns the trait that a hint is about, and the one that it requires, which is 0 after Not.
func (h Hint) trait() (about, required toolserver.Traits) {
	one, without := strings.CutPrefix(string(h), Not)
	switch Hint(one) {
	case ReadOnly:
		about = toolserver.ReadOnly
	case Destructive:
		about = toolserver.Destructive
	case Idempotent:
		about = toolserver.Idempotent
	case OpenWorld:
		about = toolserver.OpenWorld
	}
	if without {
		return about, 0
	}
	return about, about
}

// hold reports whether all hints hold of a tool.
func hold(all []Hint, of toolserver.Traits) bool {
	for _, h := range all {
		if about, required := h.trait(); of&about != required {
			return false
		}
	}
	return true
}

// possible returns the sets of traits of which all hints hold: a tool that only reads is never destructive.
func possible(all []Hint) (sets []toolserver.Traits) {
	for t := range toolserver.AllTraits + 1 {
		if t&(toolserver.ReadOnly|toolserver.Destructive) != toolserver.ReadOnly|toolserver.Destructive && hold(all, t) {
			sets = append(sets, t)
		}
	}
	return sets
}

// readHints reads the hints of a rule. Those that exclude each other are refused.
func readHints(r *fields.Reader) []Hint {
	all := fields.Parsed(r, "hints", false, maxHints, parseHint)
	if len(possible(all)) == 0 {
		r.Note(fields.Invalid("hints", " exclude each other: no tool has all of them, and one that is readOnly is never destructive"))
	}
	return all
}

// HintsOf returns what holds of a tool: each hint, or its opposite.
func HintsOf(t toolserver.Traits) []Hint {
	return slices.DeleteFunc(Hints(), func(h Hint) bool { return !hold([]Hint{h}, t) })
}

var hintWords = map[Hint]string{
	ReadOnly: "read-only", Destructive: "destructive", Idempotent: "idempotent", OpenWorld: "open-world",
}

// hintedTools returns the tools of hints in words, for example "read-only tools".
func hintedTools(all []Hint) string {
	if slices.ContainsFunc(all, func(h Hint) bool { return strings.HasPrefix(string(h), Not) }) {
		return "tools that are " + describeHints(all)
	}
	return describeHints(all) + " tools"
}

// describeHints returns the hints in words, for example "read-only", or "idempotent and not open-world".
func describeHints(all []Hint) string {
	words := make([]string, len(all))
	for i, h := range all {
		one, without := strings.CutPrefix(string(h), Not)
		if words[i] = hintWords[Hint(one)]; without {
			words[i] = "not " + words[i]
		}
	}
	return enumerate(words, "and")
}
