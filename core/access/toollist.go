package access

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// ToolList is what a part of a listed version shows, or showed when it was approved. Lists that wait for their first
// approval are left out: they are no change.
type ToolList struct {
	ListName

	Part     string // the part and how the list was read: lists of one show the same server
	Approved bool
	Tools    []toolserver.Tool
}

// ListName is what people know a tool list by.
type ListName struct {
	Version string
	Place   string    // the URL of the remote, or "package" and its index
	At      time.Time // when it was sent
}

// knownTools is what the approved lists of a server say (contract W-7, W-9). One without an approved list has nil.
type knownTools struct {
	lists []ListName
	tools []knownTool       // that an approved list has, by name
	marks []toolserver.Mark // of those in approved lists, sorted
}

// knownTool is a tool of an approved list.
type knownTool struct {
	name    string
	traits  toolserver.Traits // the careful ones, if lists differ
	changed bool              // it is shown now with a mark that no approved list has
	list    int32             // by which it has its traits: the newest one, unless another one is more careful
}

// newTools returns what is known of the tools of a server by its lists.
func newTools(lists []ToolList) *knownTools {
	lists = slices.Clone(lists)
	slices.SortStableFunc(lists, func(a, b ToolList) int {
		return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Part, b.Part))
	})
	k := &knownTools{}
	for _, l := range lists {
		if !l.Approved {
			continue
		}
		for _, t := range l.Tools {
			k.tools = append(k.tools, knownTool{name: strings.Clone(t.Name), traits: t.Traits, list: int32(len(k.lists))})
			k.marks = append(k.marks, t.Mark)
		}
		k.lists = append(k.lists, l.ListName)
	}
	if k.lists == nil {
		return nil
	}
	slices.SortStableFunc(k.tools, func(a, b knownTool) int { return strings.Compare(a.name, b.name) })
	k.tools = slices.Clone(joinTools(k.tools)) // versions mostly have the same, whose memory ends here
	slices.SortFunc(k.marks, compareMarks)
	k.marks = slices.Clone(slices.Compact(k.marks))
	k.noteChanges(lists)
	return k
}

// joinTools makes one tool of those of one name, of which the newest is the first.
func joinTools(all []knownTool) []knownTool {
	joined := all[:0]
	for _, t := range all {
		n := len(joined)
		if n == 0 || joined[n-1].name != t.name {
			joined = append(joined, t)
			continue
		}
		last := &joined[n-1]
		if careful := last.traits.Careful(t.traits); careful != last.traits {
			last.traits, last.list = careful, t.list
		}
	}
	return joined
}

// noteChanges marks the tools that are shown now as no list has them that is approved. lists are in their order, the
// newest first: of each part, the first one that is not approved is what is shown now.
func (k *knownTools) noteChanges(lists []ToolList) {
	seen := map[string]bool{}
	for _, l := range lists {
		if l.Approved || seen[l.Part] {
			continue
		}
		seen[l.Part] = true
		for _, t := range l.Tools {
			if i, found := k.find(t.Name); found && !k.approves(t.Mark) {
				k.tools[i].changed = true
			}
		}
	}
}

func compareMarks(a, b toolserver.Mark) int { return bytes.Compare(a[:], b[:]) }

// find returns the place of a tool.
func (k *knownTools) find(name string) (int, bool) {
	return slices.BinarySearchFunc(k.tools, name, func(t knownTool, n string) int { return strings.Compare(t.name, n) })
}

// approves reports whether an approved list has a tool with a mark.
func (k *knownTools) approves(m toolserver.Mark) bool {
	_, found := slices.BinarySearchFunc(k.marks, m, compareMarks)
	return found
}

// noTool is in place of the traits of the tool of a call of no tool.
const noTool = toolserver.AllTraits + 1

// traitsOf returns the traits of the tool of a call. Those of one that no approved list has are the default.
func (k *knownTools) traitsOf(c *Call) toolserver.Traits {
	name := c.Tool()
	if name == "" {
		return noTool
	}
	if k != nil {
		if i, found := k.find(name); found {
			return k.tools[i].traits
		}
	}
	return toolserver.DefaultTraits
}

// refuses reports whether a call of a tool is not as it was approved (contract W-7): the server shows the tool with
// another mark, or no approved list has its name, so that no list can have its mark. Of a tool in a list that passes, its
// mark there decides (contract W-8).
func (k *knownTools) refuses(c *Call) bool {
	if k == nil || c.Class != CallsTools {
		return false
	}
	i, found := k.find(c.Name)
	return !found || k.tools[i].changed || c.Mark != nil && !k.approves(c.Mark())
}

// refusesTool reports whether a call is denied because its tool is not as it was approved. If all is only observed,
// it notes that in the decision.
func (s *Snapshot) refusesTool(q *Question, k *knownServer, d *Decision) bool {
	if s.options.OnChange != toolserver.DenyCalls || !k.tools.refuses(&q.Call) {
		return false
	}
	if s.options.Mode == Observe {
		d.Observed = Observed{Effect: Deny, Reason: ToolChanged}
		return false
	}
	return true
}

// deniesTools reports whether calls of tools of a server can be denied because of their marks.
func (s *Snapshot) deniesTools(k *knownServer) bool {
	return s.options.OnChange == toolserver.DenyCalls && s.options.Mode != Observe && k.tools != nil
}

// Seen says what the approved lists of a server say about a tool in a list that passes (contract W-8).
type Seen string

// What they say.
const (
	Approved   Seen = "approved"
	Unapproved Seen = "unapproved" // they do not have its mark
	Unreviewed Seen = "unknown"    // the server has no approved list
)

// See compares a tool in a list that passes, which has a mark, with the approved lists of a server.
func (s *Snapshot) See(server string, c *Call) Seen {
	k, known := s.servers.get(server)
	switch {
	case !known || k.tools == nil:
		return Unreviewed
	case k.tools.approves(c.Mark()):
		return Approved
	}
	return Unapproved
}

// ToolFacts is what Explain says about the tool of a call.
type ToolFacts struct {
	Hints   []Hint    // what holds of it
	List    *ListName // the approved list by which they hold; nil without one
	Refused bool      // it is not as it was approved
}

// factsOf returns the facts of the tool of a call; nil for a call of no tool.
func (k *knownServer) factsOf(c *Call) *ToolFacts {
	if c.Tool() == "" {
		return nil
	}
	f := &ToolFacts{Hints: HintsOf(k.tools.traitsOf(c)), Refused: k.tools.refuses(c)}
	if k.tools != nil {
		if i, found := k.tools.find(c.Name); found {
			f.List = &k.tools.lists[k.tools.tools[i].list]
		}
	}
	return f
}
