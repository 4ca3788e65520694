package catalogue

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/tools"
)

// The bounds of what a page shows of tool lists. The API has all of them.
const (
	maxTools    = 40      // of all lists together
	maxSentence = 160     // bytes of what a tool says that it does
	maxSchemas  = 8 << 10 // bytes of the parameters of all tools together
)

// toolsView has the tool lists of a version.
type toolsView struct {
	Lists []toolList
	More  int    // tools that are in no list here
	All   string // the address of the whole lists
}

// toolList is the list of a remote or a package.
type toolList struct {
	Part    string
	Problem string // why its remote cannot be asked, if it is no list; otherwise empty
	State   site.Badge
	Reads   int // of the tools
	Changes int
	At      time.Time
	Tools   []toolRow
}

// toolRow is a tool in words.
type toolRow struct {
	Name, Sentence string
	Effect         site.Badge // what it says that it does to data
	Schema         string     // of its parameters; empty if it has none, or if it is too long for the page
}

// addTools adds the tool lists of the version: of each part the approved one, or the one that waits.
func (p *Pages) addTools(v *site.Visit, view *serverView, r registry.Record) error {
	shown, check, err := p.ports.Tools.Checked(v.UserContext(), r)
	view.Check = check
	if err != nil || len(shown) == 0 {
		return err
	}
	view.Tools = &toolsView{All: "/v0.1/x/dev.tollgate/servers/" + strings.ReplaceAll(view.Name, "/", "%2F") + "/versions/" + r.Version.String() + "/tools"}
	space := maxSchemas
	for i := range shown {
		one := &shown[i]
		if last := len(view.Tools.Lists) - 1; one.State == tools.Differs && last >= 0 && view.Tools.Lists[last].Part == one.Place.String() {
			view.Tools.Lists[last].State = toolStates[tools.Differs]
			continue
		}
		view.Tools.add(one, &space)
	}
	return nil
}

var toolStates = map[tools.State]site.Badge{
	tools.Approved: {Text: "Approved", Class: "good"}, tools.Differs: {Text: "Changed since", Class: "bad"},
	tools.Pending: {Text: "Not reviewed", Class: "warn"},
}

// add adds a list, with the parameters of its tools as far as there is space.
func (view *toolsView) add(one *tools.Shown, space *int) {
	list := toolList{Part: one.Place.String(), State: toolStates[one.State], At: one.At, Problem: one.Problem}
	for _, t := range one.List.Tools {
		row := toolRow{Name: shortText(t.Name), Effect: site.Badge{Text: "changes", Class: "warn"}}
		if reads, _ := t.Says(tools.ReadOnly); reads {
			row.Effect = site.Badge{Text: "reads"}
			list.Reads++
		} else {
			list.Changes++
		}
		if len(list.Tools)+view.count() >= maxTools {
			view.More++
			continue
		}
		row.Sentence = firstSentence(t.Description())
		schema, err := json.Marshal(t.Fields().Inner("inputSchema"))
		if err == nil && len(schema) > len("{}") && len(schema) <= *space {
			row.Schema = site.IndentJSON(schema).Text
			*space -= len(schema)
		}
		list.Tools = append(list.Tools, row)
	}
	view.Lists = append(view.Lists, list)
}

func (view *toolsView) count() (n int) {
	for i := range view.Lists {
		n += len(view.Lists[i].Tools)
	}
	return n
}

// firstSentence returns the first sentence of a text, cut if it is long.
func firstSentence(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if first, _, found := strings.Cut(text, ". "); found {
		text = first
	}
	e := site.NewExcerpt(strings.TrimSuffix(text, "."), maxSentence)
	if e.Cut {
		return e.Text + "…"
	}
	return e.Text
}
