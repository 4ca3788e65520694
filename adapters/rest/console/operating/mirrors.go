package operating

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/registry/mirror"
)

const (
	mirrorsPath = Path + "/mirrors"
	mirrorPath  = mirrorsPath + "/:name"
)

var (
	mirrorsPage = site.NewPage(templates, "templates/mirrors.html")
	mirrorPage  = site.NewPage(templates, "templates/mirror.html")
)

func (p *Pages) mountMirrors(r fiber.Router) {
	p.mountKind(r, kindPages{
		Objects: p.ports.Mirrors.Objects(), list: p.mirrors, page: p.mirror, path: mirrorsPath, added: "mirror", removed: "unmirrored",
	})
	p.site.Post(r, mirrorPath+"/sync", 1, p.act("Read this mirror now", p.syncMirror, nil))
}

// mirrorRow is a mirror in words.
type mirrorRow struct {
	mirror.Mirror

	State mirror.State
	Text  string
	Class string
}

// mirrorStates are the states of mirrors in words.
var mirrorStates = map[mirror.Health]struct{ text, class string }{
	mirror.OK: {"Up to date", "good"}, mirror.Waiting: {"Not read yet", "warn"}, mirror.Failing: {"Failing", "bad"},
}

func newMirrorRow(m mirror.Mirror) mirrorRow {
	s := mirrorStates[m.State.Health()]
	return mirrorRow{m, m.State, s.text, s.class}
}

// mirrorsView is the page with the mirrors.
type mirrorsView struct {
	Mirrors []mirrorRow
	Add     site.FormView
}

func (p *Pages) mirrors(ctx context.Context, v *site.Visit, problems site.Problems) error {
	all, err := p.ports.Mirrors.List(ctx)
	if err != nil {
		return err
	}
	page := mirrorsView{Mirrors: make([]mirrorRow, len(all))}
	for i, m := range all {
		page.Mirrors[i] = newMirrorRow(m)
	}
	page.Add = v.Fill(site.Form{
		Action: mirrorsPath, Button: "Add this mirror", Inputs: append([]site.Input{nameInput}, inputsOf(mirror.Kind.Fields)...),
	}, nil, problems)
	return v.Render(mirrorsPage, newHead(v, "Mirrors", problems, page.Add), page)
}

// mirrorView is the page of a mirror.
type mirrorView struct {
	mirrorRow

	Path   string
	Change site.FormView
}

func (p *Pages) mirror(ctx context.Context, v *site.Visit, problems site.Problems) error {
	m, err := p.ports.Mirrors.Find(ctx, key[mirror.Name](v, "name"))
	if err != nil {
		return err
	}
	setConflict(v, problems, m.ManagedBy)
	page := mirrorView{mirrorRow: newMirrorRow(m), Path: mirrorsPath + "/" + string(m.Name)}
	page.Change = v.Fill(site.Form{Action: page.Path, Button: "Save this mirror", Inputs: inputsOf(mirror.Kind.Fields)},
		formValues(mirror.Kind.Fields, m.Fields()), problems)
	return v.Render(mirrorPage, newHead(v, "Mirror "+string(m.Name), problems, page.Change), page)
}

func (p *Pages) syncMirror(ctx context.Context, v *site.Visit) error {
	name := key[mirror.Name](v, "name")
	return v.Done(p.ports.Mirrors.Schedule(ctx, name), mirrorsPath+"/"+url.PathEscape(string(name)), "sync")
}
