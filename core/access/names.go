package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/tollgate-dev/tollgate/core/fields"
	"github.com/tollgate-dev/tollgate/core/toolserver"
)

// names are the names of servers and namespaces, and of tools in approved lists.
type names struct{ servers, tools map[string]bool }

// namesOf returns the names of the servers of a pattern.
func (s *Snapshot) namesOf(p toolserver.Pattern) names {
	n := names{map[string]bool{}, map[string]bool{}}
	prefix := strings.TrimSuffix(p.String(), toolserver.Everything)
	for name, k := range s.servers.from(prefix) {
		switch {
		case !strings.HasPrefix(name, prefix):
			return n
		case k.Deleted || !p.Matches(k.Name):
			continue
		}
		namespace, _, _ := strings.Cut(name, "/")
		n.servers[namespace+"/*"], n.servers[name] = true, true
		if k.tools != nil {
			for i := range k.tools.tools {
				n.tools[k.tools.tools[i].name] = true
			}
		}
	}
	return n
}

// Names returns the names of servers and their namespaces, and of tools in approved lists, in order.
func (s *Snapshot) Names() (servers, tools []string) {
	n := s.namesOf(everything[0])
	return slices.Sorted(maps.Keys(n.servers)), slices.Sorted(maps.Keys(n.tools))
}

// maxNearest is for how many unknown names Unknown looks for the most similar one, among all that exist.
const maxNearest = 5

// Unknown returns in sentences which servers and tools of a rule do not exist. A tool exists if a server of
// the rule has it in an approved list, and may exist if no server has a list. It says too if programs cannot list the tools.
func (s *Snapshot) Unknown(r *Rule) (doubts []string) {
	var known, tools []string
	doubt := func(what, name string, known []string) {
		if len(doubts) >= maxNearest {
			known = nil
		}
		doubts = append(doubts, Doubt(what, "", name, known))
	}
	for _, p := range r.Servers {
		n := s.namesOf(p)
		if tools = slices.AppendSeq(tools, maps.Keys(n.tools)); len(n.servers) == 0 && !p.IsEverything() {
			if known == nil {
				known, _ = s.Names()
			}
			doubt("server", p.String(), known)
		}
	}
	for _, tool := range r.Tools {
		prefix, wild := strings.CutSuffix(tool, "*")
		if len(tools) > 0 && !slices.ContainsFunc(tools, func(one string) bool {
			return one == tool || wild && strings.HasPrefix(one, prefix)
		}) {
			doubt("tool", tool, tools)
		}
	}
	if r.Effect == Allow && len(r.Methods) == 1 && r.Methods[0] == CallsTools {
		doubts = append(doubts, "It allows tools/call alone. Programs list the tools before they call one: allow tools/list, too.")
	}
	return doubts
}

// Doubt returns a sentence that nothing has a name, with the most similar of the names that exist. Those
// names have a prefix.
func Doubt(what, prefix, name string, known []string) string {
	text := "No " + what + " " + name + " was seen yet."
	if nearest, ok := strings.CutPrefix(fields.Nearest(prefix+name, known), prefix); ok && nearest != "" {
		text += " Nearest: " + nearest
	}
	return text
}

// WithRule returns the snapshot with a rule in place of the one with its name, or besides the others.
func (s *Snapshot) WithRule(r *Rule) *Snapshot {
	others := slices.DeleteFunc(s.Rules(), func(one Rule) bool { return one.Name == r.Name })
	return s.WithRules(append(others, *r))
}
