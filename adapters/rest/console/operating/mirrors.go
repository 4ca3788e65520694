package operating

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/tollgate-dev/tollgate/adapters/rest/console/site"
	"github.com/tollgate-dev/tollgate/core/fault"
	"github.com/tollgate-dev/tollgate/core/registry"
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

// mirrorInputs are the fields of a mirror without its name.
var mirrorInputs = []site.Input{
	{
		Name: "url", Label: "Address of the registry", Required: true,
		Hint: "What is before /v0.1, for example https://registry.example.com.",
	},
	{
		Name: "include", Label: "Include",
		Hint: "Patterns such as com.example/*, with spaces between them. Empty takes every name that it lists.",
	},
	{Name: "exclude", Label: "Exclude", Hint: "Patterns, also of what is included."},
	{Name: "interval", Label: "Interval", Hint: "Time between two reads, for example 10m or 24h. Empty for an hour."},
	{Name: "review", Label: "If documents are reviewed", Kind: "select", Options: []site.Option{
		{Value: "pending", Text: "They wait for review"}, {Value: "trusted", Text: "They are listed at once"},
	}},
	{Name: "lenient", Label: "Documents that break rules", Kind: "select", Options: []site.Option{
		{Value: "", Text: "Are refused"}, {Value: "true", Text: "Are taken too"},
	}},
}

func (p *Pages) mountMirrors(r fiber.Router) {
	p.open(r, mirrorsPath, p.mirrors)
	p.site.Post(r, mirrorsPath, 0, p.act("Add this mirror", p.addMirror, p.mirrors))
	p.open(r, mirrorPath, p.mirror)
	p.site.Post(r, mirrorPath, 0, p.act("Save this mirror", p.changeMirror, p.mirror))
	p.site.Post(r, mirrorPath+"/sync", 1, p.act("Read this mirror now", p.syncMirror, nil))
	p.site.Post(r, mirrorPath+"/remove", 2, p.act("Remove this mirror", p.removeMirror, nil))
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
		Action: mirrorsPath, Button: "Add this mirror", Inputs: append([]site.Input{nameInput}, mirrorInputs...),
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
	stored := url.Values{
		"url": {m.URL.Public()}, "interval": {m.Interval.String()}, "review": {string(m.Review)},
		"include": {strings.Join(registry.PatternTexts(m.Selection.Include), " ")},
		"exclude": {strings.Join(registry.PatternTexts(m.Selection.Exclude), " ")},
	}
	if m.Lenient {
		stored.Set("lenient", "true")
	}
	page.Change = v.Fill(site.Form{Action: page.Path, Button: "Save this mirror", Inputs: mirrorInputs}, stored, problems)
	return v.Render(mirrorPage, newHead(v, "Mirror "+string(m.Name), problems, page.Change), page)
}

// putMirror stores the mirror that a form describes.
func (p *Pages) putMirror(ctx context.Context, v *site.Visit, name string, check registry.Check[mirror.Mirror]) error {
	d := mirror.Draft{
		Name: name, URL: v.Trimmed("url"), Include: strings.Fields(v.Form.Get("include")),
		Exclude: strings.Fields(v.Form.Get("exclude")), Review: v.Form.Get("review"), Lenient: v.Form.Get("lenient") != "",
	}
	if text := v.Trimmed("interval"); text != "" {
		interval, err := time.ParseDuration(text)
		if err != nil {
			return fault.New(fault.Invalid, "interval must be a time such as 10m or 24h")
		}
		d.Interval = interval
	}
	_, _, err := p.ports.Mirrors.Put(ctx, d, check)
	return err
}

func managerOfMirror(m *mirror.Mirror) string { return m.ManagedBy }

func (p *Pages) addMirror(ctx context.Context, v *site.Visit) error {
	err := p.putMirror(ctx, v, v.Trimmed("name"), byHand(false, managerOfMirror))
	return done(v, err, mirrorsPath, "mirror")
}

func (p *Pages) changeMirror(ctx context.Context, v *site.Visit) error {
	err := p.putMirror(ctx, v, key[string](v, "name"), byHand(true, managerOfMirror))
	return done(v, err, v.Path(), "saved")
}

func (p *Pages) syncMirror(ctx context.Context, v *site.Visit) error {
	name := key[mirror.Name](v, "name")
	return done(v, p.ports.Mirrors.Schedule(ctx, name), mirrorsPath+"/"+url.PathEscape(string(name)), "sync")
}

func (p *Pages) removeMirror(ctx context.Context, v *site.Visit) error {
	_, err := p.ports.Mirrors.Remove(
		ctx, key[mirror.Name](v, "name"), v.Form.Get("purge") == "true", byHand(true, managerOfMirror))
	return done(v, err, mirrorsPath, "unmirrored")
}
