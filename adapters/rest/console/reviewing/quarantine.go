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
	Name, Version, Reason string              // as the form was filled in
	Of                    quarantining.Target // the version that the form or the last act is about
	Remaining             []registry.Shared   // what offers the same and stays listed
	MoreRemaining         int
	Whole                 string // the address of the form for the whole server
}

// maxRemaining is the number of versions on the page that offer the same as a hidden one.
const maxRemaining = 10

func (p *Pages) showQuarantine(v *site.Visit, problems site.Problems) error {
	who, err := v.Caller()
	if err != nil {
		return err
	}
	found, err := p.ports.Quarantine.List(v.UserContext(), who, quarantining.Query{Cursor: v.Text("cursor")})
	if err != nil {
		return err
	}
	view := newQuarantineView(v, found)
	if err := p.addRemaining(v, &view); err != nil {
		return err
	}
	head := site.Head{Title: "Quarantine", Notice: notices[v.Text("done")], Problems: problems}
	return v.Render(quarantinePage, head, view)
}

// addRemaining adds what stays listed and offers the same, if one version is hidden.
func (p *Pages) addRemaining(v *site.Visit, view *quarantineView) error {
	view.Of = quarantining.Target{ServerName: view.Name, Version: view.Version}
	all, err := p.ports.Quarantine.Remaining(v.UserContext(), view.Of)
	view.Remaining = all[:min(len(all), maxRemaining)]
	view.MoreRemaining = len(all) - len(view.Remaining)
	view.Whole = QuarantinePath + "?" + url.Values{"name": {view.Name}, "reason": {view.Reason}}.Encode()
	if v.Text("done") != "" { // the form is for the next one
		view.Name, view.Version, view.Reason = "", "", ""
	}
	return err
}

func newQuarantineView(v *site.Visit, found quarantining.Page) quarantineView {
	view := quarantineView{
		Entries: found.Entries, Later: v.Text("cursor") != "",
		Name: v.Form.Get("name"), Version: v.Form.Get("version"), Reason: v.Form.Get("reason"),
	}
	if view.Name == "" {
		view.Name, view.Version, view.Reason = v.Text("name"), v.Text("version"), v.Text("reason")
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
	target, reason := readTarget(v), v.Form.Get("reason")
	_, err = p.ports.Quarantine.Add(v.UserContext(), who, quarantining.Draft{
		Target: target, Reason: reason,
	})
	if fault.Is(err, fault.NotFound) { // the form is at fault, not the address
		err = fault.New(fault.Invalid, missingTarget(v))
	}
	if err != nil {
		return err
	}
	done := url.Values{"done": {"hidden"}}
	if target.Version != "" { // the page says what stays listed
		done["name"], done["version"], done["reason"] = []string{target.ServerName}, []string{target.Version}, []string{reason}
	}
	return v.Redirect(QuarantinePath + "?" + done.Encode())
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
	return v.Done(p.ports.Quarantine.Release(v.UserContext(), who, readTarget(v)), QuarantinePath, "released")
}

func readTarget(v *site.Visit) quarantining.Target {
	return quarantining.Target{ServerName: v.Form.Get("name"), Version: v.Form.Get("version")}
}
