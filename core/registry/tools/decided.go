package tools

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fault"
)

// Decide returns what becomes of the list of a part and source that waits, by a decision about the one
// with the given marks (contract W-4, W-5). It returns fault.Conflict, with what differs now, if another
// list waits, or no list does.
func Decide(stored []Stored, decided Stored, approve bool) (Change, error) {
	waiting := Find(stored, decided.Part, decided.Source, false)
	switch {
	case waiting == nil || !waiting.State.waits():
		return Change{}, fault.New(fault.Conflict, "the list does not wait any more: the server shows what is approved, or the list was decided")
	case !waiting.List.equal(decided.List):
		return Change{}, fault.Newf(fault.Conflict, "the list has changed since: %s", Summarize(decided.List, waiting.List))
	}
	next := *waiting
	if next.State = Rejected; approve {
		next.State = Approved
	}
	return Change{Put: &next, Remove: approve, State: next.State}, nil
}

// Summarize returns in words which tools differ between two lists: at most a few names of each kind.
func Summarize(before, after List) string {
	added, changed, removed := Names(before, after)
	var parts []string
	for _, group := range []struct {
		names []string
		words string
	}{{added, "new"}, {changed, "changed"}, {removed, "removed"}} {
		if len(group.names) > 0 {
			parts = append(parts, group.words+" "+few(group.names))
		}
	}
	if len(parts) == 0 {
		return "instructions, prompts or resource templates"
	}
	return strings.Join(parts, "; ")
}

// maxFew is how many names are in a sentence.
const maxFew = 5

func few(names []string) string {
	text := make([]string, 0, maxFew)
	for _, n := range names[:min(len(names), maxFew)] {
		text = append(text, quote(n))
	}
	if more := len(names) - maxFew; more > 0 {
		text = append(text, strconv.Itoa(more)+" more")
	}
	return strings.Join(text, ", ")
}

// Names returns the names of the tools that are new, changed and removed in the second list, in order.
func Names(before, after List) (added, changed, removed []string) {
	for _, t := range after.Tools {
		switch old := before.Find(t.Name); {
		case old == nil:
			added = append(added, t.Name)
		case old.Mark != t.Mark:
			changed = append(changed, t.Name)
		}
	}
	for _, t := range before.Tools {
		if after.Find(t.Name) == nil {
			removed = append(removed, t.Name)
		}
	}
	return added, changed, removed
}

// Required says of which parts a version must have a list before it is approved.
type Required string

// What may be required.
const (
	RequireNone    Required = "off"
	RequireRemotes Required = "remotes"
	RequireAll     Required = "all" // remotes and packages
)

// ParseRequired returns what a text requires. It returns fault.Invalid for any other text.
func ParseRequired(s string) (Required, error) {
	return fault.OneOf("required", s, RequireNone, RequireRemotes, RequireAll)
}

// CheckRequired returns fault.Conflict, with what is missing, unless a document has a list of each part
// that is required. A rejected list does not count.
func CheckRequired(required Required, document []byte, stored []Stored) error {
	var missing []string
	for _, p := range PartsOf(document) {
		if required != RequireAll && (required != RequireRemotes || p.Remote == "") {
			continue
		}
		if !slices.ContainsFunc(stored, func(s Stored) bool { return s.Part == p.Key && s.State != Rejected }) {
			missing = append(missing, p.String())
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return fault.Newf(fault.Conflict, "the version needs a tool list of %s: record it with 'tollgate tools record', or ask the remote",
		few(slices.Compact(missing)))
}
