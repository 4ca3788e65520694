package reviewing

import (
	"net/url"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
	"github.com/tollgate-dev/tollgate/core/registry/quarantining"
)

// quarantineView is the page with what is in quarantine.
type quarantineView struct {
	Entries               []registry.Quarantined
	Next                  string
	Later                 bool
	Name, Version, Reason string // as the form was filled in
}

func (p *Pages) showQuarantine(v *site.Visit, problems site.Problems) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	found, err := p.ports.Quarantine.List(v.UserContext(), who, quarantining.Query{Cursor: v.Text("cursor")})
	if err != nil {
		return err
	}
	head := site.Head{Title: "Quarantine", Notice: notices[v.Text("done")], Problems: problems}
	return v.Render(quarantinePage, head, newQuarantineView(v, found))
}

func newQuarantineView(v *site.Visit, found quarantining.Page) quarantineView {
	view := quarantineView{
		Entries: found.Entries, Later: v.Text("cursor") != "",
		Name: v.Form.Get("name"), Version: v.Form.Get("version"), Reason: v.Form.Get("reason"),
	}
	if view.Name == "" {
		view.Name, view.Version = v.Text("name"), v.Text("version")
	}
	if found.NextCursor != "" {
		view.Next = QuarantinePath + "?cursor=" + url.QueryEscape(found.NextCursor)
	}
	return view
}

// hide puts a server or a version in quarantine.
func (p *Pages) hide(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	_, err = p.ports.Quarantine.Add(v.UserContext(), who, quarantining.Draft{
		Target: readTarget(v), Reason: v.Form.Get("reason"),
	})
	if fault.Is(err, fault.NotFound) { // the form is at fault, not the address
		err = fault.New(fault.Invalid, missingTarget(v))
	}
	if err != nil {
		return err
	}
	return v.Redirect(QuarantinePath + "?done=hidden")
}

// missingTarget returns what is wrong with a form that names nothing in the registry.
func missingTarget(v *site.Visit) string {
	if v.Form.Get("version") != "" {
		return "version: the registry has no such version of this server"
	}
	return "serverName: the registry has no such server"
}

// release releases a server or a version from quarantine.
func (p *Pages) release(v *site.Visit) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	if err := p.ports.Quarantine.Release(v.UserContext(), who, readTarget(v)); err != nil {
		return err
	}
	return v.Redirect(QuarantinePath + "?done=released")
}

func readTarget(v *site.Visit) quarantining.Target {
	return quarantining.Target{ServerName: v.Form.Get("name"), Version: v.Form.Get("version")}
}
