package operating

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/jsonvalue"
	"github.com/tollgate-dev/tollgate/core/registry/declaring"
)

const statePath = Path + "/state"

var statePage = site.NewPage(templates, "templates/state.html")

// appliedRow is the state of a file that an owner has applied, in words.
type appliedRow struct {
	Owner, By string
	At        time.Time
	Objects   int
	Drift     []driftRow
}

// driftRow is an object that has changed since.
type driftRow struct {
	Kind, Key string
	Fields    []string // lines; empty if it does not exist any more
}

func (p *Pages) state(ctx context.Context, v *site.Visit) error {
	all, err := p.ports.State.Applied(ctx)
	if err != nil {
		return err
	}
	rows := make([]appliedRow, len(all))
	for i, a := range all {
		rows[i] = appliedRow{Owner: a.Owner, By: a.By, At: a.At, Objects: len(a.Objects)}
		for _, c := range a.Drift {
			row := driftRow{Kind: c.Kind, Key: c.Key}
			if c.Operation != declaring.Delete {
				row.Fields = describeFields(c.Fields)
			}
			rows[i].Drift = append(rows[i].Drift, row)
		}
	}
	return v.Render(statePage, site.Head{Title: "Applied state"}, rows)
}

// describeFields returns the fields of a change, each with what it was and is.
func describeFields(fields jsonvalue.Object) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var values []string
		for _, value := range fields.List(name) {
			text, _ := json.Marshal(value) // never fails
			values = append(values, string(text))
		}
		lines = append(lines, name+": "+strings.Join(values, " → "))
	}
	return lines
}
